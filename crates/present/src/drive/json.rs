//! A drive and its figures as JSON. The keys and their order are stable.

use std::collections::BTreeMap;

use prism_base::Latencies;
use prism_nand::Counts;
use prism_replay::{DeviceRange, Lifetime, SteadyState};
use prism_ssd::scale::Scaled;
use prism_ssd::{HostOp, InitialState};
use prism_workload::Measured;
use serde_json::{Map, Value, json};

use super::{Facts, Run, faults};
use crate::json::{join, without_null};
use crate::pace::describe;
use crate::trace;

/// A trace on a drive.
#[must_use]
pub fn report(facts: &Facts) -> Value {
    let range = |range: &DeviceRange| {
        let device = facts.trace.symbols.name(range.device);
        json!({"device": device, "start_bytes": range.start, "span_bytes": range.span})
    };
    let left_out = facts.layout.left_out();
    json!({
        "trace": trace::json(&facts.trace),
        "device": devices(facts),
        "replay": {
            "pace": describe(facts.options.pace).0,
            "initial_state": facts.state.name,
            "preparation": {
                "units_written": facts.prepared.written,
                // Write amplification of each round of overwrites, and whether the last rounds
                // were steady; null if the state was not `preconditioned`.
                "rounds": facts.prepared.rounds,
                "settled": facts.prepared.settled,
            },
            "layout": facts.layout.ranges().iter().map(range).collect::<Vec<_>>(),
            // Addresses that no request reads or writes, in units of that size.
            "left_out_bytes": left_out.map_or(0, |(bytes, _)| bytes),
            "left_out_unit_bytes": left_out.map(|(_, unit)| unit),
            // Discards of such addresses alone, which are not replayed.
            "left_out_discards": facts.left_out_discards(),
        },
        "result": result(facts),
        "seed": facts.seed,
    })
}

/// The drive that the report is about, the drive fitted to the trace, from which write
/// amplification and wear come, and the one from which latency and throughput come; null if that is
/// the fitted one too.
fn devices(facts: &Facts) -> Value {
    let described = Scaled {
        device: facts.described.clone(),
        full_capacity: facts.scaled.full_capacity,
        changes: Vec::new(),
    };
    let speed = facts.speed.as_ref().map(|speed| {
        let state = match speed.run.initial_state() {
            InitialState::SteadyAt { .. } => "steady",
            _ => facts.state.name.as_str(),
        };
        join([device(&speed.scaled), json!({"initial_state": state})])
    });
    join([device(&described), json!({"fitted": device(&facts.scaled), "speed": speed})])
}

fn result(facts: &Facts) -> Value {
    let (outcome, window) = (&facts.outcome, &facts.outcome.window);
    let (steady_state, steady) = steady_name(outcome.steady);
    let spread = outcome.steady_write_amplification().map(|(_, deviation)| deviation);
    let fitted = figures(window);
    let of_flash = ["map_cache", "merges", "buffer_hits", "unmapped_reads"];
    let of_flash: Map<String, Value> = of_flash
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), fitted.get(key)?.clone())))
        .collect();
    let worn = json!({
        "write_amplification": facts.write_amplification(),
        // Standard deviation over the rounds that it is the mean of; null if there are none.
        "write_amplification_deviation": spread,
        // Whether it is an estimate for random writes, not a measurement.
        "write_amplification_estimated": facts.is_estimate(),
        // Of the passes of `fitted`, as are the counts of the map and of merges.
        "flash_bytes_programmed": window.flash_bytes,
        "flash": flash(window),
        "warm_up_passes": outcome.warm_up_passes,
        "passes_needed": outcome.passes_needed,
        "steady": steady,
        "steady_state": steady_state,
        "steady_rounds": outcome.rounds,
        "steady_window_rounds": outcome.window_rounds,
        // Until the first block is worn out if nothing levels wear; null if not simulated.
        "unlevelled_days": facts.unlevelled_days,
        // Why the trace is too short for figures of wear; null if it is long enough.
        "too_short": facts.too_short(),
        "passes": facts.timed().passes,
        // All figures of the fitted drive, and of the first pass alone on it, in its initial state.
        "fitted": join([fitted.clone(), json!({"passes": window.passes})]),
        "single_pass": figures(&outcome.single_pass),
    });
    let end = end(facts.run(), facts.lifetime());
    join([figures(facts.timed()), Value::Object(of_flash), end, worn])
}

/// The name of a steady state, and whether it counts as one.
fn steady_name(state: SteadyState) -> (&'static str, bool) {
    match state {
        SteadyState::Reached => ("reached", true),
        SteadyState::NotReached => ("not reached", false),
        SteadyState::OutOfReach => ("out of reach", false),
        SteadyState::NotTested => ("not tested", false),
        SteadyState::NoWrites => ("nothing is written", true),
    }
}

