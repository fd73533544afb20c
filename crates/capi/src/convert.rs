//! Conversion between C structures and values of the library.
//!
//! An invalid number is rejected here, with the name of its field, unless the library checks it
//! itself.

use prism::function::{Allocated, OwnedBlock};
use prism::object::Attributes;
use prism::policy::{Cleaning, Lifetime, Mapping, OverProvisioning, RangeConfig, RangeInfo};
use prism::raw::Address;
use prism::{
    Access, Allocation, Bytes, Cache, Counts, DeviceGeometry, EngineChoice, GlobalWear, Nanos,
    OpCounts, Options, PageTimes, Settings, ShareGeometry, Timing,
};

use crate::ffi_boundary::read_if_any;
use crate::status::Failure;
use crate::structs::*;

/// The longest time of one operation: with this, even years of operations do not overflow virtual
/// time.
const OPERATION_NS_MAX: u64 = 1_000_000_000_000;

fn field<T>(value: Option<T>, what: &str, given: impl std::fmt::Display) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::argument(format!("{what} is {given}, which is not a valid value")))
}

fn zero(reserved: u32) -> Result<(), Failure> {
    field((reserved == 0).then_some(()), "reserved", reserved)
}

/// An optional number, with 0 for none.
fn none_if_zero<T: Default + PartialEq>(value: T) -> Option<T> {
    Some(value).filter(|value| *value != T::default())
}

fn flag(value: u32, what: &str) -> Result<bool, Failure> {
    field((value < 2).then_some(value == 1), what, value)
}

pub(crate) fn cache(value: u32) -> Result<Cache, Failure> {
    let known = [Cache::None, Cache::Volatile];
    field(known.get(value as usize).copied(), "the cache", value)
}

pub(crate) fn lifetime(value: u32) -> Result<Lifetime, Failure> {
    field(Lifetime::ALL.get(value as usize).copied(), "the lifetime", value)
}

impl prism_geometry {
    pub(crate) fn value(&self) -> Result<DeviceGeometry, Failure> {
        zero(self.reserved)?;
        Ok(DeviceGeometry {
            channels: self.channels,
            luns_per_channel: self.luns_per_channel,
            blocks_per_lun: self.blocks_per_lun,
            pages_per_block: self.pages_per_block,
            page_size: self.page_size,
            oob_size: self.oob_size,
            max_open_blocks: none_if_zero(self.max_open_blocks),
        })
    }
}

impl From<DeviceGeometry> for prism_geometry {
    fn from(geometry: DeviceGeometry) -> Self {
        Self {
            size: 0,
            channels: geometry.channels,
            luns_per_channel: geometry.luns_per_channel,
            blocks_per_lun: geometry.blocks_per_lun,
            pages_per_block: geometry.pages_per_block,
            page_size: geometry.page_size,
            oob_size: geometry.oob_size,
            max_open_blocks: geometry.max_open_blocks.unwrap_or(0),
            reserved: 0,
        }
    }
}

impl prism_timing {
    fn value(&self) -> Result<Timing, Failure> {
        let types = usize::try_from(self.page_types).unwrap_or(usize::MAX);
        let times = |all: &[u64; PRISM_PAGE_TYPES_MAX], what| {
            let given = field(all.get(..types), "page_types", self.page_types)?;
            let given = given.iter().map(|&time| nanos(time, what));
            let given = given.collect::<Result<Vec<_>, _>>()?;
            field(PageTimes::by_type(&given), "page_types", self.page_types)
        };
        Ok(Timing {
            t_read: times(&self.t_read_ns, "t_read_ns")?,
            t_program: times(&self.t_program_ns, "t_program_ns")?,
            t_erase: nanos(self.t_erase_ns, "t_erase_ns")?,
            t_command: nanos(self.t_command_ns, "t_command_ns")?,
            bus_bytes_per_second: none_if_zero(self.bus_bytes_per_second),
        })
    }
}

fn nanos(time: u64, what: &str) -> Result<Nanos, Failure> {
    if time > OPERATION_NS_MAX {
        let what = format!("{what} is {time}, and at most {OPERATION_NS_MAX}");
        return Err(Failure::argument(what));
    }
    Ok(Nanos(time))
}

impl prism_wear_policy {
    pub(crate) fn value(&self) -> Result<GlobalWear, Failure> {
        let part = |value: f64, what| {
            let good = value.is_finite() && value >= 0.0;
            field(good.then_some(value), what, value)
        };
        let min_gap = field(u32::try_from(self.min_gap).ok(), "min_gap", self.min_gap)?;
        let (delta, budget) = (part(self.delta, "delta")?, part(self.budget, "budget")?);
        Ok(GlobalWear { min_gap, delta, budget })
    }
}

