//! Rows of a long computation, kept next to its output until that is written.
//!
//! The rows are lines of files in the folder `OUTPUT.rows`, one file for each part of the
//! computation, so that parts may run on different machines. A line is a checksum and a text. It is
//! written by one call: a process that is killed leaves at most half a line at the end, which the
//! next one cuts off. The first line names the inputs.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use twox_hash::XxHash64;

use crate::error::HostError;

/// What the names of folders and files end in.
const EXTENSION: &str = "rows";
/// What the first line of a file begins with.
const INPUTS: &str = "inputs ";
/// Digits of a checksum.
const DIGITS: usize = 16;

/// Which rows to keep.
#[derive(Clone, Copy, Debug)]
pub struct RowStoreSpec<'a> {
    /// The output that will be made of them.
    pub output: &'a Path,
    /// The part of the computation that this process runs, and the number of parts.
    pub part: (u64, u64),
    /// A hash of all inputs, on which the rows depend.
    pub inputs: &'a str,
}

/// The rows of this process, open for more. The file is locked.
#[derive(Debug)]
pub struct RowStore {
    folder: PathBuf,
    name: String,
    file: Mutex<File>,
    /// The files of other parts that were read, locked until they are removed.
    others: Vec<(PathBuf, File)>,
}

/// The valid beginning of a file of rows.
struct Content {
    /// After the first line.
    rows: Vec<String>,
    bytes: u64,
}

impl RowStore {
    /// Opens the rows of a part, and returns those that are there. With a single part, which is the
    /// whole computation, these are the rows of all files of the folder.
    ///
    /// # Errors
    /// [`HostError::Content`] if rows are of other inputs, or another process writes them; other
    /// [`HostError`] if a file cannot be read or written.
    pub fn open(spec: RowStoreSpec<'_>) -> Result<(Self, Vec<String>), HostError> {
        let folder = folder(spec.output);
        let name = folder.display().to_string();
        fs::create_dir_all(&folder).map_err(|source| HostError::Write { file: name, source })?;
        let own = folder.join(format!("{}-of-{}.{EXTENSION}", spec.part.0, spec.part.1));
        let name = own.display().to_string();
        let failed = |source| HostError::Write { file: name.clone(), source };
        let mut options = File::options();
        let file = options.read(true).append(true).create(true).open(&own).map_err(failed)?;
        lock(&file, FlockOperation::NonBlockingLockExclusive, &name)?;
        let content = read(&file, &name, spec.inputs)?;
        let (mut rows, mut others) = (content.rows, Vec::new());
        if spec.part.1 == 1 {
            for path in files(&folder)?.into_iter().filter(|path| *path != own) {
                let name = path.display().to_string();
                let opened = File::open(&path);
                let file =
                    opened.map_err(|source| HostError::Open { file: name.clone(), source })?;
                lock(&file, FlockOperation::NonBlockingLockShared, &name)?;
                rows.append(&mut read(&file, &name, spec.inputs)?.rows);
                others.push((path, file));
            }
        }
        // Not before all files are found to be of these inputs.
        file.set_len(content.bytes).map_err(failed)?;
        let store = Self { folder, name: name.clone(), file: Mutex::new(file), others };
        if content.bytes == 0 {
            store.write(&format!("{INPUTS}{}", spec.inputs)).map_err(failed)?;
        }
        Ok((store, rows))
    }

    /// Keeps a row, which must be one line.
    ///
    /// # Errors
    /// [`HostError::Row`]; rows that were kept before stay.
    ///
    /// # Panics
    /// If `row` has a line break.
    pub fn append(&self, row: &str) -> Result<(), HostError> {
        assert!(!row.contains('\n'), "a row is one line");
        self.write(row).map_err(|source| HostError::Row { file: self.name.clone(), source })
    }

    fn write(&self, row: &str) -> io::Result<()> {
        let line = format!("{} {row}\n", checksum(row));
        let mut file = self.file.lock().expect("no thread panics in the lock");
        file.write_all(line.as_bytes())
    }

