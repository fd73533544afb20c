//! Why a store of a graph cannot be used.

use prism_flashfile::FlashFileError;
use prism_graph::GraphError;
use prism_host::HostError;

/// A store or a file of edges that cannot be used. The text is one line that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The flash file of the store cannot be used.
    #[error(transparent)]
    FlashFile(#[from] FlashFileError),
    /// A device, or the space for temporary files, is full or failed.
    #[error("{0}")]
    Device(String),
    /// The options or the input are invalid.
    #[error("{0}")]
    Refused(String),
    /// The file of vertices is invalid; that of edges is not.
    #[error("{0}")]
    Vertices(String),
}

impl StoreError {
    /// A failure with the name of the file: `edges.txt:7: ...`.
    #[must_use]
    pub fn input(name: &str, error: GraphError) -> Self {
        match error {
            GraphError::Input { .. } => Self::Refused(format!("{name}:{error}")),
            error @ (GraphError::Scratch(_) | GraphError::Flash(_) | GraphError::NoSpace) => {
                Self::Device(format!("{name}: {error}"))
            }
            error => Self::Refused(format!("{name}: {error}")),
        }
    }

    /// Whether the same input and options fail again, at the same place.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Host(error) => !matches!(
                error,
                HostError::Open { .. }
                    | HostError::Read { .. }
                    | HostError::Write { .. }
                    | HostError::Temporary(_)
            ),
            Self::FlashFile(_) | Self::Device(_) | Self::Vertices(_) => false,
        }
    }
}
