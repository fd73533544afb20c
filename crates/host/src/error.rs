//! Errors of files. Each message names the file and says what to do.

use std::io;

use prism_base::Bytes;
use prism_trace::TraceError;

/// A file that could not be read or written. The text is one line that begins with the
/// name of the file and ends with what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The file cannot be opened.
    #[error("{file}: {}", open_failure(source))]
    Open {
        /// The file.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A folder is named where a file is wanted.
    #[error("{file}: this is a folder; name the file in it")]
    Directory {
        /// The folder.
        file: String,
    },
    /// The content of a file is not what was expected, or several files cannot be one trace, or a
    /// build without Parquet is given a Parquet file.
    #[error("{file}: {what}")]
    Content {
        /// The file.
        file: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// No output format follows from the name of a file.
    #[error(
        "{file}: its extension names no output format; use .parquet, .fio, .iolog or .mqsim, or \
         give --to"
    )]
    NoTarget {
        /// The file.
        file: String,
    },
    /// The file has no byte, or unpacks to none.
    #[error("{file}: the file is empty; write it again, or name another file")]
    Empty {
        /// The file.
        file: String,
    },
    /// The system reported an error while the file was being read.
    #[error("{file}: cannot be read at byte {byte}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Bytes read before the error.
        byte: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A compressed file ends too early.
    #[error(
        "{file}: the file is truncated: its {codec} data ends at byte {byte}, after {lines} whole \
         lines or records; copy it again from where it is complete"
    )]
    Truncated {
        /// The file.
        file: String,
        /// The compression.
        codec: &'static str,
        /// Bytes of the compressed file.
        byte: u64,
        /// Lines (or records of a binary format) that were whole.
        lines: u64,
    },
    /// Other bytes follow the compressed data of a file.
    #[error(
        "{file}: the {codec} data ends at byte {byte}, after {lines} whole lines or records, and \
         bytes follow that are no {codec} data; copy the file again, or, if they do not belong to \
         it, keep its first {byte} bytes: head -c {byte}"
    )]
    Trailing {
        /// The file.
        file: String,
        /// The compression.
        codec: &'static str,
        /// Bytes of the compressed file before them.
        byte: u64,
        /// Lines (or records of a binary format) that were whole.
        lines: u64,
    },
    /// A compressed file holds bytes that cannot be unpacked.
    #[error(
        "{file}: the {codec} data is damaged near byte {byte}, after {lines} whole lines or \
         records ({detail}); copy it again from where it is intact"
    )]
    Damaged {
        /// The file.
        file: String,
        /// The compression.
        codec: &'static str,
        /// Bytes of the compressed file that were taken.
        byte: u64,
        /// Lines (or records of a binary format) that were whole.
        lines: u64,
        /// The error of the decompressor.
        detail: String,
    },
    /// The bytes were read, but they are not a trace of the format.
    #[error("{file}: {error}")]
    Trace {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: TraceError,
    },
    /// A size of logical blocks is given for a trace that does not need it.
    #[error(
        "{file}: this trace contains offsets and sizes in bytes; leave out --block-size, which is \
         only for traces of NVMe commands"
    )]
    BlockSizeKnown {
        /// The file.
        file: String,
    },
    /// The trace has no phase or device of that name.
    #[error("{file}: there is no {kind} {name:?} in the trace; {}", known_names(kind, known))]
    UnknownName {
        /// The trace.
        file: String,
        /// `phase` or `device`.
        kind: &'static str,
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The temporary file of a long trace cannot be written or read.
    #[error(
        "the temporary file of the trace failed: {0}; point TMPDIR to a folder with more space"
    )]
    Temporary(io::Error),
    /// The system gave no more memory for a table: a column of a simulated drive, the index of a
    /// cache, or rows that are kept.
    #[error(
        "not enough memory: {size} for one table could not be allocated; simulate a smaller drive \
         (--capacity) or cache, keep fewer rows, or raise the limit of memory (ulimit -v)"
    )]
    Memory {
        /// The size of the table.
        size: Bytes,
    },
    /// A stored record cannot be read again.
    #[error("{0}")]
    Source(#[from] prism_trace::SourceError),
    /// A row cannot be kept. Those before it are.
    #[error("{file}: {}", row_failure(source))]
    Row {
        /// The file of rows.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An output cannot be written. Nothing is left of it.
    #[error("{file}: {}", write_failure(source))]
    Write {
        /// The output.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl HostError {
    /// The error of a file whose content is not what was expected: what is wrong, and what to do.
    pub(crate) fn content(file: &str, what: impl Into<String>) -> Self {
        Self::Content { file: file.to_owned(), what: what.into() }
    }

    /// Whether the reader of the output closed it (`prism ... | head`), which needs no message.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

fn open_failure(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the name".into(),
        io::ErrorKind::PermissionDenied => {
            "no permission to open it; change its mode, or run as its owner".into()
        }
        io::ErrorKind::InvalidData => "this is no text in UTF-8; name a text file".into(),
        _ => format!("cannot be opened: {error}"),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn row_failure(error: &io::Error) -> String {
    let rest = "the rows before are kept: run the same again to go on";
    if is_full(error) {
        format!("the disk is full; free some space; {rest}")
    } else {
        format!("{}; {rest}", write_failure(error))
    }
}

fn write_failure(error: &io::Error) -> String {
    match error.kind() {
        _ if is_full(error) => {
            "the disk is full; nothing was kept of the output; free some space, or write elsewhere"
                .into()
        }
        io::ErrorKind::NotFound => "the folder to write into does not exist; create it".into(),
        io::ErrorKind::PermissionDenied => {
            "no permission to write there; choose another folder".into()
        }
        io::ErrorKind::IsADirectory => "this is a folder; name a file to write".into(),
        _ => format!("cannot be written: {error}"),
    }
}

/// Names listed in a message; more would push its beginning off the screen.
const NAMES_SHOWN: usize = 20;

fn known_names(kind: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("it names no {kind}s");
    }
    let mut list = known.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(" ");
    if known.len() > NAMES_SHOWN {
        list.push_str(&format!(" and {} more", known.len() - NAMES_SHOWN));
    }
    format!("its {kind}s are: {list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_file_and_what_to_do() {
        let check = |error: HostError, text: &str| assert_eq!(error.to_string(), text);
        let io = |kind| io::Error::from(kind);
        check(
            HostError::Open { file: "a.txt".into(), source: io(io::ErrorKind::NotFound) },
            "a.txt: there is no such file; check the name",
        );
        check(
            HostError::Open { file: "b".into(), source: io(io::ErrorKind::InvalidData) },
            "b: this is no text in UTF-8; name a text file",
        );
        check(
            HostError::Write { file: "o".into(), source: io(io::ErrorKind::StorageFull) },
            "o: the disk is full; nothing was kept of the output; free some space, or write \
             elsewhere",
        );
        check(
            HostError::Row { file: "o".into(), source: io(io::ErrorKind::StorageFull) },
            "o: the disk is full; free some space; the rows before are kept: run the same again to \
             go on",
        );
        let known = |count: usize| (0..count).map(|i| format!("p{i}")).collect::<Vec<_>>();
        check(
            HostError::UnknownName {
                file: "t".into(),
                kind: "phase",
                name: "x".into(),
                known: known(2),
            },
            "t: there is no phase \"x\" in the trace; its phases are: p0 p1",
        );
        assert!(known_names("device", &known(21)).ends_with("p19 and 1 more"));
        assert_eq!(known_names("device", &[]), "it names no devices");
    }
}
