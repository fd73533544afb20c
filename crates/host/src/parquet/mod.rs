//! Prism's own trace format: one row per record, in Parquet with zstd, which DuckDB, Polars and
//! pandas can read. The columns are specified in `docs/spec/trace-parquet.md`.
//!
//! Other facts about the trace are JSON in the file's key-value metadata, together with a
//! digest over facts and records: writers of Parquet keep no checksums, and without the digest
//! a changed byte within a page would become a changed request.

mod columns;
mod numbers;
mod read;
mod requests;
mod table;
mod write;

pub use numbers::{Number, NumbersReader, NumbersWriter};
pub use read::ParquetReader;
pub use requests::RequestsWriter;
pub use table::{write_csv, write_data_set, write_table};
pub use write::write;

use std::hash::Hasher;

use prism_trace::{Flags, OptTime, Record, Symbol, Symbols, TraceFacts};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use prism_trace::compact::encode;

use crate::error::HostError;

/// Whether this build can read and write the Parquet file `_file`.
///
/// # Errors
/// None; [`HostError::Content`] in builds without Parquet.
pub fn is_there(_file: &str) -> Result<(), HostError> {
    Ok(())
}

/// Version of the columns and of the metadata; a reader refuses a newer one.
const VERSION: u32 = 1;

/// Key of the metadata.
const META_KEY: &str = "prism.trace";

/// The columns, in Parquet's own notation.
const SCHEMA: &str = "message prism_trace {
    REQUIRED INT64 issue_ns;
    OPTIONAL INT64 queue_ns;
    OPTIONAL INT64 complete_ns;
    REQUIRED BYTE_ARRAY op (STRING);
    REQUIRED INT64 offset_bytes (INTEGER(64,false));
    REQUIRED INT64 len_bytes (INTEGER(64,false));
    OPTIONAL BYTE_ARRAY device (STRING);
    OPTIONAL INT32 pid;
    OPTIONAL BYTE_ARRAY comm (STRING);
    OPTIONAL BYTE_ARRAY file (STRING);
    OPTIONAL INT64 inode (INTEGER(64,false));
    OPTIONAL BYTE_ARRAY phase (STRING);
    OPTIONAL INT32 stream (INTEGER(16,false));
    OPTIONAL INT32 hint (INTEGER(8,false));
    REQUIRED BOOLEAN sync;
    REQUIRED BOOLEAN meta;
    REQUIRED BOOLEAN fua;
    REQUIRED BOOLEAN preflush;
    REQUIRED BOOLEAN readahead;
}";

/// The flags, in the order of their columns.
const FLAGS: [(&str, Flags); 5] = [
    ("sync", Flags::SYNC),
    ("meta", Flags::META),
    ("fua", Flags::FUA),
    ("preflush", Flags::PREFLUSH),
    ("readahead", Flags::READAHEAD),
];

/// The value of [`META_KEY`].
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Meta {
    version: u32,
    records: u64,
    /// Sixteen hexadecimal digits, because JSON numbers are not exact beyond 53 bits.
    digest: String,
    facts: TraceFacts,
}

/// XXH64 over the facts as JSON, then every record in order: its fixed fields, then its
/// four names.
#[derive(Debug)]
struct Digest {
    hash: XxHash64,
    scratch: Vec<u8>,
    records: u64,
}

impl Digest {
    fn new(facts: &TraceFacts) -> Self {
        let mut hash = XxHash64::with_seed(0);
        hash.write(json(facts).as_bytes());
        Self { hash, scratch: Vec::new(), records: 0 }
    }

    fn add(&mut self, record: &Record, symbols: &Symbols) {
        let names = [record.device, record.comm, record.file, record.phase];
        let nameless = Record {
            device: Symbol::NONE,
            comm: Symbol::NONE,
            file: Symbol::NONE,
            phase: Symbol::NONE,
            ..*record
        };
        self.scratch.clear();
        encode(&nameless, &mut self.scratch);
        for name in names.map(|symbol| symbols.name(symbol)) {
            self.scratch.extend_from_slice(&(name.len() as u64).to_le_bytes());
            self.scratch.extend_from_slice(name.as_bytes());
        }
        self.hash.write(&self.scratch);
        self.records += 1;
    }

