//! Measures the speed of a kind of drive for sequential and random, near and distant
//! addresses, by simulating small jobs with requests of 4 KiB.
//!
//! Reads run on a drive with all dies, because the number of dies determines how many reads
//! overlap. Only the first part of its addresses is filled. Writes run on the smallest drive
//! of the kind, which is filled and then overwritten with the same pattern. On such a drive,
//! cleaning begins after thousands of writes instead of millions. Figures of reads and writes
//! cannot be compared with each other; each ratio is between runs on the same drive.

use prism_base::{Bytes, Rng};
use prism_replay::{Options, Pace, Passes, ReplayError, replay};
use prism_ssd::scale::fit_wide;
use prism_ssd::{Drive, DriveSpec, DriveSpecError, HostOp, InitialState, fit};
use prism_trace::{Op, Record, VecSource};
use prism_workload::{Measured, Silent};

/// Size of each request. Source: the page of the ATC'09 paper's drives, and today's mapping
/// unit.
pub const REQUEST: Bytes = Bytes(4096);
/// Queue depths of the two runs of each pattern: one request at a time, and enough to keep
/// many dies busy.
pub const DEPTHS: [u32; 2] = [1, 32];
/// Size of the area at the beginning of the addresses that is filled and read. It has several
/// program units on each of a hundred dies.
const AREA: Bytes = Bytes(64 << 20);
/// Reads per run. With a thousand random addresses, the means of equally fast dies differ by a
/// few percent.
const READS: u64 = 1000;
/// The most writes per run; a run on a smaller drive has fewer. Even on a drive that merges a
/// whole block for each write, a run takes only a fraction of a second.
const WRITES_MAX: u64 = 4096;
/// The most writes that precondition a drive. They use up the spare flash even if the smallest
/// drive of the kind has a few GiB.
const WEAR_MAX: u64 = 1 << 15;
/// The longest distance between consecutive near reads. Distant reads are at least a quarter
/// of the area apart. The area is treated as a ring.
const NEAR: Bytes = Bytes(128 << 10);
/// The first and the last part of the area, each of this fraction, are compared in speed.
const END_SHARE: u64 = 8;

/// Throughput of the same requests in sequential and random order, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Consecutive addresses.
    pub sequential: f64,
    /// Addresses distributed uniformly.
    pub random: f64,
}

impl Rates {
    /// Sequential / random throughput.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.sequential / self.random
    }
}

/// The results of the jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Throughput of reads at each of [`DEPTHS`].
    pub reads: [Rates; 2],
    /// Throughput of writes at each of [`DEPTHS`].
    pub writes: [Rates; 2],
    /// Mean latency of a read near the previous one, in nanoseconds, at queue depth 1.
    pub near_ns: f64,
    /// Mean latency of a read far from the previous one, in nanoseconds, at queue depth 1.
    pub distant_ns: f64,
    /// Throughput of random reads at the beginning of the area, in bytes per second, at
    /// queue depth 32.
    pub first: f64,
    /// Throughput of random reads at the end of the area, in bytes per second, at queue
    /// depth 32.
    pub last: f64,
    /// Dies of the drive that was read.
    pub dies: u32,
}

