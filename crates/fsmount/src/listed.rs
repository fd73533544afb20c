//! The entry of a mount in the table of mount(8), because of which umount(8) calls a helper, and
//! what the helper reports.
//!
//! The helper waits until the process of a mount has ended. umount(8) finds it by the type of the
//! mount, but for a folder it asks statfs(2) for the type, where it is only `fuse`, unless the
//! mount is in its own table `/run/mount/utab`. mount(8) adds to that when it is called with
//! `--fake`, by which libfuse kept `/etc/mtab` up to date.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::options::TYPE;

/// Where umount(8) looks for the helper.
const HELPER: &str = "/sbin/umount.fuse.prismfs";

/// Where the helper looks for the error with which a mount ended.
const FAILURES: &str = "/run/prismfs";

/// The file for the error of the mount of `source`, if there is a helper that looks at it.
fn failure_of(source: &Path) -> Option<PathBuf> {
    let is_read = rustix::process::geteuid().is_root() && Path::new(HELPER).exists();
    let meta = source.metadata().ok().filter(|_| is_read)?;
    Some(Path::new(FAILURES).join(format!("{}-{}", meta.dev(), meta.ino())))
}

/// Leaves the error with which the mount of `source` ends for the helper. The process has the lock
/// on the file still, for which the helper waits.
pub fn leave_failure(source: &Path, error: &str) {
    let Some(path) = failure_of(source) else { return };
    // Without it umount(8) does not report the error.
    let _ = fs::create_dir_all(FAILURES).and_then(|()| fs::write(path, format!("{error}\n")));
}

/// Forgets the error of an earlier mount, after which umount(8) was not called.
pub fn forget_failure(source: &Path) {
    let _ = failure_of(source).map(fs::remove_file);
}

/// A mount that is in the table.
pub struct Listed {
    folder: PathBuf,
}

impl Listed {
    /// Adds the mount of `source` on `folder`. `None` if nothing needs it, as for a user who is not
    /// root, for whom umount(8) looks at the mounts of the kernel, or if it is not possible: then
    /// umount(8) does not wait.
    pub fn new(source: &Path, folder: &Path) -> Option<Self> {
        let is_needed = rustix::process::geteuid().is_root() && Path::new(HELPER).exists();
        let kind = format!("fuse.{TYPE}");
        let marker = format!("helper={kind}");
        let options = ["--fake", "-t", &kind, "-o", &marker].map(OsStr::new);
        let is_listed = is_needed && run("mount", &options, &[source, folder]);
        is_listed.then(|| Self { folder: folder.to_owned() })
    }

    /// Removes the entry, before the folder is unmounted without umount(8).
    pub fn remove(self) {
        // What is left without a mount is ignored.
        let _ = run("umount", &["--fake".as_ref()], &[&self.folder]);
    }
}

/// Runs mount(8) or umount(8), which must not call helpers or look at files.
fn run(program: &str, options: &[&OsStr], paths: &[&Path]) -> bool {
    let mut command = Command::new(program);
    command.args(["-i", "--no-canonicalize"]).args(options).args(paths);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
