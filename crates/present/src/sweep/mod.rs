//! Sweeps: many designs of a drive and its workload, each simulated on its own drive.
//!
//! [`run`] is every combination of a few values, as a table to read. A [`Study`] is a file that
//! describes a design study: [`Study::designs`] makes the list of designs, [`Design::run`] runs one
//! of them, in any process, and [`assemble`] makes one data set of their rows. [`execute()`] runs
//! designs on the cores of this machine. No result depends on where, or in which order, designs
//! run.

mod axes;
mod data_set;
mod design;
mod document;
mod execute;
mod results;
mod scalar;
mod settings;
mod space;
mod study;
mod summary;
#[cfg(test)]
mod tests;
mod workload;

pub use axes::{Sweep, run};
pub use data_set::{FACTS, assemble};
pub use design::{Design, Row, Setting, SweepEnv};
pub use execute::{Part, execute, parse_row};
pub use scalar::Scalar;
pub use study::{DESIGNS_MAX, Designs, Study};
pub use summary::Summary;
pub use workload::TraceSelection;
