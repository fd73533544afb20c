//! A whole replay: passes, the steady-state test, and the results.

use std::collections::VecDeque;

use prism_base::{Bytes, Nanos, SimTime};
use prism_nand::Cause;
use prism_ssd::{DriveSpec, HostOp, SubmitError};
use prism_trace::{Source, SourceError};
use prism_workload::{Measured, Observer};

use crate::host_ftl::HostFtlCounts;
use crate::options::{Options, Pace, Passes};
use crate::pass::Player;
use crate::replay_device::ReplayDevice;
use crate::steady;

/// The most passes in the search for a steady state. A trace that writes so little that it needs
/// more is not repeated at all.
pub const PASSES_MAX: u32 = 500;
/// The most requests in the search, so that a command takes about a minute at most.
pub const REQUESTS_MAX: u64 = 20_000_000;
/// The most mapping units programmed in the search, for the same reason.
pub const UNITS_MAX: u64 = 400_000_000;

/// The most simulated time in the search: a century, so that 64 bits of nanoseconds hold one more
/// pass of any trace.
pub const SIMULATED_MAX: Nanos = Nanos(100 * 365 * 86_400 * 1_000_000_000);

/// Why a replay ends without a result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The stored trace could not be read again.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The drive refused a request.
    #[error("request {number} (at {at_ns} ns): {error}")]
    Refused {
        /// Number of the request in the trace, from 1.
        number: u64,
        /// Its issue time in the trace.
        at_ns: i64,
        /// What is wrong with it.
        error: SubmitError,
    },
    /// The times of the trace, over all passes, are longer than simulated time.
    #[error(
        "request {number} comes after more than 292 years of simulated time: the trace's clock \
         jumps, or the speed is too low; a --pace closed:32 ignores times"
    )]
    TooLong {
        /// Number of the request in the trace, from 1.
        number: u64,
    },
    /// The observer interrupted the replay.
    #[error("interrupted")]
    Interrupted,
    /// The source has no requests.
    #[error("no request is left to replay")]
    Empty,
    /// An option has a value that is not allowed.
    #[error("{field} must be {allowed}")]
    Option {
        /// The option.
        field: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// Result of the search for the steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyState {
    /// The test passed before the measured passes.
    Reached,
    /// The search reached a limit; the measured figures may still drift.
    NotReached,
    /// A pass writes so little that more than [`PASSES_MAX`] passes would be needed, which was seen
    /// after the first one; the measured figures are of a drive that has hardly changed.
    OutOfReach,
    /// The number of passes was fixed.
    NotTested,
    /// The trace writes nothing, so nothing changes from pass to pass.
    NoWrites,
}

impl SteadyState {
    /// Whether the steady state was reached; `None` if it was not looked for.
    #[must_use]
    pub fn reached(self) -> Option<bool> {
        match self {
            Self::Reached => Some(true),
            Self::NotReached | Self::OutOfReach => Some(false),
            Self::NotTested | Self::NoWrites => None,
        }
    }
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct ReplayResult {
    /// Passes before the measured ones.
    pub warm_up_passes: u32,
    /// Whether the steady state was reached.
    pub steady: SteadyState,
    /// Write amplification of each round of the search.
    pub rounds: Vec<f64>,
    /// Passes per round.
    pub passes_per_round: u32,
    /// Figures of the measured passes.
    pub measured: Measured,
    /// Figures of the rounds in which write amplification was steady, and of the measured passes,
    /// which follow them; only the latter if no steady state was reached.
    pub window: Measured,
    /// Rounds in that window, without the measured passes.
    pub window_rounds: u32,
    /// About how many passes a steady state needs: those that fill the erased blocks, and six
    /// rounds. 0 if it was not looked for.
    pub passes_needed: u64,
    /// Host data in the write buffer at the end.
    pub buffered: Bytes,
    /// Counts of the host FTL in the measured passes, if there is one.
    pub host_ftl: Option<HostFtlCounts>,
    /// Figures of the first pass alone.
    pub single_pass: Measured,
}

impl ReplayResult {
    /// The result so far after the first pass.
    fn after(single_pass: Measured) -> Self {
        Self {
            warm_up_passes: 0,
            steady: SteadyState::NotTested,
            rounds: Vec::new(),
            passes_per_round: 1,
            measured: Measured::default(),
            window: Measured::default(),
            window_rounds: 0,
            passes_needed: 0,
            buffered: Bytes(0),
            host_ftl: None,
            single_pass,
        }
    }

