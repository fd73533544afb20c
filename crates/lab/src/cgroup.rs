//! Memory cgroups of version 1 or 2, which limit the page cache of an application: without them,
//! no read reaches the device on a machine with much memory.

use std::fs;
use std::path::{Path, PathBuf};

use prism_base::Bytes;

use crate::error::StackError;

/// A hierarchy of cgroups that controls memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCgroups {
    root: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl MemoryCgroups {
    /// The mounted hierarchy.
    ///
    /// # Errors
    /// [`StackError::NoCgroup`] if there is none.
    pub fn find() -> Result<Self, StackError> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let has_memory = |root: &Path| {
            let controllers = fs::read_to_string(root.join("cgroup.controllers"));
            controllers.is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
        };
        find_in(&mounts, has_memory).ok_or(StackError::NoCgroup)
    }

    /// Makes the cgroup `name`, which limits memory including page cache to `limit`.
    ///
    /// # Errors
    /// [`StackError::System`] naming the file.
    pub(super) fn make(&self, name: &str, limit: Bytes) -> Result<PathBuf, StackError> {
        if self.version == Version::Two {
            // A failure is harmless if the controller is enabled already; else opening the file
            // of the limit fails below.
            let _ = fs::write(self.root.join("cgroup.subtree_control"), "+memory");
        }
        let folder = self.root.join(name);
        fs::create_dir(&folder).map_err(StackError::at(&folder, "make the memory cgroup"))?;
        let file = folder.join(match self.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        });
        let set = fs::write(&file, limit.0.to_string());
        if set.is_err() {
            remove(&folder);
        }
        set.map_err(StackError::at(file, "limit the memory"))?;
        Ok(folder)
    }

    /// The folders of its cgroups.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// Moves this process into the cgroup at `folder`.
///
/// # Errors
/// [`StackError::System`] naming the file.
pub(super) fn enter(folder: &Path) -> Result<(), StackError> {
    let file = folder.join("cgroup.procs");
    fs::write(&file, std::process::id().to_string())
        .map_err(StackError::at(file, "enter the memory cgroup"))
}

/// Removes an empty cgroup. Returns whether it is gone.
pub(super) fn remove(folder: &Path) -> bool {
    super::retry(|| match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    })
}

/// The hierarchy in a list of mounts: version 1 if it controls memory, because then version 2
/// cannot.
fn find_in(mountinfo: &str, has_memory: impl Fn(&Path) -> bool) -> Option<MemoryCgroups> {
    let mut version_2 = None;
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let Some(root) = before.split(' ').nth(4).map(PathBuf::from) else { continue };
        let mut after = after.split(' ');
        let (kind, options) = (after.next(), after.nth(1).unwrap_or_default());
        if kind == Some("cgroup") && options.split(',').any(|option| option == "memory") {
            return Some(MemoryCgroups { root, version: Version::One });
        }
        if kind == Some("cgroup2") && has_memory(&root) {
            version_2 = Some(MemoryCgroups { root, version: Version::Two });
        }
    }
    version_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_that_controls_memory_is_found() {
        let one = "30 1 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                   31 1 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup none rw,memory\n";
        let two = "35 1 0:28 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";
        let check = |mounts: &str, has_memory: bool, expected: Option<(&str, Version)>| {
            let found = find_in(mounts, |_| has_memory);
            let expected = expected.map(|(root, version)| (PathBuf::from(root), version));
            assert_eq!(found.map(|found| (found.root, found.version)), expected);
        };
        check(one, false, Some(("/sys/fs/cgroup/memory", Version::One)));
        check(two, true, Some(("/sys/fs/cgroup/unified", Version::Two)));
        check(two, false, None);
        check(&format!("{two}{one}"), true, Some(("/sys/fs/cgroup/memory", Version::One)));
        check("", true, None);
    }
}
