//! The figures of a drive's data sheet next to those of the simulation.
//!
//! No agreement is claimed: a preset is fitted to a few of these figures and not to the others,
//! and the inside of the drive is not public. The difference shows how far a preset can be
//! trusted.

use prism_base::{Bytes, Nanos, Rng};
use prism_ssd::{DriveSpec, HostOp, InitialState, Request, scale};

use crate::check::{Check, Group, Simulation};
use crate::drives::{prepared, smaller};
use crate::load::{Tally, second_half};

/// Capacity per die of the simulated drives, which keep all their dies: a drive of terabytes has
/// the same figures and takes longer to fill.
const CAPACITY_PER_DIE: u64 = 1 << 30;

/// A synthetic workload.
#[derive(Clone, Copy, Debug)]
struct Load {
    op: HostOp,
    size: u64,
    random: bool,
    depth: u32,
    count: u64,
    state: InitialState,
}

/// A check of every figure in the data sheet of `device`.
#[must_use]
pub fn checks(device: &DriveSpec, seed: u64) -> Vec<Simulation> {
    let sheet = &device.datasheet;
    let mut all = Vec::new();
    let mut add = |what: &str, unit, expected: Option<u64>, load: Load, of: fn(&Tally) -> f64| {
        let Some(expected) = expected else { return };
        let what = format!("{}: {what}", device.name);
        let (device, name) = (device.clone(), what.clone());
        all.push(Simulation::new(what, move || Check {
            group: Group::DataSheet,
            what: name,
            expected: expected as f64,
            ours: of(&run(&device, load, seed)),
            tolerance: None,
            source: "data sheet".into(),
            unit,
        }));
    };
    let read = Load {
        op: HostOp::Read,
        size: 4096,
        random: true,
        depth: 1,
        count: 2_000,
        state: InitialState::Filled,
    };
    let write = Load { op: HostOp::Write, ..read };
    let steady = InitialState::Preconditioned { overwrites: 1.5 };
    let deep = Load { depth: 256, count: 400_000, ..read };
    let worn = Load { op: HostOp::Write, state: steady, count: blocks_written(device, 8), ..deep };
    let stream = Load { size: 131_072, random: false, depth: 32, count: 40_000, ..read };
    let written = Load { op: HostOp::Write, ..stream };
    let nanos = |time: Option<Nanos>| time.map(|time| time.0);
    let (latency, iops, rate) = (Tally::mean, Tally::per_second, Tally::rate);
    add("4 KiB random read latency", "ns", nanos(sheet.random_read_latency), read, latency);
    add("4 KiB random write latency", "ns", nanos(sheet.random_write_latency), write, latency);
    add("4 KiB random read", "IOPS", sheet.random_read_iops, deep, iops);
    add("4 KiB random write, steady", "IOPS", sheet.random_write_iops, worn, iops);
    add("128 KiB sequential read", "B/s", sheet.sequential_read, stream, rate);
    add("128 KiB sequential write", "B/s", sheet.sequential_write, written, rate);
    all
}

/// The number of requests that write `blocks` blocks on every die. A preconditioned drive settles
/// within the first half of eight blocks, and the second half is measured.
fn blocks_written(device: &DriveSpec, blocks: u64) -> u64 {
    let geometry = device.geometry();
    u64::from(geometry.dies()) * u64::from(geometry.units_per_block()) * blocks
}

/// The drive with smaller blocks, so that dies of [`CAPACITY_PER_DIE`] still have enough of them.
/// These figures depend on the number of dies, but hardly on the size of blocks.
fn small_blocks(device: &DriveSpec) -> DriveSpec {
    let mut small = device.clone();
    let flash = &mut small.flash;
    let planes = if flash.multi_plane { flash.planes } else { 1 };
    let page = u64::from(planes) * flash.page.0;
    while u64::from(flash.pages_per_block) * page * scale::BLOCKS_PER_DIE_MIN > CAPACITY_PER_DIE
        && flash.pages_per_block.is_multiple_of(2 * flash.pages_per_program)
    {
        flash.pages_per_block /= 2;
        flash.blocks_per_plane *= 2;
    }
    small
}

/// Runs the workload and measures the second half of its requests.
fn run(device: &DriveSpec, load: Load, seed: u64) -> Tally {
    let dies = u64::from(device.geometry().dies());
    let capacity = Bytes((dies * CAPACITY_PER_DIE).min(device.capacity().0));
    let mut drive = prepared(smaller(&small_blocks(device), capacity), load.state, seed);
    let places = drive.device().capacity().0 / load.size;
    let depth = load.depth.min(drive.device().drive.queue_depth);
    let mut rng = Rng::stream(seed, "datasheet.address");
    second_half(&mut drive, depth, load.count, |number| {
        let place = if load.random { rng.below(places) } else { number % places };
        Request::new(load.op, place * load.size, load.size, number)
    })
}
