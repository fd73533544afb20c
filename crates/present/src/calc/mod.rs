//! The results of the calculators: the lifetime of a drive, the cost of a free block.

pub mod cleaning;
pub mod lifetime;
