//! Requests of a replay and records of a trace as Arrow arrays, with the columns of the Parquet
//! files (`docs/spec/requests-parquet.md`, `docs/spec/trace-parquet.md`).
//!
//! Names are dictionary arrays: a row has a number of four bytes, and each name exists once.

use std::panic::panic_any;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{ArrayBuilder, Int32Builder, Int64Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use prism_base::{Bytes, OutOfMemory, SimTime};
use prism_ssd::HostOp;
use prism_trace::{Flags, Op, OptTime, Record, Symbol, Symbols};
use prism_workload::Finished;

use crate::table::Table;

/// Bytes of a request in the columns of its batch.
const REQUEST_BYTES: usize = 8 * (2 + 6) + 4 * (1 + 6 + 1 + 4);

/// Rows of a batch: large, so that a table of millions of rows has few pieces.
const BATCH_ROWS: usize = 1 << 20;

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The schema of `columns`, of which those with `true` may be null.
fn schema(columns: &[(&str, DataType, bool)]) -> SchemaRef {
    let field = |(name, kind, nullable): &(&str, DataType, bool)| {
        Field::new(*name, kind.clone(), *nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The columns of requests.
static REQUESTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let (int, long, size) = (DataType::Int32, DataType::Int64, DataType::UInt64);
    schema(&[
        ("pass", int.clone(), false),
        ("op", dictionary(), false),
        ("offset_bytes", size.clone(), false),
        ("len_bytes", size, false),
        ("trace_issue_ns", long.clone(), false),
        ("arrival_ns", long.clone(), false),
        ("submit_ns", long.clone(), false),
        ("complete_ns", long.clone(), false),
        ("latency_ns", long.clone(), false),
        ("in_flight", int.clone(), false),
        ("flash_reads", int.clone(), false),
        ("buffer_hits", int.clone(), false),
        ("units_written", int.clone(), false),
        ("units_unmapped", int.clone(), false),
        ("buffer_wait_ns", long, false),
        ("device", dictionary(), true),
        ("pid", int, true),
        ("comm", dictionary(), true),
        ("file", dictionary(), true),
        ("phase", dictionary(), true),
    ])
});

/// The flags of a record, by column.
const FLAGS: [(&str, Flags); 5] = [
    ("sync", Flags::SYNC),
    ("meta", Flags::META),
    ("fua", Flags::FUA),
    ("preflush", Flags::PREFLUSH),
    ("readahead", Flags::READAHEAD),
];

/// The columns of traces.
pub static RECORDS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let (long, size) = (DataType::Int64, DataType::UInt64);
    let mut columns = vec![
        ("issue_ns", long.clone(), false),
        ("queue_ns", long.clone(), true),
        ("complete_ns", long, true),
        ("op", dictionary(), false),
        ("offset_bytes", size.clone(), false),
        ("len_bytes", size.clone(), false),
        ("device", dictionary(), true),
        ("pid", DataType::Int32, true),
        ("comm", dictionary(), true),
        ("file", dictionary(), true),
        ("inode", size, true),
        ("phase", dictionary(), true),
        ("stream", DataType::Int32, true),
        ("hint", DataType::Int32, true),
    ];
    columns.extend(FLAGS.map(|(name, _)| (name, DataType::Boolean, false)));
    schema(&columns)
});

/// A column of names, while it is built.
#[derive(Default)]
struct Names {
    /// The numbers of symbols.
    keys: Int32Builder,
    /// The number of the name of each symbol in the dictionary.
    numbers: Vec<i32>,
    /// The names in use.
    used: Vec<Symbol>,
}

impl Names {
    fn push(&mut self, symbol: Symbol) {
        if symbol == Symbol::NONE {
            return self.keys.append_null();
        }
        let at = symbol.0 as usize;
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, -1);
        }
        if self.numbers[at] < 0 {
            self.numbers[at] = self.used.len() as i32;
            self.used.push(symbol);
        }
        self.keys.append_value(self.numbers[at]);
    }

    /// The next batch; later ones number their names anew.
    fn finish(&mut self, symbols: &Symbols) -> ArrayRef {
        let names: StringArray = self.used.iter().map(|&name| Some(symbols.name(name))).collect();
        self.numbers.clear();
        self.used.clear();
        dictionary_of(&mut self.keys, names)
    }
}

fn dictionary_of(keys: &mut Int32Builder, names: StringArray) -> ArrayRef {
    let array = DictionaryArray::<Int32Type>::try_new(keys.finish(), Arc::new(names));
    Arc::new(array.expect("each key is the number of a name"))
}

/// Operations as a dictionary array.
fn operations(keys: &mut Int32Builder) -> ArrayRef {
    dictionary_of(keys, Op::ALL.iter().map(|op| Some(op.name())).collect())
}

/// The number of an operation of a drive in [`host_operations`].
fn operation(op: HostOp) -> i32 {
    HostOp::ALL.iter().position(|other| *other == op).map_or(0, |at| at as i32)
}

/// Operations of a drive as a dictionary array.
fn host_operations(keys: &mut Int32Builder) -> ArrayRef {
    dictionary_of(keys, HostOp::ALL.iter().map(|op| Some(op.name())).collect())
}

/// Collects requests as they complete.
#[derive(Default)]
pub struct RequestTable {
    ops: Int32Builder,
    /// In the order of the schema: offset, length.
    sizes: [UInt64Builder; 2],
    /// issue, arrival, submit, complete, latency, wait for the buffer.
    longs: [Int64Builder; 6],
    /// pass, in flight, flash reads, buffer hits, units written, units unmapped.
    ints: [Int32Builder; 6],
    pids: Int32Builder,
    /// device, comm, file, phase.
    names: [Names; 4],
    batches: Vec<RecordBatch>,
}

