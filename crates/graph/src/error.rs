//! What can go wrong, with the facts that a caller needs for a message.

use prism_base::Bytes;
use prism_flash::FlashError;

/// Why a graph cannot be read, made or computed on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The device failed.
    #[error(transparent)]
    Flash(#[from] FlashError),
    /// Temporary space failed.
    #[error("temporary space: {0}")]
    Scratch(std::io::Error),
    /// The store holds no graph.
    #[error("there is no graph in it; put one there with prism graph ingest")]
    NoGraph,
    /// There are segments, and no root that names them.
    #[error(
        "it has {0} segments of a graph and no root that can be read: it is damaged, or its ingest \
         was interrupted; ingest the graph again"
    )]
    NoRoot(usize),
    /// A segment does not hold what the catalog says.
    #[error("segment {segment} is damaged: {what}; ingest the graph again")]
    Damaged {
        /// Its number.
        segment: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A segment of a saved result does not hold what its catalog says.
    #[error("segment {segment} of the saved result is damaged: {what}; begin anew with --restart")]
    Saved {
        /// Its number.
        segment: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The device is too small.
    #[error("the device is full; make a larger one")]
    NoSpace,
    /// A line, or a byte, of the input is not as its format requires.
    #[error("{at}: {what}")]
    Input {
        /// The number of the line, or `byte` and the number of the byte.
        at: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The input as a whole cannot be a graph.
    #[error("{0}")]
    Unusable(String),
    /// The state of the computation does not fit into the memory that it may use.
    #[error(
        "{what} needs {} of memory for {vertices} vertices, and {} are allowed; give more by \
         --memory",
        Bytes(*needed), Bytes(*allowed)
    )]
    Memory {
        /// The computation.
        what: &'static str,
        /// Bytes.
        needed: u64,
        /// Bytes.
        allowed: u64,
        /// Vertices of the graph.
        vertices: u64,
    },
    /// There is no vertex with this number.
    #[error("the graph has no vertex {0}; give a number that occurs in its input")]
    NoVertex(u64),
    /// The algorithm cannot run on this graph or with these options.
    #[error("{0}")]
    Refused(String),
}

impl GraphError {
    /// The failure of a read of `segment`. The library's own messages about pages advise to write
    /// or erase them, which a user of a graph cannot do.
    pub(crate) fn of_read(segment: u32, error: FlashError) -> Self {
        let what = match error {
            FlashError::Damaged { .. } => "a page of it cannot be read",
            FlashError::Torn { .. } => "the write of a page of it was interrupted",
            FlashError::Unwritten { .. } => "a page of it holds nothing",
            other => return Self::Flash(other),
        };
        Self::Damaged { segment, what }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, GraphError>;
