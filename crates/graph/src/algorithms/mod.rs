//! The usual algorithms, with the semantics of LDBC Graphalytics.

pub mod cdlp;
pub mod frontier;
pub mod kcore;
pub mod pagerank;
mod run;
pub mod triangles;
pub mod wcc;
mod windows;

pub use run::{Algorithm, Computed, Options};

/// The result of an algorithm: a value for each vertex.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers such as ranks.
    Reals(Vec<f64>),
    /// Levels, of which [`frontier::UNREACHED`] is none.
    Levels(Vec<u32>),
    /// Vertices, as labels.
    Labels(Vec<u32>),
    /// Counts.
    Counts(Vec<u64>),
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
        }
    }

    /// Whether the value of a vertex is the number of another one.
    #[must_use]
    pub fn has_labels(&self) -> bool {
        matches!(self, Self::Labels(_))
    }
}