    fn text(&self) -> String {
        format!("{:016x}", self.hash.finish())
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the metadata has only plain fields")
}

fn known_time(ns: Option<i64>) -> OptTime {
    ns.map_or(OptTime::UNKNOWN, OptTime::at)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use prism_testkit::cases;
    use prism_trace::{Capabilities, CountedFrom, Op, PhaseRow, SkipRow, VecSource};
    use proptest::prelude::*;

    use super::*;
    use crate::atomic::OutputFile;
    use crate::error::HostError;

    const CAPABILITIES: Capabilities = Capabilities {
        operation: true,
        address: true,
        discard: true,
        write_zeroes: true,
        flush: true,
        fua: true,
        sync_meta: true,
        completion: true,
        queue: false,
        process: true,
        file: false,
        stream: false,
        clock_ns: 1000,
    };

    fn facts() -> TraceFacts {
        TraceFacts {
            format: "ftrace".into(),
            lines: 77,
            capabilities: CAPABILITIES,
            skipped: vec![SkipRow { reason: "odd \"line\"".into(), count: 2, first_line: 9 }],
            phases: vec![PhaseRow { name: "app".into(), start_ns: -3, end_ns: i64::MAX }],
            unpaired: 4,
            reordered: 0,
            counted_from: CountedFrom::Queue,
            nvme_block_bytes: Some(4096),
        }
    }

    fn store(path: &Path, records: &[Record], symbols: &Symbols) {
        let mut out = OutputFile::create(path).unwrap();
        let mut source = VecSource::new(records.to_vec());
        let written = write(&mut out, &mut source, symbols, &facts()).unwrap();
        assert_eq!(written, records.len() as u64);
        out.commit().unwrap();
    }

    fn load(path: &Path) -> Result<(Vec<Record>, Symbols), HostError> {
        let mut reader = ParquetReader::open(fs::File::open(path).unwrap(), "t.parquet")?;
        let (mut all, mut batch, mut symbols) = (Vec::new(), Vec::new(), Symbols::new());
        loop {
            reader.next_batch(&mut symbols, &mut batch)?;
            if batch.is_empty() {
                assert_eq!(reader.records(), all.len() as u64);
                assert_eq!(reader.facts(), &facts());
                return Ok((all, symbols));
            }
            all.append(&mut batch);
        }
    }

    /// Records with their symbols replaced by the names, which keep their meaning.
    fn named(records: &[Record], symbols: &Symbols) -> Vec<(Record, [String; 4])> {
        let strip = |r: &Record| Record {
            device: Symbol::NONE,
            comm: Symbol::NONE,
            file: Symbol::NONE,
            phase: Symbol::NONE,
            ..*r
        };
        let names = |r: &Record| {
            [r.device, r.comm, r.file, r.phase].map(|symbol| symbols.name(symbol).to_owned())
        };
        records.iter().map(|record| (strip(record), names(record))).collect()
    }

    fn symbols() -> Symbols {
        let mut symbols = Symbols::new();
        for name in ["7,0", "kworker/0:1", "ünïcode", "app"] {
            symbols.intern(name);
        }
        symbols
    }

    fn sample(count: usize) -> Vec<Record> {
        let record = |i: usize| Record {
            complete: OptTime::at(i as i64 * 10 + 7),
            device: Symbol(1),
            comm: Symbol((i % 3) as u32),
            pid: 42,
            flags: Flags::SYNC.with(Flags::META),
            ..Record::new(Op::ALL[i % 5], i as i64 * 10, i as u64 * 4096, 4096)
        };
        (0..count).map(record).collect()
    }

    proptest! {
        #![proptest_config(cases(64))]
        #[test]
        fn random_records_are_read_as_written(
            mut records in prop::collection::vec(crate::compact::any_record(), 0..40)
        ) {
            let symbols = symbols();
            for r in &mut records {
                for symbol in [&mut r.device, &mut r.comm, &mut r.file, &mut r.phase] {
                    symbol.0 %= 5;
                }
                r.flags.0 %= 32;
                // Others are refused.
                (r.offset, r.len) = (r.offset >> 2, r.len >> 2);
                r.issue_ns /= 2;
                for time in [&mut r.queue, &mut r.complete] {
                    *time = time.get().map_or(OptTime::UNKNOWN, |ns| OptTime::at(ns / 2));
                }
            }
            records.sort_by_key(|record| record.issue_ns);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.parquet");
            store(&path, &records, &symbols);
            let (read, read_symbols) = load(&path).unwrap();
            prop_assert_eq!(named(&read, &read_symbols), named(&records, &symbols));
        }
    }

    #[test]
    fn several_row_groups_are_one_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let records = sample(write::GROUP_ROWS + 5);
        store(&path, &records, &symbols());
        let (read, read_symbols) = load(&path).unwrap();
        assert_eq!(named(&read, &read_symbols), named(&records, &symbols()));
    }

    #[test]
    fn no_changed_byte_and_no_cut_goes_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let records = sample(50);
        store(&path, &records, &symbols());
        let whole = fs::read(&path).unwrap();
        let wanted = named(&records, &symbols());
        let mut refused = 0;
        for place in (0..whole.len()).step_by(3) {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << (place % 8);
            fs::write(&path, &bytes).unwrap();
            // A change in bytes that are not read, such as statistics, may pass; a changed
            // record may not.
            match load(&path) {
                Ok((read, symbols)) => assert_eq!(named(&read, &symbols), wanted, "byte {place}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > whole.len() / 12, "only {refused} changes are seen");
        for cut in (4..whole.len()).step_by(11) {
            fs::write(&path, &whole[..cut]).unwrap();
            let error = load(&path).expect_err("a cut file");
            assert!(error.to_string().starts_with("t.parquet: "), "{error}");
        }
    }
}
