//! Charts in characters: the rough shape, with the numbers next to it.

use super::text::{display_width, pad_left, pad_right, shorten};
use super::{Screen, Style, curves};
use crate::chart::{Bars, Chart, Heatmap, Lines, Series, Stacked};
use crate::shades::Shades;
use crate::ticks::Range;
use crate::unit::Unit;

/// From little to much. Zero is a space.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SPARKS_ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '%', '#'];
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
const SHADES_ASCII: [char; 4] = ['.', '+', '*', '#'];
/// The characters that distinguish the parts of a bar without colours.
const FILLS: [char; 8] = ['█', '▒', '░', '▓', '=', '+', ':', '-'];
const FILLS_ASCII: [char; 8] = ['#', '=', '+', ':', '-', 'o', 'x', '~'];
pub(super) const COLOURS: [&str; 8] = ["34", "33", "36", "35", "32", "31", "94", "90"];
/// How many lines of bars are shown, and how many of a heat map.
const BARS_MAX: usize = 24;
const HEAT_LINES: usize = 8;

pub(super) fn render(screen: &mut Screen, chart: &Chart) {
    let title = screen.clean(chart.title());
    let title = screen.style.bold(&title);
    screen.line(&title);
    screen.paragraph(chart.caption(), "", true);
    match chart {
        Chart::Lines(chart) => lines(screen, chart),
        Chart::Curves(chart) => curves::render(screen, chart),
        Chart::Bars(chart) => bars(screen, chart),
        Chart::Stacked(chart) => stacked(screen, chart),
        Chart::Heatmap(chart) => heatmap(screen, chart),
    }
}

pub(super) fn pick(style: Style, unicode: &[char], ascii: &[char], level: usize) -> char {
    let set = if style.unicode { unicode } else { ascii };
    set[level.min(set.len() - 1)]
}

pub(super) fn name_width<'a>(screen: &Screen, names: impl Iterator<Item = &'a str>) -> usize {
    names.map(|n| display_width(&screen.clean(n))).max().unwrap_or(0).min(screen.width / 4)
}

pub(super) fn padded_name(screen: &Screen, name: &str, width: usize) -> String {
    pad_right(&shorten(&screen.clean(name), width, screen.style.unicode), width)
}

/// One line of sparks for each series, on a common scale, with its extremes.
fn lines(screen: &mut Screen, chart: &Lines) {
    let all = chart.series.iter().flat_map(|s| (0..chart.times.len()).filter_map(|i| s.value(i)));
    let range = Range::covering(all, chart.y.unit, chart.y.scale, 5);
    let names = name_width(screen, chart.series.iter().map(|s| s.name.as_str()));
    let extremes: Vec<String> = chart.series.iter().map(|s| extremes(s, chart.y.unit)).collect();
    let numbers = extremes.iter().map(String::len).max().unwrap_or(0);
    let space = screen.width.saturating_sub(names + numbers + 6).max(8);
    let thin = chart.thinned(space);
    for (series, numbers) in thin.series.iter().zip(&extremes) {
        let spark = |i: usize| match series.value(i).and_then(|value| range.place(value)) {
            None => ' ',
            Some(place) => {
                let level = (place * 8.0).ceil().max(1.0) as usize - 1;
                pick(screen.style, &SPARKS, &SPARKS_ASCII, level)
            }
        };
        let sparks: String = (0..thin.times.len()).map(spark).collect();
        let name = padded_name(screen, &series.name, names);
        let sparks = screen.style.paint("34", &pad_right(&sparks, thin.times.len()));
        screen.line(&format!("  {name}  {sparks}  {numbers}"));
    }
    time_axis(screen, &chart.time_range, names + 4, thin.times.len());
}

fn extremes(series: &Series, unit: Unit) -> String {
    let known = || series.values.iter().flatten().copied().filter(|v| v.is_finite());
    match (known().reduce(f64::min), known().reduce(f64::max)) {
        (Some(low), Some(high)) => format!("{} .. {}", unit.format(low), unit.format(high)),
        _ => "no data".into(),
    }
}

/// One line for each label, with one bar for each series.
fn bars(screen: &mut Screen, chart: &Bars) {
    let style = screen.style;
    let labels = name_width(screen, chart.labels.iter().map(String::as_str));
    let all = chart.series.iter().flat_map(|s| (0..chart.labels.len()).filter_map(|i| s.value(i)));
    let range = Range::covering(all, chart.y.unit, chart.y.scale, 5);
    let number = |series: &Series, i: usize| {
        series.value(i).map_or(style.missing().into(), |value| chart.y.unit.format(value))
    };
    let numbers = chart.series.iter().flat_map(|s| (0..chart.labels.len()).map(|i| number(s, i)));
    let numbers = numbers.map(|text| display_width(&text)).max().unwrap_or(0);
    let share = screen.width.saturating_sub(labels + 2) / chart.series.len().max(1);
    let space = share.saturating_sub(numbers + 4).max(4);
    let mut head = " ".repeat(labels + 2);
    for series in &chart.series {
        let name = screen.clean(&series.name);
        head += "  ";
        head += &pad_right(&shorten(&name, space + numbers, style.unicode), space + numbers + 2);
    }
    let head = style.bold(&head);
    screen.line(&head);
    for (i, label) in chart.labels.iter().enumerate().take(BARS_MAX) {
        let mut line = format!("  {}", padded_name(screen, label, labels));
        for series in &chart.series {
            let place = series.value(i).and_then(|value| range.place(value)).unwrap_or(0.0);
            let mut length = (place * space as f64).round() as usize;
            if length == 0 && series.value(i).is_some_and(|value| value > 0.0) {
                length = 1;
            }
            let bar = pick(style, &['█'], &['#'], 0).to_string().repeat(length);
            let bar = style.paint("34", &bar) + &" ".repeat(space - length);
            line += &format!("  {} {bar} ", pad_left(&number(series, i), numbers));
        }
        screen.line(&line);
    }
    let rest = chart.labels.len().saturating_sub(BARS_MAX);
    if rest > 0 {
        screen.paragraph(&format!("({rest} more in the HTML and JSON reports)"), "  ", true);
    }
}

