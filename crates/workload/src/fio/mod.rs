//! Jobs with fio options, run on a block device.
//!
//! [`jobfile`] reads options and where they were given, [`resolve`] turns them into jobs, [`run`]
//! runs these on a device in simulated time. The table in [`options`], and
//! docs/spec/fio-options.md, list the options and the differences from fio.

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
mod upcoming;
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
pub use run::{
    Acknowledged, AfterCut, AtReadOnly, RunError, RunResult, Stage, run, run_on, run_until,
    run_until_cut,
};
pub use stats::{Dir, DirStats, JobStats};
