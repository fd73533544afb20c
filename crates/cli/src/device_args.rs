//! How a drive is chosen on the command line, the same for every command that runs one.

use std::path::{Path, PathBuf};

use clap::Args;
use prism_base::{Bytes, Nanos};
use prism_nand::FaultModel;
use prism_ssd::scale::Scaled;
use prism_ssd::{Device, DeviceError, fit};
use prism_workload::fio::words;

use crate::failure::Failure;
use crate::initial_state::{State, parse_state, parse_state_file};
use crate::quantities;

/// Which drive, how large, and what it holds at the start.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// The drive: a preset or a TOML file
    #[arg(long, value_name = "PRESET|FILE.toml", default_value = Device::DEFAULT_PRESET,
        help = device_help())]
    pub device: String,
    /// What the host may write, as 64GiB, or `device` for the drive's own size
    /// [default: what the trace touches; for `sim` 8GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    pub capacity: Option<Capacity>,
    /// What the drive holds before the first request: empty; filled (each unit once, in
    /// order) or filled:0.7 (a share of them); preconditioned (filled, then overwritten at
    /// random until write amplification is steady) or preconditioned:2 (for so many
    /// capacities); steady (what that leads to, laid out at once); or a file that
    /// --save-state wrote
    #[arg(long, value_name = "STATE|FILE.prism-state", default_value = "filled",
          value_parser = parse_state)]
    pub state: State,
    /// Keep the drive as it is before the first request, for --state of later runs
    #[arg(long, value_name = "FILE.prism-state", value_parser = parse_state_file)]
    pub save_state: Option<PathBuf>,
    /// Let the drive age and fail as cells of this kind do: slc, mlc, tlc or qlc
    #[arg(long, value_name = "KIND", value_parser = parse_kind)]
    pub faults: Option<String>,
    /// Cycles that every block starts with, for a drive that ages
    #[arg(long, value_name = "CYCLES")]
    pub wear: Option<u32>,
    /// How long ago what the drive holds at the start was programmed, as 90d, for a drive that
    /// ages
    #[arg(long, value_name = "TIME", value_parser = quantities::nanos)]
    pub retention: Option<Nanos>,
    /// Change a field of the drive before it is made to fit, as ftl.victim=fifo
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = parse_override)]
    pub overrides: Vec<Override>,
}

/// A field of a device file with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Section and name, as `ftl.victim`.
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

impl Override {
    fn new(field: &str, value: &str) -> Self {
        Self { field: field.into(), value: value.into() }
    }
}

impl DeviceArgs {
    /// The device as it is asked for, before it is made to fit.
    ///
    /// # Errors
    /// [`Failure`] naming the file or the preset, and the field.
    pub fn device(&self) -> Result<Device, Failure> {
        let mut device = self.described()?;
        if self.wear.is_none() && self.retention.is_none() {
            return Ok(device);
        }
        let Some(faults) = &mut device.faults else {
            let what = "--wear and --retention are for a drive that ages: give --faults KIND, or \
                        a file with [faults]";
            return Err(Failure::Usage(what.into()));
        };
        faults.wear = self.wear.unwrap_or(faults.wear);
        faults.retention = self.retention.unwrap_or(faults.retention);
        match device.check() {
            Ok(()) => Ok(device),
            Err(error) => Err(Failure::Usage(format!("{}: {error}", self.device))),
        }
    }

    /// The device as it is described, before it is aged.
    fn described(&self) -> Result<Device, Failure> {
        let kind = self.faults.iter().map(|kind| Override::new("faults.kind", kind));
        let overrides: Vec<_> = kind.chain(self.overrides.iter().cloned()).collect();
        described(&self.device, &overrides)
    }

