//! Settings by name: those of a drive, of jobs and of a run, for every kind of sweep.

use prism_workload::fio::Setting;
use prism_workload::fio::jobfile::setting;
use prism_workload::fio::options::{self, Role};

use prism_base::Nanos;

use crate::drive_choice::{Override, parse_capacity, parse_kind};
use crate::error::PresentError;
use crate::initial_state::parse_state;
use crate::over_provisioning;
use crate::simulation::Plan;

/// Short names of fields of a device.
const SHORT: [(&str, &str); 4] = [
    ("gc", "ftl.victim"),
    ("scheduler", "drive.scheduler"),
    ("frontiers", "ftl.frontiers"),
    ("mapping", "ftl.mapping"),
];

/// Settings that are neither a field of the device nor a fio option.
pub(super) const OWN: [&str; 8] =
    ["op", "device", "capacity", "state", "seed", "faults", "wear", "retention"];

/// Options of a job file that are no settings of a job.
const STRUCTURE: [&str; 5] = ["name", "description", "stonewall", "new_group", "group_reporting"];

/// The field of a device that `name` is short for.
fn short(name: &str) -> Option<&'static str> {
    SHORT.iter().find(|(short, _)| *short == name).map(|&(_, field)| field)
}

/// The name under which two settings are the same.
pub(super) fn canonical(name: &str) -> &str {
    short(name).or(options::find(name).map(|option| option.name)).unwrap_or(name)
}

/// Whether `name` is, or is written like, an option of jobs.
pub(super) fn is_of_jobs(name: &str) -> bool {
    !name.contains('.') && short(name).is_none() && !OWN.contains(&name)
}

/// Gives the setting `name` of `plan` the value in `value`. `at` says where it was given.
///
/// # Errors
/// [`PresentError::Refused`] if there is no such setting, or the value cannot be read. Whether the
/// field of a device exists, and whether settings fit each other, is checked with the whole plan.
pub(super) fn change(
    plan: &mut Plan,
    at: &str,
    name: &str,
    value: &str,
) -> Result<(), PresentError> {
    let wrong = |what: String| PresentError::Refused(format!("{at} {name}={value}: {what}"));
    match name {
        "op" => plan.op = Some(over_provisioning::parse(value).map_err(wrong)?),
        "device" => value.clone_into(&mut plan.drive.name),
        "capacity" => plan.drive.capacity = Some(parse_capacity(value).map_err(wrong)?),
        "state" => plan.drive.state = parse_state(value).map_err(wrong)?,
        "faults" => plan.drive.faults = Some(parse_kind(value).map_err(wrong)?),
        "retention" => {
            let age = Nanos::parse(value).map_err(|error| wrong(error.to_string()))?;
            plan.drive.retention = Some(age);
        }
        "seed" => plan.seed = whole(value).map_err(wrong)?,
        "wear" => plan.drive.wear = Some(whole(value).map_err(wrong)?),
        _ if is_of_jobs(name) => plan.settings.push(option(at, name, value)?),
        _ => {
            let field = short(name).unwrap_or(name).to_owned();
            plan.drive.overrides.push(Override { field, value: value.to_owned() });
        }
    }
    Ok(())
}

fn whole<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| "a whole number is expected".into())
}

/// A fio option of a job, given at `at`.
///
/// # Errors
/// [`PresentError::Refused`] if it is none that is simulated.
pub(super) fn option(at: &str, name: &str, value: &str) -> Result<Setting, PresentError> {
    let wrong = |what: String| PresentError::Refused(format!("{at} {name}={value}: {what}"));
    let simulated = options::find(name).is_some_and(|option| option.role == Role::Simulated);
    if !simulated && options::find(name).is_some() {
        return Err(wrong("this fio option has no effect here".into()));
    }
    if STRUCTURE.contains(&name) {
        return Err(wrong("it is part of how jobs are written, not an axis".into()));
    }
    if options::find(name).is_none() && !options::fio_has(name) {
        let known = OWN.into_iter().chain(SHORT.iter().map(|(short, _)| *short));
        let near = options::near(name, known.chain(options::names()));
        return Err(wrong(format!(
            "no axis of this name{near}; axes are gc, op, scheduler, frontiers, mapping, device, \
             capacity, state, seed, faults, wear, retention, a field of the device such as \
             flash.channels, or a fio option"
        )));
    }
    let setting = setting(format!("{at} {name}"), name, Some(value));
    setting.map_err(|error| PresentError::Refused(error.to_string()))
}
