//! The answers of the calculators: how long a drive lasts, what a free block costs.

pub mod cleaning;
pub mod lifetime;
