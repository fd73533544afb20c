//! Measures how fast ftrace text becomes records: a trace, repeated, on one core.
//!
//! ```text
//! cargo run --release -p prism-trace --example speed -- TRACE.ftrace.zst 100
//! ```
//! The timestamps of each repetition continue those of the one before, as in one long trace.
//! Prints lines per second of CPU time.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::Instant;

use prism_trace::{CountFrom, Format, Reader, ReaderOptions};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| {
        format!("{}/tests/data/ext4-sqlite-rb.ftrace.zst", env!("CARGO_MANIFEST_DIR"))
    });
    let times: u64 = arguments.next().map_or(20, |word| word.parse().expect("a number"));
    let packed = std::fs::read(&path).expect("the trace can be read");
    let text = zstd::decode_all(packed.as_slice()).expect("the trace is packed with zstd");
    let options = ReaderOptions {
        format: Format::Ftrace,
        blkparse_format: None,
        map_toml: None,
        count_from: CountFrom::Issue,
        disorder: None,
    };
    let mut reader = Reader::new(options, 1).expect("ftrace needs no options");
    let mut out = Vec::new();
    let (mut records, mut wall, mut busy) = (0, 0.0, 0.0);
    for repetition in 0..times {
        let moved = moved_on(&text, repetition * 1000);
        let (start, start_busy) = (Instant::now(), cpu_seconds());
        for piece in moved.chunks(256 << 10) {
            reader.feed(0, piece, &mut out).expect("the trace is in order");
            records += out.len();
            out.clear();
        }
        wall += start.elapsed().as_secs_f64();
        busy += cpu_seconds() - start_busy;
    }
    let outcome = reader.finish(&mut out).expect("the trace has events");
    records += out.len();
    let rate = |seconds: f64| outcome.lines as f64 / 1e6 / seconds;
    println!("{} lines, {records} records", outcome.lines);
    println!("{:.2} M lines/s of CPU time, {:.2} of wall time", rate(busy), rate(wall));
}

/// The trace with every timestamp `seconds` later.
fn moved_on(text: &[u8], seconds: u64) -> Vec<u8> {
    let mut moved = Vec::with_capacity(text.len() + text.len() / 20);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let dot =
            line.windows(9).position(|w| w[0] == b'.' && w[1].is_ascii_digit() && w[7] == b':');
        let Some(dot) = dot else {
            moved.extend_from_slice(line);
            continue;
        };
        let start =
            line[..dot].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |p| p + 1);
        let number: u64 = std::str::from_utf8(&line[start..dot])
            .expect("digits are text")
            .parse()
            .expect("seconds are a number");
        moved.extend_from_slice(&line[..start]);
        moved.extend_from_slice((number + seconds).to_string().as_bytes());
        moved.extend_from_slice(&line[dot..]);
    }
    moved
}

/// CPU time of this process, from `/proc`. On systems without it the result is 0 and the rate
/// is infinite, because wall time would mislead.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let word = stat.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    word.unwrap_or(0) as f64 / 1e9
}
