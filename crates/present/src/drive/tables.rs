//! The tables of a report on a drive.

use prism_base::Bytes;
use prism_nand::{Cause, Counts};
use prism_report::{Table, Unit};
use prism_ssd::HostOp;
use prism_workload::Measured;

use super::Facts;

/// Latency percentiles by operation; operations that do not occur are left out.
#[must_use]
pub fn latency(measured: &Measured) -> Table {
    let all = HostOp::ALL.map(|op| (op, measured.latency_of(op)));
    let all: Vec<_> = all.into_iter().filter(|(_, latencies)| latencies.count() > 0).collect();
    let mut listing = Table::listing(&all)
        .text("operation", |(op, _)| op.name().replace('_', " "))
        .number("requests", Unit::Count, |(_, latencies)| latencies.count())
        .number("mean", Unit::Nanos, |(_, latencies)| latencies.mean_ns());
    for (name, q) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)] {
        listing = listing.number(name, Unit::Nanos, |(_, latencies)| latencies.quantile(q));
    }
    listing
        .number("max", Unit::Nanos, |(_, latencies)| latencies.max())
        .table("Latency, from the time a request is due")
}

/// Flash operations by cause, on a drive with this mapping unit; causes that do not occur
/// are left out.
#[must_use]
pub fn causes(measured: &Measured, mapping_unit: Bytes) -> Table {
    let flash = &measured.flash;
    let written = measured.written();
    let of = |name, pick: &dyn Fn(&Counts) -> u64| {
        (name, [&flash.reads, &flash.programs, &flash.units, &flash.erases].map(pick))
    };
    let mut rows: Vec<(&str, [u64; 4])> =
        Cause::ALL.map(|cause| of(cause.name(), &|counts| counts[cause])).into();
    rows.retain(|(_, counts)| counts.iter().any(|&count| count > 0));
    rows.push(of("total", &Counts::total));
    let bytes = |units: u64| units * mapping_unit.0;
    Table::listing(&rows)
        .text("cause", |&(name, _)| name)
        .number("pages read", Unit::Count, |(_, [reads, ..])| *reads)
        .number("pages programmed", Unit::Count, |(_, [_, programs, ..])| *programs)
        .number("data programmed", Unit::Bytes, |&(_, [_, _, units, _])| bytes(units))
        .number("blocks erased", Unit::Count, |(_, [.., erases])| *erases)
        .number("per byte written", Unit::Ratio, |&(_, [_, _, units, _])| {
            (written > 0).then(|| bytes(units) as f64 / written as f64)
        })
        .table("Flash operations by cause")
}

/// The measured passes next to the first one.
#[must_use]
pub fn passes(facts: &Facts) -> Table {
    let p99 = |measured: &Measured, op| {
        let latencies = measured.latency_of(op);
        (latencies.count() > 0).then(|| latencies.quantile(0.99))
    };
    let both =
        [("first pass", &facts.outcome.single_pass), ("measured passes", &facts.outcome.measured)];
    Table::listing(&both)
        .text("figures of", |&(name, _)| name)
        .number("passes", Unit::Count, |(_, of)| of.passes)
        .number("write amplification", Unit::Ratio, |(_, of)| of.write_amplification())
        .number("write p99", Unit::Nanos, |(_, of)| p99(of, HostOp::Write))
        .number("read p99", Unit::Nanos, |(_, of)| p99(of, HostOp::Read))
        .number("blocks erased", Unit::Count, |(_, of)| of.flash.erases.total())
        .table("The first pass and the measured ones on the fitted drive")
}
