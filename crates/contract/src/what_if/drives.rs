//! Drives in the states in which simulations begin, each prepared once.

use std::sync::{Mutex, PoisonError};

use prism_ssd::{
    Drive, DriveSpec, DriveSpecError, InitialState, PreparationProgress, PreparedDrive,
};

use super::simulate::Run;

/// A drive with which several simulations begin.
#[derive(Debug)]
struct Shared {
    device: DriveSpec,
    state: InitialState,
    seed: u64,
    now: Mutex<Stock>,
}

#[derive(Debug)]
struct Stock {
    /// Simulations that have not begun.
    left: u32,
    drive: Option<PreparedDrive>,
}

impl Shared {
    fn is_of(&self, run: &Run) -> bool {
        self.state == run.initial_state() && self.seed == run.seed && self.device == run.device
    }
}

/// The drives with which a set of simulations begins. What several of them have in common is
/// prepared by the first one and copied by the others; the last one takes it, so that it uses no
/// memory longer than needed. Results do not depend on it.
#[derive(Debug, Default)]
pub struct Drives(Vec<Shared>);

impl Drives {
    /// For one simulation of each of `runs`.
    #[must_use]
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut all: Vec<Shared> = Vec::new();
        for run in runs {
            match all.iter_mut().find(|shared| shared.is_of(run)) {
                Some(shared) => {
                    shared.now.get_mut().unwrap_or_else(PoisonError::into_inner).left += 1;
                }
                None => all.push(Shared {
                    device: run.device.clone(),
                    state: run.initial_state(),
                    seed: run.seed,
                    now: Mutex::new(Stock { left: 1, drive: None }),
                }),
            }
        }
        Self(all)
    }

    /// The drive with which `run` begins; `None` if `keep_going` returned false.
    pub(super) fn prepared(
        &self,
        run: &Run,
        keep_going: impl FnMut(PreparationProgress) -> bool,
    ) -> Result<Option<Drive>, DriveSpecError> {
        let prepare =
            || PreparedDrive::new(run.device.clone(), run.initial_state(), run.seed, keep_going);
        let drive = |prepared: PreparedDrive| prepared.into_drive().0;
        let Some(shared) = self.0.iter().find(|shared| shared.is_of(run)) else {
            return Ok(prepare()?.map(drive));
        };
        // Where a simulation panicked, `drive` is as it was before.
        let mut now = shared.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.left = now.left.saturating_sub(1);
        if now.drive.is_none() {
            now.drive = prepare()?;
        }
        let prepared = if now.left == 0 { now.drive.take() } else { now.drive.clone() };
        Ok(prepared.map(drive))
    }
}
