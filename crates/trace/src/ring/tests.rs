//! Pages recorded from a kernel, compared with the text that it printed of the same buffer, and
//! pages made by hand for cases that the recording does not have.

use super::page::{Damaged, Layout};
use super::{BAD_PAGE, RingDecoder};
use crate::event::{BAD_EVENT, Event, LOST, OTHER_EVENT};
use crate::intake::Intake;
use crate::names::Names;
use crate::options::CountFrom;
use crate::sink::DISORDER_NS;
use crate::skips::Skips;
use crate::{ftrace, tracepoint};

const HEADER: &str = include_str!("../../tests/data/ring/header_page.txt");
const FORMATS: &str = include_str!("../../tests/data/ring/formats.txt");
const PAGE: usize = 4096;

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    zstd::decode_all(bytes).expect("the sample is whole")
}

/// Each description in `text`, with the name of its event.
fn formats(text: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = text.match_indices("name: ").map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let parts = starts.iter().zip(ends).map(|(&start, end)| &text[start..end]);
    parts.map(|part| (part["name: ".len()..].lines().next().unwrap_or_default(), part)).collect()
}

fn decoder() -> RingDecoder {
    RingDecoder::new(HEADER, &formats(FORMATS)).expect("the kernel's own texts")
}

fn decode(pages: &[u8], names: &mut Names, skips: &mut Skips) -> Vec<Event> {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for page in pages.chunks(PAGE) {
        decoder.page(page, names, skips, &mut events).expect("a page");
    }
    assert!(events.is_sorted_by_key(|event| event.time_ns), "of one CPU");
    events
}

#[test]
fn the_pages_say_what_the_text_of_the_same_buffer_says() {
    let cpus = [
        unpacked(include_bytes!("../../tests/data/ring/cpu0.pages.zst")),
        unpacked(include_bytes!("../../tests/data/ring/cpu1.pages.zst")),
    ];
    let mut intake = Intake::new(CountFrom::Issue, DISORDER_NS);
    let names = &mut intake.names;
    let mut from_pages = Vec::new();
    for pages in &cpus {
        from_pages.extend(decode(pages, names, &mut intake.skips));
    }
    assert_eq!(intake.skips.rows(), []);
    from_pages.sort_by_key(|event| event.time_ns);
    let text = unpacked(include_bytes!("../../tests/data/ring/trace.txt.zst"));
    let mut from_text = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        // Comments come first.
        let Some(head) = ftrace::head(line) else { continue };
        if let Some(what) = tracepoint::understand(&head, names).expect("an event") {
            from_text.push((head.time_ns, what));
        }
    }
    // Two of 865 entries are marks that begin no phase.
    assert_eq!((from_pages.len(), from_text.len()), (863, 863));
    for (place, (event, (time_ns, what))) in from_pages.iter().zip(from_text).enumerate() {
        let rounded = (event.time_ns + 500) / 1000 * 1000;
        assert_eq!((rounded, event.kind), (time_ns, what), "event {place}");
    }
}

/// The kernel counted 558 events as overrun on the first CPU and none on the other.
#[test]
fn what_was_lost_is_counted() {
    let mut skips = Skips::default();
    let pages = unpacked(include_bytes!("../../tests/data/ring/lost-cpu0.pages.zst"));
    let found = decode(&pages, &mut Names::new(), &mut skips).len();
    assert_eq!(found, 632);
    let rows = skips.rows();
    assert_eq!((rows.len(), rows[0].reason, rows[0].count), (1, LOST, 186 + 310 + 62));
    let mut skips = Skips::default();
    let pages = unpacked(include_bytes!("../../tests/data/ring/lost-cpu1.pages.zst"));
    assert_eq!(decode(&pages, &mut Names::new(), &mut skips).len(), 14);
    assert_eq!(skips.rows(), []);
}

/// The first word of a record.
fn word(kind: u32, delta: u32) -> [u8; 4] {
    (kind | delta << 5).to_le_bytes()
}

fn page(time_ns: u64, commit: u64, data: &[u8]) -> Vec<u8> {
    [&time_ns.to_le_bytes(), &commit.to_le_bytes(), data].concat()
}

/// Time and first byte of each record, and whether damage was met.
fn walk(time_ns: u64, records: &[&[u8]]) -> String {
    let layout = Layout::parse(HEADER).expect("the kernel's own text");
    let data = records.concat();
    let bytes = page(time_ns, data.len() as u64, &data);
    let page = layout.page(&bytes).expect("it is short enough");
    let words: Vec<String> = page
        .records()
        .map(|record| match record {
            Ok((time_ns, fields)) => {
                format!("{time_ns}:{}x{}", fields.first().unwrap_or(&0), fields.len())
            }
            Err(Damaged) => "damaged".to_owned(),
        })
        .collect();
    words.join(" ")
}

