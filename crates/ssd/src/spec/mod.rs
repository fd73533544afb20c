//! Description of a drive, read from a TOML file, and the presets that ship with Prism.

mod derived;
mod faults;
mod hybrid;
mod parts;
mod ranges;
mod slc;
mod spare;
mod zoned;

use prism_base::{Bytes, Nanos};
use prism_engine::{ChannelArbitration, ReadTransfer, SECTOR, Scheduler};
use prism_ftl::{ConfigError, SteadyError};
use prism_nand::{Geometry, GeometryError, PageTimes};
use serde::Deserialize;

pub use faults::FaultSpec;
pub use parts::{
    Cell, ControllerSpec, Datasheet, Duplex, Flash, FtlSpec, MapLoad, Mapping, SuspendSpec,
    WriteCache,
};
pub use slc::{SlcSpec, SlcUsage};

pub use ranges::RangeSpec;

/// Why a device file cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DriveSpecError {
    /// Not TOML, a field is missing or unknown, or a value has no unit. The message
    /// names line and field.
    #[error("{0}")]
    Syntax(String),
    /// A field has a value that is not allowed.
    #[error("{field} = {value}: {why}")]
    Value {
        /// The field, with its section.
        field: &'static str,
        /// Its value as text.
        value: String,
        /// What is allowed.
        why: &'static str,
    },
    /// The geometry of the flash is invalid.
    #[error("[flash] {0}")]
    Geometry(#[from] GeometryError),
    /// The FTL cannot work with these numbers.
    #[error("[ftl] {0}")]
    Ftl(#[from] ConfigError),
    /// The steady state cannot be laid out.
    #[error("{0}")]
    Steady(#[from] SteadyError),
    /// A zoned drive has no overwritten initial state.
    #[error("a zoned drive has no state of overwrites; use --state empty, filled or filled:SHARE")]
    Overwrites,
    /// A state that is laid out has no content on flash.
    #[error(
        "the state steady is laid out without content, which recovery from a loss of power reads; \
         use --state empty, filled or preconditioned"
    )]
    NoContent,
    /// No preset has this name.
    #[error("there is no preset {name:?}; presets are {known}, or give a file ending in .toml")]
    UnknownPreset {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}

/// A drive. The sections `[slc]`, `[faults]` and `[datasheet]` are optional, all others are
/// required.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Short name.
    pub name: String,
    /// One line for a report.
    pub title: String,
    /// Where the numbers come from.
    pub source: String,
    /// The flash.
    pub flash: Flash,
    /// The FTL.
    pub ftl: FtlSpec,
    /// Address ranges with a mapping other than that of `[ftl]`, from address 0 on.
    #[serde(default, rename = "range")]
    pub ranges: Vec<RangeSpec>,
    /// The controller: host interface and write buffer.
    pub drive: ControllerSpec,
    /// Blocks in SLC mode, next to those with all bits per cell.
    pub slc: Option<SlcSpec>,
    /// Fault model of the flash; without it the flash neither ages nor fails.
    pub faults: Option<FaultSpec>,
    /// The manufacturer's figures, to compare with those of the simulation.
    #[serde(default)]
    pub datasheet: Datasheet,
}

/// Presets of drives without zones.
const PRESETS: &[(&str, &str)] = &[
    ("dc-tlc", include_str!("../../presets/dc-tlc.toml")),
    ("consumer-nvme", include_str!("../../presets/consumer-nvme.toml")),
    ("consumer-tlc", include_str!("../../presets/consumer-tlc.toml")),
    ("qlc", include_str!("../../presets/qlc.toml")),
    ("memblaze", include_str!("../../presets/memblaze.toml")),
    ("pcie-mlc", include_str!("../../presets/pcie-mlc.toml")),
    ("sfs-slc", include_str!("../../presets/sfs-slc.toml")),
    ("sfs-mlc", include_str!("../../presets/sfs-mlc.toml")),
    ("slc-mlc", include_str!("../../presets/slc-mlc.toml")),
    ("sfs-usb", include_str!("../../presets/sfs-usb.toml")),
    ("slc-2008", include_str!("../../presets/slc-2008.toml")),
    ("fast-2008", include_str!("../../presets/fast-2008.toml")),
    ("bast-2007", include_str!("../../presets/bast-2007.toml")),
    ("block-2007", include_str!("../../presets/block-2007.toml")),
    ("mixed-2008", include_str!("../../presets/mixed-2008.toml")),
    ("atc08", include_str!("../../presets/atc08.toml")),
    ("atc09-s1", include_str!("../../presets/atc09-s1.toml")),
    ("atc09-s2", include_str!("../../presets/atc09-s2.toml")),
    ("atc09-s3", include_str!("../../presets/atc09-s3.toml")),
    ("atc09-s5", include_str!("../../presets/atc09-s5.toml")),
    ("atc09-gang", include_str!("../../presets/atc09-gang.toml")),
    ("wiscsim", include_str!("../../presets/wiscsim.toml")),
    ("femu", include_str!("../../presets/femu.toml")),
];

