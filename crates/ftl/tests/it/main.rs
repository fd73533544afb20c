//! The integration tests of this crate as one program: a module for each subject.

mod merge_recovery;
mod pagemap;
mod tiers;
mod zoned;
