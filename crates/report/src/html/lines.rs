//! Lines over time, with bands.

use super::frame::{self, Plot, SIDE, num};
use super::{Page, table};
use crate::chart::{Chart, Lines, Series};
use crate::model::{Table, Value};
use crate::ticks::{self, Range};
use crate::unit::Unit;

/// How many points of a line are drawn: about one for each pixel of a wide screen.
const POINTS_MAX: usize = 1000;
/// So few points are drawn as dots, too.
const FEW: usize = 40;

pub fn render(page: &mut Page, chart: &Lines) {
    let numbers = chart.thinned(POINTS_MAX);
    let colours = page.palette.assign(chart.series.iter().map(|s| s.name.as_str()));
    let (start, end) = (chart.time_range.start, chart.time_range.end);
    let x = Range::exactly(start as f64, end as f64, Unit::Nanos, 8);
    let y = Range::covering(values(&numbers), chart.y.unit, chart.y.scale, 5);
    let xs: Vec<f64> = numbers.times.iter().map(|&t| x.place(t).unwrap_or(0.0) * SIDE).collect();

    // The first series comes last, so that it lies on top.
    let mut drawing = frame::grid(&y);
    for (i, series) in numbers.series.iter().enumerate().rev() {
        drawing += &format!(
            "<g data-series=\"{i}\" class=\"k{}\">{}{}</g>",
            colours[i],
            band(series, &xs, &y),
            line(series, &xs, &y)
        );
    }
    let ends = format!(" data-zoom=\"{start} {end}\"");
    let positions: Vec<String> = xs.iter().map(|&x| num(x)).collect();
    frame::open(page, "lines", &ends, &chart.title, &chart.caption);
    let entries = chart.series.iter().map(|series| {
        let band = series.band.as_ref().map(|band| format!("(band: {})", band.meaning));
        (series.name.as_str(), band)
    });
    frame::legend(page, entries, &colours);
    frame::plot(
        page,
        &Plot {
            y_label: &frame::named(&chart.y.label, chart.y.scale),
            x_label: "time",
            y_ticks: frame::places(&y),
            x_ticks: frame::places(&x),
            narrow_stride: 2,
            description: format!("{}. {} The numbers follow.", chart.title, chart.caption),
            drawing,
            over: String::new(),
            class: "",
            attributes: format!(" data-xs=\"{}\"", positions.join(" ")),
        },
    );
    table::details(page, &with_fine_times(numbers), "Numbers", "");
    frame::close(page);
}

/// The numbers as a table. Its times are all in one unit and fine enough to distinguish
/// neighbours, however long the run is, so read-outs and ticks use the same unit.
fn with_fine_times(numbers: Lines) -> Table {
    let range = numbers.time_range.clone();
    let times = numbers.times.clone();
    let mut table = Chart::Lines(numbers).numbers();
    table.columns[0].unit = None;
    for (row, &time) in table.rows.iter_mut().zip(&times) {
        row[0] = Value::Text(ticks::fine_time(time, &range));
    }
    table
}

/// All values that the axis has to cover.
fn values(chart: &Lines) -> impl Iterator<Item = f64> {
    chart.series.iter().flat_map(|series| {
        let bands = series.band.iter().flat_map(|band| band.low.iter().chain(&band.high));
        series.values.iter().chain(bands).flatten().copied()
    })
}

fn height(y: &Range, value: f64) -> Option<f64> {
    Some(SIDE - y.place(value)? * SIDE)
}

/// A line through the points, interrupted where values are missing. A point without neighbours
/// is a line of no length, which round ends turn into a dot.
fn line(series: &Series, xs: &[f64], y: &Range) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for (i, &x) in xs.iter().enumerate() {
        let point = series.value(i).and_then(|value| height(y, value));
        if let Some(top) = point {
            path += &match drawing {
                true => format!("L{} {}", num(x), num(top)),
                false => format!("M{} {}h0", num(x), num(top)),
            };
        }
        drawing = point.is_some();
    }
    // A line through few points shows little: each becomes a dot.
    let known = |&i: &usize| series.value(i).and_then(|value| height(y, value)).is_some();
    let few = (0..xs.len()).filter(known).count() <= FEW;
    let dots = if few { path.replace('L', "M").replace('M', "h0M") } else { String::new() };
    let dots = match dots.strip_prefix("h0") {
        Some(dots) => format!("<path class=\"dots\" d=\"{dots}h0\"/>"),
        None => String::new(),
    };
    format!("<path class=\"line\" d=\"{path}\"/>{dots}")
}

/// Closed shapes between the ends of the band, one for each run of known values.
fn band(series: &Series, xs: &[f64], y: &Range) -> String {
    let Some(band) = &series.band else { return String::new() };
    let ends = |i: usize| {
        let (low, high) = band.ends(i)?;
        Some((height(y, low)?, height(y, high)?))
    };
    let known: Vec<Option<(f64, f64)>> = (0..xs.len()).map(ends).collect();
    let mut path = String::new();
    let mut start = 0;
    while start < known.len() {
        let run: Vec<(f64, f64)> = known[start..].iter().map_while(|ends| *ends).collect();
        let xs = &xs[start..start + run.len()];
        let upper = xs.iter().zip(&run).map(|(&x, &(_, high))| (x, high));
        let lower = xs.iter().zip(&run).rev().map(|(&x, &(low, _))| (x, low));
        for (i, (x, top)) in upper.chain(lower).enumerate() {
            path += &format!("{}{} {}", if i == 0 { "M" } else { "L" }, num(x), num(top));
        }
        if !run.is_empty() {
            path.push('Z');
        }
        start += run.len() + 1;
    }
    format!("<path class=\"band\" d=\"{path}\"/>")
}
