//! A drive as a TOML file describes it, and the presets that ship with Prism.

use prism_base::{Bytes, Nanos};
use prism_ftl::{ConfigError, Frontiers, FtlConfig, OverProvisioning, VictimPolicy};
use prism_nand::{Geometry, GeometryError, Timing};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::quantity;

/// Why a device file cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Not TOML, a field is missing or unknown, or a value has no unit. The message
    /// names line and field.
    #[error("{0}")]
    Syntax(String),
    /// A field has a value that makes no sense.
    #[error("{field} = {value}: {why}")]
    Value {
        /// The field, with its section.
        field: &'static str,
        /// Its value as text.
        value: String,
        /// What is allowed.
        why: &'static str,
    },
    /// The shape of the flash makes no sense.
    #[error("[flash] {0}")]
    Geometry(#[from] GeometryError),
    /// The translation layer cannot work with these numbers.
    #[error("[ftl] {0}")]
    Ftl(#[from] ConfigError),
    /// No preset has this name.
    #[error("there is no preset {name:?}; presets are {known}, or give a file ending in .toml")]
    UnknownPreset {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}

/// A drive. Every field of the file has to be there, but for `[datasheet]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Short name.
    pub name: String,
    /// One line for a report.
    pub title: String,
    /// Where the numbers come from.
    pub source: String,
    /// The flash.
    pub flash: Flash,
    /// The translation layer.
    pub ftl: Ftl,
    /// What the host sees.
    pub drive: DriveSpec,
    /// What the maker says it does, to stand beside what the simulation says.
    #[serde(default)]
    pub datasheet: Datasheet,
}

/// `[flash]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Bits a cell, for the reader: slc, mlc, tlc, qlc.
    pub cell: Cell,
    /// Buses.
    pub channels: u32,
    /// Dies on each.
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes: u32,
    /// Whether one command works on all planes of a die.
    pub multi_plane: bool,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Size of a page of one plane.
    #[serde(deserialize_with = "quantity::bytes")]
    pub page: Bytes,
    /// tR.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_read: Nanos,
    /// tPROG.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_program: Nanos,
    /// tBERS.
    #[serde(deserialize_with = "quantity::nanos")]
    pub t_erase: Nanos,
    /// Bytes a second of a channel; `None` is infinite.
    #[serde(deserialize_with = "quantity::rate")]
    pub channel_bandwidth: Option<u64>,
    /// Program/erase cycles a block is good for.
    pub endurance: u32,
}

/// Bits a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// One.
    Slc,
    /// Two.
    Mlc,
    /// Three.
    Tlc,
    /// Four.
    Qlc,
}

impl Cell {
    /// Upper-case abbreviation, for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Slc => "SLC",
            Self::Mlc => "MLC",
            Self::Tlc => "TLC",
            Self::Qlc => "QLC",
        }
    }
}

/// `[ftl]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ftl {
    /// The mapping; page mapping is the one there is.
    pub mapping: Mapping,
    /// Size of a mapping unit, apart from the page.
    #[serde(deserialize_with = "quantity::bytes")]
    pub mapping_unit: Bytes,
    /// `shared` or `separate`.
    pub frontiers: FrontierSpec,
    /// As [`VictimPolicy::from_name`] reads it.
    #[serde(deserialize_with = "victim")]
    pub victim: VictimPolicy,
    /// Cleaning of a die starts below this many erased blocks.
    pub free_blocks_low: u32,
    /// Cleaning of a die stops at this many.
    pub free_blocks_high: u32,
}

/// Mappings by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mapping {
    /// Every unit anywhere.
    Page,
}

/// Open blocks by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontierSpec {
    /// [`Frontiers::Shared`]
    Shared,
    /// [`Frontiers::Separate`]
    Separate,
}

fn victim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VictimPolicy, D::Error> {
    VictimPolicy::from_name(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// `[drive]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// What the host may write; rounded down to whole mapping units.
    #[serde(deserialize_with = "quantity::bytes")]
    pub capacity: Bytes,
    /// Firmware time of a read or of a command without data.
    #[serde(deserialize_with = "quantity::nanos")]
    pub firmware_read: Nanos,
    /// Firmware time of a write.
    #[serde(deserialize_with = "quantity::nanos")]
    pub firmware_write: Nanos,
    /// Bytes a second of the host link, each way; `None` is infinite.
    #[serde(deserialize_with = "quantity::rate")]
    pub link_bandwidth: Option<u64>,
    /// Commands the drive takes at once.
    pub queue_depth: u32,
    /// Size of the write buffer.
    #[serde(deserialize_with = "quantity::bytes")]
    pub write_buffer: Bytes,
    /// Whether a write is complete in the buffer or on flash.
    pub write_cache: WriteCache,
    /// Whether the buffer and the map survive a loss of power.
    pub power_loss_protection: bool,
}

/// When a write is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Once its data is in the buffer.
    WriteBack,
    /// Once its data is on flash.
    WriteThrough,
}

