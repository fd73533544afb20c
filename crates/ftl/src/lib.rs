//! Flash translation layers: where a logical unit goes, which block is cleaned, what
//! the map says.
//!
//! A translation layer plans and a device executes: nothing here knows a clock, a queue
//! or a host. Operations *reserve* rows, and completions *commit* units to the map, so
//! that the state at any instant is what recovery has to find. Design:
//! docs/design/planner-engine.md.

pub mod alloc;
pub mod bulk;
pub mod candidates;
pub mod clean;
pub mod column;
pub mod config;
pub mod ftl;
pub mod hybrid;
pub mod mapcache;
pub mod pagemap;
pub mod plan;
pub mod ranges;
pub mod recover;
pub mod retire;
pub mod snapshot;
pub mod spread;
pub mod steady;
pub mod tiers;
pub mod trims;
pub mod victim;
pub mod zoned;

mod block;
mod under_way;

pub use bulk::{Moved, RowRun};
pub use candidates::Candidates;
pub use column::Column;
pub use config::{ConfigError, Frontiers, OverProvisioning, PageConfig, Placement, WearPolicy};
pub use ftl::{Ftl, FtlConfig, HostPlace};
pub use hybrid::{Hybrid, HybridConfig, Logs, MergeCounts};
pub use mapcache::{Evicted, MapCache, MapCounts};
pub use pagemap::PageMap;
pub use plan::{Program, ReadRun, TrimRange, Trouble, UnitWrite, Units};
pub use ranges::{RangeConfig, Ranges, RangesConfig};
pub use recover::{Found, Recovered, Remains};
pub use steady::SteadyError;
pub use tiers::{SlcConfig, SlcRule, SlcUse};
pub use victim::{Benefit, VictimError, VictimPolicy};
pub use zoned::{Zoned, ZonedConfig};
