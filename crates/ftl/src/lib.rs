//! Flash translation layers: where a logical unit goes, which block is cleaned, what
//! the map says.
//!
//! An FTL plans and a device executes: nothing here knows a clock, a queue or a host. Operations
//! *reserve* program units, and completions *commit* units to the map, so that the state at any
//! instant is what recovery has to find. Design: docs/design/planner-engine.md.
//!
//! [`Ftl`] is what engines and drives call. Each mapping has a folder: `page`, `hybrid`,
//! `zoned`, and `ranges`, which gives ranges of addresses mappings of their own. What they
//! share stands below them: plans, victim policies, trims, the scan after a loss of power.

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
    SlcRule, SlcUse, SteadyError, WearPolicy,
};
pub use plan::{HostPlace, ReadRecovery, ReadRun, TrimRange, UnitWrite, Units};
pub use ranges::{RangeConfig, Ranges, RangesConfig};
pub use scan::{FlashScan, Recovered, ScannedUnit};
pub use trims::PendingTrims;
pub use victim::{Benefit, VictimError, VictimPolicy};
pub use zoned::{Zoned, ZonedConfig};
