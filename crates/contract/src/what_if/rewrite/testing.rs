//! A compact text notation for traces, used by the tests of rewrites.
//!
//! `0 w 0+4; 1 r 4+4#2; 2 f` is a write at 0 ms of 4 KiB at offset 0, a read at 1 ms of 4 KiB
//! at offset 4 KiB with stream 2, and a flush at 2 ms. The letters are `r`ead, `w`rite,
//! `d`iscard, write-`z`eroes and `f`lush. A `!` after the letter is FUA, a `^` a preflush. An
//! `@` after the stream is followed by an inode number. Offsets and lengths can have
//! fractions: `.5` is half a KiB.

use prism_trace::{Flags, Op, Record, Source, VecSource, each_record};

use super::{Rewrite, Rewritten};

const LETTERS: [(char, Op); 5] = [
    ('r', Op::Read),
    ('w', Op::Write),
    ('d', Op::Discard),
    ('z', Op::WriteZeroes),
    ('f', Op::Flush),
];
const KIB: f64 = 1024.0;
const MS: f64 = 1e6;

/// Parses a trace.
pub(super) fn records(text: &str) -> Vec<Record> {
    let number = |text: &str| text.parse::<f64>().unwrap();
    let mut out = Vec::new();
    for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let mut fields = item.split(' ');
        let at_ns = (number(fields.next().unwrap()) * MS) as i64;
        let letters = fields.next().unwrap();
        let op = LETTERS.iter().find(|(letter, _)| letters.starts_with(*letter)).unwrap().1;
        let mut record = Record::new(op, at_ns, 0, 0);
        if letters.contains('!') {
            record.flags = record.flags.with(Flags::FUA);
        }
        if letters.contains('^') {
            record.flags = record.flags.with(Flags::PREFLUSH);
        }
        if let Some(range) = fields.next() {
            let (range, inode) = range.split_once('@').unwrap_or((range, "0"));
            let (range, stream) = range.split_once('#').unwrap_or((range, "0"));
            let (offset, len) = range.split_once('+').unwrap();
            record.offset = (number(offset) * KIB) as u64;
            record.len = (number(len) * KIB) as u64;
            (record.stream, record.inode) = (stream.parse().unwrap(), inode.parse().unwrap());
        }
        out.push(record);
    }
    out
}

/// Formats a trace, without inodes.
pub(super) fn text(records: &[Record]) -> String {
    let item = |record: &Record| {
        let letter = LETTERS.iter().find(|(_, op)| *op == record.op).unwrap().0;
        let at = record.issue_ns as f64 / MS;
        let mut text = format!("{at} {letter}");
        for (flag, mark) in [(Flags::FUA, '!'), (Flags::PREFLUSH, '^')] {
            text.extend(record.flags.has(flag).then_some(mark));
        }
        if record.op != Op::Flush {
            let (offset, len) = (record.offset as f64 / KIB, record.len as f64 / KIB);
            text += &format!(" {offset}+{len}");
        }
        if record.stream > 0 {
            text += &format!("#{}", record.stream);
        }
        text
    };
    records.iter().map(item).collect::<Vec<_>>().join("; ")
}

/// All records of one pass.
pub(super) fn pass(source: &mut dyn Source) -> Vec<Record> {
    let mut all = Vec::new();
    each_record(source, |record| all.push(*record)).unwrap();
    all
}

/// Checks that `rewrite` turns `trace` into `expected`, in each of two passes.
pub(super) fn check(rewrite: impl Rewrite + 'static, trace: &str, expected: &str) {
    let mut source = VecSource::new(records(trace));
    let mut rewritten = Rewritten::new(&mut source, Some(Box::new(rewrite)));
    for _ in 0..2 {
        assert_eq!(text(&pass(&mut rewritten)), expected, "of {trace}");
    }
}
