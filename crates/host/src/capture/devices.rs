//! The block devices to capture: a path becomes a disk and, for a partition, the part of it.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use prism_trace::{Op, Record};

use super::CaptureError;
use crate::error::HostError;

/// Bytes of a sector of `/sys`, whatever the device's block is.
const SECTOR: u64 = 512;

/// A disk, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's name of the disk (`nvme0n1`, `loop0`).
    pub name: String,
    /// Major and minor number of the disk.
    pub number: (u32, u32),
    /// The selected bytes of the disk; `None` is all of it.
    pub part: Option<Range<u64>>,
    /// It is stacked on other devices and has only bios, no requests.
    pub by_bio: bool,
}

impl Disk {
    /// The disk that the block device at `path` is, or is a partition of.
    ///
    /// # Errors
    /// [`CaptureError`] if there is no such block device.
    pub fn at(path: &Path) -> Result<Self, CaptureError> {
        let file = path.display().to_string();
        let meta =
            fs::metadata(path).map_err(|source| HostError::Open { file: file.clone(), source })?;
        if !meta.file_type().is_block_device() {
            let lies_on = node(meta.dev()).map(|node| node.name);
            return Err(CaptureError::NoDevice { file, lies_on });
        }
        let Some(node) = node(meta.rdev()) else {
            return Err(CaptureError::NoDevice { file, lies_on: None });
        };
        let failed = |source| CaptureError::Kernel { file, source };
        node.disk().map_err(failed)
    }

    /// The device numbers of bios to this disk: its own and those of its partitions.
    #[must_use]
    pub fn numbers(&self) -> Vec<(u32, u32)> {
        let mut found = vec![self.number];
        let Ok(entries) = fs::read_dir(format!("/sys/block/{}", self.name)) else { return found };
        let parts = entries.flatten().map(|entry| entry.path());
        for part in parts.filter(|part| part.join("partition").exists()) {
            let dev = fs::read_to_string(part.join("dev")).unwrap_or_default();
            found.extend(numbers(dev.trim()));
        }
        found
    }

    /// The name of this disk in traces.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{},{}", self.number.0, self.number.1)
    }

    /// Whether `record`, which belongs to this disk, is in the selected part. A flush has no
    /// address and belongs to every part.
    #[must_use]
    pub fn has(&self, record: &Record) -> bool {
        let Some(part) = &self.part else { return true };
        record.op == Op::Flush || part.contains(&record.offset)
    }
}

/// A device in `/sys`.
struct Node {
    /// Its folder.
    folder: PathBuf,
    name: String,
}

/// The folder of the device with this number.
fn node(number: u64) -> Option<Node> {
    let link =
        format!("/sys/dev/block/{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let folder = fs::canonicalize(link).ok()?;
    let name = folder.file_name()?.to_str()?.to_owned();
    Some(Node { folder, name })
}

impl Node {
    fn disk(self) -> std::io::Result<Disk> {
        let is_part = self.folder.join("partition").exists();
        let part = if is_part {
            let start = number_in(&self.folder.join("start"))? * SECTOR;
            Some(start..start + number_in(&self.folder.join("size"))? * SECTOR)
        } else {
            None
        };
        let mut folder = self.folder;
        let mut name = self.name;
        if is_part {
            folder.pop();
            name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        let dev = fs::read_to_string(folder.join("dev"))?;
        let number = numbers(dev.trim()).ok_or_else(|| {
            std::io::Error::other(format!("{dev:?} in {} is no device number", folder.display()))
        })?;
        Ok(Disk { name, number, part, by_bio: !folder.join("mq").exists() })
    }
}

fn number_in(path: &Path) -> std::io::Result<u64> {
    let text = fs::read_to_string(path)?;
    text.trim()
        .parse()
        .map_err(|_| std::io::Error::other(format!("{text:?} in {} is no number", path.display())))
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The disks at `paths`, each once. If a disk and its partition are named, the disk covers
/// both.
///
/// # Errors
/// [`CaptureError`] if one of them is not a block device.
pub fn resolve(paths: &[PathBuf]) -> Result<Vec<Disk>, CaptureError> {
    let mut disks: Vec<Disk> = Vec::new();
    for path in paths {
        let disk = Disk::at(path)?;
        if disk.part.is_none() {
            disks.retain(|other| other.number != disk.number);
        }
        let covered = |other: &Disk| other.number == disk.number && other.part.is_none();
        if !disks.iter().any(covered) && !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    Ok(disks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_its_part_of_the_disk_and_every_flush() {
        let part = Some(1 << 20..2 << 20);
        let disk = Disk { name: "sda".into(), number: (8, 0), part, by_bio: false };
        let at = |op, offset| Record::new(op, 0, offset, 4096);
        assert!(disk.has(&at(Op::Write, 1 << 20)));
        assert!(!disk.has(&at(Op::Write, 2 << 20)));
        assert!(!disk.has(&at(Op::Read, 0)));
        assert!(disk.has(&Record::new(Op::Flush, 0, 0, 0)));
        assert_eq!(disk.label(), "8,0");
    }

    #[test]
    fn what_is_no_block_device_is_reported() {
        let error = resolve(&["/dev/null".into()]).expect_err("a character device");
        assert!(error.to_string().contains("no block device"), "{error}");
        let error = resolve(&["/nowhere".into()]).expect_err("nothing there");
        assert!(error.to_string().starts_with("/nowhere: there is no such file"), "{error}");
    }
}
