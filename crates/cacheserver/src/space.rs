//! Whether the files of a cache can grow to their full size: they are sparse, so a disk that is too
//! small would be noticed only when it is full.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prism_base::Bytes;
use rustix::fs::statvfs;

/// A file, and its size in the end.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// A file system without space for its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// The first of its files.
    pub(crate) file: String,
    /// Bytes that all of them may still take.
    pub(crate) wanted: Bytes,
    /// Bytes that are free.
    pub(crate) free: Bytes,
}

/// Bytes that a file has on its disk.
const SECTOR: u64 = 512;

/// The first file system that has not enough space for its files, if there is one.
pub(crate) fn shortage(files: &[Growth]) -> io::Result<Option<Shortage>> {
    // Of each file system: its number, a path, what its files may take.
    let mut wanted: Vec<(u64, &Path, u64)> = Vec::new();
    for Growth { path, bytes } in files {
        let has = std::fs::metadata(path).map_or(0, |found| found.blocks() * SECTOR);
        let device = std::fs::metadata(folder(path))?.dev();
        let more = bytes.saturating_sub(has);
        match wanted.iter_mut().find(|(known, ..)| *known == device) {
            Some((.., sum)) => *sum += more,
            None => wanted.push((device, path, more)),
        }
    }
    for (_, path, wanted) in wanted {
        let found = statvfs(folder(path))?;
        let free = found.f_bavail * found.f_frsize;
        if wanted > free {
            let file = path.display().to_string();
            return Ok(Some(Shortage { file, wanted: Bytes(wanted), free: Bytes(free) }));
        }
    }
    Ok(None)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_have_already_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let free = || {
            let found = statvfs(folder.path()).unwrap();
            found.f_bavail * found.f_frsize
        };
        let grow = |bytes| shortage(&[Growth { path: path.clone(), bytes }]).unwrap();
        // Other processes use the disk at the same time.
        let slack = free() / 4;
        assert_eq!(grow(1 << 20), None);
        assert_eq!(grow(free() - slack), None);
        let short = grow(free() + slack).expect("too much");
        assert!(short.wanted > short.free && short.file.ends_with("/file"), "{short:?}");
        // Two files share the space.
        let half = |name: &str| Growth { path: folder.path().join(name), bytes: free() / 4 * 3 };
        assert!(shortage(&[half("a"), half("b")]).unwrap().is_some());
        assert_eq!(shortage(&[half("a")]).unwrap(), None);
    }
}
