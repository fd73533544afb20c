//! Executes the plans of an FTL on flash, without time ([`immediate`]) or with simulated time
//! ([`control`] over simulated dies and channels), and decides *when* to clean, while the FTL
//! decides *what*.
//!
//! Engines know no host: they read and program units for a tag. What a host sees is a
//! [`block::BlockDevice`], which the crates above implement.

pub mod block;
pub mod config;
pub mod control;
pub mod counts;
pub mod device;
pub mod flash;
pub mod immediate;
pub mod timeline;

mod content;
mod sim;

pub use block::{
    BlockDevice, Completion, Cost, HostCounts, HostOp, Refused, Request, Status, SubmitError,
};
pub use config::{
    ChannelArbitration, Cleaning, CleaningMode, EngineConfig, ReadTransfer, SECTOR, Scheduler,
    SlcTiming, Suspend,
};
pub use control::{Controller, Done, Engine, HostUnit};
pub use counts::{FaultCounts, FlashCounts, FlashWork};
pub use device::FlashDevice;
pub use flash::Flash;
pub use immediate::Immediate;
pub use sim::SimDevice;
