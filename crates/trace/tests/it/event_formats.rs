//! The examples of the document on formats of events are read as it says.

use crate::common::{options, read};
use prism_base::{Bytes, Named};
use prism_trace::{CountFrom, Format, LogicalBlock, Record, Symbols, detect};

const DOCUMENT: &str = include_str!("../../../../docs/spec/event-formats.md");

fn show(record: &Record, symbols: &Symbols) -> String {
    let ns = |ns: Option<i64>| ns.map_or("?".to_owned(), |ns| ns.to_string());
    let times = [record.queue.get(), Some(record.issue_ns), record.complete.get()].map(ns);
    let (op, offset, len) = (record.op.name(), record.offset, record.len);
    let comm = symbols.name(record.comm);
    format!("{} {op} {offset}+{len} {comm}", times.join(">")).trim_end().to_owned()
}

/// The block that begins with `mark` in `text`, and what is behind it.
fn block<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = text.split_once(mark)?;
    rest.split_once("\n```")
}

#[test]
fn the_examples_are_read() {
    let (mut rest, mut examples) = (DOCUMENT, 0);
    while let Some((text, after)) = block(rest, "\n```text ") {
        let (name, text) = text.split_once('\n').expect("a block has lines");
        let (wanted, after) = block(after, "\n```requests\n").expect("its requests follow");
        let format = Format::from_name(name).unwrap_or_else(|| panic!("no format {name}"));
        assert_eq!(detect(text.as_bytes()), Ok(format), "{name}");
        let mut options = options(format);
        if text.contains("nvme_setup_cmd") {
            let block = LogicalBlock::new(Bytes(512)).expect("a size of blocks");
            options.count_from = CountFrom::Nvme { block };
        }
        let whole = read(options, text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found: Vec<String> = whole.records.iter().map(|r| show(r, &whole.symbols)).collect();
        assert_eq!(found, wanted.lines().collect::<Vec<_>>(), "{name}");
        assert_eq!(whole.outcome.skips.rows(), [], "{name}");
        (rest, examples) = (after, examples + 1);
    }
    assert_eq!(examples, 5);
}

#[test]
fn every_format_is_in_one_of_the_tables() {
    let published = include_str!("../../../../docs/spec/trace-formats.md");
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Map) {
        let row = format!("| `{}` |", format.name());
        let rows = DOCUMENT.contains(&row) as u32 + published.contains(&row) as u32;
        assert_eq!(rows, 1, "{row}");
    }
}