#[test]
fn every_kind_of_record() {
    let check = |time_ns, records: &[&[u8]], expected: &str| {
        assert_eq!(walk(time_ns, records), expected, "{records:?}");
    };
    let short = |delta: u32, byte: u8| [word(1, delta), [byte; 4]].concat();
    let long = |delta: u32, byte: u8, len: u32| {
        let padded = vec![byte; len.next_multiple_of(4) as usize];
        [&word(0, delta)[..], &(len + 4).to_le_bytes(), &padded].concat()
    };
    check(5, &[], "");
    check(5, &[&short(7, 1), &short(0, 2)], "12:1x4 12:2x4");
    check(5, &[&long(1, 3, 200), &short(1, 4)], "6:3x200 7:4x4");
    check(5, &[&long(1, 3, 5), &short(1, 4)], "6:3x5 7:4x4");
    // 3 + 2 * 2^27 ns later.
    check(5, &[&word(30, 3), &[2, 0, 0, 0], &short(1, 1)], "268435465:1x4");
    // The absolute time 3 + 2 * 2^27 ns, then the same within the times from 2^59 on.
    check(5, &[&word(31, 3), &[2, 0, 0, 0], &short(1, 1)], "268435460:1x4");
    let late = (1_u64 << 59) + 5;
    check(late, &[&word(31, 3), &[2, 0, 0, 0], &short(0, 1)], &format!("{}:1x4", late + 268435454));
    check(late, &[&word(31, 3), &[0; 4], &short(0, 1)], &format!("{}:1x4", (1_u64 << 60) + 3));
    // The end of the page; a discarded event, with and without time before it.
    check(5, &[&short(7, 1), &word(29, 0), &[9; 40]], "12:1x4");
    let back = |delta| [&word(29, delta)[..], &12_u32.to_le_bytes(), &[9; 8]].concat();
    check(5, &[&back(6), &short(1, 1)], "12:1x4");
    check(5, &[&back(1), &short(1, 1)], "6:1x4");
    // Cut off, of no length, longer than the page, beyond every time.
    check(5, &[&short(7, 1), &word(2, 0), &[1; 4]], "12:1x4 damaged");
    check(5, &[&word(0, 0), &[3, 0, 0, 0], &[0; 8]], "damaged");
    check(5, &[&word(0, 0), &[255; 4], &[0; 8]], "damaged");
    check(5, &[&word(29, 1), &[3, 0, 0, 0], &[0; 8]], "damaged");
    check(5, &[&word(30, 0)], "damaged");
    check(u64::MAX, &[&short(1, 1)], "damaged");
    check(u64::MAX - 5, &[&short(1, 1)], "damaged");
}

#[test]
fn notes_of_loss() {
    let layout = Layout::parse(HEADER).expect("the kernel's own text");
    let (missed, stored) = (1_u64 << 31, 1_u64 << 30);
    let check = |commit: u64, behind: &[u8], lost: Option<u64>| {
        let data = [&word(1, 0)[..], &[1; 4], behind].concat();
        let found = layout.page(&page(5, commit, &data)).map(|page| page.lost);
        assert_eq!(found, Some(lost), "{commit:x}");
    };
    check(8, &[7; 8], None);
    check(8 | missed | stored, &7_u64.to_le_bytes(), Some(7));
    // The kernel writes the flags through a signed number.
    check(8 | u64::MAX << 30, &7_u64.to_le_bytes(), Some(7));
    check(8 | missed, &7_u64.to_le_bytes(), Some(1));
    check(8 | missed | stored, &[], Some(1));
    check(8 | missed | stored, &[255; 8], Some(1));
    check(8 | missed | stored, &[0; 8], Some(1));
}

#[test]
fn what_is_no_page() {
    let check = |bytes: &[u8]| {
        let mut decoder = decoder();
        let (mut names, mut skips) = (Names::new(), Skips::default());
        let error = decoder.page(bytes, &mut names, &mut skips, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().ends_with("which has 4096"), "{error}");
    };
    check(&[]);
    check(&[0; 15]);
    check(&[0; 4097]);
    check(&page(0, 9, &[0; 8]));
    assert_eq!(decoder().page_bytes(), PAGE);
}