    /// Removes all rows that are in this store: the output is complete. Rows of a part that began
    /// since stay.
    ///
    /// # Errors
    /// [`HostError::Write`]
    pub fn remove(self) -> Result<(), HostError> {
        let Self { folder, name, file, others } = self;
        let failed =
            |path: &Path, source| HostError::Write { file: path.display().to_string(), source };
        for path in others.iter().map(|(path, _)| path.as_path()).chain([Path::new(&name)]) {
            fs::remove_file(path).map_err(|source| failed(path, source))?;
        }
        // A network file system keeps removed files in the folder while they are open.
        drop((file, others));
        match fs::remove_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(failed(&folder, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the rows of a part that an earlier process kept; of all parts, if there is only one.
    ///
    /// # Errors
    /// [`HostError::Content`] if another process writes them, [`HostError::Write`] if they cannot
    /// be removed.
    pub fn discard(output: &Path, part: (u64, u64)) -> Result<(), HostError> {
        let folder = folder(output);
        if !folder.exists() {
            return Ok(());
        }
        let own = format!("{}-of-{}.{EXTENSION}", part.0, part.1);
        let mut all = files(&folder)?;
        all.retain(|path| part.1 == 1 || path.file_name().is_some_and(|name| name == own.as_str()));
        // None is removed if another process writes one of them.
        let mut locked = Vec::new();
        for path in &all {
            let name = path.display().to_string();
            // Network file systems want files to be open for writing that are locked.
            let file = File::options().read(true).write(true).open(path);
            let file = file.map_err(|source| HostError::Open { file: name.clone(), source })?;
            lock(&file, FlockOperation::NonBlockingLockExclusive, &name)?;
            locked.push(file);
        }
        for path in &all {
            let failed = |source| HostError::Write { file: path.display().to_string(), source };
            fs::remove_file(path).map_err(failed)?;
        }
        Ok(())
    }
}

/// The folder of the rows for `output`.
fn folder(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".");
    name.push(EXTENSION);
    PathBuf::from(name)
}

/// The files of rows in `folder`, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, HostError> {
    let failed = |source| HostError::Open { file: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn lock(file: &File, operation: FlockOperation, name: &str) -> Result<(), HostError> {
    match flock(file, operation) {
        Err(Errno::WOULDBLOCK) => Err(HostError::content(
            name,
            "another process writes these rows: wait for it, or choose another output",
        )),
        // Some network file systems have no locks; then the user has to take care.
        _ => Ok(()),
    }
}

/// The valid lines of a file; the first must name `inputs`.
fn read(mut file: &File, name: &str, inputs: &str) -> Result<Content, HostError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|source| HostError::Read {
        file: name.to_owned(),
        byte: 0,
        source,
    })?;
    let mut content = Content { rows: Vec::new(), bytes: 0 };
    let mut header = None;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(row) = valid(line) else { break };
        content.bytes += line.len() as u64;
        match header {
            None => header = Some(row),
            Some(_) => content.rows.push(row.to_owned()),
        }
    }
    let Some(header) = header else { return Ok(content) };
    if header.strip_prefix(INPUTS) == Some(inputs) {
        return Ok(content);
    }
    if content.rows.is_empty() {
        // There is nothing to lose.
        return Ok(Content { rows: Vec::new(), bytes: 0 });
    }
    let what = format!(
        "its {} rows are of other inputs: the file of the sweep, a file that it names, or the \
         version of Prism has changed; undo that, choose another output, or discard the rows with \
         --restart",
        content.rows.len()
    );
    Err(HostError::content(name, what))
}

/// The text of a whole line with the right checksum.
fn valid(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (sum, row) = line.split_at_checked(DIGITS)?;
    let row = row.strip_prefix(' ')?;
    (sum == checksum(row)).then_some(row)
}

