//! When to clean: the controller of one die.
//!
//! Cleaning starts when a die falls below its low watermark and stops at the high one.
//! It goes a row at a time, so that host operations of the same die come in between,
//! and the source stays readable until its copy is committed.

use prism_nand::BlockId;

/// Copy steps of a die that may be under way at once: one being programmed, one being
/// read ahead.
pub(crate) const COPIES_MAX: u32 = 2;

/// Where the cleaning of a die stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cleaner {
    /// Between low and high watermark.
    pub(crate) active: bool,
    /// The block being emptied.
    pub(crate) victim: Option<BlockId>,
    /// Next unit of the victim to look at.
    pub(crate) cursor: u32,
    /// Copy steps under way.
    pub(crate) copies: u32,
    /// The victim is empty and its erase is queued.
    pub(crate) erasing: bool,
    /// It is time to clean, but nothing would be gained; counted by the engine.
    pub(crate) stuck: bool,
}
