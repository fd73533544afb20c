//! The result as JSON: keys stay as they are and in this order.

use std::collections::BTreeMap;

use prism_base::Latencies;
use prism_nand::Counts;
use prism_replay::{Lifetime, SteadyState};
use prism_ssd::HostOp;
use prism_ssd::scale::Scaled;
use prism_workload::Measured;
use serde::Serialize;

use super::faults::FaultsObject;
use super::{Facts, Wear};
use crate::pace::describe;
use crate::trace::{TraceObject, trace_object};

/// The whole of it.
#[derive(Debug, Serialize)]
pub struct ReportObject {
    trace: TraceObject,
    device: DeviceObject,
    replay: ReplayObject,
    result: ResultObject,
    seed: u64,
}

/// What the drive is.
#[derive(Debug, Serialize)]
pub struct DeviceObject {
    name: String,
    title: String,
    source: String,
    capacity_bytes: u64,
    raw_bytes: u64,
    over_provisioning: OverProvisioningObject,
    channels: u32,
    dies: u32,
    planes: u32,
    blocks_per_die: u32,
    pages_per_block: u32,
    page_bytes: u64,
    mapping_unit_bytes: u64,
    endurance_cycles: u32,
    /// Blocks of SLC beside the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    slc: Option<SlcObject>,
    power_loss_protection: bool,
    scaled: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SlcObject {
    #[serde(rename = "use")]
    usage: &'static str,
    blocks_per_die_group: u32,
    raw_bytes: u64,
    /// The first addresses, which live there, where the rule is by address.
    below_bytes: Option<u64>,
    endurance_cycles: u32,
}

#[derive(Debug, Serialize)]
struct OverProvisioningObject {
    nominal: f64,
    effective: f64,
}

#[derive(Debug, Serialize)]
struct ReplayObject {
    pace: String,
    initial_state: String,
    preparation: PreparationObject,
    layout: Vec<PlaceObject>,
}

/// What it took to bring the drive into its initial state.
#[derive(Debug, Serialize)]
struct PreparationObject {
    units_written: u64,
    /// Write amplification of each round of overwrites.
    rounds: Vec<f64>,
    /// Whether the last rounds were steady; null if that was not asked for.
    settled: Option<bool>,
}

#[derive(Debug, Serialize)]
struct PlaceObject {
    device: String,
    start_bytes: u64,
    span_bytes: u64,
}

#[derive(Debug, Serialize)]
struct ResultObject {
    #[serde(flatten)]
    figures: FiguresObject,
    passes: u32,
    warm_up_passes: u32,
    steady: bool,
    steady_state: &'static str,
    steady_rounds: Vec<f64>,
    buffered_bytes: u64,
    lifetime: LifetimeObject,
    wear: WearObject,
    /// Only where the drive ages.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<FaultsObject>,
    /// The first pass alone, on the drive in its initial state.
    single_pass: FiguresObject,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub struct FiguresObject {
    requests_completed: u64,
    flushes_completed: u64,
    write_amplification: Option<f64>,
    host_bytes_read: u64,
    host_bytes_written: u64,
    flash_bytes_programmed: u64,
    flash: FlashObject,
    latency_ns: BTreeMap<&'static str, LatencyObject>,
    iops: f64,
    bytes_per_second: f64,
    queue_depth: DepthObject,
    buffer_hits: u64,
    /// Only where the map lies on flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    map_cache: Option<MapObject>,
    merges: Option<MergesObject>,
    unmapped_reads: u64,
    held_back: u64,
    behind_ns: u64,
    simulated_ns: u64,
}

/// Looks at the cached map, in mapping units, and translation pages moved for them.
#[derive(Debug, Serialize)]
struct MapObject {
    hits: u64,
    misses: u64,
    miss_ratio: f64,
    pages_loaded: u64,
    pages_rewritten: u64,
}

/// Merges of a drive that maps blocks.
#[derive(Debug, Serialize)]
struct MergesObject {
    switches: u64,
    partial: u64,
    full: u64,
    empty: u64,
}

#[derive(Debug, Serialize)]
struct DepthObject {
    mean: f64,
    max: u32,
}

/// Pages read, pages programmed, blocks erased (all of one plane), and programmed mapping
/// units, each by cause.
#[derive(Debug, Serialize)]
struct FlashObject {
    reads: BTreeMap<&'static str, u64>,
    programs: BTreeMap<&'static str, u64>,
    erases: BTreeMap<&'static str, u64>,
    units: BTreeMap<&'static str, u64>,
    /// Of these units, the ones in SLC blocks, where there are such beside
    /// others.
    #[serde(skip_serializing_if = "Option::is_none")]
    slc_units: Option<BTreeMap<&'static str, u64>>,
    /// Units of the host that found no room there.
    #[serde(skip_serializing_if = "Option::is_none")]
    slc_overflow_units: Option<u64>,
}

#[derive(Debug, Serialize)]
struct LatencyObject {
    count: u64,
    mean: Option<f64>,
    p50: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    max: Option<u64>,
}

/// Endurance at the measured rate.
#[derive(Debug, Serialize)]
pub struct LifetimeObject {
    days: Option<f64>,
    tbw: Option<f64>,
    dwpd: Option<f64>,
}

/// How evenly blocks were erased.
#[derive(Debug, Serialize)]
pub struct WearObject {
    erases_min: u32,
    erases_mean: f64,
    erases_max: u32,
}

/// The name of a steady state, and whether it counts as one.
#[must_use]
pub fn steady_name(state: SteadyState) -> (&'static str, bool) {
    match state {
        SteadyState::Reached => ("reached", true),
        SteadyState::NotReached => ("not reached", false),
        SteadyState::NotTested => ("not tested", false),
        SteadyState::NoWrites => ("nothing is written", true),
    }
}

impl ReportObject {
    /// The object of a report.
    #[must_use]
    pub fn new(facts: &Facts<'_>) -> Self {
        let outcome = facts.outcome;
        let (steady_state, steady) = steady_name(outcome.steady);
        Self {
            trace: trace_object(facts.trace),
            device: DeviceObject::new(facts.scaled),
            replay: ReplayObject {
                pace: describe(facts.options.pace).0,
                initial_state: facts.state.name.clone(),
                preparation: PreparationObject {
                    units_written: facts.prepared.written,
                    rounds: facts.prepared.rounds.clone(),
                    settled: facts.prepared.settled,
                },
                layout: layout(facts),
            },
            result: ResultObject {
                figures: FiguresObject::new(&outcome.measured),
                passes: outcome.measured.passes,
                warm_up_passes: outcome.warm_up_passes,
                steady,
                steady_state,
                steady_rounds: outcome.rounds.clone(),
                buffered_bytes: facts.buffered.0,
                lifetime: LifetimeObject::new(facts.lifetime()),
                wear: WearObject::new(facts.wear),
                faults: FaultsObject::new(&outcome.measured, &facts.scaled.device, facts.health),
                single_pass: FiguresObject::new(&outcome.single_pass),
            },
            seed: facts.seed,
        }
    }
}

fn layout(facts: &Facts<'_>) -> Vec<PlaceObject> {
    let place = |place: &prism_replay::Place| PlaceObject {
        device: facts.trace.symbols.name(place.device).to_owned(),
        start_bytes: place.start,
        span_bytes: place.span,
    };
    facts.layout.places().iter().map(place).collect()
}

impl DeviceObject {
    /// Of a drive and what was changed to make it fit.
    #[must_use]
    pub fn new(scaled: &Scaled) -> Self {
        let device = &scaled.device;
        let geometry = device.geometry();
        let spare = device.over_provisioning();
        Self {
            name: device.name.clone(),
            title: device.title.clone(),
            source: device.source.clone(),
            capacity_bytes: device.capacity().0,
            raw_bytes: geometry.raw().0,
            over_provisioning: OverProvisioningObject {
                nominal: spare.nominal,
                effective: spare.effective,
            },
            channels: geometry.channels,
            dies: geometry.dies(),
            planes: geometry.planes,
            blocks_per_die: geometry.blocks_per_plane * geometry.planes,
            pages_per_block: geometry.pages_per_block,
            page_bytes: geometry.page.0,
            mapping_unit_bytes: geometry.unit.0,
            endurance_cycles: device.flash.endurance,
            slc: device.slc.as_ref().map(|slc| SlcObject {
                usage: slc.usage.name(),
                blocks_per_die_group: slc.blocks,
                raw_bytes: geometry.slc_raw().0,
                below_bytes: slc.below.map(|below| below.0),
                endurance_cycles: slc.endurance,
            }),
            power_loss_protection: device.drive.power_loss_protection,
            scaled: scaled.changes.clone(),
        }
    }
}

impl FiguresObject {
    /// Bytes programmed over bytes written.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        self.write_amplification
    }