/// Presets of zoned drives.
const ZONED_PRESETS: &[(&str, &str)] = &[
    ("zn540", include_str!("../../presets/zn540.toml")),
    ("zns-small", include_str!("../../presets/zns-small.toml")),
];

impl DriveSpec {
    /// The preset used if none is named.
    pub const DEFAULT_PRESET: &str = "dc-tlc";
    /// Erased blocks of a die group that only cleaning may open. One is enough for the valid units
    /// of any victim, whose erase then replaces it.
    const RESERVE_BLOCKS: u32 = 1;

    /// The names of the presets of drives without zones, the default first.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|&(name, _)| name)
    }

    /// The names of the presets of zoned drives.
    pub fn zoned_preset_names() -> impl Iterator<Item = &'static str> {
        ZONED_PRESETS.iter().map(|&(name, _)| name)
    }

    /// The preset called `name`.
    ///
    /// # Errors
    /// [`DriveSpecError::UnknownPreset`] lists those that exist.
    pub fn preset(name: &str) -> Result<Self, DriveSpecError> {
        Self::from_toml(Self::preset_text(name)?)
    }

    /// The file of the preset called `name`.
    ///
    /// # Errors
    /// [`DriveSpecError::UnknownPreset`] lists those that exist.
    pub fn preset_text(name: &str) -> Result<&'static str, DriveSpecError> {
        let found = PRESETS.iter().chain(ZONED_PRESETS).find(|(known, _)| *known == name);
        found.map(|&(_, text)| text).ok_or_else(|| {
            let names = Self::preset_names().chain(Self::zoned_preset_names());
            let known = names.collect::<Vec<_>>().join(", ");
            DriveSpecError::UnknownPreset { name: name.into(), known }
        })
    }

    /// Reads and checks a device file.
    ///
    /// # Errors
    /// [`DriveSpecError`] names line and field.
    pub fn from_toml(text: &str) -> Result<Self, DriveSpecError> {
        let device: Self = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        device.check()?;
        Ok(device)
    }

    /// Checks every value against the others.
    ///
    /// # Errors
    /// [`DriveSpecError`] names the field.
    pub fn check(&self) -> Result<(), DriveSpecError> {
        self.check_slc_cells()?;
        self.geometry().check()?;
        if self.flash.endurance == 0 {
            return bad("flash.endurance", 0, "a block lasts at least one cycle");
        }
        self.check_times()?;
        self.check_flash()?;
        self.check_drive()?;
        if self.drive.capacity.0 / self.ftl.mapping_unit.0 > Geometry::UNITS_MAX {
            let why = "more mapping units than can be addressed; choose a larger mapping_unit";
            return bad("drive.capacity", self.drive.capacity, why);
        }
        self.check_faults()?;
        if self.ranges.is_empty() { self.check_ftl() } else { self.check_ranges() }
    }

    /// Limits the times so that pending flash operations never lie further apart than half an hour,
    /// which is what [`prism_base::Timers`] can order, even with all retries of a read and all dies
    /// of a channel waiting for the bus.
    fn check_times(&self) -> Result<(), DriveSpecError> {
        let (longest, longest_of_flash) = (Nanos(60_000_000_000), Nanos(10_000_000_000));
        let slowest = |times: &PageTimes| times.all().iter().copied().max().unwrap_or(Nanos::ZERO);
        let slc = |time: fn(&SlcSpec) -> Nanos| self.slc.as_ref().map_or(Nanos::ZERO, time);
        let times = [
            ("slc.t_read", slc(|slc| slc.t_read)),
            ("slc.t_program", slc(|slc| slc.t_program)),
            ("slc.t_erase", slc(|slc| slc.t_erase)),
            ("flash.t_read", slowest(&self.flash.t_read)),
            ("flash.t_program", slowest(&self.flash.t_program)),
            ("flash.t_erase", self.flash.t_erase),
            ("flash.t_command", self.flash.t_command),
            ("flash.t_suspend", self.flash.t_suspend),
            ("drive.firmware_read", self.drive.firmware_read),
            ("drive.firmware_write", self.drive.firmware_write),
            ("drive.merge_wait", self.drive.merge_wait),
        ];
        for (field, time) in times {
            if field.starts_with("drive.") {
                if time > longest {
                    return bad(field, time, "must be at most a minute");
                }
            } else if time > longest_of_flash {
                return bad(field, time, "must be at most ten seconds");
            }
        }
        let dies = u64::from(self.flash.dies_per_channel);
        if self.flash.t_command.0 * dies > 300_000_000_000 {
            let why = "a command for each die of a channel takes more than five minutes";
            return bad("flash.t_command", self.flash.t_command, why);
        }
        let Some(rate) = self.flash.channel_bandwidth else { return Ok(()) };
        if self.geometry().program_unit_bytes().0 * dies / rate.max(1) > 300 {
            let why = "a page for each die of a channel takes more than five minutes";
            return bad("flash.channel_bandwidth", rate, why);
        }
        Ok(())
    }

    fn check_channels(&self) -> Result<(), DriveSpecError> {
        let flash = &self.flash;
        let overlaps = flash.cache_read || flash.cache_program;
        let by_wait = self.drive.scheduler == Scheduler::ShortestWait;
        if flash.channel_arbitration == ChannelArbitration::DataFirst && (overlaps || by_wait) {
            let why = "not simulated with cache_read, cache_program or the scheduler swtf; choose \
                       commands-first or fifo";
            return bad("flash.channel_arbitration", flash.channel_arbitration.name(), why);
        }
        let (page, unit) = (flash.page.0, self.ftl.mapping_unit.0);
        let whole = page.is_multiple_of(SECTOR.0) && unit.is_multiple_of(SECTOR.0);
        let pages = page * u64::from(self.geometry().planes_ganged);
        let few = pages / SECTOR.0 <= u16::MAX.into();
        if flash.read_transfer == ReadTransfer::Sectors && !(whole && few) {
            let why = "needs a page and a mapping_unit of whole sectors of 512 B, and less than \
                       32 MiB in the pages that one command reads";
            return bad("flash.read_transfer", flash.read_transfer.name(), why);
        }
        Ok(())
    }

    fn check_flash(&self) -> Result<(), DriveSpecError> {
        let flash = &self.flash;
        if flash.pages_per_program > 1 && flash.t_program.all().len() > 1 {
            let why = "one program writes all types of pages, so it takes one time";
            return bad("flash.t_program", format!("{} times", flash.t_program.all().len()), why);
        }
        let whole_pages = self.ftl.mapping_unit == flash.page;
        if flash.copy_back && (!whole_pages || flash.multi_plane || flash.pages_per_program > 1) {
            let why = "a copy-back moves one page: it needs mapping_unit = page, multi_plane = \
                       false and pages_per_program = 1";
            return bad("flash.copy_back", true, why);
        }
        self.check_channels()?;
        let passes = matches!(self.drive.scheduler, Scheduler::ReadFirst | Scheduler::Priority);
        if flash.program_gaps && flash.cell != Cell::Slc {
            let why = "only SLC flash allows pages that are left out";
            return bad("flash.program_gaps", true, why);
        }
        if flash.suspend != SuspendSpec::None && !passes {
            let why = "suspending programs or erases for reads needs a scheduler that serves \
                       reads first: read-first or priority";
            return bad("drive.scheduler", self.drive.scheduler.name(), why);
        }
        Ok(())
    }

    fn check_drive(&self) -> Result<(), DriveSpecError> {
        let drive = &self.drive;
        let depths = [("drive.queue_depth", drive.queue_depth), ("drive.queues", drive.queues)];
        for (field, value) in depths {
            if value == 0 || value > 1 << 16 {
                return bad(field, value, "must be between 1 and 65536");
            }
        }
        let weights = &drive.queue_weights;
        if !weights.is_empty() && (weights.len() as u32 != drive.queues || weights.contains(&0)) {
            let why = "give one weight above 0 for each of the queues, or none at all";
            return bad("drive.queue_weights", format!("{weights:?}"), why);
        }
        if drive.write_buffer < self.write_buffer_min() || drive.write_buffer.0 > 1 << 40 {
            let why = "must hold at least one program unit (what one program writes), or, where a \
                       loss of power may take a wordline, all of its program units on each die of \
                       a superblock; at most 1 TiB";
            return bad("drive.write_buffer", drive.write_buffer, why);
        }
        Ok(())
    }

    fn check_ftl(&self) -> Result<(), DriveSpecError> {
        let ftl = &self.ftl;
        if ftl.free_blocks_critical <= Self::RESERVE_BLOCKS {
            let why = "must be at least 2: with one erased block left the host cannot write, and \
                       cleaning that still yields to it would never go on";
            return bad("ftl.free_blocks_critical", ftl.free_blocks_critical, why);
        }
        if ftl.segment.is_some() && ftl.placement_handles > 0 {
            let why = "either segments or placement handles decide where data goes";
            return bad("ftl.placement_handles", ftl.placement_handles, why);
        }
        if ftl.segment.is_some_and(|segment| segment < ftl.mapping_unit) {
            let why = "a segment holds at least one mapping unit";
            return bad("ftl.segment", ftl.segment.unwrap_or(Bytes(0)), why);
        }
        let cached = ftl.map_cache.map_or(0, |cache| cache.0);
        match ftl.mapping {
            Mapping::Page if ftl.map_cache.is_some() => {
                return bad("ftl.map_cache", Bytes(cached), "only mapping \"dftl\" has a cache");
            }
            Mapping::Dftl if cached < 64 * Self::MAP_ENTRY => {
                let why = "mapping \"dftl\" needs a map_cache of at least 512 bytes";
                return bad("ftl.map_cache", Bytes(cached), why);
            }
            _ => {}
        }
        if ftl.mapping.is_by_block() {
            self.check_by_block()?;
        } else {
            self.check_not_by_block()?;
        }
        if ftl.mapping == Mapping::Zns {
            self.check_zoned()?;
        } else {
            self.check_no_zones()?;
        }
        self.check_slc()?;
        self.ftl_config().check(&self.geometry())?;
        Ok(())
    }

    /// Bytes of memory per cached map entry: a logical and a physical unit number.
    pub const MAP_ENTRY: u64 = 8;
}

