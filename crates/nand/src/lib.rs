//! The flash itself: geometry, legal operations, wear, timing and power loss.
//!
//! This crate has no mapping, no host and no files. The array enforces the rules of NAND: program
//! units of a block are programmed in order and only after an erase; a violation is a typed error.

pub mod aging;
pub mod array;
pub mod cause;
pub mod error;
pub mod faults;
pub mod geometry;
pub mod layout;
pub mod store;
pub mod timing;

mod power;
mod snapshot;

pub use aging::Status;
pub use array::Nand;
pub use cause::{Cause, Counts};
pub use error::NandError;
pub use faults::{FaultModel, Health, UnitRead};
pub use geometry::{BlockId, DieGroupId, DieId, Geometry, GeometryError, ProgramUnitId, Pun, Slc};
pub use layout::Layout;
pub use store::{StoredUnit, UnitTag};
pub use timing::{PageTimes, Timing};
