//! Layouts of file systems from files: from the text form, or from a file-system image or block
//! device.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use prism_trace::FsLayout;

use crate::error::HostError;

/// Bytes at the beginning that distinguish text from an image.
const HEAD_BYTES: u64 = 4096;
/// Bytes of the longest text that is read: a line each for as many regions as a layout of
/// dozens of terabytes has.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// The layout in `path`: the text form if it begins with text, and otherwise that of the
/// file system in the image or on the block device.
///
/// # Errors
/// [`HostError::Open`], [`HostError::Directory`], [`HostError::Empty`] or [`HostError::Read`]
/// if it cannot be read, [`HostError::Content`] if it is not a layout and not a known file
/// system.
pub fn load_layout(path: &Path) -> Result<FsLayout, HostError> {
    let name = path.display().to_string();
    let open = |source| HostError::Open { file: name.clone(), source };
    let file = File::open(path).map_err(open)?;
    if file.metadata().map_err(open)?.is_dir() {
        return Err(HostError::Directory { file: name });
    }
    let read = |source| HostError::Read { file: name.clone(), byte: 0, source };
    let mut head = Vec::new();
    (&file).take(HEAD_BYTES).read_to_end(&mut head).map_err(read)?;
    if head.is_empty() {
        return Err(HostError::Empty { file: name });
    }
    let wrong = |what: String| HostError::Content { file: name.clone(), what };
    if !is_text(&head) {
        let probed = FsLayout::probe(&mut |at, buffer| read_at(&file, at, buffer));
        let mut layout = probed.map_err(|error| wrong(error.to_string()))?;
        let image = path.file_name().map_or(name.clone(), |name| name.display().to_string());
        layout.source = format!("{}, read from {image}", layout.source);
        return Ok(layout);
    }
    let mut text = head;
    (&file).take(TEXT_BYTES_MAX).read_to_end(&mut text).map_err(read)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        let most = TEXT_BYTES_MAX >> 20;
        return Err(wrong(format!("the text is longer than {most} MiB; leave small regions out")));
    }
    let text = String::from_utf8(text).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        wrong(format!("the text is no UTF-8 at byte {byte}; save it as UTF-8"))
    })?;
    FsLayout::from_toml(&text).map_err(|error| wrong(error.to_string()))
}

/// Whether a file that begins with `head` is text: images have zeros near their start.
fn is_text(head: &[u8]) -> bool {
    !head.contains(&0) && head.iter().any(|byte| !byte.is_ascii_whitespace())
}

fn read_at(file: &File, at: u64, buffer: &mut [u8]) -> Result<(), String> {
    file.read_exact_at(buffer, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "it ends before that, so it is no whole image; copy it again".into()
        }
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_trace::fs_layout::Region;

    /// What loading a file of `bytes` gives, or the error's text without the folder.
    fn load(bytes: &[u8]) -> Result<FsLayout, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, bytes).unwrap();
        let prefix = format!("{}/", folder.path().display());
        load_layout(&path).map_err(|error| error.to_string().replace(&prefix, ""))
    }

    #[test]
    fn text_and_images_are_distinguished() {
        let region = Region { start: 0, end: 4096, label: "x".into(), group: "x".into() };
        let layout = FsLayout::new("own", "by hand", vec![region]).unwrap();
        assert_eq!(load(layout.to_toml().as_bytes()), Ok(layout));
        // A volume of 64 blocks of 4 KiB in segments of one block: F2FS in two fields.
        let mut image = vec![0; 8192];
        for (at, value) in [
            (0, 0xF2F5_2010u32),
            (16, 12),
            (36, 64),
            (52, 1),
            (56, 1),
            (60, 1),
            (64, 1),
            (68, 58),
            (76, 2),
            (80, 3),
            (84, 4),
            (88, 5),
            (92, 6),
        ] {
            image[1024 + at..1028 + at].copy_from_slice(&value.to_le_bytes());
        }
        let layout = load(&image).unwrap();
        let last = layout.regions().last().unwrap();
        assert_eq!((layout.name.as_str(), last.label.as_str()), ("F2FS", "F2FS main area"));
        assert_eq!(last.end, 64 * 4096);
        assert_eq!(layout.source, "the superblock of F2FS: 64 blocks of 4096 bytes, read from a");
    }

    #[test]
    fn what_is_neither_is_refused_with_its_name() {
        for (bytes, says) in [
            (&b""[..], "a: the file is empty"),
            (b"\0\0", "a: cannot be read at byte 0: it ends before that"),
            (&[0; 8192], "a: no superblock of ext4, XFS or F2FS"),
            (b"name = 3", "a: line 1: "),
            (b"\xff\xff", "a: the text is no UTF-8 at byte 0"),
        ] {
            let error = load(bytes).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(load_layout(folder.path()), Err(HostError::Directory { .. })));
        let none = load_layout(&folder.path().join("none"));
        assert!(matches!(none, Err(HostError::Open { .. })));
    }
}
