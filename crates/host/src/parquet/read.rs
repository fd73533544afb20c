//! Reads records from Parquet, in batches of bounded size for row groups of any size.

use std::fs::File;

use parquet::basic::{Compression, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use prism_base::Named;
use prism_trace::fields::{ADDRESS_MAX, TIME_MAX_NS};
use prism_trace::{Flags, Op, Record, Symbol, Symbols, TraceFacts};

use super::{Digest, FLAGS, META_KEY, Meta, VERSION, known_time};
use crate::error::HostError;
use crate::guard::guarded;

/// Rows read at once.
const BATCH_ROWS: usize = 1 << 14;

/// Reads the records of one file, once, and checks their digest at the end.
pub struct ParquetReader {
    name: String,
    file: SerializedFileReader<File>,
    meta: Meta,
    group: usize,
    left: usize,
    columns: Option<Columns>,
    digest: Digest,
    last_ns: i64,
    done: bool,
}

impl ParquetReader {
    /// Opens `file`, called `name` in messages.
    ///
    /// # Errors
    /// [`HostError::Content`] if it is damaged, is not a trace, or has a newer version.
    pub fn open(file: File, name: &str) -> Result<Self, HostError> {
        let file = guarded(|| SerializedFileReader::new(file))
            .unwrap_or_else(inconsistent)
            .map_err(|error| damaged(name, &error))?;
        let meta = meta(name, &file)?;
        check_compression(name, &file)?;
        let digest = Digest::new(&meta.facts);
        Ok(Self {
            name: name.to_owned(),
            file,
            meta,
            group: 0,
            left: 0,
            columns: None,
            digest,
            last_ns: i64::MIN,
            done: false,
        })
    }

    /// What is known of the trace.
    #[must_use]
    pub fn facts(&self) -> &TraceFacts {
        &self.meta.facts
    }

    /// Records in the file.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.meta.records
    }

    /// Replaces the content of `batch` by the next records, whose names are entered into
    /// `symbols`; leaves it empty at the end.
    ///
    /// # Errors
    /// [`HostError::Content`] if the file is damaged.
    pub fn next_batch(
        &mut self,
        symbols: &mut Symbols,
        batch: &mut Vec<Record>,
    ) -> Result<(), HostError> {
        batch.clear();
        let read = guarded(|| self.read_batch(symbols, batch));
        read.unwrap_or_else(|| inconsistent().map_err(|error| damaged(&self.name, &error)))
    }

    fn read_batch(
        &mut self,
        symbols: &mut Symbols,
        batch: &mut Vec<Record>,
    ) -> Result<(), HostError> {
        while self.left == 0 {
            if self.group == self.file.num_row_groups() {
                return self.check_end();
            }
            self.open_group()?;
        }
        let rows = self.left.min(BATCH_ROWS);
        let columns = self.columns.as_mut().expect("a row group with rows left is open");
        columns.read(rows).map_err(|error| damaged(&self.name, &error))?;
        for row in 0..rows {
            let record = columns
                .record(row, symbols)
                .ok_or_else(|| not_a_trace(&self.name, "it has a value that no record can have"))?;
            if record.issue_ns < self.last_ns {
                return Err(not_a_trace(&self.name, "its rows are not in the order of issue_ns"));
            }
            self.last_ns = record.issue_ns;
            self.digest.add(&record, symbols);
            batch.push(record);
        }
        self.left -= rows;
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), HostError> {
        let name = &self.name;
        let group = self.file.get_row_group(self.group).map_err(|e| damaged(name, &e))?;
        self.left = usize::try_from(group.metadata().num_rows())
            .map_err(|_| not_a_trace(name, "it claims a negative number of rows"))?;
        self.group += 1;
        let column = |wanted: &str, kind: PhysicalType| {
            let schema = group.metadata().schema_descr();
            let place = schema.columns().iter().position(|column| {
                column.name() == wanted
                    && column.physical_type() == kind
                    && column.max_rep_level() == 0
                    && column.max_def_level() <= 1
            });
            let Some(place) = place else {
                let what = format!("the column {wanted} is missing or has another type");
                return Err(not_a_trace(name, &what));
            };
            group.get_column_reader(place).map_err(|error| damaged(name, &error))
        };
        self.columns = Some(Columns::open(column)?);
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), HostError> {
        let whole = self.digest.records == self.meta.records;
        if self.done || whole && self.digest.text() == self.meta.digest {
            self.done = true;
            return Ok(());
        }
        Err(not_a_trace(
            &self.name,
            "its rows do not match the digest stored with them: it is damaged, or another \
             program changed it",
        ))
    }
}

