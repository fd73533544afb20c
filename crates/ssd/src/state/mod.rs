//! The initial state of a drive, before the first request.
//!
//! Initial states take no simulated time: units are written with an engine without timing, or, for
//! the steady state, laid out directly.

mod rounds;

use prism_base::{Bytes, Rng};
use prism_engine::{FlashCounts, Immediate};
use prism_ftl::{Ftl, FtlConfig, HostPlace, PageConfig, PageMap, SteadyError};
use prism_nand::{BlockId, Nand};

use crate::drive::Drive;
use crate::spec::{DriveSpec, DriveSpecError};
use crate::zones::ZoneShape;
use rounds::Rounds;

/// State of the drive at the begin of the simulation.
///
/// With a map on flash, every state but [`InitialState::Empty`] contains the translation pages,
/// written once after the data and updated without being written again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InitialState {
    /// Erased, as from the factory. Cleaning does not begin until all flash was written once.
    Empty,
    /// Every logical unit, written once in order.
    Filled,
    /// The first logical units, written once in order; of a zoned drive, the first zones.
    FilledTo {
        /// Their share of all, 0 to 1; rounded down to whole units or zones.
        share: f64,
    },
    /// Filled, then overwritten at random for this many capacities.
    Preconditioned {
        /// Random single-unit writes as a multiple of the capacity.
        overwrites: f64,
    },
    /// Overwritten at random until write amplification is steady: in the last four rounds it
    /// differs by at most 2 % of the mean. The drive begins in [`InitialState::Steady`] where that
    /// is known and flash does not age, and filled otherwise. A round is a quarter of the capacity,
    /// at least 65,536 units; from the steady state, which only has to be confirmed, at most
    /// 2,097,152. Overwriting stops after ten capacities or ten rounds, whichever is more, even if
    /// it is not steady ([`Preparation::settled`]).
    Settled,
    /// The steady state of uniform random writes, laid out without writing ([`PageMap::steady`]).
    /// All erase counts are 0.
    Steady,
    /// The same of a drive on which only some of the data is overwritten, so little of it that
    /// cleaning causes this write amplification, and the rest is cold. The overwritten data has the
    /// first addresses. At most the write amplification of [`InitialState::Steady`] is reached.
    SteadyAt {
        /// Flash writes, those of cleaning included, over flash writes without those.
        write_amplification: f64,
    },
}

/// Work done to bring a drive into its initial state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preparation {
    /// Flash operations, which the drive's own counts do not include.
    pub counts: FlashCounts,
    /// Units written, those of the fill included. What was laid out was not written.
    pub written: u64,
    /// Write amplification in each round of overwrites ([`InitialState::Settled`]).
    pub rounds: Vec<f64>,
    /// Whether the last rounds were steady; `None` for other initial states.
    pub settled: Option<bool>,
}

/// A step of the preparation of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparationStep {
    /// The steady state is laid out without writing.
    LayOut,
    /// Units are written.
    Write,
}

/// How far the preparation of a drive is, as its callback receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparationProgress {
    /// The present step; a state that is laid out and then written has both.
    pub step: PreparationStep,
    /// Units written or laid out in this step; 0 in its first call.
    pub done: u64,
    /// The most units that will be.
    pub total: u64,
}

/// Units written between two calls of the progress callback.
const PROGRESS_STEP: u64 = 1 << 20;
/// Units per batch, for which map entries are prefetched.
const BATCH: u64 = 4096;

/// A drive before its first request. Any number of equal drives can be made of it, each of which
/// costs a copy of its maps.
#[derive(Clone, Debug)]
pub struct PreparedDrive {
    device: DriveSpec,
    nand: Nand,
    ftl: Ftl,
    next_version: u64,
    preparation: Preparation,
}

impl PreparedDrive {
    /// As [`Drive::prepared`].
    ///
    /// # Errors
    /// As [`Drive::prepared`].
    pub fn new(
        device: DriveSpec,
        state: InitialState,
        seed: u64,
        mut progress: impl FnMut(PreparationProgress) -> bool,
    ) -> Result<Option<Self>, DriveSpecError> {
        let nand = device.erased();
        Self::with(device, nand, state, seed, &mut progress)
    }

