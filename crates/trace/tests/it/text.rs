//! What all text formats have in common: marks, damage, disorder, and lines that are no requests.

use prism_base::Nanos;
use prism_trace::{Format, ReaderOptions};

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

#[test]
fn why_there_is_no_request() {
    let check = |format, text: &str, message: &str| {
        let error = read(options(format), text.as_bytes()).err().expect("no request");
        assert_eq!(error.to_string(), message);
    };
    check(
        Format::Alibaba,
        "device_id,opcode,offset,length,timestamp\n",
        "the trace has no request (format alibaba, lines read: 1); record it again while requests \
         are made",
    );
    check(
        Format::Msr,
        "\nhello\n1,hm,0,Write,0,512,1\n1,hm,0,Write,0,512\n1,hm,0,Erase,0,512,1\n1\n",
        "none of the 6 lines is a request of the format msr: 3 times \"wrong number of fields\" \
         (first at line 2), once \"address, size or time out of range\" (line 3), once \"unknown \
         operation\" (line 5); check --format",
    );
    check(
        Format::Msr,
        "hello\n",
        "the only line is no request of the format msr: once \"wrong number of fields\" (line 1); \
         check --format",
    );
}

#[test]
fn disorder_is_sorted_within_the_given_window() {
    let text = "0,R,0,4096,40000000\n0,R,4096,4096,10000000\n0,R,8192,4096,50000000\n";
    let within = |seconds: u64| {
        let disorder = Some(Nanos(seconds * 1_000_000_000));
        read(ReaderOptions { disorder, ..options(Format::Alibaba) }, text.as_bytes())
    };
    let error = within(29).err().expect("too late").to_string();
    assert!(error.starts_with("line 2: time goes back by 30 s, and"), "{error}");
    assert!(error.contains("--disorder at least 30s: larger"), "{error}");
    let sorted = within(30).expect("sorted").records;
    assert_eq!(sorted.iter().map(|record| record.offset).collect::<Vec<_>>(), [4096, 0, 8192]);
}