/// `[datasheet]`: the maker's figures, as far as given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datasheet {
    /// 4 KiB at queue depth 1.
    #[serde(default, deserialize_with = "quantity::opt_nanos")]
    pub random_read_latency: Option<Nanos>,
    /// 4 KiB at queue depth 1.
    #[serde(default, deserialize_with = "quantity::opt_nanos")]
    pub random_write_latency: Option<Nanos>,
    /// 4 KiB, deep queue.
    #[serde(default)]
    pub random_read_iops: Option<u64>,
    /// 4 KiB, deep queue, steady state.
    #[serde(default)]
    pub random_write_iops: Option<u64>,
    /// Bytes a second.
    #[serde(default, deserialize_with = "quantity::rate")]
    pub sequential_read: Option<u64>,
    /// Bytes a second.
    #[serde(default, deserialize_with = "quantity::rate")]
    pub sequential_write: Option<u64>,
}

const PRESETS: [(&str, &str); 4] = [
    ("dc-tlc", include_str!("../presets/dc-tlc.toml")),
    ("consumer-nvme", include_str!("../presets/consumer-nvme.toml")),
    ("slc-2008", include_str!("../presets/slc-2008.toml")),
    ("femu", include_str!("../presets/femu.toml")),
];

impl Device {
    /// The preset that is used where none is named.
    pub const DEFAULT_PRESET: &str = "dc-tlc";
    /// Erased blocks of a die that only cleaning may open: one is enough to empty any
    /// victim, and the erase gives it back.
    const RESERVE_BLOCKS: u32 = 1;

    /// The names of the presets, the default first.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|&(name, _)| name)
    }

    /// The preset called `name`.
    ///
    /// # Errors
    /// [`DeviceError::UnknownPreset`] lists those that exist.
    pub fn preset(name: &str) -> Result<Self, DeviceError> {
        let Some((_, text)) = PRESETS.iter().find(|(known, _)| *known == name) else {
            let known = Self::preset_names().collect::<Vec<_>>().join(", ");
            return Err(DeviceError::UnknownPreset { name: name.into(), known });
        };
        Self::from_toml(text)
    }

    /// Reads and checks a device file.
    ///
    /// # Errors
    /// [`DeviceError`] names line and field.
    pub fn from_toml(text: &str) -> Result<Self, DeviceError> {
        let device: Self = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        device.check()?;
        Ok(device)
    }

    /// Checks every value against the others.
    ///
    /// # Errors
    /// [`DeviceError`] names the field.
    pub fn check(&self) -> Result<(), DeviceError> {
        self.geometry().check()?;
        let value = |field, value: String, why| Err(DeviceError::Value { field, value, why });
        if self.flash.endurance == 0 {
            return value("flash.endurance", "0".into(), "a block lasts at least one cycle");
        }
        let longest = Nanos(60_000_000_000);
        let times = [
            ("flash.t_read", self.flash.t_read),
            ("flash.t_program", self.flash.t_program),
            ("flash.t_erase", self.flash.t_erase),
            ("drive.firmware_read", self.drive.firmware_read),
            ("drive.firmware_write", self.drive.firmware_write),
        ];
        for (field, time) in times {
            if time > longest {
                return value(field, time.to_string(), "more than a minute is no drive");
            }
        }
        let depth = self.drive.queue_depth;
        if depth == 0 || depth > 1 << 16 {
            return value("drive.queue_depth", depth.to_string(), "must be between 1 and 65536");
        }
        let buffer = self.drive.write_buffer;
        let row = Bytes(u64::from(self.geometry().units_per_row()) * self.ftl.mapping_unit.0);
        if buffer < row || buffer.0 > 1 << 40 {
            let why = "must hold at least one row (a page on every ganged plane), at most 1 TiB";
            return value("drive.write_buffer", buffer.to_string(), why);
        }
        if self.drive.capacity.0 / self.ftl.mapping_unit.0 > Geometry::UNITS_MAX {
            let why = "more mapping units than can be addressed; choose a larger mapping_unit";
            return value("drive.capacity", self.drive.capacity.to_string(), why);
        }
        self.ftl_config().check(&self.geometry())?;
        Ok(())
    }

    /// The shape of the flash.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let f = &self.flash;
        Geometry {
            channels: f.channels,
            dies_per_channel: f.dies_per_channel,
            planes: f.planes,
            planes_ganged: if f.multi_plane { f.planes } else { 1 },
            blocks_per_plane: f.blocks_per_plane,
            pages_per_block: f.pages_per_block,
            page: f.page,
            unit: self.ftl.mapping_unit,
        }
    }

    /// The times of the flash.
    #[must_use]
    pub fn timing(&self) -> Timing {
        Timing {
            t_read: self.flash.t_read,
            t_program: self.flash.t_program,
            t_erase: self.flash.t_erase,
            bus_bytes_per_second: self.flash.channel_bandwidth,
        }
    }

    /// What the translation layer is told.
    #[must_use]
    pub fn ftl_config(&self) -> FtlConfig {
        FtlConfig {
            logical_units: (self.drive.capacity.0 / self.ftl.mapping_unit.0) as u32,
            victim: self.ftl.victim,
            frontiers: match self.ftl.frontiers {
                FrontierSpec::Shared => Frontiers::Shared,
                FrontierSpec::Separate => Frontiers::Separate,
            },
            free_blocks_low: self.ftl.free_blocks_low,
            free_blocks_high: self.ftl.free_blocks_high,
            reserve_blocks: Self::RESERVE_BLOCKS,
        }
    }

    /// What the host may write, in whole mapping units.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        Bytes(self.drive.capacity.0 / self.ftl.mapping_unit.0 * self.ftl.mapping_unit.0)
    }

    /// Over-provisioning, nominal and effective.
    #[must_use]
    pub fn over_provisioning(&self) -> OverProvisioning {
        self.ftl_config().over_provisioning(&self.geometry())
    }
}

