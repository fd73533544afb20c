//! Curves as a small plot of characters: one glyph for each curve, the axes around it.

use super::charts::{COLOURS, name_width, padded_name, pick};
use super::text::{display_width, pad_left, shorten};
use super::{Screen, Style};
use crate::curves::{Curve, CurveShape, Curves};
use crate::ticks::Range;

/// How many lines the plot has: with axis and legend, a third of a screen.
const LINES: usize = 9;
/// The smallest width of a plot.
const COLUMNS_MIN: usize = 16;
const GLYPHS: [char; 8] = ['●', '○', '◆', '◇', '▲', '△', '■', '□'];
const GLYPHS_ASCII: [char; 8] = ['*', 'o', 'x', '+', '#', '@', '%', '&'];
const MARK: [char; 1] = ['┊'];
const MARK_ASCII: [char; 1] = ['|'];

/// The content of one character of the plot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Empty,
    Mark,
    Curve(usize),
}

pub(super) fn render(screen: &mut Screen, chart: &Curves) {
    let x = Range::spanning(chart.xs(), chart.x.unit, chart.x.scale, 5);
    let y = Range::covering(chart.ys(), chart.y.unit, chart.y.scale, 4);
    let top = y.ticks.last().map_or("", |tick| tick.label.as_str());
    let bottom = y.ticks.first().map_or("", |tick| tick.label.as_str());
    let margin = display_width(top).max(display_width(bottom));
    let columns = screen.width.saturating_sub(margin + 4).max(COLUMNS_MIN);
    let cells = plot(chart, &x, &y, columns);
    let style = screen.style;
    screen.paragraph(&chart.y.label, "  ", true);
    for line in (0..LINES).rev() {
        let edge = match line {
            l if l + 1 == LINES => top,
            0 => bottom,
            _ => "",
        };
        let shown: Vec<Cell> = (0..columns).map(|column| cells[column * LINES + line]).collect();
        let runs = shown.chunk_by(|a, b| a == b).map(|run| drawn(style, run[0], run.len()));
        let text = format!("  {}  {}", pad_left(edge, margin), runs.collect::<String>());
        screen.line(&text);
    }
    let axis =
        style.dim(&format!("{}{}", " ".repeat(margin + 4), axis(screen, chart, &x, columns)));
    screen.line(&axis);
    legend(screen, chart);
}

/// The ends of the horizontal axis, with its name between them.
fn axis(screen: &Screen, chart: &Curves, x: &Range, columns: usize) -> String {
    let [from, to] = [x.low, x.high].map(|end| chart.x.unit.format(end));
    let space = columns.saturating_sub(display_width(&from) + display_width(&to) + 2);
    let label = shorten(&screen.clean(&chart.x.label), space, screen.style.unicode);
    let before = (space - display_width(&label)) / 2 + 1;
    let line = format!("{from}{}{label}", " ".repeat(before));
    let gap = columns.saturating_sub(display_width(&line) + display_width(&to)).max(1);
    format!("{line}{}{to}", " ".repeat(gap))
}

/// `count` equal cells in a row.
fn drawn(style: Style, cell: Cell, count: usize) -> String {
    match cell {
        Cell::Empty => " ".repeat(count),
        Cell::Mark => style.dim(&pick(style, &MARK, &MARK_ASCII, 0).to_string().repeat(count)),
        Cell::Curve(i) => {
            let place = i % GLYPHS.len();
            let glyph = pick(style, &GLYPHS, &GLYPHS_ASCII, place).to_string();
            style.paint(COLOURS[place], &glyph.repeat(count))
        }
    }
}

/// The glyph of each curve with its range of values, and where the marks are.
fn legend(screen: &mut Screen, chart: &Curves) {
    let names = name_width(screen, chart.series.iter().map(|curve| curve.name.as_str()));
    for (i, curve) in chart.series.iter().enumerate() {
        let name = padded_name(screen, &curve.name, names);
        let low = curve.known().map(|(_, y)| y).reduce(f64::min);
        let high = curve.known().map(|(_, y)| y).reduce(f64::max);
        let extremes = match (low, high) {
            (Some(low), Some(high)) => {
                format!("{} .. {}", chart.y.unit.format(low), chart.y.unit.format(high))
            }
            _ => "no data".into(),
        };
        let line = format!("  {} {name}  {extremes}", drawn(screen.style, Cell::Curve(i), 1));
        screen.line(&line);
    }
    for mark in chart.marks.iter().filter(|mark| mark.x.is_finite()) {
        let line = pick(screen.style, &MARK, &MARK_ASCII, 0);
        let text = format!("{line} {}: {}", chart.x.unit.format(mark.x), mark.label);
        screen.paragraph(&text, "  ", true);
    }
}

/// The plot, column by column, each from the bottom.
fn plot(chart: &Curves, x: &Range, y: &Range, columns: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::Empty; columns * LINES];
    let nearest = |place: f64, count: usize| (place * (count - 1) as f64).round() as usize;
    for place in chart.marks.iter().filter_map(|mark| x.place(mark.x)) {
        let column = nearest(place, columns);
        cells[column * LINES..(column + 1) * LINES].fill(Cell::Mark);
    }
    // The first curve comes last, so that it lies on top.
    for (i, curve) in chart.series.iter().enumerate().rev() {
        let places: Vec<(f64, f64)> = places(curve, x, y);
        let mut set = |column: usize, height: f64| {
            cells[column * LINES + nearest(height, LINES)] = Cell::Curve(i);
        };
        for &(x, y) in &places {
            set(nearest(x, columns), y);
        }
        for column in 0..columns {
            let at = column as f64 / (columns - 1) as f64;
            if let Some(height) = height(&places, curve.shape, at) {
                set(column, height);
            }
        }
    }
    cells
}

fn places(curve: &Curve, x: &Range, y: &Range) -> Vec<(f64, f64)> {
    curve.known().filter_map(|point| Some((x.place(point.0)?, y.place(point.1)?))).collect()
}

/// How high a curve is between two of its points, all as places from 0 to 1.
fn height(places: &[(f64, f64)], shape: CurveShape, x: f64) -> Option<f64> {
    let next = places.partition_point(|place| place.0 <= x);
    let (left, right) = (*places.get(next.checked_sub(1)?)?, *places.get(next)?);
    match shape {
        CurveShape::Dots => None,
        CurveShape::Steps => Some(left.1),
        CurveShape::Line => {
            let part = (x - left.0) / (right.0 - left.0).max(f64::MIN_POSITIVE);
            Some(left.1 + part * (right.1 - left.1))
        }
    }
}
