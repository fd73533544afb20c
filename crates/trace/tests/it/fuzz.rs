//! No input makes a parser panic, and how the bytes are cut does not matter.

use crate::common::{data, observable, options, read_pieces};
use prism_testkit::cases;
use prism_trace::{CountFrom, Format, LogicalBlock, ReaderOptions, detect};
use proptest::prelude::*;

/// The form of a text with a `-f` string.
const CUSTOM: &str = r"%5T.%9t,%p,%C,%a,%d,%S,%n,%N\n";

fn readers() -> Vec<ReaderOptions> {
    let mut all = Vec::new();
    for format in [Format::Ftrace, Format::PerfScript, Format::Blkparse, Format::Blktrace] {
        let nvme = CountFrom::Nvme { block: LogicalBlock::SECTOR };
        for count_from in [CountFrom::Issue, CountFrom::Queue, nvme] {
            all.push(ReaderOptions { count_from, ..options(format) });
        }
    }
    let blkparse_format = Some(CUSTOM.to_owned());
    all.push(ReaderOptions { blkparse_format, ..options(Format::Blkparse) });
    all
}

fn pieces_agree(bytes: &[u8], piece: usize) {
    for options in readers() {
        let outcome = |piece| observable(read_pieces(options.clone(), &[bytes], piece));
        assert_eq!(outcome(piece), outcome(bytes.len().max(1)), "{options:?}");
    }
    let _ = detect(bytes);
}

/// A piece of a sample that starts at a record or line, about `len` bytes.
fn sample(number: usize, start: usize, len: usize) -> Vec<u8> {
    let names = [
        "f2fs-rocksdb.ftrace.zst",
        "perf-script-block.txt",
        "blkparse-default.txt",
        "blkparse-custom-f.txt",
        "ftrace-blk-tracer-classic.txt",
        "blk-tracer/named.txt.zst",
        "nvme-and-block.ftrace.zst",
        "nv.blktrace.0.zst",
    ];
    let name = names[number % names.len()];
    let bytes = data(name);
    let is_text = !name.contains(".blktrace.");
    let start = if is_text {
        let start = start % bytes.len();
        bytes[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
    } else {
        0
    };
    bytes[start..(start + len).min(bytes.len())].to_vec()
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..50) {
        pieces_agree(&bytes, piece);
    }

    /// Real lines and records with bytes exchanged, put in and left out.
    #[test]
    fn random_changes_of_samples(
        (number, start, len) in (0_usize..8, 0_usize..300_000, 100_usize..3000),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..3, any::<u8>()), 0..20),
        letters in any::<bool>(),
        piece in 1_usize..500,
    ) {
        let mut bytes = sample(number, start, len);
        for (place, kind, byte) in edits {
            let place = place.index(bytes.len());
            // Half of the runs stay within the letters that lines are made of.
            let byte = if letters { b"0159 ,-:+[]()FWDRNSMA\n"[byte as usize % 22] } else { byte };
            match kind {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ if bytes.len() > 1 => drop(bytes.remove(place)),
                _ => {}
            }
        }
        pieces_agree(&bytes, piece);
    }

    /// Lines of a grammar dense in clashes: few sectors, few times, every event.
    #[test]
    fn random_dense_events(
        events in prop::collection::vec(
            (0_usize..9, 0_u64..4, 0_u64..4, 0_usize..8, 0_u64..900),
            1..80,
        ),
        piece in 1_usize..200,
    ) {
        let mut text = String::new();
        for (event, sector, n, letters, us) in events {
            let rwbs = ["R", "W", "WS", "D", "FF", "FWFSM", "NS", "FWS"][letters];
            let fields = match event {
                0 | 1 => format!("bio_queue: 7,0 {rwbs} {sector} + {n} [a]"),
                2 | 3 => format!("rq_issue: 7,0 {rwbs} 0 () {sector} + {n} [a]"),
                4 | 5 => format!("rq_complete: 7,0 {rwbs} () {sector} + {n} [0]"),
                6 => format!("rq_requeue: 7,0 {rwbs} () {sector} + {n} [0]"),
                7 => format!("split: 7,0 {rwbs} {sector} / {n} [a]"),
                _ => format!("bio_remap: 7,0 {rwbs} {sector} + {n} <- (7,0) {n}"),
            };
            text += &format!("a-1 [000] ..... 1.{us:06}: block_{fields}\n");
        }
        let issues = text.matches("rq_issue").count();
        let whole = read_pieces(options(Format::Ftrace), &[text.as_bytes()], 64);
        let records = whole.map_or(0, |whole| {
            let sorted = whole.records.is_sorted_by_key(|record| record.issue_ns);
            assert!(sorted, "{:?}", whole.records);
            whole.records.len()
        });
        prop_assert!(records <= issues);
        pieces_agree(text.as_bytes(), piece);
    }
}
