//! Jobs with fio options, run on a simulated drive.
//!
//! [`jobfile`] reads words and their places, [`resolve`] makes jobs of them, [`run`] lets them
//! work on a drive in simulated time. Which words there are, and what differs from fio, is
//! the table in [`words`] and in docs/spec/fio-options.md.

pub mod address;
pub mod error;
pub mod job;
pub mod jobfile;
pub mod options;
pub mod random;
pub mod resolve;
pub mod run;
pub mod sizes;
pub mod stats;
pub mod value;
pub mod zbd;

mod placement_options;
mod settings;
mod worker;
mod zone_options;

pub use error::FioError;
pub use job::{Job, Rw};
pub use jobfile::{JobReader, Section, Setting};
pub use resolve::{Target, jobs};
pub use run::{AtReadOnly, Outcome, RunError, Stage, run, run_until};
pub use stats::{Dir, DirStats, JobStats};