/// Why a kind of drive cannot be probed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The small drive of this kind is not valid.
    #[error("no small drive of this kind is possible: {0}")]
    Device(#[from] DriveSpecError),
    /// The drive is zoned, and zones take no random writes.
    #[error("the jobs write at random addresses, which a zoned drive does not allow")]
    Zoned,
    /// A job failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl Probe {
    /// Runs the jobs on drives derived from `full`, the drive before it was scaled to a trace.
    ///
    /// # Errors
    /// [`ProbeError`] if no small drive of the kind is possible, if the drive is zoned, or if a
    /// job fails.
    pub fn of(full: &DriveSpec, seed: u64) -> Result<Self, ProbeError> {
        if full.is_zoned() {
            return Err(ProbeError::Zoned);
        }
        let mut rng = Rng::stream(seed, "terms.probe");
        let mut job = ReadProbe::new(full, seed)?;
        let reads = [job.rates(DEPTHS[0], &mut rng)?, job.rates(DEPTHS[1], &mut rng)?];
        let near_ns = job.mean_latency(near(job.positions, &mut rng))?;
        let distant_ns = job.mean_latency(distant(job.positions, &mut rng))?;
        let end = (job.positions / END_SHARE).max(1);
        let first = job.rate(random(0, end, READS, &mut rng), DEPTHS[1])?;
        let last = job.rate(random(job.positions - end, end, READS, &mut rng), DEPTHS[1])?;
        let dies = job.drive.device().geometry().dies();
        let sequential = write_rates(full, seed, in_order)?;
        let random =
            write_rates(full, seed, |positions, _, count| random(0, positions, count, &mut rng))?;
        let both = |i: usize| Rates { sequential: sequential[i], random: random[i] };
        let writes = [both(0), both(1)];
        Ok(Self { reads, writes, near_ns, distant_ns, first, last, dies })
    }
}

/// A drive with all dies for the read jobs.
struct ReadProbe {
    drive: Drive,
    /// Size of the area in requests. Addresses are given as positions below this.
    positions: u64,
}

impl ReadProbe {
    fn new(full: &DriveSpec, seed: u64) -> Result<Self, ProbeError> {
        let device = fit_wide(full, REQUEST)?.device;
        let capacity = device.capacity();
        let area = AREA.min(capacity);
        // One unit more, because the number of filled units is rounded down.
        let filled = area.0 as f64 + device.ftl.mapping_unit.0 as f64;
        let share = (filled / capacity.0 as f64).min(1.0);
        let drive = prepared(device, InitialState::FilledTo { share }, seed)?;
        Ok(Self { drive, positions: area.0 / REQUEST.0 })
    }

    fn rates(&mut self, depth: u32, rng: &mut Rng) -> Result<Rates, ProbeError> {
        let from = rng.below(self.positions);
        Ok(Rates {
            sequential: self.rate(in_order(self.positions, from, READS), depth)?,
            random: self.rate(random(0, self.positions, READS, rng), depth)?,
        })
    }

    fn rate(&mut self, positions: Vec<u64>, depth: u32) -> Result<f64, ProbeError> {
        Ok(run(&mut self.drive, Op::Read, positions, depth)?.bytes_per_second())
    }

    fn mean_latency(&mut self, positions: Vec<u64>) -> Result<f64, ProbeError> {
        let measured = run(&mut self.drive, Op::Read, positions, 1)?;
        Ok(measured.latency_of(HostOp::Read).mean_ns())
    }
}

/// Throughput of writes at each depth, in bytes per second. `positions` returns the addresses
/// to write, given the number of positions, the index of the first write, and the number of
/// writes. The drive is first overwritten with the same pattern: as many writes as use up its
/// spare flash, plus the writes of one run.
fn write_rates(
    full: &DriveSpec,
    seed: u64,
    mut positions: impl FnMut(u64, u64, u64) -> Vec<u64>,
) -> Result<[f64; 2], ProbeError> {
    let device = fit(full, REQUEST)?.device;
    let all = device.capacity().0 / REQUEST.0;
    let count = WRITES_MAX.min(all);
    let spare = device.usable_units().saturating_sub(u64::from(device.logical_units()));
    let before = (spare * device.ftl.mapping_unit.0 / REQUEST.0 + count).min(WEAR_MAX);
    let mut drive = prepared(device, InitialState::Filled, seed)?;
    run(&mut drive, Op::Write, positions(all, 0, before), DEPTHS[1])?;
    let mut rates = [0.0; 2];
    for (index, (rate, depth)) in (0..).zip(rates.iter_mut().zip(DEPTHS)) {
        let writes = positions(all, before + index * count, count);
        *rate = run(&mut drive, Op::Write, writes, depth)?.bytes_per_second();
    }
    Ok(rates)
}

