//! Why a store of a graph cannot be used.

use std::io;
use std::path::Path;

use prism_flash::{FlashError, MediumError};
use prism_flashfile::FlashFileError;
use prism_graph::GraphError;
use prism_host::HostError;

/// What is said of a full disk, after the name of what is on it.
const FULL: &str = "the disk is full; free some space, then give the same command again";

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
    /// A failure with the name of the file: `edges.txt:7: ...`; one of temporary space has the name
    /// that it was given there.
    #[must_use]
    pub fn input(name: &str, error: GraphError) -> Self {
        match error {
            GraphError::Input { .. } => Self::Refused(format!("{name}:{error}")),
            GraphError::Scratch(error) => Self::temporary(Path::new(name), error),
            GraphError::Flash(FlashError::Medium(MediumError::DiskFull { .. })) => {
                Self::Device(format!("{name}: {FULL}"))
            }
            error @ (GraphError::Flash(_) | GraphError::NoSpace) => {
                Self::Device(format!("{name}: {error}"))
            }
            error => Self::Refused(format!("{name}: {error}")),
        }
    }

    /// A failure to write or read temporary files in the folder `place`, or under this name, unless
    /// `error` is a [`StoreError`] already.
    pub(crate) fn temporary(place: &Path, error: io::Error) -> Self {
        let source = match error.downcast::<Self>() {
            Ok(error) => return error,
            Err(source) => source,
        };
        let place = place.display();
        Self::Device(match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!("{place}: {FULL}"),
            _ => format!(
                "{place}: a temporary file in it cannot be used: {source}; check permissions, the \
                 disk and the limit of file sizes (ulimit -f), then give the same command again"
            ),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_by_what_is_on_it() {
        let check = |error: StoreError, text: &str| assert_eq!(error.to_string(), text);
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let what = "the disk is full; free some space, then give the same command again";
        let inner = StoreError::temporary(Path::new("folder"), full());
        let outer = GraphError::Scratch(io::Error::other(inner));
        check(StoreError::input("edges.txt", outer), &format!("folder: {what}"));
        let medium = MediumError::DiskFull { what: "store.part: the disk is full".into() };
        let flash = GraphError::Flash(FlashError::Medium(medium));
        check(StoreError::input("store", flash), &format!("store: {what}"));
    }
}