    /// As [`PreparedDrive::new`], of a drive whose flash keeps what is written, so that it can
    /// recover from a loss of power. It takes 16 bytes of memory more for each unit of flash.
    ///
    /// # Errors
    /// As [`PreparedDrive::new`]; [`DriveSpecError::NoContent`] for a state that is laid out
    /// without writing.
    pub fn with_content(
        device: DriveSpec,
        state: InitialState,
        seed: u64,
        mut progress: impl FnMut(PreparationProgress) -> bool,
    ) -> Result<Option<Self>, DriveSpecError> {
        if matches!(state, InitialState::Steady | InitialState::SteadyAt { .. }) {
            return Err(DriveSpecError::NoContent);
        }
        let nand = device.erased_with_content();
        Self::with(device, nand, state, seed, &mut progress)
    }

    /// As [`PreparedDrive::new`]. Not generic, since a generic function is compiled, and optimised,
    /// with the crate that calls it.
    fn with(
        device: DriveSpec,
        mut nand: Nand,
        state: InitialState,
        seed: u64,
        progress: &mut dyn FnMut(PreparationProgress) -> bool,
    ) -> Result<Option<Self>, DriveSpecError> {
        device.check()?;
        let overwrites = !matches!(
            state,
            InitialState::Empty | InitialState::Filled | InitialState::FilledTo { .. }
        );
        if device.is_zoned() && overwrites {
            return Err(DriveSpecError::Overwrites);
        }
        device.age(&mut nand, seed);
        let version = u64::from(device.logical_units());
        if matches!(state, InitialState::Steady | InitialState::SteadyAt { .. }) {
            let Some(map) = lay_out(&device, &mut nand, state, seed, progress)? else {
                return Ok(None);
            };
            let (ftl, preparation) = (map.into(), Preparation::default());
            return Ok(Some(Self { device, nand, ftl, next_version: version + 1, preparation }));
        }
        // Overwriting ages flash, and some steady states are not known: there all is written.
        let is_laid_out =
            state == InitialState::Settled && device.faults.is_none() && !nand.keeps_content();
        let laid_out =
            is_laid_out.then(|| lay_out(&device, &mut nand, state, seed, progress).ok()).flatten();
        let (start, version, mut ftl) = match laid_out {
            Some(None) => return Ok(None),
            Some(Some(map)) => (Start::Steady, version, map.into()),
            None => {
                let mut ftl = Ftl::new(device.geometry(), device.ftl_config(), seed)?;
                ftl.set_aside(nand.bad_blocks())?;
                (Start::Empty, 0, ftl)
            }
        };
        let mut writer = Writer {
            engine: Immediate::new(&mut nand, &mut ftl),
            rng: Rng::stream(seed, "drive.precondition"),
            zones: device.zone_shape(),
            config: device.page_config(),
            version,
            written: 0,
            batch: Vec::new(),
            progress,
            total: 0,
        };
        let Some((rounds, settled)) = writer.prepare(state, start) else { return Ok(None) };
        let counts = *writer.engine.counts();
        let (written, next_version) = (writer.written, writer.version + 1);
        // Translation pages count as up to date.
        while ftl.take_moved().is_some() {}
        let preparation = Preparation { counts, written, rounds, settled };
        Ok(Some(Self { device, nand, ftl, next_version, preparation }))
    }

    /// The drive, and the work that its preparation was.
    #[must_use]
    pub fn into_drive(self) -> (Drive, Preparation) {
        let mut drive = Drive::assemble(self.device, self.nand, self.ftl, self.next_version);
        if drive.zones_fail(&mut Vec::new()) {
            // No command or buffered unit of these zones exists: the work on them ends here.
            drive.pump(&mut Vec::new());
        }
        (drive, self.preparation)
    }
}

