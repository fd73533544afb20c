//! What the tests of this crate share: reading bytes whole, and figures over records.

use std::collections::BTreeSet;
use std::path::Path;

use prism_trace::{
    CountFrom, Format, Op, ReadReport, Reader, ReaderOptions, Record, Symbols, TraceError,
};
use proptest::prelude::*;
use proptest::sample::Index;

/// Everything that was read from a trace.
pub struct Whole {
    pub records: Vec<Record>,
    pub outcome: ReadReport,
    pub symbols: Symbols,
}

/// Options for `format` and nothing else.
pub fn options(format: Format) -> ReaderOptions {
    ReaderOptions {
        format,
        blkparse_format: None,
        map_toml: None,
        count_from: CountFrom::Issue,
        disorder: None,
    }
}

/// Reads `inputs`, each fed in pieces of at most `piece` bytes as the reader wants them.
pub fn read_pieces(
    options: ReaderOptions,
    inputs: &[&[u8]],
    piece: usize,
) -> Result<Whole, TraceError> {
    let mut reader = Reader::new(options, inputs.len())?;
    let mut rest: Vec<&[u8]> = inputs.to_vec();
    let mut records = Vec::new();
    while let Some(input) = reader.wants() {
        if rest[input].is_empty() {
            reader.end_of_input(input, &mut records)?;
            continue;
        }
        let (bytes, after) = rest[input].split_at(piece.min(rest[input].len()));
        rest[input] = after;
        reader.feed(input, bytes, &mut records)?;
    }
    let outcome = reader.finish(&mut records)?;
    Ok(Whole { records, outcome, symbols: reader.symbols().clone() })
}

/// Reads one input whole.
pub fn read(options: ReaderOptions, input: &[u8]) -> Result<Whole, TraceError> {
    read_pieces(options, &[input], 64 << 10)
}

/// Everything observable of a reading, so that two can be compared.
pub fn observable(outcome: Result<Whole, TraceError>) -> String {
    match outcome {
        Err(error) => error.to_string(),
        Ok(whole) => {
            let names: Vec<&str> = whole.symbols.iter().collect();
            format!("{:?}\n{:?}\n{names:?}", whole.records, whole.outcome)
        }
    }
}

/// Changes to some bytes: places, new bytes and kinds of change.
pub fn damage() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    prop::collection::vec((any::<Index>(), any::<u8>(), 0..4_u8), 1..12)
}

pub fn damaged(bytes: &[u8], damage: Vec<(Index, u8, u8)>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (place, byte, kind) in damage {
        let at = place.index(bytes.len());
        match kind {
            0 => bytes[at] = byte,
            1 if bytes.len() > 1 => drop(bytes.remove(at)),
            // Digits make numbers overflow, which single bytes rarely do.
            2 => drop(bytes.splice(at..at, *b"99999999999999")),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

/// The content of a file of `tests/data` or of the samples, unpacked.
pub fn data(name: &str) -> Vec<u8> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // What users get as samples is not kept a second time.
    let folders = ["tests/data", "../../samples", "../../samples/formats"];
    let path = folders.iter().map(|folder| here.join(folder).join(name)).find(|p| p.exists());
    let path = path.unwrap_or_else(|| panic!("no sample is called {name}"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if name.ends_with(".zst") {
        zstd::decode_all(bytes.as_slice()).expect("the sample is whole")
    } else {
        bytes
    }
}

/// One row: reads n / MB / p50 KiB, writes n / MB / p50 KiB, metadata-write MB, flushes,
/// discards, MB of unique 4 KiB blocks written, deepest queue; MB are 10^6 bytes.
pub fn figures(whole: &Whole, phase: &str) -> String {
    let phase = whole.symbols.get(phase).expect("the phase is in the trace");
    let records: Vec<&Record> = whole.records.iter().filter(|r| r.phase == phase).collect();
    let of = |op: Op| records.iter().filter(move |r| r.op == op);
    let sizes = |op: Op| {
        let mut sizes: Vec<u64> = of(op).map(|r| r.len).collect();
        sizes.sort_unstable();
        let median = match sizes.len() {
            0 => 0,
            len => (sizes[(len - 1) / 2] + sizes[len / 2]) / 2 / 1024,
        };
        format!("{} / {:.0} / {median}", sizes.len(), mega(sizes.iter().sum()))
    };
    let meta = of(Op::Write).filter(|r| r.flags.has(prism_trace::Flags::META));
    let blocks: BTreeSet<u64> =
        of(Op::Write).flat_map(|r| r.offset / 4096..(r.offset + r.len).div_ceil(4096)).collect();
    format!(
        "{} | {} | {:.1} | {} | {} | {:.0} | {}",
        sizes(Op::Read),
        sizes(Op::Write),
        mega(meta.map(|r| r.len).sum()),
        of(Op::Flush).count(),
        of(Op::Discard).count(),
        mega(blocks.len() as u64 * 4096),
        deepest(&records),
    )
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Most requests issued and not yet completed at once, flushes apart.
fn deepest(records: &[&Record]) -> usize {
    let mut steps = Vec::new();
    for record in records.iter().filter(|r| r.op != Op::Flush) {
        steps.push((record.issue_ns, 1));
        if let Some(ns) = record.complete.get() {
            steps.push((ns, -1));
        }
    }
    steps.sort_unstable();
    let mut depth = 0_isize;
    steps
        .into_iter()
        .map(|(_, step)| {
            depth += step;
            depth as usize
        })
        .max()
        .unwrap_or(0)
}