/// One bar and a legend.
fn stacked(screen: &mut Screen, chart: &Stacked) {
    let style = screen.style;
    let total = chart.total();
    let space = screen.width - 4;
    let fill = |i: usize, length: usize| {
        let glyph = match style.color {
            true => pick(style, &['█'], &FILLS_ASCII, i % FILLS_ASCII.len()),
            false => pick(style, &FILLS, &FILLS_ASCII, i % FILLS.len()),
        };
        style.paint(COLOURS[i % COLOURS.len()], &glyph.to_string().repeat(length))
    };
    // Ends are rounded rather than lengths, so that the parts fill the bar exactly.
    let (mut bar, mut sum, mut end) = (String::new(), 0.0, 0);
    for (i, segment) in chart.segments.iter().enumerate() {
        sum += segment.size();
        let next = if total > 0.0 { (sum / total * space as f64).round() as usize } else { 0 };
        bar += &fill(i, next - end);
        end = next;
    }
    screen.line(&format!("  {bar}"));
    let names = name_width(screen, chart.segments.iter().map(|s| s.name.as_str()));
    for (i, segment) in chart.segments.iter().enumerate() {
        let name = padded_name(screen, &segment.name, names);
        let share = if total > 0.0 { segment.size() / total } else { 0.0 };
        let share = pad_left(&Unit::Percent.format(share), 6);
        let amount = pad_left(&chart.unit.format(segment.size()), 10);
        screen.line(&format!("  {} {name}  {amount}  {share}", fill(i, 1)));
    }
}

/// A few lines for each layer, the highest addresses on top.
fn heatmap(screen: &mut Screen, chart: &Heatmap) {
    let style = screen.style;
    let edges: Vec<String> = [chart.address_range.end, chart.address_range.start]
        .map(|edge| Unit::Bytes.format(edge as f64))
        .into();
    let margin = edges.iter().map(String::len).max().unwrap_or(0);
    let columns = chart.columns.min(screen.width.saturating_sub(margin + 4)).max(1);
    let lines = chart.rows.clamp(1, HEAT_LINES);
    // A cell of the screen shows the largest amount of the cells that it covers.
    let busiest = |layer: &crate::chart::Layer, column: usize, line: usize| {
        let columns = column * chart.columns / columns..(column + 1) * chart.columns / columns;
        let rows = line * chart.rows / lines..(line + 1) * chart.rows / lines;
        let cell = |c: usize| rows.clone().map(move |r| layer.cell(c, r, chart.rows)).max();
        columns.filter_map(cell).max().unwrap_or(0)
    };
    for (i, layer) in chart.layers.iter().enumerate() {
        let shades = Shades::covering(&layer.cells, SHADES.len());
        let name = style.bold(&screen.clean(&layer.name));
        let most = layer.cells.iter().max().copied().unwrap_or(0);
        let most = style.dim(&format!("up to {} a cell", chart.unit.format(most as f64)));
        screen.line(&format!("  {name}  {most}"));
        for line in (0..lines).rev() {
            let shade = |column: usize| match shades.class(busiest(layer, column, line)) {
                0 => ' ',
                class => pick(style, &SHADES, &SHADES_ASCII, class - 1),
            };
            let cells: String = (0..columns).map(shade).collect();
            let edge = match line {
                l if l + 1 == lines => edges[0].as_str(),
                0 => edges[1].as_str(),
                _ => "",
            };
            let cells = style.paint(COLOURS[i % COLOURS.len()], &cells);
            screen.line(&format!("  {}  {cells}", pad_left(edge, margin)));
        }
    }
    time_axis(screen, &chart.time_range, margin + 4, columns);
}

/// The ends of a time axis of `width` columns, `margin` columns from the left.
fn time_axis(screen: &mut Screen, range: &std::ops::Range<u64>, margin: usize, width: usize) {
    let [from, to] = [range.start, range.end].map(|time| Unit::Nanos.format(time as f64));
    let to = pad_left(&to, width.saturating_sub(from.len()).max(to.len() + 1));
    let axis = screen.style.dim(&format!("{}{from}{to}", " ".repeat(margin)));
    screen.line(&axis);
}
