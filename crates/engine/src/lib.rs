//! Executes the plans of an FTL on flash, without time ([`immediate`]) or with simulated time
//! ([`control`] over simulated dies and channels), and decides *when* to clean, while the FTL
//! decides *what*.
//!
//! Host protocols are outside of this crate: an engine reads and programs units for a tag.

pub mod config;
pub mod control;
pub mod counts;
pub mod device;
pub mod flash;
pub mod immediate;
pub mod timeline;

mod content;
mod sim;

pub use config::{
    ChannelArbitration, Cleaning, CleaningMode, EngineConfig, ReadTransfer, SECTOR, Scheduler,
    SlcTiming, Suspend,
};
pub use control::{Controller, Done, Engine, HostUnit};
pub use counts::{FaultCounts, FlashCounts};
pub use device::FlashDevice;
pub use flash::Flash;
pub use immediate::{Immediate, Pace};
pub use sim::SimDevice;