    /// Flash writes, those of cleaning included, over those without cleaning; 1 if there are none.
    /// Measured or, if a steady state is out of reach, that of uniform random writes to the
    /// `distinct` bytes of addresses that the trace writes on `device`.
    #[must_use]
    pub fn cleaning(&self, device: &DriveSpec, distinct: Bytes) -> f64 {
        let units = &self.window.flash.units;
        let others = units.total() - units[Cause::Gc] - units[Cause::Wear];
        if self.steady == SteadyState::OutOfReach
            && let Some(estimate) = device.cleaning_of_uniform_writes(distinct)
        {
            return estimate;
        }
        if others == 0 { 1.0 } else { units.total() as f64 / others as f64 }
    }

    /// Bytes of flash programmed in a pass, on `device`: measured or, if a steady state is out of
    /// reach, what was measured without cleaning times the estimate of [`Self::cleaning`].
    #[must_use]
    pub fn flash_bytes_per_pass(&self, device: &DriveSpec, distinct: Bytes) -> f64 {
        let units = &self.window.flash.units;
        let others = units.total() - units[Cause::Gc] - units[Cause::Wear];
        let mut bytes = (others * device.ftl.mapping_unit.0) as f64;
        if self.steady == SteadyState::OutOfReach {
            // A pass may be too short to push its data out of the write buffer.
            let written = self.window.written() as f64;
            bytes = bytes.max((bytes + self.buffered.0 as f64).min(written));
        }
        bytes * self.cleaning(device, distinct) / f64::from(self.window.passes.max(1))
    }

