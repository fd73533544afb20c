//! Runs one simulation: a trace on a drive, with or without a change.

use prism_base::{Bytes, Nanos};
use prism_replay::{Options, ReplayError, replay};
use prism_ssd::{DriveSpec, DriveSpecError, InitialState};
use prism_trace::{Op, Source, SourceError};
use prism_workload::{Observer, Progress};

use super::change::Change;
use super::drives::Drives;
use super::figures::{Figures, Original};
use super::rewrite::{
    Chain, DeathTime, DelayDiscards, DiscardDead, GroupCommit, HotCold, Merge, Rewrite, Rewritten,
    Shape, Units, Without,
};

/// The largest merged write, for changes that do not specify it.
pub(super) const MERGED_MAX: Bytes = Bytes(1 << 20);
/// The longest time that an incomplete stripe waits for more data.
pub(super) const STRIPE_WINDOW: Nanos = Nanos(10_000_000);

/// A drive and the options of a replay on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The drive, already scaled to the trace.
    pub device: DriveSpec,
    /// The amount of flash that lifetimes are computed from. A change can add blocks to a
    /// drive that was scaled down, so that its spare flash stays the same; those blocks are
    /// not included.
    pub raw: Bytes,
    /// Pace and number of passes.
    pub options: Options,
    /// The contents of the drive at the start.
    pub state: InitialState,
    /// If the drive starts in the steady state in which cleaning writes this many units for each
    /// unit of other flash writes, both counted: replaces `state` where that state can be laid out.
    pub cleaning: Option<f64>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Which records of the trace are replayed.
    pub records: Selection,
}

/// Which records of a trace are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// All but reads, which wear no flash.
    WithoutReads,
}

impl Run {
    /// A run on `device`; lifetimes are computed from all of its flash.
    #[must_use]
    pub fn new(device: DriveSpec, options: Options, state: InitialState, seed: u64) -> Self {
        let raw = device.geometry().raw();
        Self { device, raw, options, state, cleaning: None, seed, records: Selection::All }
    }

    /// The state in which the drive starts.
    #[must_use]
    pub fn initial_state(&self) -> InitialState {
        match self.cleaning {
            Some(write_amplification) if self.device.has_steady_state() => {
                InitialState::SteadyAt { write_amplification }
            }
            _ => self.state,
        }
    }
}

/// Why a what-if has no figures.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// The drive that the change needs is not valid.
    #[error("the drive that this change needs is not possible: {0}")]
    Device(#[from] DriveSpecError),
    /// The changed trace cannot be replayed, or the caller interrupted the replay.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The trace accesses more units than can be tracked.
    #[error(
        "the trace accesses more than 2,000,000,000 mapping units, too many to look ahead in it; \
         choose a part of it by phase or time"
    )]
    TooLong,
    /// Reading the trace again failed.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// Returns the records of `source` as rewritten by `change`, for a replay on `device`.
/// Addresses are those of the drive ([`prism_replay::LaidOut`]). Changes of the drive or the
/// pace leave the records unmodified.
///
/// # Errors
/// [`WhatIfError::Source`] if the trace cannot be read: some changes look ahead in the trace
/// and read all of it here.
pub fn rewritten<'a>(
    change: Option<&Change>,
    device: &DriveSpec,
    source: &'a mut dyn Source,
) -> Result<impl Source + 'a, WhatIfError> {
    let rewrite: Option<Box<dyn Rewrite>> = match change {
        None => None,
        Some(change) => rewriting(change, device, source)?,
    };
    Ok(Rewritten::new(source, rewrite))
}

/// Whether `change` rewrites the trace.
pub(super) fn changes_trace(change: &Change) -> bool {
    match change {
        Change::Merge { .. }
        | Change::GroupCommit { .. }
        | Change::Align { .. }
        | Change::Discards { .. }
        | Change::DelayDiscards { .. }
        | Change::NoDiscards
        | Change::Streams { .. }
        | Change::HotCold { .. } => true,
        Change::Depth { .. }
        | Change::OverProvisioning { .. }
        | Change::MapCache { .. }
        | Change::PageMap
        | Change::Levelling { .. } => false,
    }
}

fn rewriting(
    change: &Change,
    device: &DriveSpec,
    source: &mut dyn Source,
) -> Result<Option<Box<dyn Rewrite>>, WhatIfError> {
    let unit = device.ftl.mapping_unit;
    let units = Units::new(unit, device.logical_units());
    let none = Bytes(1);
    Ok(Some(match *change {
        Change::Merge { most, window } => Box::new(Merge::new(Shape::UpTo(most), window, none)),
        Change::GroupCommit { window } => Box::new(Chain::new(
            GroupCommit::new(window),
            Merge::new(Shape::UpTo(MERGED_MAX), window, none),
        )),
        Change::Align { to, .. } => Box::new(Merge::new(Shape::Stripes(to), STRIPE_WINDOW, unit)),
        Change::Discards { delay } => Box::new(DiscardDead::new(source, units, delay)?),
        Change::DelayDiscards { by } => Box::new(DelayDiscards::new(by)),
        Change::NoDiscards => Box::new(Without(Op::Discard)),
        Change::Streams { handles } => Box::new(DeathTime::new(source, units, handles)?),
        Change::HotCold { classes } => Box::new(HotCold::new(units, classes)),
        Change::Depth { .. }
        | Change::OverProvisioning { .. }
        | Change::MapCache { .. }
        | Change::PageMap
        | Change::Levelling { .. } => return Ok(None),
    }))
}

/// Replays `source`, rewritten by `change`, with the drive and options of `run`. With a
/// change, `run` has to be the run of that change ([`super::WhatIf::after`]). Without one,
/// the result is a baseline that changes are compared with.
///
/// `drives` has the drive with which the simulation begins; an empty one lets it prepare its own.
///
/// `observer` receives the measured requests and the progress. It ends the simulation by
/// returning false from `keep_going` ([`ReplayError::Interrupted`]).
///
/// # Errors
/// [`WhatIfError`] if the drive is not valid, if the trace cannot be read, rewritten or
/// replayed, or if the observer ended the simulation.
pub fn simulate(
    run: &Run,
    change: Option<&Change>,
    (drives, source): (&Drives, &mut dyn Source),
    original: &Original,
    observer: &mut dyn Observer,
) -> Result<Figures, WhatIfError> {
    let preparing = Progress { passes: 0, submitted: 0, measuring: false };
    let keep_going = |_| observer.keep_going(preparing);
    let Some(mut drive) = drives.prepared(run, keep_going)? else {
        return Err(ReplayError::Interrupted.into());
    };
    let mut without_reads;
    let source: &mut dyn Source = match run.records {
        Selection::All => source,
        Selection::WithoutReads => {
            without_reads = Rewritten::new(source, Some(Box::new(Without(Op::Read))));
            &mut without_reads
        }
    };
    let mut source = rewritten(change, &run.device, source)?;
    let outcome = replay(&mut drive, &mut source, &run.options, observer)?;
    Ok(Figures::of(&outcome, &drive, run.raw, original))
}
