//! Runs the plans of a translation layer over flash: at once ([`immediate`]) or in time
//! ([`timed`]), and decides *when* to clean, while the FTL decides *what*.
//!
//! The host's protocol is unknown here: an engine reads and programs units for a tag.

pub mod config;
pub mod counts;
pub mod flash;
pub mod immediate;
pub mod timed;
pub mod timeline;

mod content;

pub use config::{Cleaning, CleaningMode, EngineConfig, Scheduler, SlcTiming, Suspend};
pub use counts::{FaultCounts, FlashCounts};
pub use flash::Flash;
pub use immediate::{Immediate, Pace};
pub use timed::{Done, Engine, HostUnit};