impl Drive {
    /// A drive in the given state. `progress` is called from time to time, first in each step with
    /// no units, and may return false to cancel; then `None` is returned.
    ///
    /// The flash operations of the preparation are returned separately and are not part of the
    /// drive's own counts.
    ///
    /// # Errors
    /// [`DriveSpecError`] if the description is invalid, or the state cannot be laid out.
    pub fn prepared(
        device: DriveSpec,
        state: InitialState,
        seed: u64,
        progress: impl FnMut(PreparationProgress) -> bool,
    ) -> Result<Option<(Self, Preparation)>, DriveSpecError> {
        let prepared = PreparedDrive::new(device, state, seed, progress)?;
        Ok(prepared.map(PreparedDrive::into_drive))
    }
}

impl DriveSpec {
    /// Whether a steady state with cold data can be laid out ([`InitialState::SteadyAt`]).
    #[must_use]
    pub fn has_steady_state(&self) -> bool {
        let by_heat = self.ftl.segment.is_some() || self.slc.is_some();
        !by_heat && !self.is_zoned() && self.cleaning_of_uniform_writes(Bytes(0)).is_some()
    }

    /// Flash writes, those of cleaning included, over those without cleaning, once `written` bytes
    /// have been overwritten at random for long and the other data is cold. `None` if the mapping
    /// or the victim policy has no closed form.
    #[must_use]
    pub fn cleaning_of_uniform_writes(&self, written: Bytes) -> Option<f64> {
        let FtlConfig::Page(config) = self.ftl_config() else { return None };
        let logical = u64::from(self.logical_units());
        let spare = self.usable_units().saturating_sub(logical);
        let written = written.div_ceil(self.ftl.mapping_unit).min(logical) as f64;
        let used = written / (written + spare as f64).max(1.0);
        let block_units = self.geometry().data_units_per_block();
        prism_ftl::write_amplification(config.victim, used, block_units).ok()
    }
}

/// Lays out the steady state of `device` on erased flash; `None` if `progress` returned false.
fn lay_out(
    device: &DriveSpec,
    nand: &mut Nand,
    state: InitialState,
    seed: u64,
    progress: &mut dyn FnMut(PreparationProgress) -> bool,
) -> Result<Option<PageMap>, DriveSpecError> {
    let FtlConfig::Page(config) = device.ftl_config() else {
        return Err(SteadyError::Blocks.into());
    };
    let write_amplification = match state {
        InitialState::SteadyAt { write_amplification } => Some(write_amplification),
        _ => None,
    };
    let (geometry, bad) = (device.geometry(), nand.bad_blocks());
    let total = u64::from(config.logical_units) + u64::from(config.map_units);
    let step = PreparationStep::LayOut;
    let mut placed = |done| progress(PreparationProgress { step, done, total });
    let ftl = PageMap::steady(geometry, config, write_amplification, seed, bad, &mut placed)?;
    let Some(ftl) = ftl else { return Ok(None) };
    for block in (0..nand.geometry().blocks()).map(BlockId) {
        let first = nand.layout().first_program_unit(block);
        nand.program_bulk(first, ftl.program_units_written(block)).expect("the flash is erased");
    }
    Ok(Some(ftl))
}

/// What writing begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Erased flash.
    Empty,
    /// A steady state that was laid out.
    Steady,
}

/// Writes that take no time.
struct Writer<'a> {
    engine: Immediate<&'a mut Nand, &'a mut Ftl>,
    rng: Rng,
    config: PageConfig,
    zones: Option<ZoneShape>,
    /// The version of the last unit.
    version: u64,
    written: u64,
    batch: Vec<u32>,
    progress: &'a mut dyn FnMut(PreparationProgress) -> bool,
    /// The most that will be written.
    total: u64,
}

