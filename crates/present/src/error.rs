//! Why an analysis gives no result.

use prism_trace::SourceError;

use crate::env::Outside;

/// An analysis that gives no result. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresentError {
    /// What was asked for makes no sense, or does not fit the trace or the drive.
    #[error("{0}")]
    Refused(String),
    /// The stored trace cannot be read again.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Outside(Outside),
}

impl PresentError {
    /// What was asked for makes no sense, for the reason that `what` says.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused(what.into())
    }
}
