//! Analyses of traces and jobs on simulated drives, and their results as documents and as JSON.
//!
//! The command line and other front ends call this crate. They parse arguments, open files and
//! print; the crate itself gets the texts of device files, threads and a clock through [`Env`].

pub mod against;
pub mod analysis;
#[cfg(feature = "experiments")]
pub mod cache;
#[cfg(feature = "experiments")]
pub mod calc;
pub mod contract;
pub mod drive;
pub mod drive_choice;
pub mod env;
pub mod error;
mod fixes;
pub mod import;
pub mod initial_state;
pub mod json;
pub mod over_provisioning;
pub mod pace;
pub mod power_cut;
mod replays;
pub mod report;
#[cfg(feature = "experiments")]
pub mod reproduction;
pub mod sim;
pub mod simulation;
pub mod stack;
pub mod sweep;
pub mod trace;
#[cfg(feature = "experiments")]
pub mod validation;
pub mod zoned;

pub use analysis::{Analysis, AnalysisOptions, Trace, WhatIfs};
pub use drive_choice::DriveChoice;
pub use env::{Env, Outside, Quiet, Step};
pub use error::PresentError;