impl RequestTable {
    /// Adds one request, whose names are in `symbols`.
    ///
    /// # Panics
    /// With the payload [`OutOfMemory`] if there is no memory for more.
    pub fn add(&mut self, finished: &Finished, symbols: &Symbols) {
        if self.ops.len().is_power_of_two() {
            self.check_memory();
        }
        let completion = &finished.completion;
        let since = |at: SimTime| at.since(finished.origin).0 as i64;
        self.ops.append_value(operation(completion.op));
        let cost = &completion.cost;
        self.sizes[0].append_value(finished.offset);
        self.sizes[1].append_value(completion.len);
        let latency = completion.completed.since(finished.arrival).0 as i64;
        let longs = [
            finished.issue_ns,
            since(finished.arrival),
            since(completion.submitted),
            since(completion.completed),
            latency,
            cost.buffer_wait.0 as i64,
        ];
        self.longs.iter_mut().zip(longs).for_each(|(column, value)| column.append_value(value));
        let ints = [
            finished.pass as i32,
            finished.in_flight as i32,
            cost.flash_reads as i32,
            cost.buffer_hits as i32,
            cost.units_written as i32,
            cost.unmapped as i32,
        ];
        self.ints.iter_mut().zip(ints).for_each(|(column, value)| column.append_value(value));
        let issuer = &finished.issuer;
        self.pids.append_option((issuer.pid != -1).then_some(issuer.pid));
        let names = [issuer.device, issuer.comm, issuer.file, issuer.phase];
        self.names.iter_mut().zip(names).for_each(|(column, name)| column.push(name));
        if self.ops.len() == BATCH_ROWS {
            self.end_batch(symbols);
        }
    }

    /// Fails if there is no memory for twice the rows of the batch. Builders of arrays cannot
    /// report that, and end the process.
    fn check_memory(&self) {
        let bytes = 2 * self.ops.len() * REQUEST_BYTES;
        if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            let kept: usize = self.batches.iter().map(RecordBatch::get_array_memory_size).sum();
            panic_any(OutOfMemory { size: Bytes((kept + bytes) as u64) });
        }
    }

    fn end_batch(&mut self, symbols: &Symbols) {
        let [offset, len] =
            self.sizes.each_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let [issue, arrival, submit, complete, latency, wait] =
            self.longs.each_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let [pass, in_flight, reads, hits, written, unmapped] =
            self.ints.each_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let [device, comm, file, phase] = self.names.each_mut().map(|names| names.finish(symbols));
        let (op, pid) = (host_operations(&mut self.ops), Arc::new(self.pids.finish()) as ArrayRef);
        let columns = vec![
            pass, op, offset, len, issue, arrival, submit, complete, latency, in_flight, reads,
            hits, written, unmapped, wait, device, pid, comm, file, phase,
        ];
        let batch = RecordBatch::try_new(REQUESTS.clone(), columns);
        self.batches.push(batch.expect("the columns are those of the schema"));
    }

    /// The table of all requests.
    pub fn finish(mut self, symbols: &Symbols) -> Table {
        if self.ops.len() > 0 {
            self.end_batch(symbols);
        }
        Table::new(REQUESTS.clone(), self.batches)
    }
}

/// Records as a batch.
pub fn record_batch(records: &[Record], symbols: &Symbols) -> RecordBatch {
    let longs = |of: &dyn Fn(&Record) -> Option<i64>| -> ArrayRef {
        Arc::new(records.iter().map(of).collect::<arrow_array::Int64Array>())
    };
    let sizes = |of: &dyn Fn(&Record) -> Option<u64>| -> ArrayRef {
        Arc::new(records.iter().map(of).collect::<arrow_array::UInt64Array>())
    };
    let ints = |of: &dyn Fn(&Record) -> Option<i32>| -> ArrayRef {
        Arc::new(records.iter().map(of).collect::<arrow_array::Int32Array>())
    };
    let names = |of: &dyn Fn(&Record) -> Symbol| {
        let mut names = Names::default();
        records.iter().for_each(|record| names.push(of(record)));
        names.finish(symbols)
    };
    let mut ops = Int32Builder::with_capacity(records.len());
    records.iter().for_each(|record| ops.append_value(record.op as i32));
    let time = |time: OptTime| time.get();
    let mut columns = vec![
        longs(&|r| Some(r.issue_ns)),
        longs(&|r| time(r.queue)),
        longs(&|r| time(r.complete)),
        operations(&mut ops),
        sizes(&|r| Some(r.offset)),
        sizes(&|r| Some(r.len)),
        names(&|r| r.device),
        ints(&|r| (r.pid != -1).then_some(r.pid)),
        names(&|r| r.comm),
        names(&|r| r.file),
        sizes(&|r| (r.inode != 0).then_some(r.inode)),
        names(&|r| r.phase),
        ints(&|r| (r.stream != 0).then_some(r.stream.into())),
        ints(&|r| (r.hint != 0).then_some(r.hint.into())),
    ];
    columns.extend(FLAGS.map(|(_, flag)| {
        let bits = records.iter().map(|record| Some(record.flags.has(flag)));
        Arc::new(bits.collect::<BooleanArray>()) as ArrayRef
    }));
    let batch = RecordBatch::try_new(RECORDS.clone(), columns);
    batch.expect("the columns are those of the schema")
}
