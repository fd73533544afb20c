//! The entry of a mount in the table of mount(8), because of which umount(8) calls a helper.
//!
//! The helper waits until the process of a mount has ended. umount(8) finds it by the type of the
//! mount, but for a folder it asks statfs(2) for the type, where it is only `fuse`, unless the
//! mount is in its own table `/run/mount/utab`. mount(8) adds to that when it is called with
//! `--fake`, by which libfuse kept `/etc/mtab` up to date.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::options::TYPE;

/// Where umount(8) looks for the helper.
const HELPER: &str = "/sbin/umount.fuse.prismfs";

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
