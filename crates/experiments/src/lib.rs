//! Experiments on simulated drives: each is a function of a seed and a scale that returns numbers.
//!
//! An experiment never touches a file or a clock and never prints: the caller runs it, on any
//! thread, and presents what it returns. What lies where:
//!
//! * `papers`: published experiments, repeated on drives with the published parameters;
//! * [`theory`]: closed forms, and simulations that are checked against them;
//! * [`oracles`]: results of other simulators and data sheets next to ours;
//! * `benches`: work that the caller times with a clock;
//! * [`calculators`]: arithmetic for buyers of drives.
//!
//! What they share lies next to them: checks against known numbers, [`comparison`] with published
//! numbers, the loop in which a host issues requests (`load`), the preparation of drives
//! (`drives`), and flash with an FTL but without time (`untimed`).

#[macro_use(named_enum)]
extern crate prism_base;

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
pub use oracles::datasheet;
pub use papers::{atc09, contract_micro, linkedin, prism_ssd, sfs, unwritten};
pub use scale::Scale;
pub use theory::{checks, retirement, tiers, write_amplification};
