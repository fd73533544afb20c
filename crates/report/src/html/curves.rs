//! Curves over a value axis, with marks.

use super::frame::{self, Plot, SIDE, num};
use super::{Page, escape::escape, table};
use crate::curves::{Curve, CurveShape, Curves};
use crate::ticks::Range;
use std::collections::BTreeSet;

/// In how many columns a stroke is distinguished: each is drawn by its first, lowest, highest
/// and last point, so nothing that could be seen at full width is lost.
const COLUMNS_MAX: usize = 400;
/// How many dots are drawn. With more, those that nearly coincide are drawn as one.
const DOTS_MAX: usize = 3000;
/// How many points of a curve have a read-out.
const READ_MAX: usize = 400;
/// How many rows the table of a curve has.
const ROWS_MAX: usize = 60;

/// A point with its position in the plot, from 0 to [`SIDE`] to the right and downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Placed {
    x: f64,
    y: f64,
    across: f64,
    down: f64,
}

pub fn render(page: &mut Page, chart: &Curves) {
    let colours = page.palette.assign(chart.series.iter().map(|curve| curve.name.as_str()));
    let x = Range::spanning(chart.xs(), chart.x.unit, chart.x.scale, 8);
    let y = Range::covering(chart.ys(), chart.y.unit, chart.y.scale, 5);
    let mut drawing = frame::grid(&y);
    for mark in &chart.marks {
        if let Some(place) = x.place(mark.x) {
            drawing += &format!("<path class=\"mark\" d=\"M{} 0V1000\"/>", num(place * SIDE));
        }
    }
    // The first curve comes last, so that it lies on top.
    for (i, curve) in chart.series.iter().enumerate().rev() {
        let placed = placed(curve, &x, &y);
        drawing += &format!(
            "<g data-series=\"{i}\" class=\"k{}\" data-shape=\"{}\" data-points=\"{}\">{}</g>",
            colours[i],
            curve.shape.name(),
            readings(&placed),
            stroke(curve.shape, &placed)
        );
    }
    frame::open(page, "curves", &axes(chart, &x), &chart.title, &chart.caption);
    frame::legend(page, chart.series.iter().map(|curve| (curve.name.as_str(), None)), &colours);
    frame::plot(
        page,
        &Plot {
            y_label: &frame::named(&chart.y.label, chart.y.scale),
            x_label: &frame::named(&chart.x.label, chart.x.scale),
            y_ticks: frame::places(&y),
            x_ticks: frame::places(&x),
            narrow_stride: 2,
            description: format!("{}. {} The numbers follow.", chart.title, chart.caption),
            drawing,
            over: marks(chart, &x),
            class: "",
            attributes: String::new(),
        },
    );
    numbers(page, chart);
    frame::close(page);
}

/// What the script needs of the axes: their ranges and units.
fn axes(chart: &Curves, x: &Range) -> String {
    format!(
        " data-zoom=\"{} {}\" data-scale=\"{}\" data-x=\"{}\" data-x-unit=\"{}\" \
         data-y-scale=\"{}\" data-y-unit=\"{}\"",
        x.low,
        x.high,
        x.scale.name(),
        escape(&chart.x.label),
        chart.x.unit.name(),
        chart.y.scale.name(),
        chart.y.unit.name()
    )
}

/// The labels of the marks. Those in the right half are to the left of their line, so that they
/// stay inside the plot, and each has its own height.
fn marks(chart: &Curves, x: &Range) -> String {
    let placed = chart.marks.iter().filter_map(|mark| Some((mark, x.place(mark.x)?)));
    let label = |(row, (mark, place)): (usize, (&crate::curves::Mark, f64))| {
        format!(
            "<span class=\"mark-name{}\" data-place=\"{place:.6}\" \
             style=\"--row:{row};left:{}%\">{}</span>",
            if place > 0.5 { " left" } else { "" },
            num(place * 100.0),
            escape(&mark.label)
        )
    };
    placed.enumerate().map(label).collect()
}

/// The numbers, thinned to a readable table, with the marks under them.
fn numbers(page: &mut Page, chart: &Curves) {
    let most = chart.series.iter().map(|curve| curve.known().count()).max().unwrap_or(0);
    let summary = match most > ROWS_MAX {
        true => format!("Numbers ({ROWS_MAX} of up to {most} points of a curve)"),
        false => "Numbers".into(),
    };
    let marks = chart.marks.iter().filter(|mark| mark.x.is_finite());
    let marks = marks.map(|mark| format!("{}: {}", mark.label, chart.x.unit.format(mark.x)));
    let mut note = marks.collect::<Vec<_>>().join("; ");
    if !note.is_empty() {
        note = format!("Marks: {note}.");
    }
    if most > ROWS_MAX {
        note += " The JSON report has all points.";
    }
    table::details(page, &chart.thinned(ROWS_MAX).numbers(), &summary, note.trim_start());
}

/// The points as a read-out needs them: pairs of numbers in the base units.
fn readings(placed: &[Placed]) -> String {
    let kept = by_column(placed, READ_MAX / 4);
    let pair = |point: &Placed| format!("{},{}", short(point.x), short(point.y));
    kept.iter().map(pair).collect::<Vec<_>>().join(" ")
}

