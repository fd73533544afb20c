//! The same trace with one thing changed, simulated.
//!
//! A [`Change`] alters the trace, how it is replayed, or the drive. [`plan`] chooses those
//! that make sense for a trace and a drive; each comes with what it is compared to: the main
//! replay of a report, or a run of its own where the comparison needs another pace or drive.
//! [`simulate`] runs one. Simulations share nothing, so that a caller may run them on as
//! many threads as it likes. What the figures are relative to is said in [`figures`].

pub mod change;
pub mod facts;
pub mod figures;
pub mod plan;
pub mod simulate;

mod choose;
mod device;
mod rewrite;

pub use change::{Boundary, Change, Headline};
pub use facts::TraceFacts;
pub use figures::{Figures, Original, Wear};
pub use plan::{Comparison, Job, Of, Plan, Skipped, WhatIf, plan};
pub use simulate::{Run, WhatIfError, rewritten, simulate};
