//! The usual algorithms, with the semantics of LDBC Graphalytics.

use std::fmt;
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

/// The value of a vertex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number; [`i64::MAX`], as in LDBC's files, if the vertex was not reached.
    Whole(u64),
    /// Any number; infinite if the vertex was not reached.
    Real(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Real(value) if value.is_infinite() => f.write_str("Infinity"),
            Self::Real(value) => write!(f, "{value:?}"),
        }
    }
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
    /// The value of a vertex; `id` has the number of a vertex in the input.
    #[must_use]
    pub fn value(&self, vertex: u32, id: &dyn Fn(u32) -> u64) -> Value {
        const UNREACHED: Value = Value::Whole(i64::MAX as u64);
        let at = vertex as usize;
        match self {
            Self::Reals(values) => Value::Real(values[at]),
            Self::Levels(levels) if levels[at] == frontier::UNREACHED => UNREACHED,
            Self::Levels(levels) => Value::Whole(levels[at].into()),
            Self::Labels(labels) => Value::Whole(id(labels[at])),
            Self::Counts(counts) => Value::Whole(counts[at]),
            Self::Stored(stored) => match stored.value(vertex) {
                value if !stored.levels => Value::Real(value),
                value if value.is_infinite() => UNREACHED,
                value => Value::Whole(value as u64),
            },
        }
    }

    /// Whether values are [`Value::Real`].
    #[must_use]
    pub fn is_real(&self) -> bool {
        match self {
            Self::Reals(_) => true,
            Self::Levels(_) | Self::Labels(_) | Self::Counts(_) => false,
            Self::Stored(stored) => !stored.levels,
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
