//! The usual algorithms, with the semantics of LDBC Graphalytics.

use std::fmt;
use std::sync::Mutex;

use crate::error::{GraphError, Result};
use crate::results::Results;

mod by_lists;
pub mod cdlp;
pub mod frontier;
pub mod kcore;
pub mod pagerank;
pub mod paths;
mod run;
mod stored;
pub mod triangles;
pub mod wcc;
pub(crate) mod windows;

pub use run::{Algorithm, Computed, Options};

/// The result of an algorithm: a value for each vertex.
pub enum Column {
    /// Numbers such as ranks.
    Reals(Vec<f64>),
    /// Levels, of which [`frontier::UNREACHED`] is none.
    Levels(Vec<u32>),
    /// Vertices as labels, by their ranks: how many vertices have smaller numbers in the input.
    Labels(Vec<u32>),
    /// Counts.
    Counts(Vec<u64>),
    /// Counts below 2^32, such as core numbers.
    SmallCounts(Vec<u32>),
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

/// The value of a vertex that was not reached, as in LDBC's files.
const UNREACHED: Value = Value::Whole(i64::MAX as u64);

/// What the values of [`Stored`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// Numbers such as ranks.
    Reals,
    /// Levels as reals, infinite if the vertex was not reached.
    Levels,
    /// Counts.
    Counts,
    /// Vertices as labels, by their numbers in the input.
    Labels,
}

/// Values in the space of results, read in the order of vertices.
pub struct Stored {
    /// The space.
    pub results: Mutex<Results>,
    /// What they are.
    pub kind: StoredKind,
    /// The first failure; values are 0 from then on.
    pub failed: Mutex<Option<GraphError>>,
}

impl Stored {
    /// The values of the current round.
    #[must_use]
    pub fn new(results: Results, kind: StoredKind) -> Self {
        Self { results: Mutex::new(results), kind, failed: Mutex::new(None) }
    }

    fn bits(&self, vertex: u32) -> u64 {
        let mut bits = 0;
        let mut results = self.results.lock().expect("no thread panics in the lock");
        let read = results.values(vertex..vertex + 1, |_, found| bits = found);
        if let Err(error) = read {
            self.failed.lock().expect("no thread panics in the lock").get_or_insert(error);
        }
        bits
    }

    fn value(&self, vertex: u32) -> Value {
        let bits = self.bits(vertex);
        match self.kind {
            StoredKind::Reals => Value::Real(f64::from_bits(bits)),
            StoredKind::Levels => match f64::from_bits(bits) {
                level if level.is_infinite() => UNREACHED,
                level => Value::Whole(level as u64),
            },
            StoredKind::Counts | StoredKind::Labels => Value::Whole(bits),
        }
    }
}

impl Column {
    /// The value of a vertex; `id` has the number in the input of the vertex with a rank.
    #[must_use]
    pub fn value(&self, vertex: u32, id: &dyn Fn(u32) -> u64) -> Value {
        let at = vertex as usize;
        match self {
            Self::Reals(values) => Value::Real(values[at]),
            Self::Levels(levels) if levels[at] == frontier::UNREACHED => UNREACHED,
            Self::Levels(levels) => Value::Whole(levels[at].into()),
            Self::Labels(labels) => Value::Whole(id(labels[at])),
            Self::Counts(counts) => Value::Whole(counts[at]),
            Self::SmallCounts(counts) => Value::Whole(counts[at].into()),
            Self::Stored(stored) => stored.value(vertex),
        }
    }

    /// Whether values are [`Value::Real`].
    #[must_use]
    pub fn is_real(&self) -> bool {
        match self {
            Self::Reals(_) => true,
            Self::Levels(_) | Self::Labels(_) | Self::Counts(_) | Self::SmallCounts(_) => false,
            Self::Stored(stored) => stored.kind == StoredKind::Reals,
        }
    }

    /// The value of a vertex as a number, by which the largest are shown.
    #[must_use]
    pub fn number(&self, vertex: u32) -> f64 {
        match self.value(vertex, &u64::from) {
            UNREACHED => f64::INFINITY,
            Value::Whole(value) => value as f64,
            Value::Real(value) => value,
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

    /// Whether values are vertices, as labels of groups.
    #[must_use]
    pub fn has_labels(&self) -> bool {
        match self {
            Self::Labels(_) => true,
            Self::Stored(stored) => stored.kind == StoredKind::Labels,
            _ => false,
        }
    }

    /// Whether [`Column::value`] needs numbers of the input.
    #[must_use]
    pub fn needs_ids(&self) -> bool {
        matches!(self, Self::Labels(_))
    }
}
