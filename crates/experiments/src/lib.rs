//! Tables and figures, each a function of a seed and a scale.

mod benches;
pub mod calculators;
mod check;
pub mod comparison;
mod drives;
mod load;
pub mod oracles;
mod papers;
mod scale;
pub mod theory;
mod untimed;

pub use benches::{calls, judging, levels, preparing, real_time, recovery, speed};
pub use calculators as calc;
pub use check::{Check, Group};
pub use comparison as beside;
pub use oracles::datasheet;
pub use papers::{atc09, contract_micro, linkedin, sfs, unwritten};
pub use scale::Scale;
pub use theory::{checks, retirement, tiers, write_amplification};
