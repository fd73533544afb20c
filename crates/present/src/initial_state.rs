//! The state of a drive before the first request: prepared, or read from a snapshot.

use std::path::{Path, PathBuf};

use prism_ssd::{
    Drive, DriveSpec, DriveSpecError, InitialState, Preparation, PreparationProgress,
    PreparationStep, PreparedDrive,
};

use crate::drive_choice::DriveChoice;
use crate::env::{Env, Step};
use crate::error::PresentError;

/// The file name extension of snapshots.
pub const EXTENSION: &str = "prism-state";

/// The callback of a preparation: the units written, and the most that will be.
pub(crate) type Reached<'a> = &'a mut dyn FnMut(PreparationProgress) -> bool;

/// An initial state with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// As given.
    pub name: String,
    /// What it means.
    pub source: StateSource,
}

/// Where an initial state comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum StateSource {
    /// The state is prepared by writing.
    Prepared(InitialState),
    /// The state is read from a snapshot.
    File(PathBuf),
}

impl State {
    /// A note on how the state was reached.
    #[must_use]
    pub fn note(&self, prepared: &Preparation) -> Option<String> {
        match self.source {
            StateSource::Prepared(InitialState::Settled) => {
                let figure = prepared.rounds.last().copied().unwrap_or(1.0);
                let rounds = prepared.rounds.len();
                Some(if prepared.settled == Some(true) {
                    format!(
                        "Preconditioning took {rounds} rounds of random overwrites, until write \
                         amplification was steady at {figure:.2}."
                    )
                } else {
                    format!(
                        "Preconditioning ended after {rounds} rounds of random overwrites without \
                         a steady state: write amplification, {figure:.2} in the last, still \
                         varied by more than 2 %."
                    )
                })
            }
            StateSource::Prepared(InitialState::Steady) => Some(
                "The state steady is laid out directly as uniform random writes would leave it; \
                 erases are counted from there."
                    .into(),
            ),
            StateSource::Prepared(_) | StateSource::File(_) => None,
        }
    }
}

impl DriveChoice {
    /// A drive of the kind `device` in its initial state, of which a snapshot is written if
    /// requested, and what the preparation took.
    ///
    /// # Errors
    /// [`PresentError`] if the description is invalid, the drive has no such state, or a file
    /// cannot be read or written.
    pub fn prepared(
        &self,
        device: &DriveSpec,
        seed: u64,
        env: &impl Env,
    ) -> Result<(Drive, Preparation), PresentError> {
        let (drive, preparation) = match &self.state.source {
            StateSource::File(path) => (loaded(device, path, env)?, Preparation::default()),
            StateSource::Prepared(state) => {
                self.prepare(env, |reached| Drive::prepared(device.clone(), *state, seed, reached))?
            }
        };
        if let Some(path) = &self.save_state {
            let saved = drive.save().map_err(|error| named(path, error))?;
            env.write_state(path, &saved).map_err(PresentError::Outside)?;
        }
        Ok((drive, preparation))
    }

    /// As [`DriveChoice::prepared`], of a drive whose power can be cut.
    pub(crate) fn prepared_with_content(
        &self,
        device: &DriveSpec,
        seed: u64,
        env: &impl Env,
    ) -> Result<Drive, PresentError> {
        let StateSource::Prepared(state) = self.state.source else {
            let what = "a snapshot has no content, which recovery from a loss of power reads; use \
                        --state empty, filled or preconditioned";
            return Err(PresentError::refused(what));
        };
        let (drive, _) = self.prepare(env, |reached| {
            let prepared = PreparedDrive::with_content(device.clone(), state, seed, reached);
            prepared.map(|prepared| prepared.map(PreparedDrive::into_drive))
        })?;
        Ok(drive)
    }