/// A description with the fields `name type size`, packed one after the other.
fn described(event: &str, id: u16, fields: &[(&str, &str, usize)]) -> String {
    let mut text = format!("name: {event}\nID: {id}\nformat:\n");
    let common = [("common_type", "unsigned short", 2), ("common_pid", "int", 4)];
    let mut offset = 0;
    for (name, kind, size) in common.iter().chain(fields) {
        text += &format!("\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
        offset += size;
    }
    text
}

/// The events in one page of a single record, by the description `text`.
fn one(text: &str, record: &[u8]) -> String {
    let queue = described("block_bio_queue", 1, &[DEV, SECTOR, SECTORS, RWBS, COMM]);
    let formats = [("it", text), ("another", &queue)];
    let mut decoder = RingDecoder::new(HEADER, &formats).expect("two descriptions");
    let mut data = word(0, 2).to_vec();
    data.extend((record.len() as u32 + 4).to_le_bytes());
    data.extend(record);
    data.resize(data.len().next_multiple_of(4), 0);
    let (mut names, mut skips, mut events) = (Names::new(), Skips::default(), Vec::new());
    let bytes = page(40, data.len() as u64, &data);
    decoder.page(&bytes, &mut names, &mut skips, &mut events).expect("a page");
    let name = |symbol| names.symbols.name(symbol).to_owned();
    use crate::event::EventKind;
    let found = events.iter().map(|Event { time_ns, kind, .. }| match kind {
        EventKind::Queue(target, origin) => {
            format!("{time_ns} queue {} {} {}", target.sector, origin.pid, name(origin.comm))
        }
        EventKind::Remap(to, device, sector) => {
            format!("{time_ns} {} {} from {} {sector}", name(to.device), to.sector, name(*device))
        }
        EventKind::Split(target, at) => format!("{time_ns} {} split {at}", target.sector),
        EventKind::Requeue(target) => format!("{time_ns} {} back", target.sectors),
        EventKind::Phase(phase) => format!("{time_ns} phase {}", name(*phase)),
        other => format!("{other:?}"),
    });
    let skips = skips.rows();
    found.chain(skips.iter().map(|row| format!("{} {}", row.count, row.reason.0))).collect()
}

/// The bytes of a record: common fields, then `parts`.
fn bytes(id: u16, parts: &[&[u8]]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &77_u32.to_le_bytes(), &parts.concat()].concat()
}

const DEV: (&str, &str, usize) = ("dev", "dev_t", 4);
const SECTOR: (&str, &str, usize) = ("sector", "sector_t", 8);
const SECTORS: (&str, &str, usize) = ("nr_sector", "unsigned int", 4);
const COMM: (&str, &str, usize) = ("comm[16]", "char", 16);
const RWBS: (&str, &str, usize) = ("rwbs[8]", "char", 8);

#[test]
fn fields_are_where_the_text_says() {
    let (dev, at, n) = ((8_u32 << 20 | 3).to_le_bytes(), 64_u64.to_le_bytes(), [8, 0, 0, 0]);
    let (ws, from) = (*b"WS\0\0\0\0\0\0", (253_u32 << 20).to_le_bytes());
    let old = [("old_dev", "dev_t", 4), ("old_sector", "sector_t", 8)];
    let remap = described("block_bio_remap", 9, &[RWBS, DEV, SECTOR, SECTORS, old[0], old[1]]);
    let record = bytes(9, &[&ws, &dev, &at, &n, &from, &[16, 0, 0, 0, 0, 0, 0, 0]]);
    assert_eq!(one(&remap, &record), "42 8,3 64 from 253,0 16");
    assert_eq!(one(&remap, &record[..record.len() - 1]), format!("1 {}", BAD_EVENT.0));
    let other = bytes(10, &[&ws, &dev, &at, &n]);
    assert_eq!(one(&remap, &other), format!("1 {}", OTHER_EVENT.0));
    let new = ("new_sector", "sector_t", 8);
    let split = described("block_split", 9, &[DEV, SECTOR, new, RWBS]);
    let record = bytes(9, &[&dev, &at, &[72, 0, 0, 0, 0, 0, 0, 0], &ws]);
    assert_eq!(one(&split, &record), "42 64 split 72");
    let requeue = described("block_rq_requeue", 9, &[DEV, SECTOR, SECTORS, RWBS]);
    assert_eq!(one(&requeue, &bytes(9, &[&dev, &at, &n, &ws])), "42 8 back");
    for print in ["buf[]", "buf"] {
        let print = described("print", 9, &[("ip", "unsigned long", 8), (print, "char", 0)]);
        assert_eq!(one(&print, &bytes(9, &[&at, b"phase  a b \nc\n\0xx"])), "42 phase a b");
        assert_eq!(one(&print, &bytes(9, &[&at, b"phas\0xx"])), "");
    }
}