/// A number in few characters: whole ones as they are, others to six digits.
fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let rounded = format!("{value:.5e}").parse().unwrap_or(value);
    let [plain, power] = [format!("{rounded}"), format!("{rounded:e}")];
    if power.len() < plain.len() { power } else { plain }
}

/// The points of a curve that are on both axes.
fn placed(curve: &Curve, x: &Range, y: &Range) -> Vec<Placed> {
    let place = |point: (f64, f64)| {
        let (across, down) = (x.place(point.0)? * SIDE, SIDE - y.place(point.1)? * SIDE);
        Some(Placed { x: point.0, y: point.1, across, down })
    };
    curve.known().filter_map(place).collect()
}

fn stroke(shape: CurveShape, placed: &[Placed]) -> String {
    let (class, path) = match shape {
        CurveShape::Line => ("line", line(&by_column(placed, COLUMNS_MAX))),
        CurveShape::Steps => ("line", steps(&by_column(placed, COLUMNS_MAX))),
        CurveShape::Dots => ("dots", dots(placed)),
    };
    format!("<path class=\"{class}\" d=\"{path}\"/>")
}

/// Of the points in each of `columns` equal parts of the width, the first, the lowest, the
/// highest and the last, in their order; all points, if they are not more than that.
fn by_column(points: &[Placed], columns: usize) -> Vec<Placed> {
    if points.len() <= columns * 4 {
        return points.to_vec();
    }
    let column = |i: usize| (points[i].across / SIDE * columns as f64) as usize;
    let mut kept = BTreeSet::new();
    let mut start = 0;
    while start < points.len() {
        let run = (start..points.len()).take_while(|&i| column(i) == column(start)).count();
        let run = start..start + run;
        let by_y = |&a: &usize, &b: &usize| points[a].y.total_cmp(&points[b].y);
        kept.extend([run.start, run.end - 1]);
        kept.extend(run.clone().min_by(by_y).into_iter().chain(run.clone().max_by(by_y)));
        start = run.end;
    }
    kept.into_iter().map(|i| points[i]).collect()
}

fn line(points: &[Placed]) -> String {
    let mut path = String::new();
    for (i, point) in points.iter().enumerate() {
        // A single point is a line of no length, which round ends turn into a dot.
        let (command, end) = if i == 0 { ("M", "h0") } else { ("L", "") };
        path += &format!("{command}{} {}{end}", num(point.across), num(point.down));
    }
    path
}

fn steps(points: &[Placed]) -> String {
    let mut path = String::new();
    for (i, point) in points.iter().enumerate() {
        path += &match i {
            0 => format!("M{} {}h0", num(point.across), num(point.down)),
            _ => format!("H{}V{}", num(point.across), num(point.down)),
        };
    }
    path
}

/// Each dot once, on a grid as fine as the number of dots allows.
fn dots(points: &[Placed]) -> String {
    let mut cell = 0.5;
    let cells = loop {
        let at = |place: f64| (place / cell).round() as u32;
        let cells: BTreeSet<(u32, u32)> =
            points.iter().map(|p| (at(p.across), at(p.down))).collect();
        if cells.len() <= DOTS_MAX {
            break cells;
        }
        cell *= 2.0;
    };
    let dot = |(x, y): (u32, u32)| {
        format!("M{} {}h0", num(f64::from(x) * cell), num(f64::from(y) * cell))
    };
    cells.into_iter().map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_near() {
        assert_eq!(short(0.0), "0");
        assert_eq!(short(1_234_567.0), "1234567");
        assert_eq!(short(1.0 / 3.0), "0.333333");
        assert_eq!(short(1e-9), "1e-9");
        assert_eq!(short(123_456.789), "123457");
    }

    /// Points whose positions in the plot equal their values.
    fn points(places: impl IntoIterator<Item = (f64, f64)>) -> Vec<Placed> {
        let placed = |(x, y)| Placed { x, y, across: x, down: SIDE - y };
        places.into_iter().map(placed).collect()
    }

    #[test]
    fn a_column_keeps_its_ends_and_extremes() {
        let all = points(
            [3.0, 9.0, 4.0, 1.0, 5.0, 6.0]
                .into_iter()
                .zip(0..)
                .map(|(y, x): (f64, u32)| (f64::from(x) * 100.0, y)),
        );
        assert_eq!(by_column(&all, 2), all);
        let kept: Vec<f64> = by_column(&all, 1).iter().map(|point| point.y).collect();
        assert_eq!(kept, [3.0, 9.0, 1.0, 6.0]);
        assert!(by_column(&[], 1).is_empty());
    }

    #[test]
    fn strokes_have_the_shape_of_their_curve() {
        let two = points([(0.0, 500.0), (250.0, 1000.0)]);
        assert_eq!(line(&two), "M0 500h0L250 0");
        assert_eq!(steps(&two), "M0 500h0H250V0");
        assert_eq!(dots(&two), "M0 500h0M250 0h0");
        let many = points((0..100_000).map(|i| (f64::from(i % 999), f64::from(i / 999))));
        assert!(dots(&many).matches('M').count() <= DOTS_MAX);
    }
}