fn checksum(row: &str) -> String {
    let mut hash = XxHash64::with_seed(0);
    hash.write(row.as_bytes());
    format!("{:016x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(output: &Path, part: (u64, u64)) -> RowStoreSpec<'_> {
        RowStoreSpec { output, part, inputs: "abc" }
    }

    fn rows(output: &Path) -> Vec<String> {
        let (store, rows) = RowStore::open(spec(output, (1, 1))).unwrap();
        drop(store);
        rows
    }

    #[test]
    fn every_cut_keeps_whole_rows_and_more_can_follow() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        let (store, none) = RowStore::open(spec(&output, (1, 1))).unwrap();
        assert!(none.is_empty());
        let all = ["a", "", "{\"x\": \"ü\"}"];
        let path = folder.path().join("out.rows/1-of-1.rows");
        let mut ends = vec![fs::metadata(&path).unwrap().len()];
        for row in all {
            store.append(row).unwrap();
            ends.push(fs::metadata(&path).unwrap().len());
        }
        drop(store);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let expected = ends[1..].iter().filter(|&&end| end <= cut as u64).count();
            assert_eq!(rows(&output), all[..expected], "cut after {cut} bytes");
            let (store, _) = RowStore::open(spec(&output, (1, 1))).unwrap();
            store.append("next").unwrap();
            drop(store);
            assert_eq!(rows(&output).last().unwrap(), "next");
        }
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let before = ends[1..].iter().filter(|&&end| end <= place as u64).count();
            assert_eq!(rows(&output), all[..before], "byte {place} is damaged");
        }
    }

    #[test]
    fn the_whole_reads_all_parts_and_a_part_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        for part in 1..=2 {
            let (store, none) = RowStore::open(spec(&output, (part, 2))).unwrap();
            assert!(none.is_empty());
            store.append(&format!("row {part}")).unwrap();
            let busy = RowStore::open(spec(&output, (part, 2))).unwrap_err().to_string();
            assert!(busy.contains("another process writes these rows"), "{busy}");
            let busy = RowStore::open(spec(&output, (1, 1))).unwrap_err().to_string();
            assert!(busy.contains(&format!("{part}-of-2.rows: another process")), "{busy}");
        }
        assert_eq!(RowStore::open(spec(&output, (2, 2))).unwrap().1, ["row 2"]);
        assert_eq!(rows(&output), ["row 1", "row 2"]);
        let other = RowStoreSpec { inputs: "abd", ..spec(&output, (2, 2)) };
        let error = RowStore::open(other).unwrap_err().to_string();
        assert!(error.contains("its 1 rows are of other inputs"), "{error}");
        let whole = RowStoreSpec { part: (1, 1), ..other };
        assert!(RowStore::open(whole).is_err());
        assert_eq!(rows(&output), ["row 1", "row 2"], "the refused run has left no trace");
        let (store, none) = RowStore::open(RowStoreSpec { part: (3, 3), ..other }).unwrap();
        drop(store);
        assert!(none.is_empty() && rows(&output).len() == 2, "a file without rows does no harm");
        RowStore::discard(&output, (2, 2)).unwrap();
        assert_eq!(rows(&output), ["row 1"]);
        let (store, _) = RowStore::open(spec(&output, (1, 1))).unwrap();
        assert!(RowStore::discard(&output, (1, 1)).is_err(), "it is in use");
        assert!(RowStore::open(spec(&output, (1, 2))).is_err(), "its rows are read");
        let (late, _) = RowStore::open(spec(&output, (2, 2))).unwrap();
        late.append("late").unwrap();
        store.remove().unwrap();
        assert!(RowStore::discard(&output, (1, 1)).is_err(), "a part began since");
        drop(late);
        let (store, late) = RowStore::open(spec(&output, (1, 1))).unwrap();
        assert_eq!(late, ["late"]);
        store.remove().unwrap();
        assert!(!folder.path().join("out.rows").exists());
        RowStore::discard(&output, (1, 1)).unwrap();
    }
}