#[test]
fn a_text_may_stand_elsewhere_in_the_record() {
    let (dev, at, n) = ((8_u32 << 20).to_le_bytes(), 64_u64.to_le_bytes(), [8, 0, 0, 0]);
    for (kind, place) in [("__data_loc char[]", 36_u32), ("__rel_data_loc char[]", 2)] {
        let comm = ("comm", kind, 4);
        let queue = described("block_bio_queue", 9, &[DEV, SECTOR, SECTORS, RWBS, comm]);
        let record = |place: u32, len: u32| {
            let place = (place | len << 16).to_le_bytes();
            bytes(9, &[&dev, &at, &n, b"R\0\0\0\0\0\0\0", &place, b"..dd\0"])
        };
        assert_eq!(one(&queue, &record(place, 3)), "42 queue 64 77 dd", "{kind}");
        assert_eq!(one(&queue, &record(place, 1)), "42 queue 64 77 d", "{kind}");
        assert_eq!(one(&queue, &record(place, 99)), format!("1 {}", BAD_EVENT.0), "{kind}");
    }
}

/// Kernels of 32 bits have a shorter head, and a count of loss of four bytes.
#[test]
fn a_page_of_a_small_kernel() {
    let header = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\
                  \tfield: local_t commit;\toffset:8;\tsize:4;\n\
                  \tfield: char data;\toffset:12;\tsize:4084;\n";
    let layout = Layout::parse(header).expect("a head");
    let commit = (8_u32 | 3 << 30).to_le_bytes();
    let bytes =
        [&9_u64.to_le_bytes()[..], &commit, &word(1, 1), &[6; 4], &7_u32.to_le_bytes()].concat();
    let page = layout.page(&bytes).expect("a page");
    assert_eq!(page.lost, Some(7));
    assert_eq!(page.records().collect::<Vec<_>>(), [Ok((10, &[6; 4][..]))]);
}

#[test]
fn a_text_that_is_no_description_is_refused() {
    let check = |header: &str, formats: &[(&str, &str)], expected: &str| {
        let error = RingDecoder::new(header, formats).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let queue = described("block_bio_queue", 9, &[DEV, SECTOR, SECTORS, RWBS]);
    check("", &[], "events/header_page: there is no field timestamp");
    check("field: x", &[], "line 1 is not in the form");
    check(&HEADER.replace("size:4080", "size:0"), &[], "not those of a page");
    check(HEADER, &[], "no format of a block event");
    check(HEADER, &[("q", &queue)], "q: there is no field comm");
    let queue = described("block_bio_queue", 9, &[DEV, SECTOR, SECTORS, RWBS, COMM]);
    check(HEADER, &[("q", &queue.replace("ID: 9", "ID: x"))], "the ID x is no number");
    check(HEADER, &[("q", &queue.replace("ID", "IX"))], "there is no line `ID: ...`");
    check(HEADER, &[("q", &queue.replace("dev_t dev", "char dev[4]"))], "dev is no number");
    check(HEADER, &[("q", &queue.replace("rwbs[8]", "rwbs"))], "rwbs is no text");
    check(HEADER, &[("q", &queue.replace("size:8", "size:3"))], "sector is no number");
    let all = formats(FORMATS);
    check(HEADER, &[all[0], all[0]], "was there before");
    let page = described("print", 9, &[("buf[]", "char", 0)]);
    check(HEADER, &[("p", &page)], "no format of a block event");
}

#[test]
fn damage_in_a_page_is_counted_and_the_next_page_is_read() {
    let pages = unpacked(include_bytes!("../../tests/data/ring/cpu0.pages.zst"));
    let whole = decode(&pages, &mut Names::new(), &mut Skips::default()).len();
    let first = decode(&pages[..PAGE], &mut Names::new(), &mut Skips::default()).len();
    let mut damaged = pages.clone();
    // The first record says that it is longer than the page.
    damaged[16..24].copy_from_slice(&[0, 0, 0, 0, 255, 255, 0, 0]);
    let mut skips = Skips::default();
    assert_eq!(decode(&damaged, &mut Names::new(), &mut skips).len(), whole - first);
    let rows = skips.rows();
    assert_eq!((rows.len(), rows[0].reason, rows[0].count), (1, BAD_PAGE, 1));
}
