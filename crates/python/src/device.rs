//! Drives as Python describes them: a preset, a device file, or a dictionary.

use std::path::{Path, PathBuf};

use prism_base::Nanos;
use prism_present::DriveChoice;
use prism_present::drive_choice::{parse_capacity, parse_kind, parse_override};
use prism_present::initial_state::{parse_state, parse_state_file};
use prism_ssd::DriveSpec;
use pyo3::prelude::*;

use crate::arguments::{parsed, parsed_if_any};
use crate::error::Failure;
use crate::watch::{INLINE_DEVICE, InlineDrive};

/// A drive and its initial state, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct DeviceOptions {
    /// A preset, or the path of a TOML file; ignored if there is a text.
    name: String,
    /// The text of a device file.
    text: Option<String>,
    capacity: Option<String>,
    state: String,
    save_state: Option<PathBuf>,
    faults: Option<String>,
    wear: Option<u32>,
    retention: Option<String>,
    overrides: Vec<String>,
}

impl DeviceOptions {
    /// The drive, which is also returned as an inline one if it is not in a file.
    ///
    /// # Errors
    /// [`Failure`] naming the argument.
    pub fn choice(self) -> Result<(DriveChoice, Option<InlineDrive>), Failure> {
        let text = self.text;
        let overrides = self.overrides.iter().map(|text| parsed("set", text, parse_override));
        let save = self.save_state.as_ref().map(|path| path.to_string_lossy());
        let choice = DriveChoice {
            name: if text.is_some() { INLINE_DEVICE.to_owned() } else { self.name },
            capacity: parsed_if_any("capacity", self.capacity.as_deref(), parse_capacity)?,
            state: parsed("state", &self.state, parse_state)?,
            save_state: parsed_if_any("save_state", save.as_deref(), parse_state_file)?,
            faults: parsed_if_any("faults", self.faults.as_deref(), parse_kind)?,
            wear: self.wear,
            retention: parsed_if_any("retention", self.retention.as_deref(), Nanos::parse)?,
            overrides: overrides.collect::<Result<_, _>>()?,
        };
        Ok((choice, text.map(|text| (INLINE_DEVICE, text))))
    }
}

/// The names of the presets: those of drives, then those of zoned drives.
#[pyfunction]
pub fn preset_names() -> Vec<&'static str> {
    DriveSpec::preset_names().chain(DriveSpec::zoned_preset_names()).collect()
}

/// Whether `name` is that of a preset or of a device file.
#[pyfunction]
pub fn is_device(name: &str) -> bool {
    prism_present::drive_choice::is_device(name)
}

/// The part of a message that gives presets with a name like `name`, if there are any.
#[pyfunction]
pub fn near_presets(name: &str) -> String {
    prism_workload::fio::options::near(name, preset_names().into_iter())
}

/// The text of a device, or that of the preset or the file called `name`.
///
/// # Errors
/// [`Failure`] if there is none.
pub fn device_text(name: &str, text: Option<String>) -> Result<String, Failure> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|e| e == "toml");
    Ok(match text {
        Some(text) => text,
        None if is_file => prism_host::input::read_text(path)?,
        None => DriveSpec::preset_text(name)
            .map_err(|error| Failure::Text(error.to_string()))?
            .to_owned(),
    })
}

/// The fields of a drive as JSON, checked: those of the preset or file called `name`, or of the
/// text of a file.
#[pyfunction]
#[pyo3(signature = (name, text = None))]
pub fn device_fields(name: &str, text: Option<String>) -> PyResult<String> {
    let text = device_text(name, text)?;
    DriveSpec::from_toml(&text).map_err(|error| Failure::argument(name, error))?;
    let fields: toml::Table = text.parse().map_err(|error| Failure::argument(name, error))?;
    Ok(serde_json::to_string(&fields).expect("its keys are strings"))
}