impl prism_options {
    /// # Safety
    /// Its pointers are null or valid.
    pub(crate) unsafe fn value(&self) -> Result<Options, Failure> {
        // SAFETY: guaranteed by the caller.
        let timing = unsafe { read_if_any(self.timing) }?;
        // SAFETY: guaranteed by the caller.
        let wear = unsafe { read_if_any(self.wear) }?;
        Ok(Options {
            timing: timing.map(|timing| timing.value()).transpose()?,
            wear: wear.map(|wear| wear.value()).transpose()?,
        })
    }
}

impl prism_file_settings {
    pub(crate) fn value(&self) -> Result<Settings, Failure> {
        let engines = [EngineChoice::Best, EngineChoice::Uring, EngineChoice::Portable];
        let engine = engines.get(self.engine as usize).copied();
        let read_only = flag(self.read_only, "read_only")?;
        Ok(Settings {
            engine: field(engine, "the engine", self.engine)?,
            depth: none_if_zero(self.depth).unwrap_or(Settings::USUAL.depth),
            access: if read_only { Access::Read } else { Access::Write },
            preallocate: flag(self.preallocate, "preallocate")?,
        })
    }
}

impl prism_allocation {
    pub(crate) fn value(&self) -> Allocation {
        Allocation {
            bandwidth: none_if_zero(self.bandwidth),
            open_blocks: none_if_zero(self.open_blocks),
            ..Allocation::new(Bytes(self.capacity), self.over_provisioning)
        }
    }
}

impl From<ShareGeometry> for prism_share_geometry {
    fn from(geometry: ShareGeometry) -> Self {
        Self {
            size: 0,
            capacity: geometry.capacity(),
            channels: geometry.channels.len() as u32,
            luns: geometry.luns,
            ops_luns: geometry.ops_luns,
            blocks_per_lun: geometry.blocks_per_lun,
            pages_per_block: geometry.pages_per_block,
            page_size: geometry.page_size,
            oob_size: geometry.oob_size,
            max_open_blocks: geometry.max_open_blocks,
        }
    }
}

impl From<OpCounts> for prism_counts {
    fn from(counts: OpCounts) -> Self {
        let by_cause = |counts: Counts| {
            let mut all = [0; PRISM_CAUSES_MAX];
            counts.iter().for_each(|(cause, count)| all[cause as usize] = count);
            all
        };
        Self {
            size: 0,
            reads: by_cause(counts.reads),
            programs: by_cause(counts.programs),
            erases: by_cause(counts.erases),
        }
    }
}

impl prism_range_config {
    pub(crate) fn value(&self) -> Result<RangeConfig, Failure> {
        zero(self.reserved)?;
        let (group_blocks, group_log_blocks) = (self.group_blocks, self.group_log_blocks);
        let grouped = (group_blocks, group_log_blocks) != (0, 0);
        let mapping = match self.mapping {
            0 if !grouped => Mapping::Page,
            1 if !grouped => Mapping::Block,
            0 | 1 => {
                let what = "groups of blocks are for PRISM_MAP_HYBRID: set both numbers to 0";
                return Err(Failure::argument(what));
            }
            2 => Mapping::Hybrid { group_blocks, group_log_blocks },
            other => return field(None, "the mapping", other),
        };
        let cleaning = Cleaning::ALL.get(self.cleaning as usize).copied();
        Ok(RangeConfig {
            over_provisioning: match self.over_provisioning {
                PRISM_REST => OverProvisioning::Rest,
                percent => OverProvisioning::Percent(percent),
            },
            handles: self.handles.max(1),
            open_blocks: none_if_zero(self.open_blocks),
            ..RangeConfig::new(mapping, field(cleaning, "the cleaning", self.cleaning)?)
        })
    }
}

impl From<&RangeInfo> for prism_range_info {
    fn from(range: &RangeInfo) -> Self {
        let config = &range.config;
        let (mapping, group_blocks, group_log_blocks) = match config.mapping {
            Mapping::Page => (prism_mapping::PRISM_MAP_PAGE, 0, 0),
            Mapping::Block => (prism_mapping::PRISM_MAP_BLOCK, 0, 0),
            Mapping::Hybrid { group_blocks, group_log_blocks } => {
                (prism_mapping::PRISM_MAP_HYBRID, group_blocks, group_log_blocks)
            }
        };
        Self {
            size: 0,
            begin: range.begin,
            end: range.end,
            mapped: range.mapped,
            blocks: range.blocks,
            die_groups: range.die_groups,
            mapping: mapping as u32,
            cleaning: config.cleaning as u32,
            group_blocks,
            group_log_blocks,
            over_provisioning: match config.over_provisioning {
                OverProvisioning::Percent(percent) => percent,
                OverProvisioning::Rest => PRISM_REST,
            },
            handles: config.handles,
            open_blocks: config.open_blocks.unwrap_or(0),
            reserved: 0,
        }
    }
}