/// The error of the TOML library in one line: where, what, and the line as it stands.
fn syntax(text: &str, error: &toml::de::Error) -> DeviceError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = &text.as_bytes()[..start];
    let number = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let what = error.message().trim().replace('\n', ", ");
    DeviceError::Syntax(format!("line {number} ({line}): {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_sound() {
        for name in Device::preset_names() {
            let device = Device::preset(name).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(device.name, name);
            let spare = device.over_provisioning();
            assert!(0.02 < spare.effective && spare.effective < spare.nominal, "{name}: {spare:?}");
        }
        assert_eq!(Device::preset_names().next(), Some(Device::DEFAULT_PRESET));
    }

    #[test]
    fn a_bad_file_is_named_by_field() {
        let check = |from: &str, to: &str, expected: &str| {
            let text = PRESETS[0].1;
            assert!(text.contains(from), "{from}");
            let message = Device::from_toml(&text.replace(from, to)).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        };
        check("page = \"16KiB\"", "", "missing field `page`");
        check("page = \"16KiB\"", "page = 16384", "page = 16384");
        check("page = \"16KiB\"", "page = \"16\"", "no known unit");
        check("channels = 12", "channels = 0", "channels is 0");
        check("endurance = 3000", "endurance = 0", "flash.endurance");
        check("t_read = \"60us\"", "t_read = \"60h\"", "flash.t_read");
        check("capacity = \"4TB\"", "capacity = \"5TB\"", "lower capacity");
        check("queue_depth = 256", "queue_depth = 0", "drive.queue_depth");
        check("write_buffer = \"16MiB\"", "write_buffer = \"4KiB\"", "drive.write_buffer");
        check("victim = \"greedy\"", "victim = \"best\"", "no victim policy is called `best`");
        check("victim = \"greedy\"", "victim = \"d-choices\"", "as in d-choices:10");
        check("victim = \"greedy\"", "victim = \"fifo:2\"", "called `fifo:2`");
        check("[ftl]", "[ftl]\nspeed = 1", "unknown field `speed`");
        check("mapping_unit = \"4KiB\"", "mapping_unit = \"3KiB\"", "does not divide");
    }

    #[test]
    fn an_unknown_preset_lists_the_known() {
        let message = Device::preset("fast").unwrap_err().to_string();
        assert!(message.contains("dc-tlc") && message.contains("femu"), "{message}");
    }
}
