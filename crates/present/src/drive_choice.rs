//! The drive that a trace or jobs run on: a description, changes to it, a size and a state.

use std::path::{Path, PathBuf};

use prism_base::{Bytes, Nanos};
use prism_nand::FaultModel;
use prism_ssd::scale::{Scaled, fit_all_dies};
use prism_ssd::{DriveSpec, DriveSpecError, fit};
use prism_workload::fio::options;

use crate::env::Env;
use crate::error::PresentError;
use crate::initial_state::State;

/// The options that choose a drive.
#[derive(Clone, Debug)]
pub struct DriveChoice {
    /// A preset, or the path of a TOML file.
    pub name: String,
    /// What the host may write; the drive is fitted to the trace if this is `None`.
    pub capacity: Option<Capacity>,
    /// The state of the drive before the first request.
    pub state: State,
    /// The file for a snapshot of the drive before the first request.
    pub save_state: Option<PathBuf>,
    /// The kind of cells of its fault model, if that is not in its description.
    pub faults: Option<String>,
    /// Cycles that every block starts with, on a drive that ages.
    pub wear: Option<u32>,
    /// The age of the data on it at the start, on a drive that ages.
    pub retention: Option<Nanos>,
    /// Fields of the description that are changed.
    pub overrides: Vec<Override>,
}

/// A new value for a field of a device file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Section and name, for example `ftl.victim`.
    pub field: String,
    /// As text; the kind of value is that of the field.
    pub value: String,
}

/// A capacity from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// The device's own.
    Device,
    /// This one; the device is scaled to it.
    Bytes(Bytes),
}

/// The fields that set the number of dies. The flash grows with them, and so does the capacity,
/// unless it is set, too.
const COUNTS_OF_DIES: [&str; 2] = ["flash.channels", "flash.dies_per_channel"];

impl Override {
    fn new(field: &str, value: &str) -> Self {
        Self { field: field.into(), value: value.into() }
    }
}

impl DriveChoice {
    /// The choice for an analysis that this one is compared with: with the drive called `other`,
    /// or with the same one.
    #[must_use]
    pub fn compared(&self, other: Option<&str>) -> Self {
        // The snapshot is of the drive of the report.
        let mut drive = Self { save_state: None, ..self.clone() };
        if let Some(other) = other {
            // As it is described, so that a drive can be compared with itself without a change.
            (drive.name, drive.overrides) = (other.to_owned(), Vec::new());
        }
        drive
    }

