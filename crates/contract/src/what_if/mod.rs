//! Simulates a trace with one thing changed.
//!
//! A [`Change`] alters the trace, the pace of the replay, or the drive. [`plan`] chooses the
//! changes that make sense for a trace and a drive. Each change is compared with the main
//! replay of a report, or with an extra run if the comparison needs another pace or drive.
//! [`simulate`] runs one simulation. Simulations share nothing but the preparation of equal
//! drives ([`Drives`]), so a caller can run them on any number of threads. The module [`figures`]
//! documents what the results are relative to.

pub mod change;
pub mod facts;
pub mod figures;
pub mod plan;
pub mod simulate;

mod choose;
mod device;
mod drives;
mod planner;
mod rewrite;

pub use change::{Boundary, Change, Headline};
pub use drives::Drives;
pub use facts::TraceFacts;
pub use figures::{Figures, Original, Speed, Wear};
pub use plan::{Comparison, FigureSource, Job, MainRuns, Plan, Skipped, Sources, WhatIf};
pub use planner::plan;
pub use simulate::{Run, Selection, WhatIfError, rewritten, simulate};
