//! What the tests of all crates share. Only tests depend on this crate.
//!
//! * [`seeds`], [`seed`] and [`cases`] give random tests their seeds: fixed ones in `make test`,
//!   fresh ones in `make fuzz`. A failure prints the command that repeats it.
//! * [`assert_page`] compares a page of `docs` with the tables that a program writes into it.
//! * [`skipped`] reports what a machine cannot test, and which package would make it possible.
//!
//! The environment selects the seeds:
//!
//! | variable | set by | effect |
//! |---|---|---|
//! | none | `make test` | every fixed seed |
//! | `PRISM_FEW` | `make test-fast` | an eighth of the fixed seeds |
//! | `PRISM_FUZZ=N` | `make fuzz` | a few fresh seeds, derived from N and the name of the test |
//! | `PRISM_SEED=N` | a developer | the seed N alone |
//! | `PRISM_SKIPPED=FILE` | `make test` | [`skipped`] appends a line to FILE |
//!
//! A test that takes seeds has `random_` in its name. That is how `make fuzz` selects the tests
//! to run, so these functions panic in a test with another name.

mod pages;
mod seeds;
mod skipped;
mod this_test;

pub use pages::assert_page;
pub use seeds::{Seeds, all_seeds, cases, seed, seeds};
pub use skipped::skipped;
