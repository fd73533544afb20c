//! Everything that is known about a trace apart from its records, for reports.

use crate::extents::Extents;
use crate::facts::TraceFacts;
use crate::record::Record;
use crate::source::Source;
use crate::summary::Figures;
use crate::symbols::Symbols;
use crate::tally::Tallies;

/// What is known about a trace that was read, and about the selected part of it.
#[derive(Clone, Debug)]
pub struct TraceInfo {
    /// The first of its files, for messages.
    pub name: String,
    /// Discards after the selected phase; only the first ones if there are many.
    pub later_discards: Vec<Record>,
    /// The names that the records refer to.
    pub symbols: Symbols,
    /// What is known about the whole recording.
    pub facts: TraceFacts,
    /// The counts over the selected records.
    pub summary: Figures,
    /// Sums by device, over the whole recording.
    pub devices: Tallies,
    /// The addresses that the selected device reads and writes in the whole recording, whatever the
    /// phase.
    pub touched: Extents,
    /// Sums by phase, over the whole recording.
    pub phases: Tallies,
    /// Sums by the command of the process, over the selected records.
    pub processes: Tallies,
    /// Sums by file, over the selected records whose file is known.
    pub files: Tallies,
    /// The phase that was selected.
    pub phase: Option<String>,
    /// The device of the trace that was selected.
    pub source: Option<String>,
}

/// Stored records for several readers, each with its own position.
pub trait Records: Source {
    /// The number of records.
    fn count(&self) -> u64;

    /// Another reader of the same records, from the first one on.
    fn reader(&self) -> Box<dyn Source + Send>;
}