    /// The chosen drive, before it is scaled.
    ///
    /// # Errors
    /// [`PresentError`] naming the file or the preset, and the field.
    pub fn device(&self, env: &impl Env) -> Result<DriveSpec, PresentError> {
        let mut device = self.described(env)?;
        if self.wear.is_none() && self.retention.is_none() {
            return Ok(device);
        }
        let Some(faults) = &mut device.faults else {
            let what = "--wear and --retention are for a drive that ages: give --faults KIND, or \
                        a file with [faults]";
            return Err(PresentError::refused(what));
        };
        faults.wear = self.wear.unwrap_or(faults.wear);
        faults.retention = self.retention.unwrap_or(faults.retention);
        match device.check() {
            Ok(()) => Ok(device),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// The device as it is described, before it is aged.
    fn described(&self, env: &impl Env) -> Result<DriveSpec, PresentError> {
        described(&self.name, &self.all_overrides(), env)
    }

    /// The changed fields, with that of the fault model.
    pub(crate) fn all_overrides(&self) -> Vec<Override> {
        let kind = self.faults.iter().map(|kind| Override::new("faults.kind", kind));
        kind.chain(self.overrides.iter().cloned()).collect()
    }

    /// `device`, the drive of this choice, scaled to the requested capacity or else to `span`
    /// bytes of addresses.
    ///
    /// # Errors
    /// [`PresentError`] naming the file or the preset.
    pub fn scaled(&self, device: DriveSpec, span: u64) -> Result<Scaled, PresentError> {
        self.scaled_by(fit, device, span)
    }

    /// The same for jobs, which show how fast the drive is: channels and dies that were chosen by
    /// number stay, and scaling makes blocks smaller.
    ///
    /// # Errors
    /// As [`DriveChoice::scaled`].
    pub fn scaled_for_jobs(&self, device: DriveSpec, span: u64) -> Result<Scaled, PresentError> {
        let chosen = |change: &Override| COUNTS_OF_DIES.contains(&&*change.field);
        let keeps_dies = !device.is_zoned() && self.overrides.iter().any(chosen);
        self.scaled_by(if keeps_dies { fit_all_dies } else { fit }, device, span)
    }

    fn scaled_by(
        &self,
        fit: fn(&DriveSpec, Bytes) -> Result<Scaled, DriveSpecError>,
        device: DriveSpec,
        span: u64,
    ) -> Result<Scaled, PresentError> {
        let fitted = |capacity| {
            fit(&device, capacity).map_err(|error| {
                self.refused(format!("it cannot be scaled to {capacity}: {error}"))
            })
        };
        match self.capacity {
            Some(Capacity::Device) => {
                let full_capacity = device.capacity();
                Ok(Scaled { device, full_capacity, changes: Vec::new() })
            }
            Some(Capacity::Bytes(capacity)) => fitted(capacity),
            None => fitted(Bytes(span.max(1))),
        }
    }

    /// This choice makes no sense, for the reason that `what` says.
    pub(crate) fn refused(&self, what: impl std::fmt::Display) -> PresentError {
        PresentError::Refused(format!("{}: {what}", self.name))
    }
}

/// The device that a preset or a device file describes, with some fields changed.
///
/// # Errors
/// [`PresentError`] naming the file or the preset, and the field.
pub fn described(
    name: &str,
    overrides: &[Override],
    env: &impl Env,
) -> Result<DriveSpec, PresentError> {
    let wrong = |error| PresentError::Refused(format!("{name}: {error}"));
    if !is_file(name) && overrides.is_empty() {
        return DriveSpec::preset(name).map_err(of_preset);
    }
    let text = device_text(name, env)?;
    let device = if overrides.is_empty() {
        DriveSpec::from_toml(&text)
    } else {
        let text = overridden(&text, overrides, |_| "--set".into());
        DriveSpec::from_toml(&text.map_err(PresentError::Refused)?)
    };
    device.map_err(wrong)
}

/// Checks that the device has the fields of `overrides`, and that their values can be read, whether
/// or not they fit each other. `at` says for messages where a field was given.
///
/// # Errors
/// [`PresentError`] naming the file or the preset, or the field.
pub(crate) fn check_fields(
    name: &str,
    overrides: &[Override],
    env: &impl Env,
    at: impl Fn(&str) -> String,
) -> Result<(), PresentError> {
    let text = device_text(name, env)?;
    if let Err(error @ DriveSpecError::Syntax(_)) = DriveSpec::from_toml(&text) {
        return Err(PresentError::Refused(format!("{name}: {error}")));
    }
    overridden(&text, overrides, at).map(drop).map_err(PresentError::Refused)
}

/// The text that describes the device.
fn device_text(name: &str, env: &impl Env) -> Result<String, PresentError> {
    if is_file(name) {
        return env.device_text(Path::new(name)).map_err(PresentError::Outside);
    }
    // The error lists the presets.
    DriveSpec::preset_text(name).map(str::to_owned).map_err(of_preset)
}

fn of_preset(error: DriveSpecError) -> PresentError {
    PresentError::Refused(error.to_string())
}

fn is_file(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "toml")
}

/// Whether `text` names a drive: a preset, or a device file.
#[must_use]
pub fn is_device(text: &str) -> bool {
    let mut presets = DriveSpec::preset_names().chain(DriveSpec::zoned_preset_names());
    is_file(text) || presets.any(|name| name == text)
}

/// The text of a device file with `overrides` applied; `at` says for messages where a field was
/// given.
fn overridden(
    text: &str,
    overrides: &[Override],
    at: impl Fn(&str) -> String,
) -> Result<String, String> {
    let mut table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let described = dies_of(&table);
    for Override { field, value } in overrides {
        let known = fields(&table);
        let wrong = |what: &str| format!("{} {field}={value}: {what}", at(field));
        let (section, name) = match field.split_once('.') {
            Some((section, name)) => (Some(section), name),
            None => (None, field.as_str()),
        };
        let place = match section {
            None => Some(&mut table),
            Some("faults") => {
                // This section is optional.
                let empty = toml::Value::Table(toml::Table::new());
                table.entry("faults").or_insert(empty).as_table_mut()
            }
            Some(section) => table.get_mut(section).and_then(toml::Value::as_table_mut),
        };
        let Some(place) = place.filter(|_| !name.contains('.')) else {
            let near = options::near(field, known.iter().map(String::as_str));
            return Err(wrong(&format!("a device has no such field{near}")));
        };
        if matches!(place.get(name), Some(toml::Value::Table(_))) {
            return Err(wrong("this is a section, not a field"));
        }
        let other = toml_value(place.get(name), value).map_err(|what| wrong(&what))?;
        place.insert(name.to_owned(), other);
        let changed = toml::to_string(&table).map_err(|error| error.to_string())?;
        // Consistency is checked after the last change.
        if let Err(DriveSpecError::Syntax(error)) = DriveSpec::from_toml(&changed) {
            let what = error.split_once("): ").map_or(error.as_str(), |(_, what)| what);
            let near = if what.starts_with("unknown field") {
                options::near(field, known.iter().map(String::as_str))
            } else {
                String::new()
            };
            return Err(wrong(&format!("{what}{near}")));
        }
    }
    // The capacity of a zoned drive follows from the number of its zones.
    let is_zoned = value_of(&table, "ftl.zone_size").is_some();
    if let (Some(before), Some(after), false) = (described, dies_of(&table), is_zoned)
        && before != after
    {
        for field in ["drive.capacity", "slc.below"] {
            if !overrides.iter().any(|change| change.field == field) {
                scale_size(&mut table, field, (after, before));
            }
        }
    }
    toml::to_string(&table).map_err(|error| error.to_string())
}

/// The value of a field.
fn value_of<'a>(table: &'a toml::Table, field: &str) -> Option<&'a toml::Value> {
    let (section, name) = field.split_once('.')?;
    table.get(section)?.get(name)
}