    /// The drive, fitted to `--capacity` or else to `span` bytes of addresses.
    ///
    /// # Errors
    /// [`Failure`] naming the file or the preset, and the field.
    pub fn scaled(&self, span: u64) -> Result<Scaled, Failure> {
        let device = self.device()?;
        let fitted = |capacity| {
            fit(&device, capacity).map_err(|error| {
                let what = format!("no drive of this kind holds {capacity}");
                Failure::Usage(format!("{}: {what}: {error}", self.device))
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
}

/// The device that a preset or a device file describes, with some fields changed.
///
/// # Errors
/// [`Failure`] naming the file or the preset, and the field.
pub fn described(name: &str, overrides: &[Override]) -> Result<Device, Failure> {
    let wrong = |error| Failure::Usage(format!("{name}: {error}"));
    let is_file = Path::new(name).extension().is_some_and(|e| e == "toml");
    if !is_file && overrides.is_empty() {
        return Device::preset(name).map_err(|e| Failure::Usage(e.to_string()));
    }
    let text = if is_file {
        prism_host::input::read_text(Path::new(name))?
    } else {
        // Names the presets where it is none of them.
        let text = Device::preset_text(name);
        text.map_err(|e| Failure::Usage(e.to_string()))?.to_owned()
    };
    let device = if overrides.is_empty() {
        Device::from_toml(&text)
    } else {
        let text = overridden(&text, overrides).map_err(Failure::Usage)?;
        Device::from_toml(&text)
    };
    device.map_err(wrong)
}

fn device_help() -> String {
    let names: Vec<_> = Device::preset_names().chain(Device::zoned_preset_names()).collect();
    format!("The drive: a preset ({}) or a TOML file", names.join(", "))
}

/// The text of a device file, with `overrides` in their places.
fn overridden(text: &str, overrides: &[Override]) -> Result<String, String> {
    let mut table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    for Override { field, value } in overrides {
        let known = fields(&table);
        let wrong = |what: &str| format!("--set {field}={value}: {what}");
        let (section, name) = match field.split_once('.') {
            Some((section, name)) => (Some(section), name),
            None => (None, field.as_str()),
        };
        let place = match section {
            None => Some(&mut table),
            Some("faults") => {
                // A section that files may leave out as a whole.
                let empty = toml::Value::Table(toml::Table::new());
                table.entry("faults").or_insert(empty).as_table_mut()
            }
            Some(section) => table.get_mut(section).and_then(toml::Value::as_table_mut),
        };
        let Some(place) = place.filter(|_| !name.contains('.')) else {
            let near = words::near(field, known.iter().map(String::as_str));
            return Err(wrong(&format!("a device has no such field{near}")));
        };
        if matches!(place.get(name), Some(toml::Value::Table(_))) {
            return Err(wrong("this is a section, not a field"));
        }
        let other = toml_value(place.get(name), value).map_err(|what| wrong(&what))?;
        place.insert(name.to_owned(), other);
        let changed = toml::to_string(&table).map_err(|error| error.to_string())?;
        // The whole is checked once every change is in.
        if let Err(DeviceError::Syntax(error)) = Device::from_toml(&changed) {
            let what = error.split_once("): ").map_or(error.as_str(), |(_, what)| what);
            let near = if what.starts_with("unknown field") {
                words::near(field, known.iter().map(String::as_str))
            } else {
                String::new()
            };
            return Err(wrong(&format!("{what}{near}")));
        }
    }
    toml::to_string(&table).map_err(|error| error.to_string())
}

/// `text` as a value of the kind that stands there now. A field that files may leave out
/// is what it looks like: a list, a number, true or false, or else text.
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

fn parse_override(text: &str) -> Result<Override, String> {
    match text.split_once('=') {
        Some((field, value)) if !field.is_empty() => Ok(Override::new(field, value)),
        _ => Err("give a field and its value, as ftl.victim=fifo".into()),
    }
}

fn parse_kind(text: &str) -> Result<String, String> {
    if FaultModel::KINDS.contains(&text) {
        return Ok(text.into());
    }
    Err(format!("kinds are {}", FaultModel::KINDS.join(", ")))
}

pub(crate) fn parse_capacity(text: &str) -> Result<Capacity, String> {
    if text == "device" {
        return Ok(Capacity::Device);
    }
    match Bytes::parse(text) {
        Ok(Bytes(0)) => Err("a drive of no bytes".into()),
        Ok(bytes) => Ok(Capacity::Bytes(bytes)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_changed_and_unknown_ones_named() {
        let change = |field: &str, value: &str| {
            let change = Override::new(field, value);
            overridden(Device::preset_text("dc-tlc").unwrap(), &[change])
        };
        let device = |text: &str| Device::from_toml(text).unwrap();
        let preset = device(Device::preset_text("dc-tlc").unwrap());
        let mut other = device(&change("ftl.victim", "fifo").unwrap());
        assert_ne!(other, preset);
        other.ftl.victim = preset.ftl.victim;
        assert_eq!(other, preset);
        assert_eq!(device(&change("flash.channels", "16").unwrap()).flash.channels, 16);
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
