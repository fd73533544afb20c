//! Charts of the experiments of Rajimwale et al., ATC'09.

use prism_experiments::atc09::{
    ALIGNED, Alignment, Bandwidths, Cleaning, PAGES, PUBLISHED_GAIN, Priority, Responses, Run,
    SEQUENTIAL, STRIPE, Scheduling, Stripes, TIMES,
};
use prism_report::{Axis, BarLayout, Bars, Chart, Curve, CurveShape, Curves, Mark, Series, Unit};

/// Sequential over random writes, published and ours.
pub fn ratios(all: &[Bandwidths]) -> Chart {
    let published = all.iter().map(|one| {
        let [sequential, random] = one.drive.published().write;
        Some(sequential / random)
    });
    let ours = all.iter().map(|one| {
        let [sequential, random] = one.ours().write;
        Some(sequential / random)
    });
    Chart::Bars(Bars {
        title: "Sequential over random bandwidth of writes".into(),
        caption: "Small random writes are slow on drives with a large mapping unit.".into(),
        layout: BarLayout::Rows,
        label_name: "drive".into(),
        labels: all.iter().map(|one| one.drive.name().into()).collect(),
        y: Axis::log("sequential over random", Unit::Ratio),
        series: vec![
            Series::new("published", published.collect()),
            Series::new("ours", ours.collect()),
        ],
    })
}

/// Mean response over load.
pub fn responses(scheduling: &Scheduling) -> Chart {
    let line = |name: &str, of: fn(&prism_experiments::oracles::Curve) -> f64| {
        let points = scheduling.curves.iter().map(|curve| (curve.load, of(curve))).collect();
        Curve::new(name, CurveShape::Line, points)
    };
    Chart::Curves(Curves {
        title: "Mean response over load".into(),
        caption: format!("Published is one number without a load: about {PUBLISHED_GAIN} % lower."),
        x: Axis::linear("load", Unit::Ratio),
        y: Axis::linear("mean response", Unit::Nanos),
        series: vec![line("SWTF", |curve| curve.swtf), line("FCFS", |curve| curve.fcfs)],
        marks: Vec::new(),
    })
}

/// Bandwidth over the size of writes.
pub fn saw_tooth(stripes: &Stripes) -> Chart {
    let line = |name: &str, of: fn(&prism_experiments::atc09::Point) -> f64| {
        let points = stripes.points.iter().map(|point| (point.size as f64, of(point) * 1e6));
        Curve::new(name, CurveShape::Line, points.collect())
    };
    Chart::Curves(Curves {
        title: "Bandwidth over the size of writes, S2".into(),
        caption: "Highest for whole stripes, and lower just above them.".into(),
        x: Axis::linear("size of a write", Unit::Bytes),
        y: Axis::linear("bandwidth", Unit::BytesPerSec),
        series: vec![
            line("ours", |point| point.ours),
            line("closed form", |point| point.closed_form),
        ],
        marks: vec![Mark { x: STRIPE as f64, label: "stripe".into() }],
    })
}

/// A curve in milliseconds.
fn milliseconds(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Curve {
    Curve::new(name, CurveShape::Line, points.map(|(x, ms)| (x, ms * 1e6)).collect())
}

/// Table 3 as curves.
pub fn alignment(alignment: &Alignment) -> Option<Chart> {
    let closest = alignment.closest()?;
    let by_probability = |means: [f64; 5]| SEQUENTIAL.into_iter().zip(means);
    Some(Chart::Curves(Curves {
        title: "Mean response of writes of 4 KiB".into(),
        caption: "The more writes are sequential, the more are merged into whole stripes.".into(),
        x: Axis::linear("probability that a write is sequential", Unit::Ratio),
        y: Axis::linear("mean response", Unit::Nanos),
        series: vec![
            milliseconds("aligned", by_probability(closest.aligned)),
            milliseconds("unaligned", by_probability(closest.unaligned)),
            milliseconds("aligned, published", by_probability(ALIGNED)),
        ],
        marks: Vec::new(),
    }))
}

/// Table 5 as bars.
pub fn informed(cleaning: &Cleaning) -> Option<Chart> {
    let run = cleaning.closest()?;
    let known = |values: [f64; 4]| values.map(Some).into();
    Some(Chart::Bars(Bars {
        title: "Informed cleaning over the default".into(),
        caption: "Pages moved and cleaning time, relative to a drive that gets no trims.".into(),
        layout: BarLayout::Columns,
        label_name: "transactions".into(),
        labels: run.default.iter().map(|moved| moved.transactions.to_string()).collect(),
        y: Axis::linear("relative", Unit::Ratio),
        series: vec![
            Series::new("pages", known(run.pages())),
            Series::new("pages, published", known(PAGES)),
            Series::new("time", known(run.times())),
            Series::new("time, published", known(TIMES)),
        ],
    }))
}

/// Figure 3: responses of both kinds of requests under both kinds of cleaning.
pub fn priority(priority: &Priority) -> Option<Chart> {
    let places = priority.closest()?;
    let line = |name: &str, of: fn(&Run) -> Option<Responses>, kind: fn(Responses) -> f64| {
        let point = |run: &Run| Some((run.writes as f64 / 100.0, kind(of(run)?)));
        milliseconds(name, priority.of(places).filter_map(point))
    };
    Some(Chart::Curves(Curves {
        title: "Mean response over the share of writes".into(),
        caption: format!("Requests: {}.", places.name()),
        x: Axis::linear("writes", Unit::Percent),
        y: Axis::linear("mean response", Unit::Nanos),
        series: vec![
            line("priority, aware", |run| run.aware, |both| both.foreground),
            line("priority, agnostic", |run| run.agnostic, |both| both.foreground),
            line("others, aware", |run| run.aware, |both| both.background),
            line("others, agnostic", |run| run.agnostic, |both| both.background),
        ],
        marks: Vec::new(),
    }))
}