fn meta(name: &str, file: &SerializedFileReader<File>) -> Result<Meta, HostError> {
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let text = pairs
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == META_KEY))
        .and_then(|pair| pair.value.as_deref());
    let Some(text) = text else {
        let what = format!("it has no key {META_KEY:?}, so no `prism trace convert` wrote it");
        return Err(not_a_trace(name, &what));
    };
    let value: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| not_a_trace(name, &format!("its metadata is damaged ({error})")))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(version) if version > u64::from(VERSION) => {
            let what = format!(
                "it has version {version} of the store, this program knows {VERSION}; use a newer \
                 prism"
            );
            return Err(HostError::content(name, what));
        }
        _ => {}
    }
    serde_json::from_value(value)
        .map_err(|error| not_a_trace(name, &format!("its metadata is damaged ({error})")))
}

/// Refuses a compression that this program cannot unpack.
pub(super) fn check_compression(
    name: &str,
    file: &SerializedFileReader<File>,
) -> Result<(), HostError> {
    let groups = file.metadata().row_groups();
    let columns = groups.iter().flat_map(|group| group.columns());
    match columns.map(|column| column.compression()).find_map(unknown_compression) {
        None => Ok(()),
        Some(codec) => {
            let what = format!(
                "this Parquet file is compressed with {codec}, which cannot be read; write it \
                 again with zstd, as pyarrow's write_table(..., compression=\"zstd\") does"
            );
            Err(HostError::content(name, what))
        }
    }
}

/// The name of a compression that cannot be unpacked.
fn unknown_compression(codec: Compression) -> Option<&'static str> {
    match codec {
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::ZSTD(_) => None,
        Compression::LZ4 | Compression::LZ4_RAW => Some("lz4"),
        Compression::BROTLI(_) => Some("brotli"),
        Compression::LZO => Some("lzo"),
    }
}

/// One column: the known values of the current batch, and for each row whether there is one.
pub(super) struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    optional: bool,
    values: Vec<T::T>,
    levels: Vec<i16>,
    next: usize,
}

impl<T: DataType> Column<T> {
    pub(super) fn new(reader: ColumnReader) -> Self {
        let reader = get_typed_column_reader::<T>(reader);
        Self { reader, optional: true, values: Vec::new(), levels: Vec::new(), next: 0 }
    }

    pub(super) fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.values.clear();
        self.levels.clear();
        self.next = 0;
        let levels = Some(&mut self.levels);
        let (read, values, _) = self.reader.read_records(rows, levels, None, &mut self.values)?;
        // Parquet leaves the levels of a required column empty.
        self.optional = !self.levels.is_empty();
        if read != rows || values != self.values.len() {
            return Err(ParquetError::EOF("a column is shorter than its row group".into()));
        }
        Ok(())
    }

    /// The value of the batch's row `row`; rows are read in order.
    pub(super) fn take(&mut self, row: usize) -> Option<&T::T> {
        if self.optional && self.levels[row] == 0 {
            return None;
        }
        self.next += 1;
        self.values.get(self.next - 1)
    }
}

/// A column of names, which remembers the last one: neighbours often have the same.
struct Names {
    column: Column<ByteArrayType>,
    last: (ByteArray, Symbol),
}

impl Names {
    fn new(reader: ColumnReader) -> Self {
        Self { column: Column::new(reader), last: (ByteArray::from(""), Symbol::NONE) }
    }

    fn take(&mut self, row: usize, symbols: &mut Symbols) -> Option<Symbol> {
        let Some(name) = self.column.take(row) else { return Some(Symbol::NONE) };
        if *name != self.last.0 {
            let symbol = symbols.intern(std::str::from_utf8(name.data()).ok()?);
            self.last = (name.clone(), symbol);
        }
        Some(self.last.1)
    }
}

