//! Every combination of a few values, each simulated on its own drive.
//!
//! Simulations run in parallel on all cores. Each depends only on its own options, and results
//! are in the order of the combinations, so the number of cores changes only the time taken.

use prism_report::{Document, Listing, Section as Part, Table, Unit};
use prism_workload::fio::{Section, stats::Dir};
use serde::Serialize;

use crate::drive::json::figures;
use crate::env::{Env, Step};
use crate::error::PresentError;
use crate::simulation::{Plan, Simulated};
use crate::sweep::results::{DirObject, direction};
use crate::sweep::settings::{self, canonical};
use crate::sweep::space::product;

/// Most combinations of a sweep: a table that can still be read.
const POINTS_MAX: usize = 10_000;

/// One axis.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    values: Vec<String>,
}

/// The result of a sweep, as JSON.
#[derive(Debug, Serialize)]
pub struct Sweep {
    axes: Vec<String>,
    rows: Vec<Row>,
}

/// One combination.
#[derive(Debug, Serialize)]
struct Row {
    point: serde_json::Map<String, serde_json::Value>,
    device: String,
    capacity_bytes: u64,
    over_provisioning_effective: f64,
    read: DirObject,
    write: DirObject,
    #[serde(flatten)]
    figures: serde_json::Value,
    #[serde(skip)]
    write_amplification: Option<f64>,
    #[serde(skip)]
    labels: Vec<String>,
}

/// Runs every combination of the `axes`, each as `plan` with its values, `threads` at once
/// (as many as there are cores if `None`).
///
/// # Errors
/// [`PresentError`] of an axis, or of the first combination that cannot be run.
pub fn run(
    axes: &[String],
    sections: &[Section],
    plan: &Plan,
    threads: Option<usize>,
    env: &impl Env,
) -> Result<Sweep, PresentError> {
    let axes = axes.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
    for (i, axis) in axes.iter().enumerate() {
        if axes[..i].iter().any(|other| canonical(&other.name) == canonical(&axis.name)) {
            return Err(PresentError::Refused(format!(
                "--sweep {}: two axes of this name",
                axis.name
            )));
        }
    }
    let points = points(&axes)?;
    let plans = points
        .iter()
        .map(|values| plan_of(plan, &axes, values))
        .collect::<Result<Vec<_>, PresentError>>()?;
    // All combinations are checked before the first one runs.
    for plan in &plans {
        plan.check(sections, env)?;
    }
    let (label, things) = ("simulating:", "combinations");
    env.show(Step::Begin { label, things, total: Some(plans.len() as u64) });
    // Only a row of each is kept, not the drive's histograms.
    let axes = &axes;
    let one = |(plan, values): (&'_ Plan, &'_ Vec<String>)| {
        let (plan, values) = (plan.clone(), values.clone());
        move || Ok(row(axes, &values, &plan.run(sections, env)?))
    };
    let work: Vec<_> = plans.iter().zip(&points).map(one).collect();
    let finished = |done: usize| env.show(Step::Reached(done as u64));
    let results = env.run_on(threads.unwrap_or(env.cores()), work, finished);
    env.show(Step::End);
    Ok(Sweep {
        rows: results.into_iter().collect::<Result<_, PresentError>>()?,
        axes: axes.iter().map(|axis| axis.name.clone()).collect(),
    })
}

fn parse(text: &str) -> Result<Axis, PresentError> {
    let wrong = || {
        let what =
            format!("--sweep {text}: give an axis and its values, for example gc=greedy,fifo");
        PresentError::Refused(what)
    };
    let (name, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if name.is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(Axis { name: name.to_owned(), values })
}

/// The product of all axes, the last one changing fastest.
fn points(axes: &[Axis]) -> Result<Vec<Vec<String>>, PresentError> {
    let axes: Vec<&[String]> = axes.iter().map(|axis| axis.values.as_slice()).collect();
    product(&axes, POINTS_MAX).ok_or_else(|| {
        PresentError::Refused(format!("--sweep has more than {POINTS_MAX} combinations"))
    })
}

/// `plan` with one value of each axis.
fn plan_of(plan: &Plan, axes: &[Axis], values: &[String]) -> Result<Plan, PresentError> {
    let mut plan = plan.clone();
    for (axis, value) in axes.iter().zip(values) {
        settings::change(&mut plan, "--sweep", &axis.name, value)?;
    }
    Ok(plan)
}

fn row(axes: &[Axis], values: &[String], simulated: &Simulated) -> Row {
    let device = &simulated.scaled.device;
    let point = axes.iter().zip(values).map(|(a, v)| (a.name.clone(), v.clone().into()));
    Row {
        point: point.collect(),
        device: device.name.clone(),
        capacity_bytes: device.capacity().0,
        over_provisioning_effective: device.over_provisioning().effective,
        read: direction(simulated, Dir::Read),
        write: direction(simulated, Dir::Write),
        figures: figures(&simulated.outcome.total),
        write_amplification: simulated.outcome.total.write_amplification(),
        labels: values.to_vec(),
    }
}

/// One direction of a row.
type Pick = fn(&Row) -> &DirObject;

impl Sweep {
    /// A table with a row for each combination, and one of latencies.
    #[must_use]
    pub fn document(&self) -> Document {
        let used: [(&str, Pick); 2] = [("read", |row| &row.read), ("write", |row| &row.write)];
        let is_used = |of: Pick| self.rows.iter().any(|r| of(r).mean_ns.is_some());
        let used: Vec<_> = used.into_iter().filter(|&(_, of)| is_used(of)).collect();
        let mut main = self
            .axes()
            .number("spare", Unit::Percent, |row| row.over_provisioning_effective)
            .number("WA", Unit::Ratio, |row| row.write_amplification);
        let mut times = self.axes();
        for (name, of) in used {
            let iops = |row| of(row).mean_ns.map(|_| of(row).iops);
            main = main.number(format!("{name} IOPS"), Unit::PerSec, iops).number(
                format!("{name} p99"),
                Unit::Nanos,
                |row| of(row).p99_ns,
            );
            times = times
                .number(format!("{name} mean"), Unit::Nanos, |row| of(row).mean_ns)
                .number(format!("{name} p99"), Unit::Nanos, |row| of(row).p99_ns)
                .number(format!("{name} p99.9"), Unit::Nanos, |row| of(row).p999_ns);
        }
        let caption = "WA is the write amplification, spare the effective over-provisioning";
        let part = Part::new(
            "Results",
            "Each on its own drive in its initial state, over the whole measured time.",
        );
        let part = part.with(main.whole(caption)).with(times.whole("Latency"));
        let title = format!("Sweep over {}", self.axes.join(" x "));
        let count = match self.rows.len() {
            1 => "1 combination.".to_owned(),
            rows => format!("{rows} combinations."),
        };
        Document::new(title, count).with(part)
    }

    /// The combinations, by the values of their axes.
    fn axes(&self) -> Listing<'_, Row> {
        let axes = self.axes.iter().enumerate();
        axes.fold(Table::listing(&self.rows), |listing, (place, axis)| {
            listing.text(axis, |row| row.labels[place].as_str())
        })
    }
}
