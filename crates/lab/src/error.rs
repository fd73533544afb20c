//! The errors of experiments. Each message says what to do.

use std::io;
use std::path::PathBuf;

use prism_host::HostError;
use prism_host::capture::CaptureError;

use crate::kinds::{App, FileSystem};

/// An error of an experiment. The text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Only root may attach devices and mount them.
    #[error("loop devices, mounts and memory cgroups need root; run it with sudo")]
    NotRoot,
    /// A program is not installed.
    #[error("{program} is not installed; install the package {package}")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A shared library is not installed.
    #[error("{library} is not installed; install the package {package}")]
    NoLibrary {
        /// Its name up to the version.
        library: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A shared library cannot be loaded or lacks a function.
    #[error("{library}: {what}; reinstall the package {package}")]
    BadLibrary {
        /// Its file.
        library: String,
        /// What is wrong.
        what: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The kernel does not support the file system.
    #[error(
        "{}: this kernel does not support this file system; load its module, or see docs/stack.md \
         for running in a virtual machine",
        fs.name()
    )]
    NoFileSystem {
        /// The file system.
        fs: FileSystem,
    },
    /// The device is too small for the file system.
    #[error("--size: {} needs at least {least} bytes; give --size {least}B or more", fs.name())]
    TooSmall {
        /// The file system.
        fs: FileSystem,
        /// The smallest size in bytes.
        least: u64,
    },
    /// The kernel has no memory cgroups.
    #[error(
        "no memory cgroup is mounted; mount one: mount -t cgroup2 none /sys/fs/cgroup, or with \
         version 1: mount -t cgroup -o memory none /sys/fs/cgroup/memory"
    )]
    NoCgroup,
    /// A system call failed.
    #[error("{place}: cannot {what}: {source}{}", hint(source))]
    System {
        /// The file, device or folder.
        place: PathBuf,
        /// The failed action.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{program} failed: {said}")]
    Program {
        /// Its name.
        program: String,
        /// The last line of its errors, or how it ended.
        said: String,
    },
    /// The requests could not be captured, or the trace not be written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The requests cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An application failed.
    #[error("{}: {said}", app.name())]
    Application {
        /// The application.
        app: App,
        /// Its message.
        said: String,
    },
}

impl StackError {
    /// The error of a system call for the action `what` at `place`.
    pub(crate) fn at(
        place: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let place = place.into();
        move |source| Self::System { place, what, source }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; give a larger --size, or a --work-dir with more space",
        io::ErrorKind::PermissionDenied => {
            "; root in a container may not do that, run it on the host"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_to_do() {
        let check = |error: StackError, text: &str| assert_eq!(error.to_string(), text);
        check(
            StackError::NoLibrary { library: "librocksdb.so", package: "librocksdb7.8" },
            "librocksdb.so is not installed; install the package librocksdb7.8",
        );
        let full = io::Error::from(io::ErrorKind::StorageFull);
        check(
            StackError::at("/w", "make the image")(full),
            "/w: cannot make the image: no storage space; give a larger --size, or a --work-dir \
             with more space",
        );
        check(
            StackError::TooSmall { fs: FileSystem::Xfs, least: 100 },
            "--size: xfs needs at least 100 bytes; give --size 100B or more",
        );
    }
}
