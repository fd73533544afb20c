//! Everything that is known of a trace besides its records: what reports say of it.

use crate::facts::TraceFacts;
use crate::record::Record;
use crate::source::Source;
use crate::summary::Figures;
use crate::symbols::Symbols;
use crate::tally::Tallies;

/// What is known of a trace that was read, and of the part of it that was selected.
#[derive(Debug)]
pub struct TraceInfo {
    /// The first of its files, for messages.
    pub name: String,
    /// Discards that come after the selected phase; of many only the first ones.
    pub later_discards: Vec<Record>,
    /// The names that the records refer to.
    pub symbols: Symbols,
    /// What is known of the whole recording.
    pub facts: TraceFacts,
    /// The counts over the selected records.
    pub summary: Figures,
    /// Sums by device, over the whole recording.
    pub devices: Tallies,
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

/// Stored records that several readers read, each at its own place.
pub trait Records: Source {
    /// Records in it.
    fn count(&self) -> u64;

    /// Another reader of the same records, from the first one on.
    fn reader(&self) -> Box<dyn Source + Send>;
}
