//! Pages of the kernel's trace buffer give the requests that the text of the same buffer
//! gives, and no bytes make the reader panic.

use crate::common::{data, options, read};
use prism_testkit::cases;
use prism_trace::{CountFrom, Format, Live, Record, Symbols};
use proptest::prelude::*;

/// Bytes of the recorded pages.
const PAGE: usize = 4096;

const HEADER: &str = include_str!("../data/ring/header_page.txt");
const FORMATS: &str = include_str!("../data/ring/formats.txt");

/// Each description in `text`, with the name of its event.
fn formats(text: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = text.match_indices("name: ").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let parts = starts.iter().zip(ends).map(|(&start, end)| &text[start..end]);
    parts.map(|part| (part["name: ".len()..].lines().next().unwrap_or_default(), part)).collect()
}

fn reader() -> Live {
    Live::ring(HEADER, &formats(FORMATS), CountFrom::Issue).expect("the kernel's own texts")
}

fn row(record: &Record, symbols: &Symbols) -> String {
    let names = [record.device, record.comm, record.phase].map(|name| symbols.name(name));
    let known = (record.queue.get().is_some(), record.complete.get().is_some());
    let (op, offset, len) = (record.op.name(), record.offset, record.len);
    format!("{op} {offset}+{len} {:?} {} {names:?} {known:?}", record.flags, record.pid)
}

#[test]
fn the_requests_of_the_text() {
    let cpus = [data("ring/cpu0.pages.zst"), data("ring/cpu1.pages.zst")];
    let text = read(options(Format::Ftrace), &data("ring/trace.txt.zst")).expect("whole");
    let wanted: Vec<String> = text.records.iter().map(|r| row(r, &text.symbols)).collect();
    assert_eq!(wanted.len(), 185, "issues");
    // With either CPU read first.
    for cpus in [[&cpus[0], &cpus[1]], [&cpus[1], &cpus[0]]] {
        let (mut reader, mut records) = (reader(), Vec::new());
        let size = PAGE;
        let mut pages = cpus.iter().flat_map(|pages| pages.chunks(size));
        pages.try_for_each(|page| reader.take(page)).expect("pages");
        reader.end_round(&mut records).expect("all of it");
        let outcome = reader.finish(&mut records).expect("requests");
        let found: Vec<String> = records.iter().map(|r| row(r, reader.symbols())).collect();
        assert_eq!(found, wanted);
        for (ns, us) in records.iter().zip(&text.records) {
            let of = |r: &Record| [r.queue.get(), Some(r.issue_ns), r.complete.get()];
            for (ns, us) in of(ns).into_iter().zip(of(us)) {
                assert!(ns.unwrap_or(0).abs_diff(us.unwrap_or(0)) <= 1000, "{ns:?} {us:?}");
            }
        }
        let can = outcome.capabilities;
        assert_eq!(can.clock_ns, 1);
        assert_eq!(text.outcome.capabilities.clock_ns, 1000);
        assert_eq!((can.completion, can.queue, can.process), (true, true, true));
        assert_eq!((outcome.lines, outcome.unpaired), (865, text.outcome.unpaired));
        let names: Vec<_> = outcome.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["mkfs", "app", "umount", "end"]);
    }
}

#[test]
fn rounds_follow_one_another_in_time() {
    let pages = [data("ring/lost-cpu0.pages.zst"), data("ring/lost-cpu1.pages.zst")];
    let page = PAGE;
    // The pages that each of the four reads of the two buffers returned.
    let rounds = [([0, 3], [0, 0]), ([3, 6], [0, 1]), ([6, 10], [1, 2]), ([10, 14], [2, 3])];
    let read = |rounds: &[([usize; 2], [usize; 2])]| {
        let (mut reader, mut records) = (reader(), Vec::new());
        for (cpu0, cpu1) in rounds {
            for (bytes, [from, to]) in pages.iter().zip([cpu0, cpu1]) {
                let bytes = &bytes[from * page..to * page];
                bytes.chunks(page).for_each(|bytes| reader.take(bytes).expect("a page"));
            }
            reader.end_round(&mut records).expect("in order");
        }
        let outcome = reader.finish(&mut records).expect("requests");
        let lost = outcome.skips.rows().into_iter().find(|row| row.reason.0.contains("lost"));
        (records, lost.map(|row| row.count))
    };
    let (one_by_one, lost) = read(&rounds);
    assert_eq!((one_by_one.len(), lost), (161, Some(558)));
    assert_eq!(read(&[([0, 14], [0, 3])]).0, one_by_one);
}

/// Feeds `pages` to a reader and ignores the result.
fn survive(mut reader: Live, pages: &[u8]) {
    let mut records = Vec::new();
    for page in pages.chunks(PAGE) {
        let _ = reader.take(page);
        let _ = reader.end_round(&mut records);
    }
    let _ = reader.finish(&mut records);
    assert!(records.is_sorted_by_key(|record| record.issue_ns));
    assert!(records.iter().all(|record| record.end() <= i64::MAX as u64));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_pages(
        (time_ns, used, flags) in (any::<u64>(), 0_u64..320, 0_u64..4),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let commit = used | (flags << 30);
        let page = [&time_ns.to_le_bytes()[..], &commit.to_le_bytes(), &bytes].concat();
        survive(reader(), &page);
    }

    #[test]
    fn random_damage_to_pages(
        cpu in 0_usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let names =
            ["cpu0.pages.zst", "cpu1.pages.zst", "lost-cpu0.pages.zst", "lost-cpu1.pages.zst"];
        let mut pages = data(&format!("ring/{}", names[cpu]));
        for (place, byte) in edits {
            let place = place.index(pages.len());
            pages[place] = byte;
        }
        survive(reader(), &pages);
    }

    #[test]
    fn random_damage_to_descriptions(
        header in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..24), 1..6),
    ) {
        let mut texts = [HEADER.to_owned(), FORMATS.to_owned()];
        let text = &mut texts[usize::from(!header)];
        for (place, letter) in edits {
            let place = place.index(text.len());
            text.replace_range(place..=place, &"0123456789abcdfgi:;[]\n\t "[letter..=letter]);
        }
        if let Ok(reader) = Live::ring(&texts[0], &formats(&texts[1]), CountFrom::Issue) {
            survive(reader, &data("ring/lost-cpu1.pages.zst"));
        }
    }
}
