//! Writes at a constant rate: the longest latency, and the number of large latencies.

use prism_base::{Bytes, Nanos, Rng};
use prism_engine::CleaningMode;
use prism_nand::Cause;
use prism_ssd::spec::FtlSpec;
use prism_ssd::{Completion, Drive, DriveSpec, HostOp, Request};

use super::writers::PRESET;
use super::{Bench, GIB};
use crate::drives::{filled, preset, smaller};
use crate::load::{OpenLoop, Tally, closed_loop, run};

/// A longer latency counts as large, as in the article.
pub const LARGE_LATENCY: Nanos = Nanos(50_000_000);
/// The time of the article's runs at each rate.
pub const SPAN: Nanos = Nanos(2 * 3600 * 1_000_000_000);
/// The rates of the article in megabytes a second.
pub const RATES: [u32; 6] = [10, 50, 100, 200, 400, 800];
/// Size of a write, which the article does not give. With writes below 16 KiB the drive, which
/// limits commands per second, cannot reach 800 MB/s.
pub const SIZE: Bytes = Bytes(1 << 20);
/// Capacity of the drive, which keeps the size of its blocks and all its dies.
const CAPACITY: Bytes = Bytes(12 * GIB);
/// The mapping unit is a program unit of a die: writes are multiples of it and aligned to it.
const UNIT: Bytes = Bytes(16 << 10);
/// Bytes written before the measurement, as a multiple of the capacity, so that the drive is
/// cleaning when it begins.
const WARM_UP: u64 = 1;

/// The addresses of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressPattern {
    /// Sequential, over and over through the drive, so that the data of a block dies together.
    Log,
    /// Random, so that cleaning copies.
    Anywhere,
}

/// When the drive cleans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// When a die runs out of erased blocks, alternating with writes.
    Foreground,
    /// Earlier, in single steps while no host request waits for the die, and in idle time.
    /// Cleaning alternates with writes only when a die runs out of erased blocks.
    Background,
}

/// The measurements at one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRow {
    /// Rate at which the host writes, in megabytes a second.
    pub rate: u32,
    /// The addresses of writes.
    pub place: AddressPattern,
    /// When the drive cleans.
    pub when: When,
    /// Simulated time.
    pub span: Nanos,
    /// Number of writes.
    pub writes: u64,
    /// The longest latency, counted from when a write is due.
    pub max: Nanos,
    /// Writes that took longer than 50 ms.
    pub large: u64,
    /// The number of such writes, extrapolated to two hours.
    pub large_in_span: f64,
    /// Rate that the drive reached, in megabytes a second: less than `rate` if it cannot keep up.
    pub done: f64,
    /// Units programmed per unit that the host wrote.
    pub write_amplification: f64,
    /// Blocks erased.
    pub erases: u64,
}

/// All rates one after another on the same drive, the lowest first.
pub(super) fn rows(bench: Bench, place: AddressPattern, when: When) -> Vec<RateRow> {
    let mut drive = filled(device(when), bench.seed);
    let places = drive.device().capacity().0 / SIZE.0;
    let mut rng = Rng::stream(bench.seed, "linkedin.rates");
    let mut turn = 0;
    let mut next = || {
        turn += 1;
        let place = match place {
            AddressPattern::Log => turn % places,
            AddressPattern::Anywhere => rng.below(places),
        };
        Request::new(HostOp::Write, place * SIZE.0, SIZE.0, 0)
    };
    closed_loop(&mut drive, 8, WARM_UP * places, |_| next());
    RATES.map(|rate| row(bench, &mut drive, (rate, place, when), &mut next)).into()
}

fn device(when: When) -> DriveSpec {
    let preset = preset(PRESET);
    let preset = DriveSpec { ftl: FtlSpec { mapping_unit: UNIT, ..preset.ftl }, ..preset };
    let mut device = smaller(&preset, CAPACITY);
    if when == When::Background {
        let ftl = &mut device.ftl;
        ftl.cleaning = CleaningMode::Partial;
        ftl.free_blocks_idle = 2 * ftl.free_blocks_high;
        ftl.idle_after = Nanos(1_000_000);
    }
    device
}

fn row(
    bench: Bench,
    drive: &mut Drive,
    (rate, place, when): (u32, AddressPattern, When),
    next: impl FnMut() -> Request,
) -> RateRow {
    let gap = Nanos(SIZE.0 * 1000 / u64::from(rate));
    let writes = (SPAN.0 / gap.0).min(bench.bytes(24) / SIZE.0);
    let before = *drive.flash_counts();
    let paced = paced(drive, gap, writes, next);
    let flash = drive.flash_counts().since(&before);
    let share = SPAN.0 as f64 / (gap.0 * writes) as f64;
    RateRow {
        rate,
        place,
        when,
        span: Nanos(gap.0 * writes),
        writes,
        max: paced.tally.max,
        large: paced.large,
        large_in_span: paced.large as f64 * share,
        done: (writes * SIZE.0) as f64 / paced.tally.span.as_secs_f64() / 1e6,
        write_amplification: flash.units.total() as f64 / flash.units[Cause::Host] as f64,
        erases: flash.erases.total(),
    }
}

/// The latencies of writes at a constant rate.
struct PacedWrites {
    tally: Tally,
    large: u64,
}

/// Issues a write every `gap`. A write that finds the queue of the drive full waits in the host;
/// its latency counts from when it was due.
fn paced(
    drive: &mut Drive,
    gap: Nanos,
    writes: u64,
    mut next: impl FnMut() -> Request,
) -> PacedWrites {
    let (mut tally, mut large) = (Tally::starting(drive.now()), 0);
    let completed = |completion: &Completion, _: &Request, due| {
        tally.add(completion, due);
        large += u64::from(completion.completed.since(due) > LARGE_LATENCY);
    };
    let next = |number| (if number == 0 { Nanos::ZERO } else { gap }, next());
    run(drive, &mut OpenLoop::new(drive.now(), writes, usize::MAX, next, completed));
    PacedWrites { tally, large }
}