fn prepared(device: DriveSpec, state: InitialState, seed: u64) -> Result<Drive, ProbeError> {
    let made = Drive::prepared(device, state, seed, |_| true)?;
    Ok(made.ok_or(ReplayError::Interrupted)?.0)
}

/// Runs requests of `op` at `positions` with a queue depth of `depth`, or the largest that the
/// drive supports.
fn run(drive: &mut Drive, op: Op, positions: Vec<u64>, depth: u32) -> Result<Measured, ProbeError> {
    let record = |position: u64| Record::new(op, 0, position * REQUEST.0, REQUEST.0);
    let mut source = VecSource::new(positions.into_iter().map(record).collect());
    let depth = depth.min(drive.device().drive.queue_depth);
    let options = Options { pace: Pace::Closed { depth }, passes: Passes::Fixed(1) };
    Ok(replay(drive, &mut source, &options, &mut Silent)?.measured)
}

fn in_order(positions: u64, from: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| (from + i) % positions).collect()
}

fn random(first: u64, positions: u64, count: u64, rng: &mut Rng) -> Vec<u64> {
    (0..count).map(|_| first + rng.below(positions)).collect()
}

/// Positions within [`NEAR`] of the previous one, on either side, but never adjacent to it.
fn near(positions: u64, rng: &mut Rng) -> Vec<u64> {
    let reach = (NEAR.0 / REQUEST.0).min(positions / 2).max(2);
    walk(positions, rng, |rng| {
        let step = 2 + rng.below(reach - 1);
        if rng.chance(0.5) { step } else { positions - step }
    })
}

/// Positions at least a quarter of the ring away from the previous one.
fn distant(positions: u64, rng: &mut Rng) -> Vec<u64> {
    walk(positions, rng, |rng| positions / 4 + rng.below(positions / 2))
}

/// Positions that start at random and advance by `step` each time.
fn walk(positions: u64, rng: &mut Rng, mut step: impl FnMut(&mut Rng) -> u64) -> Vec<u64> {
    let mut at = rng.below(positions);
    let next = |_| {
        at = (at + step(rng)) % positions;
        at
    };
    (0..READS).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_keep_their_distances() {
        let mut rng = Rng::stream(1, "test.patterns");
        assert_eq!(in_order(4, 2, 5), [2, 3, 0, 1, 2]);
        assert!(random(8, 4, 100, &mut rng).iter().all(|position| (8..12).contains(position)));
        let distances = |positions: &[u64]| {
            let round =
                |pair: &[u64]| pair[0].abs_diff(pair[1]).min(1000 - pair[0].abs_diff(pair[1]));
            positions.windows(2).map(round).collect::<Vec<_>>()
        };
        assert!(distances(&near(1000, &mut rng)).iter().all(|step| (2..=32).contains(step)));
        assert!(distances(&distant(1000, &mut rng)).iter().all(|&step| step >= 250));
    }

    #[test]
    fn all_presets_can_be_probed_and_have_no_seek_times() {
        for name in DriveSpec::preset_names() {
            let probe = Probe::of(&DriveSpec::preset(name).unwrap(), 1).unwrap();
            let ratio = probe.distant_ns / probe.near_ns;
            assert!((0.7..1.3).contains(&ratio), "{name}: {probe:?}");
            let ends = probe.first / probe.last;
            assert!((0.8..1.25).contains(&ends), "{name}: {probe:?}");
            let positive = |rates: &Rates| rates.sequential > 0.0 && rates.random > 0.0;
            assert!(probe.reads.iter().chain(&probe.writes).all(positive), "{name}: {probe:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_results() {
        let device = DriveSpec::preset("dc-tlc").unwrap();
        assert_eq!(Probe::of(&device, 5), Probe::of(&device, 5));
    }
}
