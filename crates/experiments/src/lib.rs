//! Tables and figures, each a function of a seed and a scale: theory beside simulation.

pub mod atc09;
pub mod beside;
pub mod calc;
pub mod calls;
pub mod contract_micro;
pub mod datasheet;
pub mod hybrid;
pub mod judging;
pub mod levels;
pub mod linkedin;
pub mod oracles;
pub mod preparing;
pub mod ranges;
pub mod real_time;
pub mod recovery;
pub mod retirement;
pub mod sfs;
pub mod speed;
pub mod theory;
pub mod tiers;
pub mod unwritten;
pub mod validate;
pub mod write_amplification;
pub mod zones;

pub use validate::{Check, Group, Scale, checks};
