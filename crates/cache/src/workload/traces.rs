//! Traces of real caches: oracleGeneral (libCacheSim), Twitter's cache traces, CacheBench's, and
//! any CSV whose header names its columns.
//!
//! | format | columns |
//! |---|---|
//! | oracleGeneral | 24 bytes: time (4), key (8), size (4), next access (8); all are gets |
//! | Twitter | time, key, bytes of the key, bytes of the value, client, operation, TTL; no header |
//! | CSV | names: `time`, `key`, `op`, `size` or `key_size` and `value_size`, `ttl`, `op_count` |

use std::collections::BTreeMap;

use super::{Op, Request};
use crate::index::hash;

/// The seed of hashes of keys in traces.
const SEED: u64 = 0;
/// Bytes of a record of oracleGeneral.
const RECORD: usize = 24;
/// Bytes of a line at most.
const LINE: usize = 64 << 10;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// libCacheSim's binary format.
    OracleGeneral,
    /// Twitter's.
    Twitter,
    /// CSV with a header.
    Csv,
}

/// What is wrong with a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line.
    #[error("line {line}: {what}")]
    Line {
        /// Its number.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// There is no request in it.
    #[error("the trace has no requests")]
    Empty,
    /// The end of a binary trace is missing.
    #[error("the trace ends within record {record}: it is truncated")]
    Truncated {
        /// The number of the record.
        record: u64,
    },
    /// The trace is none of the formats.
    #[error(
        "the format is not known: give oracleGeneral, Twitter's seven columns, or a CSV whose \
         header names key and size"
    )]
    Unknown,
}

/// The columns of a text format.
#[derive(Clone, Debug, Default)]
struct Columns {
    time: Option<usize>,
    key: usize,
    op: Option<usize>,
    size: Option<usize>,
    key_size: Option<usize>,
    value_size: Option<usize>,
    ttl: Option<usize>,
    count: Option<usize>,
}

/// A reader of traces: bytes in, requests out.
#[derive(Debug, Default)]
pub struct Traces {
    format: Option<Format>,
    columns: Columns,
    /// Bytes of an unfinished line or record.
    rest: Vec<u8>,
    lines: u64,
    first_time: Option<u64>,
    /// Whether there was a request.
    has_requests: bool,
}

impl Columns {
    fn named(header: &str) -> Option<Self> {
        let names: BTreeMap<String, usize> =
            header.split(',').map(|name| name.trim().to_lowercase()).zip(0..).collect();
        let any = |wanted: &[&str]| wanted.iter().find_map(|name| names.get(*name).copied());
        let columns = Self {
            time: any(&["time", "timestamp", "clock_time"]),
            key: any(&["key", "obj_id", "id", "object_id"])?,
            op: any(&["op", "operation"]),
            size: any(&["size", "obj_size", "object_size"]),
            key_size: any(&["key_size", "key size"]),
            value_size: any(&["value_size", "value size", "val_size"]),
            ttl: any(&["ttl"]),
            count: any(&["op_count", "count"]),
        };
        (columns.size.is_some() || columns.value_size.is_some()).then_some(columns)
    }

    const fn twitter() -> Self {
        Self {
            time: Some(0),
            key: 1,
            op: Some(5),
            size: None,
            key_size: Some(2),
            value_size: Some(3),
            ttl: Some(6),
            count: None,
        }
    }
}

/// CacheBench writes its operations as numbers too: 0 get, 1 set, 2 delete.
fn op_of(text: &str) -> Option<Op> {
    match text.to_ascii_lowercase().as_str() {
        "get" | "gets" | "read" | "0" | "get_lease" => Some(Op::Get),
        "set" | "add" | "replace" | "cas" | "append" | "prepend" | "incr" | "decr" | "write"
        | "update" | "insert" | "1" | "set_lease" => Some(Op::Set),
        "delete" | "remove" | "del" | "2" => Some(Op::Delete),
        _ => None,
    }
}

/// Whether the whole records of this beginning can be oracleGeneral's: times ascend, the next
/// access of an object is none or the number of a record, and not all objects are empty.
fn is_oracle_general(begin: &[u8]) -> bool {
    // No trace has more records; -1, -2 and the largest number are none.
    const RECORDS: i64 = 1 << 48;
    let word = |record: &[u8], at: usize| {
        u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes"))
    };
    let next = |record: &[u8]| i64::from_le_bytes(record[16..24].try_into().expect("8 bytes"));
    let mut records = begin.chunks_exact(RECORD);
    let has_next = |record: &[u8]| matches!(next(record), -2..RECORDS | i64::MAX);
    let times = begin.chunks_exact(RECORD).map(|record| word(record, 0));
    let has_sizes = begin.len() < RECORD || records.clone().any(|record| word(record, 12) > 0);
    times.is_sorted() && records.all(has_next) && has_sizes
}