/// A drive and how it was scaled.
#[must_use]
pub fn device(scaled: &Scaled) -> Value {
    let device = &scaled.device;
    let geometry = device.geometry();
    let spare = device.over_provisioning();
    let slc = device.slc.as_ref().map(|slc| {
        json!({
            "use": slc.usage.name(),
            "blocks_per_die_group": slc.blocks,
            "raw_bytes": geometry.slc_raw().0,
            // The size of the first address range, if that range is stored in SLC.
            "below_bytes": slc.below.map(|below| below.0),
            "endurance_cycles": slc.endurance,
        })
    });
    let object = json!({
        "name": device.name,
        "title": device.title,
        "source": device.source,
        "capacity_bytes": device.capacity().0,
        "raw_bytes": geometry.raw().0,
        "over_provisioning": {"nominal": spare.nominal, "effective": spare.effective},
        "channels": geometry.channels,
        "dies": geometry.dies(),
        "planes": geometry.planes,
        "blocks_per_die": geometry.blocks_per_plane * geometry.planes,
        "pages_per_block": geometry.pages_per_block,
        "page_bytes": geometry.page.0,
        "mapping_unit_bytes": geometry.unit.0,
        "endurance_cycles": device.flash.endurance,
        "slc": slc,
        "power_loss_protection": device.drive.power_loss_protection,
        "scaled": scaled.changes,
    });
    without_null(object, &["slc"])
}

/// What was measured.
#[must_use]
pub fn figures(measured: &Measured) -> Value {
    // Zone commands are listed only if they occur.
    let occurs = |op: &HostOp| HostOp::COMMON.contains(op) || measured.latency_of(*op).count() > 0;
    let latency = HostOp::ALL.into_iter().filter(occurs);
    let latency = latency.map(|op| (op.name(), latency_of(measured.latency_of(op))));
    // Lookups of mapping units in the map cache, and translation pages read and written.
    let map = measured.map.map(|map| {
        json!({
            "hits": map.hits,
            "misses": map.misses,
            "miss_ratio": map.miss_ratio(),
            "pages_loaded": map.loads,
            "pages_rewritten": map.writebacks,
        })
    });
    let merges = measured.merges.map(|merges| {
        json!({
            "switches": merges.switches,
            "partial": merges.partial,
            "full": merges.full,
            "empty": merges.empty,
        })
    });
    let object = json!({
        "requests_completed": measured.requests,
        "flushes_completed": measured.latency_of(HostOp::Flush).count(),
        "write_amplification": measured.write_amplification(),
        "host_bytes_read": measured.bytes_of(HostOp::Read),
        "host_bytes_written": measured.bytes_of(HostOp::Write),
        // Write-zeroes that the drive writes as data count as written, too.
        "host_bytes_zeroed": (measured.zeroed > 0).then_some(measured.zeroed),
        "flash_bytes_programmed": measured.flash_bytes,
        "flash": flash(measured),
        "latency_ns": latency.collect::<BTreeMap<_, _>>(),
        "iops": measured.iops(),
        "bytes_per_second": measured.bytes_per_second(),
        "queue_depth": {"mean": measured.in_flight_mean(), "max": measured.in_flight_max},
        "buffer_hits": measured.buffer_hits,
        "map_cache": map,
        "merges": merges,
        "unmapped_reads": measured.unmapped,
        "held_back": measured.held_back,
        "behind_ns": measured.behind_max.0,
        "simulated_ns": measured.simulated.0,
    });
    without_null(object, &["host_bytes_zeroed", "map_cache"])
}

/// Pages read, pages programmed, blocks erased (all of one plane), and programmed mapping
/// units, each by cause.
fn flash(measured: &Measured) -> Value {
    let flash = &measured.flash;
    let slc = flash.slc_units.total() + flash.slc_overflow > 0;
    let object = json!({
        "reads": by_cause(&flash.reads),
        "programs": by_cause(&flash.programs),
        "erases": by_cause(&flash.erases),
        "units": by_cause(&flash.units),
        // Of these units, those in SLC blocks; and host units that did not fit there.
        "slc_units": slc.then(|| by_cause(&flash.slc_units)),
        "slc_overflow_units": slc.then_some(flash.slc_overflow),
    });
    without_null(object, &["slc_units", "slc_overflow_units"])
}

fn by_cause(counts: &Counts) -> BTreeMap<&'static str, u64> {
    let causes = counts.iter().map(|(cause, count)| (cause.name(), count));
    causes.chain([("total", counts.total())]).collect()
}

fn latency_of(latencies: &Latencies) -> Value {
    let some = latencies.count() > 0;
    let quantile = |q| some.then(|| latencies.quantile(q).0);
    json!({
        "count": latencies.count(),
        "mean": some.then(|| latencies.mean_ns()),
        "p50": quantile(0.5),
        "p95": quantile(0.95),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
        "max": some.then(|| latencies.max().0),
    })
}

/// The drive at the end of the run, and its lifetime.
#[must_use]
pub fn end(run: Run<'_>, life: Option<Lifetime>) -> Value {
    let wear = run.end.wear;
    let object = json!({
        "buffered_bytes": run.end.buffered.0,
        "lifetime": {
            "days": life.map(|life| life.days),
            "tbw": life.map(|life| life.tbw),
            "dwpd": life.map(|life| life.dwpd),
        },
        "wear": {"erases_min": wear.min, "erases_mean": wear.mean, "erases_max": wear.max},
        // Absent if the drive does not age.
        "faults": faults::json(run),
    });
    without_null(object, &["faults"])
}
