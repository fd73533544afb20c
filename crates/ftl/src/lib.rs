//! FTLs: mapping, allocation, cleaning and recovery.
//!
//! An FTL plans operations and an engine executes them: this crate has no clock, no queues and no
//! host. Operations *reserve* program units, and their completions *commit* units to the map, so
//! that the map at any instant is what recovery has to rebuild. Design:
//! docs/design/planner-engine.md.
//!
//! [`Ftl`] is the interface for engines and drives. Each mapping has a folder: `page`, `hybrid`,
//! `zoned`, and `ranges`, which gives address ranges mappings of their own. They share plans,
//! victim policies, trims and the scan after a loss of power.

mod config;
mod ftl;
mod hybrid;
mod in_flight;
mod mapcache;
mod page;
mod plan;
mod ranges;
mod scan;
mod trims;
mod victim;
mod zoned;

pub use config::{ConfigError, OverProvisioning};
pub use ftl::{Ftl, FtlConfig};
pub use hybrid::{Hybrid, HybridConfig, Logs, MergeCounts};
pub use mapcache::{Evicted, MapCache, MapCounts};
pub use page::{
    Frontiers, MeanField, Moved, PageConfig, PageMap, Placement, ProgramUnitRun, SlcConfig,
    SlcRule, SlcUse, SpreadError, SteadyError, WearPolicy, write_amplification,
};
pub use plan::{HostPlace, ReadRecovery, ReadRun, TrimRange, UnitWrite, Units};
pub use ranges::{RangeConfig, Ranges, RangesConfig};
pub use scan::{FlashScan, Recovered, ScannedUnit};
pub use trims::PendingTrims;
pub use victim::{Benefit, VictimError, VictimPolicy};
pub use zoned::{Zoned, ZonedConfig};