/// Why a first line is that of no format, if it is nearly one.
fn cause(line: &str) -> Option<&'static str> {
    let is_header = |line: &str| Columns::named(line).is_some();
    if line.strip_prefix('\u{feff}').is_some() {
        return Some("it begins with a byte order mark; save the file as UTF-8 without one");
    }
    if is_header(&line.replace(';', ",")) || is_header(&line.replace('\t', ",")) {
        return Some("the columns are not separated by commas; replace what is between them");
    }
    let is_quoted = is_header(&line.replace('"', ""));
    is_quoted.then_some("the fields are in quotes; write them without")
}

impl Traces {
    /// A reader that recognises the format by the first bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next bytes of a trace; `is_last` if there are no more.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn read(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        out: &mut Vec<Request>,
    ) -> Result<(), TraceError> {
        self.rest.extend_from_slice(bytes);
        if self.format.is_none() {
            if !is_last && self.rest.len() < 4096 {
                return Ok(());
            }
            self.recognise()?;
        }
        let rest = std::mem::take(&mut self.rest);
        let before = out.len();
        let used = match self.format {
            Some(Format::OracleGeneral) => self.records(&rest, out),
            _ => self.lines(&rest, is_last, out)?,
        };
        self.has_requests |= out.len() > before;
        self.rest = rest[used..].to_vec();
        if is_last && !self.rest.is_empty() {
            return Err(TraceError::Truncated { record: self.lines + 1 });
        }
        if is_last && !self.has_requests {
            return Err(TraceError::Empty);
        }
        Ok(())
    }

    fn recognise(&mut self) -> Result<(), TraceError> {
        let begin = &self.rest[..self.rest.len().min(4096)];
        if begin.contains(&0) {
            if !is_oracle_general(begin) {
                return Err(TraceError::Unknown);
            }
            self.format = Some(Format::OracleGeneral);
            return Ok(());
        }
        let line = begin.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(line).map_err(|_| TraceError::Unknown)?.trim_end();
        if let Some(columns) = Columns::named(line) {
            (self.format, self.columns) = (Some(Format::Csv), columns);
            self.lines = 1;
            let header = self.rest.iter().position(|&byte| byte == b'\n');
            self.rest.drain(..header.map_or(self.rest.len(), |at| at + 1));
            return Ok(());
        }
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() == 7 && fields[0].parse::<u64>().is_ok() && op_of(fields[5]).is_some() {
            (self.format, self.columns) = (Some(Format::Twitter), Columns::twitter());
            return Ok(());
        }
        match cause(line) {
            Some(what) => Err(TraceError::Line { line: 1, what: what.to_owned() }),
            None => Err(TraceError::Unknown),
        }
    }

    fn since_begin(&mut self, time: u64) -> u32 {
        let first = *self.first_time.get_or_insert(time);
        u32::try_from(time.saturating_sub(first)).unwrap_or(u32::MAX)
    }

    fn records(&mut self, bytes: &[u8], out: &mut Vec<Request>) -> usize {
        for record in bytes.chunks_exact(RECORD) {
            let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4"));
            let key = hash(&record[4..12], SEED);
            let time = self.since_begin(word(0).into());
            // The size is that of key and value; keys of eight bytes.
            let value_len = word(12).saturating_sub(8);
            out.push(Request { time, op: Op::Get, key, key_len: 8, value_len, ttl: 0 });
            self.lines += 1;
        }
        bytes.len() / RECORD * RECORD
    }

    fn lines(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        out: &mut Vec<Request>,
    ) -> Result<usize, TraceError> {
        let mut used = 0;
        while used < bytes.len() {
            let end = bytes[used..].iter().position(|&byte| byte == b'\n');
            let line = match end {
                Some(end) => &bytes[used..used + end],
                None if is_last => &bytes[used..],
                None if bytes.len() - used > LINE => {
                    let what = format!("longer than {LINE} bytes");
                    return Err(TraceError::Line { line: self.lines + 1, what });
                }
                None => break,
            };
            self.lines += 1;
            used = (used + line.len() + 1).min(bytes.len());
            let text = std::str::from_utf8(line).map(str::trim_end);
            let parsed = match text {
                Ok("") => continue,
                Ok(text) => self.line(text, out),
                Err(_) => Err("not UTF-8 text".to_owned()),
            };
            parsed.map_err(|what| {
                let is_quoted = text.is_ok_and(|text| text.contains('"'));
                let cause = if is_quoted { "; fields in quotes are not read" } else { "" };
                TraceError::Line { line: self.lines, what: format!("{what}{cause}") }
            })?;
        }
        Ok(used)
    }

    fn line(&mut self, line: &str, out: &mut Vec<Request>) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |at: usize, name: &str| {
            fields.get(at).copied().ok_or_else(|| format!("has no column {} ({name})", at + 1))
        };
        let number = |at: Option<usize>, name: &str| -> Result<Option<u64>, String> {
            let Some(at) = at else { return Ok(None) };
            let text = field(at, name)?;
            let whole = text.split('.').next().unwrap_or_default();
            let wrong = |_| format!("{name} is {text:?}, which is no number");
            whole.parse::<u64>().map(Some).map_err(wrong)
        };
        let columns = &self.columns;
        let key = field(columns.key, "key")?;
        let op = match columns.op {
            Some(at) => {
                let text = field(at, "operation")?;
                op_of(text).ok_or_else(|| format!("operation {text:?} is not known"))?
            }
            None => Op::Get,
        };
        let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let key_len = number(columns.key_size, "key size")?.unwrap_or(key.len() as u64);
        let key_len = small(key_len.clamp(1, 250));
        let value_len = match number(columns.value_size, "value size")? {
            Some(value) => small(value),
            None => small(number(columns.size, "size")?.unwrap_or(0)).saturating_sub(key_len),
        };
        let ttl = small(number(columns.ttl, "TTL")?.unwrap_or(0));
        let count = number(columns.count, "op_count")?.unwrap_or(1).min(1 << 20);
        let time = number(columns.time, "time")?;
        let key = hash(key.as_bytes(), SEED);
        let time = time.map_or(0, |time| self.since_begin(time));
        let request = Request { time, op, key, key_len, value_len, ttl };
        out.extend(std::iter::repeat_n(request, count as usize));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], step: usize) -> Result<Vec<Request>, TraceError> {
        let (mut traces, mut out) = (Traces::new(), Vec::new());
        for chunk in bytes.chunks(step) {
            traces.read(chunk, false, &mut out)?;
        }
        traces.read(&[], true, &mut out)?;
        Ok(out)
    }

    #[test]
    fn formats_are_recognised_however_the_bytes_come() {
        let twitter = "0,aa,2,100,1,get,0\n3,bb,2,50,1,set,60\n3,aa,2,0,1,delete,0\n";
        let csv = "key,op,size,op_count\naa,GET,102,2\nbb,SET,52,1\n";
        let mut oracle = Vec::new();
        for (time, id, size) in [(100_u32, 7_u64, 80_u32), (105, 8, 90)] {
            oracle.extend(time.to_le_bytes());
            oracle.extend(id.to_le_bytes());
            oracle.extend(size.to_le_bytes());
            oracle.extend((-1_i64).to_le_bytes());
        }
        for step in [1, 7, 24, 5000] {
            let found = read(twitter.as_bytes(), step).unwrap();
            let ops: Vec<Op> = found.iter().map(|request| request.op).collect();
            assert_eq!(ops, [Op::Get, Op::Set, Op::Delete]);
            assert_eq!((found[1].time, found[1].ttl, found[1].value_len), (3, 60, 50));
            assert_eq!((found[0].key, found[0].key_len), (found[2].key, 2));
            let found = read(csv.as_bytes(), step).unwrap();
            assert_eq!(found.len(), 3);
            assert_eq!((found[0].value_len, found[2].op), (100, Op::Set));
            let found = read(&oracle, step).unwrap();
            assert_eq!((found[1].time, found[1].value_len), (5, 82));
        }
        let cut = read(&oracle[..40], 9).unwrap_err();
        assert_eq!(cut, TraceError::Truncated { record: 2 });
    }

    #[test]
    fn a_malformed_line_is_named() {
        for (text, message) in [
            ("key,size\na,10\nb\n", "line 3: has no column 2 (size)"),
            ("key,size\na,ten\n", "line 2: size is \"ten\", which is no number"),
            ("key,op,size\na,jump,5\n", "line 2: operation \"jump\" is not known"),
        ] {
            assert_eq!(read(text.as_bytes(), 3).unwrap_err().to_string(), message);
        }
        assert_eq!(read(b"1,2,3\n", 9), Err(TraceError::Unknown));
    }

    #[test]
    fn the_cause_is_named() {
        for (text, part) in [
            ("\u{feff}key,size\na,10\n", "line 1: it begins with a byte order mark"),
            ("key;size\na;10\n", "line 1: the columns are not separated by commas"),
            ("key\tsize\na\t10\n", "line 1: the columns are not separated by commas"),
            ("\"key\",\"size\"\n\"a\",\"10\"\n", "line 1: the fields are in quotes"),
            (
                "key,size\n\"a\",\"10\"\n",
                "line 2: size is \"\\\"10\\\"\", which is no number; fields in",
            ),
            ("key,size\n", "the trace has no requests"),
            ("key,size\n\n", "the trace has no requests"),
        ] {
            for step in [1, 5000] {
                let error = read(text.as_bytes(), step).unwrap_err().to_string();
                assert!(error.contains(part), "{part:?} is not in {error}");
            }
        }
        // Text in two bytes a letter, zeros, a program.
        let wide: Vec<u8> =
            "key,size\na,10\nb,20\n".repeat(9).bytes().flat_map(|b| [b, 0]).collect();
        let program = std::fs::read("/proc/self/exe").unwrap();
        for other in [&wide[..], &[0; 4096], &program[..8000]] {
            assert_eq!(read(other, 5000), Err(TraceError::Unknown));
        }
    }
}