/// A size in bytes. Where it is missing or wrong, reading the description says so.
fn size_of(table: &toml::Table, field: &str) -> Option<u128> {
    Some(Bytes::parse(value_of(table, field)?.as_str()?).ok()?.0.into())
}

/// The number of dies.
fn dies_of(table: &toml::Table) -> Option<u128> {
    let counts = COUNTS_OF_DIES.map(|field| value_of(table, field)?.as_integer());
    Some(u128::try_from(counts[0]?).ok()? * u128::try_from(counts[1]?).ok()?)
}

/// Multiplies a size, in whole mapping units, so that the over-provisioning stays.
fn scale_size(table: &mut toml::Table, field: &str, (after, before): (u128, u128)) {
    let scaled = || {
        let unit = size_of(table, "ftl.mapping_unit")?;
        let units = (size_of(table, field)? * after).checked_div(before * unit)?;
        Some(units * unit)
    };
    if let Some(bytes) = scaled()
        && let Some((section, name)) = field.split_once('.')
        && let Some(section) = table.get_mut(section).and_then(toml::Value::as_table_mut)
    {
        section.insert(name.to_owned(), format!("{bytes}B").into());
    }
}

/// `text` as a value of the type of `now`. If the file lacks the field, the type follows from
/// `text`: a list, a number, true or false, or else a string.
fn toml_value(now: Option<&toml::Value>, text: &str) -> Result<toml::Value, String> {
    let is_text = matches!(now, Some(toml::Value::String(_))) && !text.starts_with('[');
    let parsed = format!("value = {text}").parse::<toml::Table>();
    let parsed = parsed.ok().and_then(|mut table| table.remove("value")).filter(|_| !is_text);
    let value = parsed.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    match (now, &value) {
        (Some(toml::Value::Integer(_)), toml::Value::Integer(_))
        | (Some(toml::Value::Boolean(_)), toml::Value::Boolean(_)) => Ok(value),
        (Some(toml::Value::Integer(_)), _) => Err("a whole number is expected".into()),
        (Some(toml::Value::Boolean(_)), _) => Err("true or false is expected".into()),
        _ => Ok(value),
    }
}

/// Every field of a device file, with its section.
fn fields(table: &toml::Table) -> Vec<String> {
    let of = |(name, value): (&String, &toml::Value)| match value.as_table() {
        Some(section) => section.keys().map(|field| format!("{name}.{field}")).collect(),
        None => vec![name.clone()],
    };
    table.iter().flat_map(of).collect()
}

/// Reads `FIELD=VALUE`.
///
/// # Errors
/// What is expected.
pub fn parse_override(text: &str) -> Result<Override, String> {
    match text.split_once('=') {
        Some((field, value)) if !field.is_empty() => Ok(Override::new(field, value)),
        _ => Err("give a field and its value, for example ftl.victim=fifo".into()),
    }
}

/// Parses the kind of cells of a fault model.
///
/// # Errors
/// The kinds there are.
pub fn parse_kind(text: &str) -> Result<String, String> {
    if FaultModel::KINDS.contains(&text) {
        return Ok(text.into());
    }
    Err(format!("kinds are {}", FaultModel::KINDS.join(", ")))
}

