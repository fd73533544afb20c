//! Two traces, or two drives, beside each other.

use prism_contract::rules::Rule;
use prism_report::{Block, Column, Section, Table, Unit, Value};
use prism_ssd::HostOp;
use serde::Serialize;

use crate::analysis::Analysis;
use crate::contract::RulesObject;
use crate::contract::fail_on::Quantity;
use crate::drive::ReportObject;

/// A comparison of what is reported with something else.
pub struct Against<'a> {
    this: &'a Analysis,
    other: &'a Analysis,
    name: &'a str,
}

/// The other one, as JSON: the same keys as the report.
#[derive(Serialize)]
pub struct AgainstObject {
    name: String,
    #[serde(flatten)]
    report: ReportObject,
    rules: RulesObject,
}

impl<'a> Against<'a> {
    /// `this` compared with `other`, which the user called `name`.
    #[must_use]
    pub fn new(this: &'a Analysis, other: &'a Analysis, name: &'a str) -> Self {
        Self { this, other, name }
    }

    /// The other one for programs.
    #[must_use]
    pub fn object(&self) -> AgainstObject {
        AgainstObject {
            name: self.name.to_owned(),
            report: ReportObject::new(&self.other.facts()),
            rules: RulesObject::new(&self.other.contract),
        }
    }

    /// The two side by side.
    #[must_use]
    pub fn section(&self) -> Section {
        let (a, b) = (self.this.facts(), self.other.facts());
        let lead = format!(
            "This is {} on {}; the other is {} on {}. Their drives need not be equally large.",
            a.trace.name, a.scaled.device.name, b.trace.name, b.scaled.device.name
        );
        let mut section = Section::new(format!("Against {}", self.name), lead);
        section.push(Block::Table(self.table()));
        section
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::text("figure"),
            Column::text("this"),
            Column::text("the other"),
            Column::number("the other / this", Unit::Ratio),
        ];
        let mut table = Table::new("The same figures of both", columns).whole();
        let mut row = |name: &str, unit: Unit, pick: &dyn Fn(&Analysis) -> Option<f64>| {
            let (a, b) = (pick(self.this), pick(self.other));
            let show = |value: Option<f64>| Value::from(value.map(|value| unit.format(value)));
            let ratio = a.zip(b).map(|(a, b)| b / a);
            table.rows.push(vec![name.into(), show(a), show(b), ratio.into()]);
        };
        let capacity = |one: &Analysis| one.facts().scaled.device.capacity().0 as f64;
        row("the drive's capacity", Unit::Bytes, &|one| Some(capacity(one)));
        for rule in Rule::ALL {
            row(rule.name(), Unit::Ratio, &|one| one.value(Quantity::Score(rule)));
        }
        row("write amplification", Unit::Ratio, &|one| one.value(Quantity::WriteAmplification));
        row("p99", Unit::Nanos, &|one| one.value(Quantity::P99));
        row("lifetime", Unit::Nanos, &|one| {
            one.value(Quantity::LifetimeDays).map(|days| days * 86_400e9)
        });
        let measured = |one: &Analysis| one.facts().outcome.measured.clone();
        row("throughput", Unit::BytesPerSec, &|one| Some(measured(one).bytes_per_second()));
        row("written", Unit::Bytes, &|one| Some(measured(one).bytes_of(HostOp::Write) as f64));
        row("read", Unit::Bytes, &|one| Some(measured(one).bytes_of(HostOp::Read) as f64));
        table
    }
}