    /// All of them.
    #[must_use]
    pub fn new(measured: &Measured) -> Self {
        let slc = measured.flash.slc_units.total() + measured.flash.slc_overflow > 0;
        // Commands of zones are there where they occur; the others always.
        let told =
            |op: &HostOp| HostOp::COMMON.contains(op) || measured.latency_of(*op).count() > 0;
        let told = HostOp::ALL.into_iter().filter(told);
        let latency = told.map(|op| (op.name(), latency(measured.latency_of(op))));
        Self {
            requests_completed: measured.requests,
            flushes_completed: measured.latency_of(HostOp::Flush).count(),
            write_amplification: measured.write_amplification(),
            host_bytes_read: measured.bytes_of(HostOp::Read),
            host_bytes_written: measured.bytes_of(HostOp::Write),
            flash_bytes_programmed: measured.flash_bytes,
            flash: FlashObject {
                reads: by_cause(&measured.flash.reads),
                programs: by_cause(&measured.flash.programs),
                erases: by_cause(&measured.flash.erases),
                units: by_cause(&measured.flash.units),
                slc_units: slc.then(|| by_cause(&measured.flash.slc_units)),
                slc_overflow_units: slc.then_some(measured.flash.slc_overflow),
            },
            latency_ns: latency.collect(),
            iops: measured.iops(),
            bytes_per_second: measured.bytes_per_second(),
            queue_depth: DepthObject {
                mean: measured.in_flight_mean(),
                max: measured.in_flight_max,
            },
            buffer_hits: measured.buffer_hits,
            map_cache: measured.map.map(|map| MapObject {
                hits: map.hits,
                misses: map.misses,
                miss_ratio: map.miss_ratio(),
                pages_loaded: map.loads,
                pages_rewritten: map.writebacks,
            }),
            merges: measured.merges.map(|merges| MergesObject {
                switches: merges.switches,
                partial: merges.partial,
                full: merges.full,
                empty: merges.empty,
            }),
            unmapped_reads: measured.unmapped,
            held_back: measured.held_back,
            behind_ns: measured.behind_max.0,
            simulated_ns: measured.simulated.0,
        }
    }
}

impl LifetimeObject {
    /// Nothing is known where nothing is written.
    #[must_use]
    pub fn new(life: Option<Lifetime>) -> Self {
        Self { days: life.map(|l| l.days), tbw: life.map(|l| l.tbw), dwpd: life.map(|l| l.dwpd) }
    }
}

impl WearObject {
    /// Of a run's end.
    #[must_use]
    pub fn new(wear: Wear) -> Self {
        Self { erases_min: wear.min, erases_mean: wear.mean, erases_max: wear.max }
    }
}

fn by_cause(counts: &Counts) -> BTreeMap<&'static str, u64> {
    let causes = counts.iter().map(|(cause, count)| (cause.name(), count));
    causes.chain([("total", counts.total())]).collect()
}

fn latency(latencies: &Latencies) -> LatencyObject {
    let some = latencies.count() > 0;
    let quantile = |q| some.then(|| latencies.quantile(q).0);
    LatencyObject {
        count: latencies.count(),
        mean: some.then(|| latencies.mean_ns()),
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: some.then(|| latencies.max().0),
    }
}