    fn prepare(
        &self,
        env: &impl Env,
        prepared: impl FnOnce(Reached<'_>) -> Result<Option<(Drive, Preparation)>, DriveSpecError>,
    ) -> Result<(Drive, Preparation), PresentError> {
        shown(env, prepared).map_err(|error| self.refused(error))
    }
}

/// The drive that `prepared` makes, whose steps are shown, and at which the environment may stop
/// the work.
///
/// # Errors
/// Those of `prepared`.
pub(crate) fn shown(
    env: &impl Env,
    prepared: impl FnOnce(Reached<'_>) -> Result<Option<(Drive, Preparation)>, DriveSpecError>,
) -> Result<(Drive, Preparation), DriveSpecError> {
    let mut now = None;
    let mut reached = |PreparationProgress { step, done, total }| {
        if now != Some(step) {
            if now.replace(step).is_some() {
                env.show(Step::End);
            }
            let label = match step {
                PreparationStep::LayOut => "laying out the steady state:",
                PreparationStep::Write => "filling the drive:",
            };
            env.show(Step::Begin { label, things: "units", total: Some(total) });
        }
        env.show(Step::Reached(done));
        true
    };
    let prepared = prepared(&mut reached);
    if now.is_some() {
        env.show(Step::End);
    }
    Ok(prepared?.expect("the preparation is never cancelled"))
}

fn named(path: &Path, error: impl std::fmt::Display) -> PresentError {
    PresentError::Refused(format!("{}: {error}", path.display()))
}

fn loaded(device: &DriveSpec, path: &Path, env: &impl Env) -> Result<Drive, PresentError> {
    let bytes = env.read_state(path).map_err(PresentError::Outside)?;
    Drive::from_saved(device.clone(), &bytes).map_err(|error| named(path, error))
}

/// The state that `text` names.
///
/// # Errors
/// A message that lists the states.
pub fn parse_state(text: &str) -> Result<State, String> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    let within = |most: f64, what: &str| -> Result<f64, String> {
        let number = number.unwrap_or_default();
        let value = number.parse().ok().filter(|value| (0.0..=most).contains(value));
        value.ok_or_else(|| format!("{number:?} is not a {what}"))
    };
    let prepared = |state| Ok(StateSource::Prepared(state));
    let source = match (name, number) {
        _ if is_state_file(Path::new(text)) => Ok(StateSource::File(text.into())),
        ("empty", None) => prepared(InitialState::Empty),
        ("filled", None) => prepared(InitialState::Filled),
        ("filled", Some(_)) => {
            let share = within(1.0, "share from 0 to 1, as in filled:0.7")?;
            prepared(InitialState::FilledTo { share })
        }
        ("preconditioned", None) => prepared(InitialState::Settled),
        ("preconditioned", Some(_)) => {
            let what = "number of capacities from 0 to 1000, as in preconditioned:2";
            prepared(InitialState::Preconditioned { overwrites: within(1000.0, what)? })
        }
        ("steady", None) => prepared(InitialState::Steady),
        _ => Err(format!(
            "states are empty, filled, filled:SHARE, preconditioned, preconditioned:CAPACITIES, \
             steady, and files that end in .{}",
            EXTENSION
        )),
    };
    Ok(State { name: text.to_owned(), source: source? })
}

/// The path of a snapshot to write.
///
/// # Errors
/// A message if the extension is not that of snapshots.
pub fn parse_state_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = format!("the name must end in .{}, so that --state recognises it", EXTENSION);
    if is_state_file(&path) { Ok(path) } else { Err(ending) }
}

fn is_state_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_and_others_listed() {
        let check = |text: &str, expected: StateSource| {
            let state = parse_state(text).unwrap();
            assert_eq!((state.name.as_str(), state.source), (text, expected));
        };
        use StateSource::{File, Prepared};
        check("empty", Prepared(InitialState::Empty));
        check("filled", Prepared(InitialState::Filled));
        check("filled:0.7", Prepared(InitialState::FilledTo { share: 0.7 }));
        check("preconditioned", Prepared(InitialState::Settled));
        check("preconditioned:2", Prepared(InitialState::Preconditioned { overwrites: 2.0 }));
        check("steady", Prepared(InitialState::Steady));
        check("a/b:c.prism-state", File("a/b:c.prism-state".into()));
        let refused = |text: &str, expected: &str| {
            let message = parse_state(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        };
        refused("dirty", "states are empty, filled");
        refused("empty:1", "states are empty, filled");
        refused("filled:1.5", "\"1.5\" is not a share from 0 to 1");
        refused("filled:", "is not a share");
        refused("preconditioned:-1", "\"-1\" is not a number of capacities");
        refused("preconditioned:nan", "is not a number of capacities");
        assert!(parse_state_file("x.zst").is_err() && parse_state_file("x.prism-state").is_ok());
    }
}
