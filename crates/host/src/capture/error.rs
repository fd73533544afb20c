//! Why a running system cannot be captured, and what to do about it.

use std::io;

use super::{Backend, Refusal};
use crate::error::HostError;

/// A capture that could not begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The file is no block device.
    #[error(
        "{file}: this is no block device{}; name a disk or a partition (lsblk lists them)",
        lies_on.as_ref().map(|disk| format!(" (it lies on {disk})")).unwrap_or_default()
    )]
    NoDevice {
        /// The file.
        file: String,
        /// The device on which it lies, where that can be told.
        lies_on: Option<String>,
    },
    /// More devices than the programs in the kernel look at.
    #[error("{count} devices are more than the {most} that can be named; name none to see all")]
    TooMany {
        /// Devices named.
        count: usize,
        /// Devices that can be named.
        most: usize,
    },
    /// The kernel offers no way to see its requests.
    #[error("nothing on this system shows requests to block devices: {}", list(refused))]
    NoBackend {
        /// What was tried, and why it does not work.
        refused: Vec<Refusal>,
    },
    /// A file of the kernel's cannot be read or written.
    #[error("{file}: {source}")]
    Kernel {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel handed out what cannot be understood.
    #[error("the {} capture failed: {what}", backend.name())]
    Failed {
        /// How the capture was made.
        backend: Backend,
        /// What happened.
        what: String,
    },
    /// Nobody captures, or not the process that was named.
    #[error("{what}")]
    NoCapture {
        /// Why the mark reached nobody, and what to do.
        what: String,
    },
    /// The command to be captured cannot be started.
    #[error("{command}: cannot be started: {source}; check its name and that it is executable")]
    Command {
        /// The command.
        command: String,
        /// What the system said.
        source: io::Error,
    },
}

fn list(refused: &[Refusal]) -> String {
    let one = |refusal: &Refusal| format!("{}: {}", refusal.backend.name(), refusal.why);
    refused.iter().map(one).collect::<Vec<_>>().join("; ")
}
