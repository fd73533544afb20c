//! Outputs that appear whole or not at all: they are written under a temporary name in the
//! folder of the target, then renamed to it.
//!
//! A target that is not a regular file (a terminal, a pipe, `/dev/null`) cannot be replaced by
//! renaming and is written directly, as is standard output, called `-`.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::HostError;
use crate::interrupt;

/// The requested mode, before the umask of the process.
const NEW_FILE_MODE: u32 = 0o666;

/// An output that does not exist until [`OutputFile::commit`].
#[derive(Debug)]
pub struct OutputFile {
    name: String,
    sink: Option<Sink>,
}

#[derive(Debug)]
enum Sink {
    Stdout(BufWriter<io::Stdout>),
    Direct(BufWriter<File>),
    Renamed { file: BufWriter<NamedTempFile>, target: PathBuf },
}

impl OutputFile {
    /// Opens `path`, or standard output for `-`.
    ///
    /// # Errors
    /// [`HostError::Write`] if nothing can be created there.
    pub fn create(path: &Path) -> Result<Self, HostError> {
        if path == Path::new("-") {
            let sink = Sink::Stdout(BufWriter::new(io::stdout()));
            return Ok(Self { name: "standard output".into(), sink: Some(sink) });
        }
        let name = path.display().to_string();
        match open(path) {
            Ok(sink) => Ok(Self { name, sink: Some(sink) }),
            Err(source) => Err(HostError::Write { file: name, source }),
        }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether bytes reach the reader while they are written, so that they cannot be withdrawn:
    /// standard output, a terminal, a pipe.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        !matches!(self.sink, Some(Sink::Renamed { .. }))
    }

    /// Makes the output appear under its name.
    ///
    /// # Errors
    /// [`HostError::Write`]; then nothing is left of it.
    pub fn commit(mut self) -> Result<(), HostError> {
        let sink = self.sink.take().expect("only commit and drop take the sink");
        let done = match sink {
            Sink::Stdout(mut out) => out.flush(),
            Sink::Direct(mut out) => out.flush(),
            Sink::Renamed { file, target } => rename(file, &target),
        };
        done.map_err(|source| HostError::Write { file: std::mem::take(&mut self.name), source })
    }

    /// An error of this output.
    #[must_use]
    pub fn failed(&self, source: io::Error) -> HostError {
        HostError::Write { file: self.name.clone(), source }
    }

    fn sink(&mut self) -> &mut dyn Write {
        match self.sink.as_mut().expect("only commit and drop take the sink") {
            Sink::Stdout(out) => out,
            Sink::Direct(out) => out,
            Sink::Renamed { file, .. } => file,
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink().flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(Sink::Renamed { file, .. }) = self.sink.take() {
            // The buffered rest is discarded, not written, because the file is removed.
            let (file, _rest) = file.into_parts();
            let path = file.path().to_path_buf();
            interrupt::finish_noted(&path, || drop(file));
        }
    }
}

fn open(path: &Path) -> io::Result<Sink> {
    // A link stays a link: its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let before = fs::metadata(&target).ok();
    match &before {
        Some(meta) if meta.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Some(meta) if !meta.is_file() => {
            let file = File::options().write(true).open(&target)?;
            return Ok(Sink::Direct(BufWriter::new(file)));
        }
        _ => {}
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mode = before.map_or(Permissions::from_mode(NEW_FILE_MODE), |meta| meta.permissions());
    let file = interrupt::create_noted(
        || {
            tempfile::Builder::new()
                .prefix(".prism-")
                .suffix(".tmp")
                .permissions(mode)
                .tempfile_in(folder)
        },
        |file| file.path().to_path_buf(),
    )?;
    Ok(Sink::Renamed { file: BufWriter::new(file), target })
}

fn rename(file: BufWriter<NamedTempFile>, target: &Path) -> io::Result<()> {
    let path = file.get_ref().path().to_path_buf();
    interrupt::finish_noted(&path, || {
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(target).map_err(|error| error.error)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn it_appears_at_commit_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(b"whole").unwrap();
        assert!(!path.exists());
        out.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn what_is_not_committed_leaves_nothing_and_keeps_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut out = OutputFile::create(&path).unwrap();
        out.write_all(&vec![0; 100_000]).unwrap();
        drop(out);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn a_link_stays_a_link_and_the_mode_stays_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut out = OutputFile::create(&link).unwrap();
        out.write_all(b"new").unwrap();
        out.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_disk_and_a_folder_are_said() {
        let mut out = OutputFile::create(Path::new("/dev/full")).unwrap();
        let early = out.write_all(&vec![0; 100_000]).map_err(|e| out.failed(e));
        let error = early.and_then(|()| out.commit()).unwrap_err();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let error = OutputFile::create(folder.path()).unwrap_err();
        assert!(error.to_string().contains("this is a folder"), "{error}");
        let error = OutputFile::create(&folder.path().join("no/out")).unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
    }
}
