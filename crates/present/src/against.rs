//! Compares two traces, or one trace on two drives.

use prism_contract::rules::Rule;
use prism_report::{Section, Table, Unit};
use prism_ssd::HostOp;
use prism_workload::Measured;
use serde_json::{Value as Json, json};

use crate::analysis::Analysis;
use crate::contract::fail_on::Quantity;
use crate::json::join;
use crate::{contract, drive};

/// Compares the analysis that is reported with another one.
pub struct Against<'a> {
    this: &'a Analysis,
    other: &'a Analysis,
    name: &'a str,
}

impl<'a> Against<'a> {
    /// `this` compared with `other`, which the user called `name`.
    #[must_use]
    pub fn new(this: &'a Analysis, other: &'a Analysis, name: &'a str) -> Self {
        Self { this, other, name }
    }

    /// The other analysis as JSON, with the keys of a report.
    #[must_use]
    pub fn json(&self) -> Json {
        let other = self.other;
        let rules = json!({"rules": contract::json::rules(&other.contract)});
        join([json!({"name": self.name}), drive::json::report(&other.facts), rules])
    }

    /// A section with the figures of both.
    #[must_use]
    pub fn section(&self) -> Section {
        let (a, b) = (&self.this.facts, &self.other.facts);
        let lead = format!(
            "This report is of {} on {}, the other of {} on {}. The drives may differ in capacity.",
            a.trace.name, a.scaled.device.name, b.trace.name, b.scaled.device.name
        );
        Section::new(format!("Compared with {}", self.name), lead).with(self.table())
    }

    fn table(&self) -> Table {
        let mut rows = Vec::new();
        let mut row = |name: &'static str, unit: Unit, of: &dyn Fn(&Analysis) -> Option<f64>| {
            rows.push((name, unit, of(self.this), of(self.other)));
        };
        row("drive capacity", Unit::Bytes, &|one| Some(one.facts.described.capacity().0 as f64));
        for rule in Rule::ALL {
            row(rule.name(), Unit::Ratio, &|one| one.value(Quantity::Score(rule)));
        }
        row("write amplification", Unit::Ratio, &|one| one.value(Quantity::WriteAmplification));
        row("p99", Unit::Nanos, &|one| one.value(Quantity::P99));
        row("lifetime", Unit::Nanos, &|one| one.facts.lifetime_ns());
        row("throughput", Unit::BytesPerSec, &|one| Some(one.facts.timed().bytes_per_second()));
        // The numbers of passes may differ.
        let a_pass = |one: &Analysis, bytes: fn(&Measured) -> u64| {
            let timed = one.facts.timed();
            Some(bytes(timed) as f64 / f64::from(timed.passes.max(1)))
        };
        row("written a pass", Unit::Bytes, &|one| a_pass(one, Measured::written));
        row("read a pass", Unit::Bytes, &|one| a_pass(one, |timed| timed.bytes_of(HostOp::Read)));
        let show = |unit: Unit, value: Option<f64>| value.map(|value| unit.format(value));
        Table::listing(&rows)
            .text("figure", |&(name, ..)| name)
            .text("this", |&(_, unit, this, _)| show(unit, this))
            .text("the other", |&(_, unit, _, other)| show(unit, other))
            .number("the other / this", Unit::Ratio, |&(_, _, this, other)| Some(other? / this?))
            .whole("Figures of both")
    }
}