/// The open columns of one row group.
struct Columns {
    /// issue, queue, complete, offset, len, inode.
    longs: [Column<Int64Type>; 6],
    /// pid, stream, hint.
    ints: [Column<Int32Type>; 3],
    /// device, comm, file, phase.
    names: [Names; 4],
    op: Column<ByteArrayType>,
    flags: [Column<BoolType>; FLAGS.len()],
}

impl Columns {
    fn open(
        column: impl Fn(&str, PhysicalType) -> Result<ColumnReader, HostError>,
    ) -> Result<Self, HostError> {
        let long = |name| column(name, PhysicalType::INT64).map(Column::new);
        let int = |name| column(name, PhysicalType::INT32).map(Column::new);
        let names = |name| column(name, PhysicalType::BYTE_ARRAY).map(Names::new);
        let flag = |name| column(name, PhysicalType::BOOLEAN).map(Column::new);
        let [sync, meta, fua, preflush, readahead] = FLAGS.map(|(name, _)| flag(name));
        Ok(Self {
            longs: [
                long("issue_ns")?,
                long("queue_ns")?,
                long("complete_ns")?,
                long("offset_bytes")?,
                long("len_bytes")?,
                long("inode")?,
            ],
            ints: [int("pid")?, int("stream")?, int("hint")?],
            names: [names("device")?, names("comm")?, names("file")?, names("phase")?],
            op: column("op", PhysicalType::BYTE_ARRAY).map(Column::new)?,
            flags: [sync?, meta?, fua?, preflush?, readahead?],
        })
    }

    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.longs.iter_mut().try_for_each(|column| column.read(rows))?;
        self.ints.iter_mut().try_for_each(|column| column.read(rows))?;
        self.names.iter_mut().try_for_each(|names| names.column.read(rows))?;
        self.op.read(rows)?;
        self.flags.iter_mut().try_for_each(|column| column.read(rows))
    }

    /// The record of the batch's row `row`; `None` if a value cannot be one of a record.
    fn record(&mut self, row: usize, symbols: &mut Symbols) -> Option<Record> {
        let mut longs = self.longs.iter_mut().map(|column| column.take(row).copied());
        let mut long = || longs.next().expect("one more column");
        let (issue, queue, complete) = (long()?, long(), long());
        let (offset, len, inode) = (long()?, long()?, long().unwrap_or(0));
        let op = std::str::from_utf8(self.op.take(row)?.data()).ok()?;
        let mut flags = Flags::NONE;
        for (column, (_, flag)) in self.flags.iter_mut().zip(FLAGS) {
            if *column.take(row)? {
                flags = flags.with(flag);
            }
        }
        let [pid, stream, hint] = self.ints.each_mut().map(|column| column.take(row).copied());
        let [device, comm, file, phase] =
            self.names.each_mut().map(|names| names.take(row, symbols));
        let (offset, len) = (offset as u64, len as u64);
        // The limits of other formats, so that ends of requests and differences of times fit.
        let in_range = |time: i64| (-TIME_MAX_NS..=TIME_MAX_NS).contains(&time);
        let known = [queue, complete].into_iter().flatten().all(in_range);
        // A flush has no address; systems leave any number in its place.
        let fits = offset.checked_add(len)? <= ADDRESS_MAX || op == Op::Flush.name() && len == 0;
        if !fits || !in_range(issue) || !known {
            return None;
        }
        Some(Record {
            queue: known_time(queue),
            complete: known_time(complete),
            inode: inode as u64,
            device: device?,
            comm: comm?,
            file: file?,
            phase: phase?,
            pid: pid.unwrap_or(-1),
            stream: u16::try_from(stream.unwrap_or(0)).ok()?,
            flags,
            hint: u8::try_from(hint.unwrap_or(0)).ok()?,
            ..Record::new(Op::from_name(op)?, issue, offset, len)
        })
    }
}

/// The error for a failed assertion of the Parquet library.
pub(super) fn inconsistent<T>() -> Result<T, ParquetError> {
    Err(ParquetError::General("its parts contradict each other".into()))
}

fn damaged(name: &str, error: &ParquetError) -> HostError {
    let what = format!(
        "the Parquet file is damaged or incomplete ({error}); copy it again, or convert the trace \
         again"
    );
    HostError::content(name, what)
}

fn not_a_trace(name: &str, what: &str) -> HostError {
    let what = format!("this Parquet file cannot be used: {what}; convert the trace again");
    HostError::content(name, what)
}
