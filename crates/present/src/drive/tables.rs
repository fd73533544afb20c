//! The tables of a report on a drive.

use prism_base::{Bytes, Latencies};
use prism_nand::{Cause, Counts};
use prism_report::{Column, Table, Unit, Value};
use prism_ssd::HostOp;
use prism_workload::Measured;

use super::Facts;

/// Latency percentiles by operation; operations that do not occur are left out.
#[must_use]
pub fn latency(measured: &Measured) -> Table {
    let nanos = |name: &str| Column::number(name, Unit::Nanos);
    let columns = vec![
        Column::text("operation"),
        Column::number("requests", Unit::Count),
        nanos("mean"),
        nanos("p50"),
        nanos("p95"),
        nanos("p99"),
        nanos("p99.9"),
        nanos("max"),
    ];
    let mut table = Table::new("Latency, from the moment a request is due", columns);
    for op in HostOp::ALL {
        let latencies = measured.latency_of(op);
        if latencies.count() > 0 {
            table.rows.push(latency_row(op.name(), latencies));
        }
    }
    table
}

fn latency_row(name: &str, latencies: &Latencies) -> Vec<Value> {
    let quantile = |q| Value::from(latencies.quantile(q));
    vec![
        name.replace('_', " ").as_str().into(),
        latencies.count().into(),
        latencies.mean_ns().into(),
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        quantile(0.999),
        latencies.max().into(),
    ]
}

/// Flash operations by cause, on a drive with this mapping unit; causes that do not occur
/// are left out.
#[must_use]
pub fn causes(measured: &Measured, mapping_unit: Bytes) -> Table {
    let columns = vec![
        Column::text("cause"),
        Column::number("pages read", Unit::Count),
        Column::number("pages programmed", Unit::Count),
        Column::number("data programmed", Unit::Bytes),
        Column::number("blocks erased", Unit::Count),
        Column::number("per byte written", Unit::Ratio),
    ];
    let flash = &measured.flash;
    let unit = mapping_unit.0;
    let written = measured.bytes_of(HostOp::Write);
    let mut table = Table::new("Flash operations by cause", columns);
    let mut row = |name: &str, pick: &dyn Fn(&Counts) -> u64| {
        let bytes = pick(&flash.units) * unit;
        let share = (written > 0).then(|| bytes as f64 / written as f64);
        table.rows.push(vec![
            name.into(),
            pick(&flash.reads).into(),
            pick(&flash.programs).into(),
            bytes.into(),
            pick(&flash.erases).into(),
            share.into(),
        ]);
    };
    for cause in Cause::ALL {
        let all = [&flash.reads, &flash.programs, &flash.erases, &flash.units];
        if all.iter().any(|counts| counts[cause] > 0) {
            row(cause.name(), &|counts| counts[cause]);
        }
    }
    row("total", &Counts::total);
    table
}

/// The measured passes beside the first one.
#[must_use]
pub fn passes(facts: &Facts<'_>) -> Table {
    let columns = vec![
        Column::text("figures of"),
        Column::number("passes", Unit::Count),
        Column::number("write amplification", Unit::Ratio),
        Column::number("write p99", Unit::Nanos),
        Column::number("read p99", Unit::Nanos),
        Column::number("blocks erased", Unit::Count),
    ];
    let mut table = Table::new("A single pass beside the measured ones", columns);
    let both = [
        ("the first pass", &facts.outcome.single_pass),
        ("what is reported", &facts.outcome.measured),
    ];
    for (name, measured) in both {
        let p99 = |op| {
            let latencies = measured.latency_of(op);
            (latencies.count() > 0).then(|| latencies.quantile(0.99))
        };
        table.rows.push(vec![
            name.into(),
            u64::from(measured.passes).into(),
            measured.write_amplification().into(),
            p99(HostOp::Write).into(),
            p99(HostOp::Read).into(),
            measured.flash.erases.total().into(),
        ]);
    }
    table
}