fn bad(field: &'static str, value: impl ToString, why: &'static str) -> Result<(), DriveSpecError> {
    Err(DriveSpecError::Value { field, value: value.to_string(), why })
}

/// Refuses the first of these fields that is given.
fn absent<const N: usize>(
    fields: [(&'static str, Option<String>); N],
    why: &'static str,
) -> Result<(), DriveSpecError> {
    let given = fields.into_iter().find_map(|(field, value)| Some((field, value?)));
    given.map_or(Ok(()), |(field, value)| bad(field, value, why))
}

/// The text of a field, if it is given.
fn shown(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// The error of the TOML library in one line: the line's number and text, and what is wrong.
fn syntax(text: &str, error: &toml::de::Error) -> DriveSpecError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = &text.as_bytes()[..start];
    let number = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let what = error.message().trim().replace('\n', ", ");
    DriveSpecError::Syntax(format!("line {number} ({line}): {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid() {
        for name in DriveSpec::preset_names() {
            let device = DriveSpec::preset(name).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(device.name, name);
            let spare = device.over_provisioning();
            assert!(0.02 < spare.effective && spare.effective < spare.nominal, "{name}: {spare:?}");
        }
        assert_eq!(DriveSpec::preset_names().next(), Some(DriveSpec::DEFAULT_PRESET));
    }

    #[test]
    fn errors_name_the_field() {
        let check = |from: &str, to: &str, expected: &str| {
            let text = PRESETS[0].1;
            assert!(text.contains(from), "{from}");
            let message = DriveSpec::from_toml(&text.replace(from, to)).unwrap_err().to_string();
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
        check("[drive]", "free_blocks_critical = 1\n\n[drive]", "ftl.free_blocks_critical");
        check("write_buffer = \"16MiB\"", "write_buffer = \"4KiB\"", "drive.write_buffer");
        check("victim = \"greedy\"", "victim = \"best\"", "no victim policy is called `best`");
        check("victim = \"greedy\"", "victim = \"d-choices\"", "as in d-choices:10");
        check("victim = \"greedy\"", "victim = \"fifo:2\"", "called `fifo:2`");
        check("[ftl]", "[ftl]\nspeed = 1", "unknown field `speed`");
        check("mapping_unit = \"4KiB\"", "mapping_unit = \"3KiB\"", "does not fit");
    }

    #[test]
    fn an_unknown_preset_lists_the_known() {
        let message = DriveSpec::preset("fast").unwrap_err().to_string();
        assert!(message.contains("dc-tlc") && message.contains("femu"), "{message}");
    }
}
