//! What all text formats have in common: byte order marks and damage.

use prism_trace::Format;

use crate::common::{data, options, read};

/// Formats with their own parser, with a map, and with events.
const SAMPLES: [(Format, &str); 4] = [
    (Format::FioIolog, "fio-v3.iolog"),
    (Format::Alibaba, "alibaba.csv"),
    (Format::Spc, "spc.csv"),
    (Format::Blkparse, "blkparse-default.txt"),
];

#[test]
fn a_byte_order_mark_loses_no_request() {
    for (format, name) in SAMPLES {
        let text = data(name);
        let marked = [&b"\xef\xbb\xbf"[..], &text].concat();
        let (plain, marked) = (read(options(format), &text), read(options(format), &marked));
        let (plain, marked) = (plain.expect("a sample"), marked.expect("a sample"));
        assert_eq!(marked.records, plain.records, "{name}");
        assert_eq!(marked.outcome.skips.rows(), plain.outcome.skips.rows(), "{name}");
    }
}

#[test]
fn a_line_with_a_nul_byte_is_skipped_and_counted() {
    for (format, name) in SAMPLES {
        let mut text = data(name);
        let plain = read(options(format), &text).expect("a sample");
        let second = text.iter().position(|&byte| byte == b'\n').expect("lines") + 1;
        text.splice(second..second, *b"kworker/0:1\0,1\n");
        let damaged = read(options(format), &text).expect("a sample");
        assert_eq!(damaged.records, plain.records, "{name}");
        let rows = damaged.outcome.skips.rows();
        let nul = rows.iter().find(|row| row.reason.0 == "line with a NUL byte");
        assert_eq!(nul.map(|row| (row.count, row.first_line)), Some((1, 2)), "{name}");
    }
}
