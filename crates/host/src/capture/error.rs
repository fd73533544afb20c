//! Why a running system cannot be captured, and what to do about it.

use std::io;

use super::{Backend, Refusal};
use crate::error::HostError;

/// A capture that could not start or continue.
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
        /// The device on which it is stored, if that is known.
        lies_on: Option<String>,
    },
    /// More devices than the programs in the kernel can select.
    #[error("{count} devices are more than the {most} that can be named; name none to capture all")]
    TooMany {
        /// Devices named.
        count: usize,
        /// Devices that can be named.
        most: usize,
    },
    /// No backend works on this system.
    #[error("nothing on this system shows requests to block devices: {}", list(refused))]
    NoBackend {
        /// The backends that were tried, and why they do not work.
        refused: Vec<Refusal>,
    },
    /// A file of the kernel cannot be read or written.
    #[error("{file}: {source}")]
    Kernel {
        /// The file.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The events of the kernel cannot be decoded.
    #[error("the {} capture failed: {what}", backend.name())]
    Failed {
        /// The backend of the capture.
        backend: Backend,
        /// What happened.
        what: String,
    },
    /// No capture is running, or not in the named process.
    #[error("{what}")]
    NoCapture {
        /// Why the mark reached no capture, and what to do.
        what: String,
    },
    /// The command to be captured cannot be started.
    #[error("{command}: cannot be started: {source}; check its name and that it is executable")]
    Command {
        /// The command.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
}

fn list(refused: &[Refusal]) -> String {
    let one = |refusal: &Refusal| format!("{}: {}", refusal.backend.name(), refusal.why);
    refused.iter().map(one).collect::<Vec<_>>().join("; ")
}
