//! One simulation: a drive, a trace, and perhaps a change of it.

use prism_base::{Bytes, Nanos};
use prism_replay::{Options, ReplayError, replay};
use prism_ssd::{Device, DeviceError, Drive, InitialState};
use prism_trace::{Source, SourceError};
use prism_workload::{Observer, Progress};

use super::change::Change;
use super::figures::{Figures, Original};
use super::rewrite::{
    DeathTime, DelayDiscards, DiscardDead, GroupCommit, HotCold, Merge, NoDiscards, Rewrite,
    Rewritten, Shape, Then, Units,
};

/// The most that writes merge to where a change does not say it.
pub(super) const MERGED_MAX: Bytes = Bytes(1 << 20);
/// How long a stripe waits to become whole.
pub(super) const STRIPE_WINDOW: Nanos = Nanos(10_000_000);

/// A drive and how a trace is replayed on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The drive, already made to fit the trace.
    pub device: Device,
    /// The flash that wears, for lifetimes: that of the drive, without what it has only so
    /// that a change takes no spare flash from a drive made small.
    pub raw: Bytes,
    /// How the trace is replayed.
    pub options: Options,
    /// What the drive holds at the start.
    pub state: InitialState,
    /// Seed of everything random.
    pub seed: u64,
}

impl Run {
    /// A run on `device`, all of whose flash wears.
    #[must_use]
    pub fn new(device: Device, options: Options, state: InitialState, seed: u64) -> Self {
        let raw = device.geometry().raw();
        Self { device, raw, options, state, seed }
    }
}

/// Why a what-if has no figures.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// There is no such drive.
    #[error("the drive that this needs cannot be: {0}")]
    Device(#[from] DeviceError),
    /// The changed trace cannot be replayed, or the caller interrupted it.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// More units are accessed than can be followed.
    #[error(
        "the trace accesses more than 2,000,000,000 mapping units, too many to know its future; \
         choose a part of it by phase or time"
    )]
    TooLong,
    /// The trace could not be read again.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The records of `source` as `change` makes them, for a replay on `device`. Addresses are
/// those of the drive ([`prism_replay::LaidOut`]). Changes that only concern the drive or the
/// pace leave them as they are.
///
/// # Errors
/// [`WhatIfError::Source`] if the trace cannot be read; what knows the future reads it first.
pub fn rewritten<'a>(
    change: Option<&Change>,
    device: &Device,
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
    device: &Device,
    source: &mut dyn Source,
) -> Result<Option<Box<dyn Rewrite>>, WhatIfError> {
    let unit = device.ftl.mapping_unit;
    let units = Units::new(unit, device.logical_units());
    let none = Bytes(1);
    Ok(Some(match *change {
        Change::Merge { most, window } => Box::new(Merge::new(Shape::UpTo(most), window, none)),
        Change::GroupCommit { window } => Box::new(Then::new(
            GroupCommit::new(window),
            Merge::new(Shape::UpTo(MERGED_MAX), window, none),
        )),
        Change::Align { to, .. } => Box::new(Merge::new(Shape::Stripes(to), STRIPE_WINDOW, unit)),
        Change::Discards { delay } => Box::new(DiscardDead::new(source, units, delay)?),
        Change::DelayDiscards { by } => Box::new(DelayDiscards::new(by)),
        Change::NoDiscards => Box::new(NoDiscards),
        Change::Streams { handles } => Box::new(DeathTime::new(source, units, handles)?),
        Change::HotCold { classes } => Box::new(HotCold::new(units, classes)),
        Change::Depth { .. }
        | Change::OverProvisioning { .. }
        | Change::MapCache { .. }
        | Change::PageMap
        | Change::Levelling { .. } => return Ok(None),
    }))
}

/// Replays `source`, changed by `change`, as `run` says. The run is the one that belongs to
/// the change ([`super::WhatIf::after`]); with no change it is what others are compared to.
///
/// `observer` sees the measured requests, is told of progress, and ends the simulation by
/// returning false ([`ReplayError::Interrupted`]).
///
/// # Errors
/// [`WhatIfError`].
pub fn simulate(
    run: &Run,
    change: Option<&Change>,
    source: &mut dyn Source,
    original: &Original,
    observer: &mut dyn Observer,
) -> Result<Figures, WhatIfError> {
    let preparing = Progress { passes: 0, submitted: 0, measuring: false, last_round: None };
    let told = |_, _| observer.keep_going(preparing);
    let prepared = Drive::prepared(run.device.clone(), run.state, run.seed, told)?;
    let Some((mut drive, _)) = prepared else {
        return Err(ReplayError::Interrupted.into());
    };
    let mut source = rewritten(change, &run.device, source)?;
    let outcome = replay(&mut drive, &mut source, &run.options, observer)?;
    Ok(Figures::of(&outcome, &drive, run.raw, original))
}