/// Reads a capacity, or `device` for the drive's own.
///
/// # Errors
/// What is wrong with it.
pub fn parse_capacity(text: &str) -> Result<Capacity, String> {
    if text == "device" {
        return Ok(Capacity::Device);
    }
    match Bytes::parse(text) {
        Ok(Bytes(0)) => Err("a drive needs a capacity above 0".into()),
        Ok(bytes) => Ok(Capacity::Bytes(bytes)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_numbers_of_dies_keep_the_spare_flash_and_stay_when_scaled() {
        let change = |field: &str, value: &str| Override::new(field, value);
        let text = |name, changes: &[Override]| {
            let text =
                overridden(DriveSpec::preset_text(name).unwrap(), changes, |_| String::new());
            DriveSpec::from_toml(&text.unwrap())
        };
        for name in DriveSpec::preset_names() {
            let preset = DriveSpec::preset(name).unwrap();
            let (channels, dies) = (preset.flash.channels, preset.flash.dies_per_channel);
            let (field, number) = match channels % 2 {
                0 => ("flash.channels", channels / 2),
                _ => ("flash.dies_per_channel", dies * 2),
            };
            // Superblocks must fit.
            let members = preset.flash.superblock_dies.min(channels * dies / 2).max(1).to_string();
            let changes =
                [change(field, &number.to_string()), change("flash.superblock_dies", &members)];
            let other = text(name, &changes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_ne!(other.capacity(), preset.capacity(), "{name}");
            let (spare, ours) = (preset.over_provisioning(), other.over_provisioning());
            assert!((ours.effective - spare.effective).abs() < 1e-3, "{name}: {ours:?}");
        }
        // A capacity that was chosen, too, stays.
        let (channels, capacity) =
            (change("flash.channels", "16"), change("drive.capacity", "1TB"));
        assert_eq!(
            text("dc-tlc", &[channels, capacity]).unwrap().capacity(),
            Bytes(1_000_000_000_000)
        );
        let mut choice = DriveChoice {
            name: "dc-tlc".into(),
            capacity: Some(Capacity::Bytes(Bytes(1 << 30))),
            state: crate::initial_state::parse_state("empty").unwrap(),
            save_state: None,
            faults: None,
            wear: None,
            retention: None,
            overrides: vec![change("flash.channels", "2")],
        };
        let device = text("dc-tlc", &choice.overrides).unwrap();
        assert_eq!(choice.scaled_for_jobs(device.clone(), 0).unwrap().device.flash.channels, 2);
        assert_eq!(choice.scaled(device.clone(), 0).unwrap().device.flash.channels, 1);
        choice.overrides.clear();
        assert_eq!(choice.scaled_for_jobs(device, 0).unwrap().device.flash.channels, 1);
    }

    #[test]
    fn fields_are_changed_and_unknown_ones_named() {
        let change = |field: &str, value: &str| {
            let change = Override::new(field, value);
            let text = DriveSpec::preset_text("dc-tlc").unwrap();
            overridden(text, &[change], |_| "--set".into())
        };
        let device = |text: &str| DriveSpec::from_toml(text).unwrap();
        let preset = device(DriveSpec::preset_text("dc-tlc").unwrap());
        let mut other = device(&change("ftl.victim", "fifo").unwrap());
        assert_ne!(other, preset);
        other.ftl.victim = preset.ftl.victim;
        assert_eq!(other, preset);
        let wide = device(&change("flash.channels", "16").unwrap());
        assert_eq!((preset.flash.channels, wide.flash.channels), (12, 16));
        assert!(
            wide.capacity().0.abs_diff(preset.capacity().0 / 12 * 16) <= preset.ftl.mapping_unit.0
        );
        assert!(!device(&change("flash.multi_plane", "false").unwrap()).flash.multi_plane);
        let check = |field: &str, value: &str, expected: &str| {
            let message = change(field, value).unwrap_err();
            assert!(message.contains(expected), "{field}={value}: {message}");
        };
        check("ftl.victm", "fifo", "unknown field `victm`");
        check("ftl.victm", "fifo", "did you mean ftl.victim?");
        check("flt.victim", "fifo", "no such field (did you mean ftl.victim?)");
        check("ftl.victim", "best", "--set ftl.victim=best: no victim policy is called `best`");
        check("flash.channels", "x", "a whole number is expected");
        check("flash.multi_plane", "1", "true or false");
        check("flash.t_read", "60", "no known unit");
        check("ftl", "x", "this is a section");
    }
}
