//! What a kind of drive does with sequential and random, near and distant addresses: small
//! jobs of requests of 4 KiB, simulated.
//!
//! Reads run on a drive with all dies, of which a first part is filled: how much they overlap
//! depends on the dies. Writes run on the smallest drive of the kind, filled and then worn in
//! by writes of the same pattern: there cleaning begins after thousands of writes and not
//! after millions. Figures of the two are not to be compared with each other; each ratio is
//! between runs on the same drive.

use prism_base::{Bytes, Rng};
use prism_replay::{Options, Pace, Passes, ReplayError, replay};
use prism_ssd::scale::fit_wide;
use prism_ssd::{Device, DeviceError, Drive, HostOp, InitialState, fit};
use prism_trace::{Op, Record, VecSource};
use prism_workload::{Measured, Silent};

/// Size of each request. Source: the page of the ATC'09 paper's drives, and today's mapping
/// unit.
pub const REQUEST: Bytes = Bytes(4096);
/// Requests in flight of the two runs of each kind: what waits for itself, and what keeps
/// many dies busy.
pub const DEPTHS: [u32; 2] = [1, 32];
/// The part of the addresses that is filled and read: several rows on each of a hundred
/// dies.
const AREA: Bytes = Bytes(64 << 20);
/// Reads of a run. Means over a thousand draws of equally fast dies differ by a few percent.
const READS: u64 = 1000;
/// Writes of a run at most, so that a drive that merges a whole block for each write costs a
/// fraction of a second; fewer where the drive is smaller.
const WRITES_MAX: u64 = 4096;
/// Writes at most that wear a drive in: enough for its spare flash to be used up where the
/// smallest drive of a kind is as large as a few GiB.
const WEAR_MAX: u64 = 1 << 15;
/// A near read begins at most so far from the last one, a distant one at least a quarter
/// of the area, which is taken to be a ring.
const NEAR: Bytes = Bytes(128 << 10);
/// The part of the area at its beginning, and that at its end, whose speeds are compared.
const END_SHARE: u64 = 8;

/// Bytes a second of the same requests in order and at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// One after the other.
    pub sequential: f64,
    /// Uniformly over all addresses.
    pub random: f64,
}

impl Rates {
    /// Sequential over random.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.sequential / self.random
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Reads, at each of [`DEPTHS`].
    pub reads: [Rates; 2],
    /// Writes, at each of [`DEPTHS`].
    pub writes: [Rates; 2],
    /// Mean latency in nanoseconds of a read near the one before it, alone in flight.
    pub near_ns: f64,
    /// The same of a read far from the one before it.
    pub distant_ns: f64,
    /// Bytes a second of random reads at the beginning of the addresses, 32 in flight.
    pub first: f64,
    /// The same at their end.
    pub last: f64,
    /// Dies of the drive that was read.
    pub dies: u32,
}

/// Why there is nothing to decide by.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// There is no small drive of this kind.
    #[error("no small drive of this kind can be: {0}")]
    Device(#[from] DeviceError),
    /// Its zones take no writes at random.
    #[error("the jobs write at random, which a zoned drive does not take")]
    Zoned,
    /// The jobs cannot run on it.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl Probe {
    /// Runs the jobs on drives made from `full`, the drive before it was made to fit a trace.
    ///
    /// # Errors
    /// [`ProbeError`] where no small drive of the kind can be.
    pub fn of(full: &Device, seed: u64) -> Result<Self, ProbeError> {
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

/// A drive with all dies that is read; addresses are counted in requests.
struct ReadProbe {
    drive: Drive,
    positions: u64,
}

impl ReadProbe {
    fn new(full: &Device, seed: u64) -> Result<Self, ProbeError> {
        let device = fit_wide(full, REQUEST)?.device;
        let capacity = device.capacity();
        let area = AREA.min(capacity);
        // A unit more, against rounding down.
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

/// Bytes a second, at each depth, of writes in the pattern of `positions` (which is told how many
/// there are, where to go on, and how many are wanted) on a drive worn in by the same pattern:
/// by as many writes, once the spare flash is used up.
fn write_rates(
    full: &Device,
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
    for (turn, (rate, depth)) in (0..).zip(rates.iter_mut().zip(DEPTHS)) {
        let wanted = positions(all, before + turn * count, count);
        *rate = run(&mut drive, Op::Write, wanted, depth)?.bytes_per_second();
    }
    Ok(rates)
}

fn prepared(device: Device, state: InitialState, seed: u64) -> Result<Drive, ProbeError> {
    let made = Drive::prepared(device, state, seed, |_, _| true)?;
    Ok(made.ok_or(ReplayError::Interrupted)?.0)
}

/// Requests of `op` at `positions`, as many in flight as `depth`.
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

/// Each within [`NEAR`] of the one before it, on either side, and never the next one.
fn near(positions: u64, rng: &mut Rng) -> Vec<u64> {
    let reach = (NEAR.0 / REQUEST.0).min(positions / 2).max(2);
    walk(positions, rng, |rng| {
        let step = 2 + rng.below(reach - 1);
        if rng.chance(0.5) { step } else { positions - step }
    })
}

/// Each at least a quarter of the way round from the one before it.
fn distant(positions: u64, rng: &mut Rng) -> Vec<u64> {
    walk(positions, rng, |rng| positions / 4 + rng.below(positions / 2))
}

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
    fn patterns_are_what_they_are_called() {
        let mut rng = Rng::stream(1, "test.patterns");
        assert_eq!(in_order(4, 2, 5), [2, 3, 0, 1, 2]);
        assert!(random(8, 4, 100, &mut rng).iter().all(|position| (8..12).contains(position)));
        let far_apart = |positions: &[u64]| {
            let round =
                |pair: &[u64]| pair[0].abs_diff(pair[1]).min(1000 - pair[0].abs_diff(pair[1]));
            positions.windows(2).map(round).collect::<Vec<_>>()
        };
        assert!(far_apart(&near(1000, &mut rng)).iter().all(|step| (2..=32).contains(step)));
        assert!(far_apart(&distant(1000, &mut rng)).iter().all(|&step| step >= 250));
    }

    #[test]
    fn every_preset_can_be_probed_and_has_no_seeks() {
        for name in Device::preset_names() {
            let probe = Probe::of(&Device::preset(name).unwrap(), 1).unwrap();
            let ratio = probe.distant_ns / probe.near_ns;
            assert!((0.7..1.3).contains(&ratio), "{name}: {probe:?}");
            let ends = probe.first / probe.last;
            assert!((0.8..1.25).contains(&ends), "{name}: {probe:?}");
            let positive = |rates: &Rates| rates.sequential > 0.0 && rates.random > 0.0;
            assert!(probe.reads.iter().chain(&probe.writes).all(positive), "{name}: {probe:?}");
        }
    }

    #[test]
    fn the_same_seed_finds_the_same() {
        let device = Device::preset("dc-tlc").unwrap();
        assert_eq!(Probe::of(&device, 5), Probe::of(&device, 5));
    }
}