impl prism_attributes {
    pub(crate) fn value(&self) -> Result<Attributes, Failure> {
        Ok(Attributes {
            priority: flag(self.priority, "priority")?,
            read_only: flag(self.read_only, "read_only")?,
            cold: flag(self.cold, "cold")?,
            lifetime: lifetime(self.lifetime)?,
        })
    }
}

impl From<Attributes> for prism_attributes {
    fn from(attributes: Attributes) -> Self {
        Self {
            size: 0,
            priority: attributes.priority.into(),
            read_only: attributes.read_only.into(),
            cold: attributes.cold.into(),
            lifetime: attributes.lifetime.handle(),
        }
    }
}

impl From<Allocated> for prism_allocated {
    fn from(new: Allocated) -> Self {
        let Allocated { at, free_left, erasing } = new;
        Self { size: 0, at: at.into(), free_left, erasing }
    }
}

impl From<OwnedBlock> for prism_owned_block {
    fn from(block: OwnedBlock) -> Self {
        let OwnedBlock { at, written, owner } = block;
        Self { at: at.into(), owner, written, reserved: 0 }
    }
}

impl From<prism_address> for Address {
    fn from(at: prism_address) -> Self {
        Self { channel: at.channel, lun: at.lun, block: at.block, page: at.page }
    }
}

impl From<Address> for prism_address {
    fn from(at: Address) -> Self {
        Self { channel: at.channel, lun: at.lun, block: at.block, page: at.page }
    }
}

#[cfg(test)]
mod tests {
    use prism::Cause;

    use super::*;

    #[test]
    fn numbers_of_c_are_those_of_the_library() {
        let causes: Vec<_> = Cause::ALL.iter().map(|&cause| cause as usize).collect();
        assert_eq!(causes, (0..=prism_cause::PRISM_CAUSE_RETIRE as usize).collect::<Vec<_>>());
        const { assert!(Cause::COUNT <= PRISM_CAUSES_MAX) };
        assert_eq!(PageTimes::TYPES_MAX, PRISM_PAGE_TYPES_MAX);
        assert_eq!(Lifetime::Extreme.handle(), prism_lifetime::PRISM_LIFE_EXTREME as u32);
        assert_eq!(Cleaning::ALL.map(|policy| policy as u32), [0, 1, 2, 3]);
        assert_eq!(Cleaning::ALL[3] as u32, prism_cleaning::PRISM_CLEAN_LRU as u32);
    }

    /// The bytes of a type of a field, where pointers have 64 bits.
    fn bytes_of(field: &str) -> usize {
        match field {
            "u32" | "i32" => 4,
            "usize" | "u64" | "f64" => 8,
            "prism_address" => 16,
            "[u64; PRISM_CAUSES_MAX]" => 8 * PRISM_CAUSES_MAX,
            "[u64; PRISM_PAGE_TYPES_MAX]" => 8 * PRISM_PAGE_TYPES_MAX,
            pointer if pointer.starts_with('*') => 8,
            other => panic!("{other} is not in the table of this test"),
        }
    }

    /// Padding would be read as data.
    #[test]
    fn structures_have_no_padding() {
        let source = include_str!("structs.rs");
        let mut structs = 0;
        for text in source.split("pub struct ").skip(1) {
            let (name, body) = text.split_once(" {").expect("a structure has a body");
            let body = body.split("\n}").next().expect("it ends");
            let mut at = 0;
            for line in body.lines().filter_map(|line| line.trim().strip_prefix("pub ")) {
                let (field, kind) = line.trim_end_matches(',').split_once(": ").expect("a type");
                let bytes = bytes_of(kind);
                let align = if bytes < 8 || kind == "prism_address" { 4 } else { 8 };
                assert_eq!(at % align, 0, "a gap before {field} of {name}");
                at += bytes;
            }
            assert!(at % 8 == 0 || !body.contains("usize"), "a gap at the end of {name}");
            structs += 1;
        }
        assert_eq!(structs, 21);
    }

    #[test]
    fn the_header_has_the_version_of_the_library() {
        let of_header = [PRISM_VERSION_MAJOR, PRISM_VERSION_MINOR, PRISM_VERSION_PATCH];
        assert_eq!(of_header.map(|part| part.to_string()).join("."), env!("CARGO_PKG_VERSION"));
    }
}
