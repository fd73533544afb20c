//! blktrace binary gives the same requests as the texts made from it, in either byte
//! order and version, and damage is named.

use crate::common::{Whole, data, options, read, read_pieces};
use prism_trace::{Format, Record, TraceError};

fn nv() -> [Vec<u8>; 2] {
    [data("nv.blktrace.0.zst"), data("nv.blktrace.1.zst")]
}

fn merged(inputs: &[Vec<u8>; 2], piece: usize) -> Whole {
    let inputs = inputs.each_ref().map(Vec::as_slice);
    read_pieces(options(Format::Blktrace), &inputs, piece).expect("the sample is whole")
}

/// Records one by one, as a function of header and payload, joined again.
fn convert(bytes: &[u8], one: impl Fn(&[u8], &[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (header, after) = rest.split_at(48);
        let payload = u16::from_le_bytes([header[46], header[47]]);
        let (payload, after) = after.split_at(payload.into());
        out.extend(one(header, payload));
        rest = after;
    }
    out
}

fn swapped(header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (start, end) in [
        (0, 4),
        (4, 8),
        (8, 16),
        (16, 24),
        (24, 28),
        (28, 32),
        (32, 36),
        (36, 40),
        (40, 44),
        (44, 46),
        (46, 48),
    ] {
        out.extend(header[start..end].iter().rev());
    }
    out.extend(payload);
    out
}

fn version_8(header: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = header[..28].to_vec();
    out[0] = 8;
    out.extend(&header[32..36]);
    out.extend(&header[28..32]);
    out.extend([0; 4]);
    out.extend(&header[36..48]);
    out.extend([0; 12]);
    out.extend(payload);
    out
}

#[test]
fn either_byte_order_and_version() {
    let whole = merged(&nv(), 64 << 10);
    assert!(whole.records.len() > 10_000 && whole.outcome.skips.rows().is_empty());
    assert!(!whole.outcome.capabilities.write_zeroes);
    let big = nv().map(|bytes| convert(&bytes, swapped));
    assert_eq!(merged(&big, 4096).records, whole.records);
    let new = merged(&nv().map(|bytes| convert(&bytes, version_8)), 4096);
    assert_eq!(new.records, whole.records);
    assert!(new.outcome.capabilities.write_zeroes);
}

#[test]
fn pieces_do_not_matter() {
    let whole = merged(&nv(), 1 << 20);
    for piece in [1, 47, 5000] {
        let pieces = merged(&nv(), piece);
        assert_eq!(pieces.records, whole.records, "pieces of {piece} bytes");
        assert_eq!(pieces.outcome.lines, whole.outcome.lines);
    }
}

/// The first `count` records of both, by everything that does not depend on the order in
/// which names were met.
fn assert_same_start(text: &Whole, binary: &Whole, count: usize, with_device: bool) {
    let view = |whole: &Whole, record: &Record| {
        let device = if with_device { whole.symbols.name(record.device) } else { "" };
        let comm = whole.symbols.name(record.comm).to_owned();
        (
            (record.queue, record.issue_ns, record.complete, record.offset, record.len),
            (record.op, record.flags, record.pid, comm, device.to_owned()),
        )
    };
    assert!(text.records.len() >= count, "{} records", text.records.len());
    for (place, (a, b)) in text.records.iter().zip(&binary.records).take(count).enumerate() {
        assert_eq!(view(text, a), view(binary, b), "record {place}");
    }
}

/// The texts end after 2000 and 500 lines, while one request each is in flight.
#[test]
fn the_texts_of_the_same_trace() {
    let binary = merged(&nv(), 64 << 10);
    let text = read(options(Format::Blkparse), &data("blkparse-default.txt")).expect("whole");
    assert_eq!((text.records.len(), text.outcome.unpaired), (383, 1));
    assert_same_start(&text, &binary, 382, true);
    let mut custom = options(Format::Blkparse);
    custom.blkparse_format = Some(r"%5T.%9t,%p,%C,%a,%d,%S,%n,%N\n".to_owned());
    let text = read(custom, &data("blkparse-custom-f.txt")).expect("whole");
    assert_eq!((text.records.len(), text.outcome.unpaired), (90, 1));
    assert_same_start(&text, &binary, 89, false);
}

#[test]
fn the_text_of_the_tracer_and_the_summary() {
    let mut text = data("ftrace-blk-tracer-classic.txt");
    let records = read(options(Format::Blkparse), &text).expect("whole").records.len();
    assert_eq!(records, 75);
    text.extend_from_slice(
        b"CPU0 (7,0):\n Reads Queued:  0,  0KiB\n\nThroughput (R/W): 0KiB/s\nEvents (7,0): 1\n",
    );
    let whole = read(options(Format::Blkparse), &text).expect("whole");
    let rows = whole.outcome.skips.rows();
    assert_eq!((rows.len(), rows[0].count, rows[0].reason.0), (1, 4, "blkparse summary"));
}

#[test]
fn damage_is_named() {
    let error = |bytes: &[u8]| match read(options(Format::Blktrace), bytes) {
        Err(TraceError::Bad { line, what }) => (line, what),
        other => panic!("{:?}", other.map(|whole| whole.outcome)),
    };
    let [whole, _] = nv();
    let (line, what) = error(&whole[..48 + 20]);
    assert_eq!((line, &what[..42]), (2, "record 2 of input 1 is cut off after 20 by"));
    let (line, what) = error(&whole[..43]);
    assert_eq!((line, &what[..42]), (1, "record 1 of input 1 is cut off after 43 by"));
    let mut damaged = whole[..48].to_vec();
    damaged.extend([b'x'; 48]);
    assert_eq!(error(&damaged).0, 2);
    let mut mixed = convert(&whole[..48], version_8);
    mixed.extend(&whole[..48]);
    assert_eq!(
        error(&mixed).1,
        "record 2 of input 1 is of another version or byte order than before"
    );
}

fn record(time_ns: u64, action: u32, device: u32, sector: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = 0x6561_7407_u32.to_le_bytes().to_vec();
    out.extend([0; 4]);
    out.extend(time_ns.to_le_bytes());
    out.extend(sector.to_le_bytes());
    out.extend(4096_u32.to_le_bytes());
    out.extend(action.to_le_bytes());
    out.extend(77_u32.to_le_bytes());
    out.extend(device.to_le_bytes());
    out.extend([0; 6]);
    out.extend((payload.len() as u16).to_le_bytes());
    out.extend(payload);
    out
}

/// A bio on 253:0 moves to 8:0, with a cgroup number before the payload.
#[test]
fn remaps_with_their_payload() {
    let mut moved = vec![0; 8];
    moved.extend((253_u32 << 20).to_be_bytes());
    moved.extend((8_u32 << 20).to_be_bytes());
    moved.extend(64_u64.to_be_bytes());
    let write = 2 << 16;
    let bytes = [
        record(1000, write | 1, 253 << 20, 64, &[]),
        record(1100, write | 15 | 1 << 8, 8 << 20, 2112, &moved),
        record(1200, write | 7, 8 << 20, 2112, &[]),
        record(1300, write | 8, 8 << 20, 2112, &[]),
    ]
    .concat();
    let whole = read(options(Format::Blktrace), &bytes).expect("four records");
    let [record] = whole.records[..] else { panic!("{:?}", whole.records) };
    assert_eq!((record.queue.get(), record.complete.get()), (Some(-200), Some(100)));
    assert_eq!((record.offset, whole.symbols.name(record.device)), (2112 * 512, "8,0"));
}
