//! The usual algorithms, with the semantics of LDBC Graphalytics.

use std::sync::Mutex;

use crate::error::{GraphError, Result};
use crate::results::Results;

pub mod cdlp;
pub mod frontier;
pub mod kcore;
pub mod pagerank;
pub mod paths;
mod run;
pub mod triangles;
pub mod wcc;
mod windows;

pub use run::{Algorithm, Computed, Options};

/// The result of an algorithm: a value for each vertex.
pub enum Column {
    /// Numbers such as ranks.
    Reals(Vec<f64>),
    /// Levels, of which [`frontier::UNREACHED`] is none.
    Levels(Vec<u32>),
    /// Vertices, as labels.
    Labels(Vec<u32>),
    /// Counts.
    Counts(Vec<u64>),
    /// Numbers that are on flash.
    Stored(Box<Stored>),
}

/// Values in the space of results, read in the order of vertices.
pub struct Stored {
    /// The space.
    pub results: Mutex<Results>,
    /// Whether they are levels.
    pub levels: bool,
    /// The first failure; values are 0 from then on.
    pub failed: Mutex<Option<GraphError>>,
}

impl Stored {
    /// The values of the current round.
    #[must_use]
    pub fn new(results: Results, levels: bool) -> Self {
        Self { results: Mutex::new(results), levels, failed: Mutex::new(None) }
    }

    fn value(&self, vertex: u32) -> f64 {
        let mut value = 0.0;
        let mut results = self.results.lock().expect("no thread panics in the lock");
        let read = results.values(vertex, vertex + 1, |_, bits| {
            value = f64::from_bits(bits);
            Ok(())
        });
        if let Err(error) = read {
            self.failed.lock().expect("no thread panics in the lock").get_or_insert(error);
        }
        value
    }
}

impl Column {
    /// The value of a vertex as text; `id` has the number of a vertex in the input.
    #[must_use]
    pub fn text(&self, vertex: u32, id: &dyn Fn(u32) -> u64) -> String {
        let at = vertex as usize;
        match self {
            Self::Reals(values) if values[at].is_infinite() => "Infinity".into(),
            Self::Reals(values) => format!("{:?}", values[at]),
            Self::Levels(levels) if levels[at] == frontier::UNREACHED => i64::MAX.to_string(),
            Self::Levels(levels) => levels[at].to_string(),
            Self::Labels(labels) => id(labels[at]).to_string(),
            Self::Counts(counts) => counts[at].to_string(),
            Self::Stored(stored) => match stored.value(vertex) {
                value if value.is_infinite() && stored.levels => i64::MAX.to_string(),
                value if value.is_infinite() => "Infinity".into(),
                value if stored.levels => format!("{value}"),
                value => format!("{value:?}"),
            },
        }
    }

    /// The value of a vertex as a number, by which the largest are shown.
    #[must_use]
    pub fn number(&self, vertex: u32) -> f64 {
        let at = vertex as usize;
        match self {
            Self::Reals(values) => values[at],
            Self::Levels(levels) if levels[at] == frontier::UNREACHED => f64::INFINITY,
            Self::Levels(values) | Self::Labels(values) => values[at].into(),
            Self::Counts(counts) => counts[at] as f64,
            Self::Stored(stored) => stored.value(vertex),
        }
    }

    /// Whether all values that were asked for could be read.
    ///
    /// # Errors
    /// The first failure.
    ///
    /// # Panics
    /// Never: the lock is held for a moment only.
    pub fn check(&self) -> Result<()> {
        let Self::Stored(stored) = self else { return Ok(()) };
        let failed = stored.failed.lock().expect("no thread panics in the lock").take();
        failed.map_or(Ok(()), Err)
    }

    /// Whether the value of a vertex is the number of another one.
    #[must_use]
    pub fn has_labels(&self) -> bool {
        matches!(self, Self::Labels(_))
    }
}
