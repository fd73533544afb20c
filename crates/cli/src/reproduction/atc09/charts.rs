//! Charts of the experiments of ATC'09.

use prism_experiments::atc09::{Bandwidths, PUBLISHED_GAIN, STRIPE, Scheduling, Stripes};
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
        caption: "Drives whose unit of mapping is large pay for small random writes.".into(),
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
        caption: "Highest for whole stripes, and lower just behind them.".into(),
        x: Axis::linear("size of a write", Unit::Bytes),
        y: Axis::linear("bandwidth", Unit::BytesPerSec),
        series: vec![
            line("ours", |point| point.ours),
            line("closed form", |point| point.closed_form),
        ],
        marks: vec![Mark { x: STRIPE as f64, label: "stripe".into() }],
    })
}
