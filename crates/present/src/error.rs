//! Why an analysis gives no result.

use prism_trace::SourceError;

use crate::env::Outside;

/// The reason why an analysis gives no result. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresentError {
    /// The options are invalid, or do not fit the trace or the drive.
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
    /// A refusal for the reason in `what`.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused(what.into())
    }
}
