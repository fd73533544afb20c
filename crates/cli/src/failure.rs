//! The failures of commands, and their exit codes.

use std::process::ExitCode;

#[cfg(feature = "full")]
use prism_flash::FlashError;
#[cfg(feature = "full")]
use prism_flashfile::FlashFileError;
#[cfg(feature = "full")]
use prism_graph::GraphError;
#[cfg(feature = "full")]
use prism_graphstore::StoreError;
use prism_host::HostError;
#[cfg(feature = "full")]
use prism_host::capture::CaptureError;
#[cfg(feature = "full")]
use prism_lab::StackError;
use prism_present::PresentError;

/// A command's failure. Its text is one line for standard error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A file could not be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A running system cannot be captured.
    #[cfg(feature = "full")]
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An application could not be run on a file system.
    #[cfg(feature = "full")]
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A flash file cannot be used.
    #[cfg(feature = "full")]
    #[error(transparent)]
    FlashFile(#[from] FlashFileError),
    /// The arguments or the input are invalid.
    #[error("{0}")]
    Usage(String),
    /// The command ran, and its result is negative, such as a failed check.
    #[error("{0}")]
    Finding(String),
    /// Signal handlers cannot be installed.
    #[error("cannot install the handler of Ctrl-C: {0}")]
    Signals(std::io::Error),
}

impl Failure {
    /// A failure by invalid arguments or input, from an error that says what is wrong.
    #[must_use]
    pub fn usage(error: impl std::fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// A failure with the name of the file or store: `edges.txt:7: ...`.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn of_graph(name: &str, error: GraphError) -> Self {
        StoreError::input(name, error).into()
    }

    /// 1 for a finding, 2 for bad input or usage; 0 if only the output pipe was closed.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            _ if self.is_broken_pipe() => ExitCode::SUCCESS,
            Self::Finding(_) => ExitCode::from(1),
            _ => ExitCode::from(2),
        }
    }

    /// Whether the output pipe was closed, which is not reported.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Host(error) if error.is_broken_pipe())
    }
}

#[cfg(feature = "full")]
impl From<FlashError> for Failure {
    fn from(error: FlashError) -> Self {
        Self::usage(error)
    }
}

#[cfg(feature = "full")]
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Host(error) => Self::Host(error),
            StoreError::FlashFile(error) => Self::FlashFile(error),
            error => Self::Usage(error.to_string()),
        }
    }
}

impl From<PresentError> for Failure {
    fn from(error: PresentError) -> Self {
        match error {
            PresentError::Source(error) => HostError::from(error).into(),
            PresentError::Outside(error) => match error.downcast::<HostError>() {
                Ok(error) => Self::Host(*error),
                Err(error) => Self::Usage(error.to_string()),
            },
            error => Self::Usage(error.to_string()),
        }
    }
}