    /// Mean and standard deviation of write amplification over the rounds in which it was steady;
    /// `None` if no steady state was reached.
    #[must_use]
    pub fn steady_write_amplification(&self) -> Option<(f64, f64)> {
        let start = self.rounds.len() - self.window_rounds as usize;
        let window = &self.rounds[start..];
        let mean = self.window.write_amplification().filter(|_| !window.is_empty())?;
        let squares = window.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>();
        Some((mean, (squares / window.len() as f64).sqrt()))
    }
}

/// Replays `source` on `drive`, from the current state of the drive.
///
/// # Errors
/// [`ReplayError`]; requests may still be in flight then.
///
/// # Panics
/// If a conservation law is violated, which would be a bug in the drive.
pub fn replay<B: ReplayDevice>(
    drive: &mut B,
    source: &mut dyn Source,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<ReplayResult, ReplayError> {
    drive.replay(source, options, observer)
}

/// As [`replay`].
pub(crate) fn replay_on<B: ReplayDevice>(
    drive: &mut B,
    source: &mut dyn Source,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<ReplayResult, ReplayError> {
    check(options)?;
    let free_units = drive.erased_units();
    let mut player = Player::new(drive, observer, options.pace);
    let passes = match options.passes {
        Passes::Fixed(passes) | Passes::UpTo { passes, .. } => passes,
        Passes::Steady => 0,
        Passes::UntilReadOnly => u32::MAX,
    };
    player.until_read_only = options.passes == Passes::UntilReadOnly;
    if passes > 0 {
        player.observing = Some((0, player.drive.drive().now()));
    }
    player.pass(source)?;
    let single_pass = player.measured.clone();
    if single_pass.requests + single_pass.latency_of(HostOp::Flush).count() == 0 {
        return Err(ReplayError::Empty);
    }
    let mut outcome = ReplayResult::after(single_pass);
    if passes > 0 {
        for _ in 1..passes {
            if is_spent(&player, options.passes) {
                break;
            }
            player.pass(source)?;
        }
    } else {
        search(&mut player, source, &mut outcome, free_units)?;
        if player.drive.read_only().is_some() {
            // Another pass would only measure refusals.
            outcome.warm_up_passes = player.passes - player.measured.passes;
        } else {
            outcome.warm_up_passes = player.passes;
            player.reset_measurement();
            player.observing = Some((player.passes, player.drive.drive().now()));
            for _ in 0..outcome.passes_per_round {
                player.pass(source)?;
            }
        }
    }
    outcome.measured = std::mem::take(&mut player.measured);
    outcome.window.add(&outcome.measured);
    outcome.window.passes += outcome.measured.passes;
    outcome.host_ftl = player.host_ftl;
    let inner = drive.drive();
    outcome.buffered = inner.device().ftl.mapping_unit * u64::from(inner.buffered_units());
    drive.assert_consistent();
    Ok(outcome)
}

/// Whether no further pass is replayed, however many are left.
fn is_spent<B: ReplayDevice>(player: &Player<'_, B>, passes: Passes) -> bool {
    match passes {
        Passes::UpTo { units, .. } => player.drive.drive().flash_counts().units.total() >= units,
        Passes::UntilReadOnly => exceeds_limits(player),
        Passes::Fixed(_) | Passes::Steady => false,
    }
}

fn check(options: &Options) -> Result<(), ReplayError> {
    let refuse = |field, allowed| Err(ReplayError::Option { field, allowed });
    match options.pace {
        Pace::Open { speed } | Pace::Dependent { speed } => {
            if !(speed.is_finite() && speed > 0.0) {
                return refuse("speed", "a finite number above 0");
            }
        }
        Pace::Closed { depth: 0 } => return refuse("queue depth", "at least 1"),
        Pace::Closed { .. } => {}
    }
    match options.passes {
        Passes::Fixed(0) | Passes::UpTo { passes: 0, .. } => refuse("passes", "at least 1"),
        _ => Ok(()),
    }
}

/// Repeats the trace until write amplification is steady or the search reaches a limit.
fn search<B: ReplayDevice>(
    player: &mut Player<'_, B>,
    source: &mut dyn Source,
    outcome: &mut ReplayResult,
    free_units: u64,
) -> Result<(), ReplayError> {
    let written = outcome.single_pass.written();
    if written == 0 {
        outcome.steady = SteadyState::NoWrites;
        return Ok(());
    }
    if player.drive.read_only().is_some() {
        outcome.steady = SteadyState::NotReached;
        return Ok(());
    }
    let unit = player.drive.drive().device().ftl.mapping_unit.0;
    let spare = player.drive.spare_units() * unit;
    let round = spare.div_ceil(4 * written).clamp(1, u64::from(PASSES_MAX)) as u32;
    outcome.passes_per_round = round;
    let rounds = steady::WINDOW as u64 + 1;
    outcome.passes_needed = (free_units * unit).div_ceil(written) + rounds * u64::from(round);
    if outcome.passes_needed > u64::from(PASSES_MAX) {
        outcome.steady = SteadyState::OutOfReach;
        outcome.passes_per_round = 1;
        return Ok(());
    }
    let mut window = VecDeque::new();
    loop {
        let cleaning = player.drive.is_cleaning(free_units);
        player.reset_measurement();
        if !round_fits(player, source, round)? {
            if outcome.steady != SteadyState::Reached {
                outcome.steady = SteadyState::NotReached;
            }
            // Only one more pass is affordable.
            outcome.passes_per_round = 1;
            break;
        }
        let figure = player.measured.write_amplification().expect("something is written");
        if cleaning {
            outcome.rounds.push(figure);
            window.push_back(std::mem::take(&mut player.measured));
        }
        if window.len() > steady::WINDOW && outcome.steady != SteadyState::Reached {
            window.pop_front();
        }
        if steady::is_steady(&outcome.rounds) {
            outcome.steady = SteadyState::Reached;
        }
        let last = &outcome.rounds[outcome.rounds.len() - window.len()..];
        if outcome.steady == SteadyState::Reached && steady::is_mean_settled(last) {
            break;
        }
    }
    if outcome.steady != SteadyState::Reached {
        return Ok(());
    }
    outcome.window_rounds = window.len() as u32;
    for measured in &window {
        outcome.window.add(measured);
        outcome.window.passes += measured.passes;
    }
    Ok(())
}

/// Replays the passes of a round; false if the search reached a limit.
fn round_fits<B: ReplayDevice>(
    player: &mut Player<'_, B>,
    source: &mut dyn Source,
    passes: u32,
) -> Result<bool, ReplayError> {
    for _ in 0..passes {
        player.pass(source)?;
        if exceeds_limits(player) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn exceeds_limits<B: ReplayDevice>(player: &Player<'_, B>) -> bool {
    player.passes >= PASSES_MAX
        || player.drive.read_only().is_some()
        || player.drive.drive().now() > SimTime::ZERO + SIMULATED_MAX
        || player.drive.host_counts().completed >= REQUESTS_MAX
        || player.drive.drive().flash_counts().units.total() >= UNITS_MAX
}