impl Writer<'_> {
    /// Returns the rounds and whether they became steady, or `None` if it was cancelled.
    fn prepare(&mut self, state: InitialState, start: Start) -> Option<(Vec<f64>, Option<bool>)> {
        if let Some(zones) = self.zones {
            let share = match state {
                InitialState::Filled => 1.0,
                InitialState::FilledTo { share } => share,
                _ => 0.0,
            };
            return self.fill_zones(zones, share);
        }
        let logical = u64::from(self.config.logical_units);
        let part = |share: f64| (logical as f64 * share) as u64;
        let rounds = match start {
            Start::Empty => Rounds::of(logical),
            Start::Steady => Rounds::from_steady(logical),
        };
        let (fill, overwrites) = match state {
            InitialState::Empty | InitialState::Steady | InitialState::SteadyAt { .. } => (0, 0),
            InitialState::Filled => (logical, 0),
            InitialState::FilledTo { share } => (part(share).min(logical), 0),
            InitialState::Preconditioned { overwrites } => (logical, part(overwrites)),
            InitialState::Settled => {
                let fill = if start == Start::Empty { logical } else { 0 };
                (fill, rounds.units * u64::from(rounds.most))
            }
        };
        let map_units = if fill > 0 { u64::from(self.config.map_units) } else { 0 };
        self.total = fill + map_units + overwrites;
        self.write_sequential(0, fill)?;
        self.write_sequential(logical, logical + map_units)?;
        let mut outcome = (Vec::new(), None);
        if state == InitialState::Settled {
            outcome = self.settle(rounds)?;
        } else {
            self.write_random(overwrites)?;
        }
        self.engine.rest();
        Some(outcome)
    }

    /// Fills the first `share` of all zones, rounded down. A zone whose flash fails stays partly
    /// written, and one for which there is no block stays empty.
    fn fill_zones(&mut self, shape: ZoneShape, share: f64) -> Option<(Vec<f64>, Option<bool>)> {
        let (size, capacity) = (shape.size / shape.block, shape.capacity / shape.block);
        let zones = ((f64::from(shape.count) * share) as u64).min(u64::from(shape.count));
        self.total = zones * capacity;
        let flash = self.engine.flash();
        let program_unit = u64::from(flash.layout().units_per_program_unit());
        // With faults, each program unit may be the last of its zone.
        let step = if flash.has_faults() { program_unit } else { capacity };
        for zone in 0..zones {
            let first = zone * size;
            if self.engine.ftl().host_place(zone as u32, first as u32) == HostPlace::Blocked {
                continue;
            }
            for from in (first..first + capacity).step_by(step as usize) {
                if self.engine.ftl().zoned().is_some_and(|map| map.is_broken(zone as u32)) {
                    break;
                }
                self.write_sequential(from, from + step)?;
            }
        }
        Some((Vec::new(), None))
    }

    fn settle(&mut self, rounds: Rounds) -> Option<(Vec<f64>, Option<bool>)> {
        let mut figures = Vec::new();
        let mut settled = false;
        while !settled && (figures.len() as u32) < rounds.most {
            let before = self.engine.counts().units.total();
            self.write_random(rounds.units)?;
            let programmed = self.engine.counts().units.total() - before;
            figures.push(programmed as f64 / rounds.units as f64);
            let cleaning = self.engine.counts().erases.total() > 0;
            settled = cleaning && rounds.steady(&figures);
        }
        Some((figures, Some(settled)))
    }

    fn write_sequential(&mut self, start: u64, end: u64) -> Option<()> {
        for from in (start..end).step_by(BATCH as usize) {
            self.batch.clear();
            self.batch.extend(from as u32..end.min(from + BATCH) as u32);
            self.write_batch()?;
        }
        Some(())
    }

    fn write_random(&mut self, mut units: u64) -> Option<()> {
        let logical = u64::from(self.config.logical_units);
        while units > 0 {
            let now = units.min(BATCH);
            self.batch.clear();
            self.batch.extend((0..now).map(|_| self.rng.below(logical) as u32));
            self.write_batch()?;
            units -= now;
        }
        Some(())
    }

    fn write_batch(&mut self) -> Option<()> {
        if self.written % PROGRESS_STEP < BATCH {
            let (step, done, total) = (PreparationStep::Write, self.written, self.total);
            if !(self.progress)(PreparationProgress { step, done, total }) {
                return None;
            }
        }
        self.engine.write_all(&self.batch, self.version + 1);
        self.version += self.batch.len() as u64;
        self.written += self.batch.len() as u64;
        Some(())
    }
}

#[cfg(test)]
mod tests;
