//! Events of BPF programs, byte by byte as `struct event` and `struct name` of
//! `crates/host/bpf/capture.bpf.c` have them, give the requests worked out by hand.

use prism_testkit::cases;
use prism_trace::{CountFrom, Flags, Live, Op, Record};
use proptest::prelude::*;

const QUEUE: u8 = 1;
const ISSUE: u8 = 2;
const COMPLETE: u8 = 3;
const BIO_COMPLETE: u8 = 7;

const WRITE: u32 = 1;
const DISCARD: u32 = 3;
const WRITE_ZEROES: u32 = 9;
/// `REQ_OP_DRV_IN`: a command passed through.
const PASSED: u32 = 34;
const SYNC: u32 = 1 << 11;
const META: u32 = 1 << 12;
const FUA: u32 = 1 << 17;
const PREFLUSH: u32 = 1 << 18;

/// An event under construction.
#[derive(Clone, Default)]
struct Event {
    time_ns: u64,
    kind: u8,
    sector: u64,
    bytes: u32,
    opf: u32,
    inode: u64,
    hint: u8,
    stream: u8,
    comm: &'static str,
}

impl Event {
    fn new(time_ns: u64, kind: u8, opf: u32, sector: u64, bytes: u32) -> Self {
        Self { time_ns, kind, opf, sector, bytes, comm: "writer", ..Self::default() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.time_ns, self.sector, self.inode, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        let (device, pid, file_system) = (259 << 20 | 3, 77, 42);
        for word in [0, device, self.bytes, self.opf, pid, file_system] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([self.kind, self.hint, self.stream, 0, 0, 0, 0, 0]);
        bytes.extend(self.comm.bytes().chain([0; 16]).take(16));
        assert_eq!(bytes.len(), 80);
        bytes
    }
}

/// Inode `inode` of file system 42 is called `parts`, last part first.
fn name(inode: u64, magic: u64, parts: &[&str], more: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(inode.to_ne_bytes());
    bytes.extend(magic.to_ne_bytes());
    bytes.extend(42_u32.to_ne_bytes());
    bytes.extend([8, parts.len() as u8, u8::from(more), 0]);
    for part in parts.iter().copied().chain([""; 8]).take(8) {
        bytes.extend(part.bytes().chain([0; 64]).take(64));
    }
    assert_eq!(bytes.len(), 536);
    bytes
}

fn finish(mut live: Live) -> (Vec<Record>, Live, prism_trace::ReadReport) {
    let mut records = Vec::new();
    let outcome = live.finish(&mut records).expect("in order");
    (records, live, outcome)
}

#[test]
fn a_request_has_its_file_hint_stream_and_the_process_that_queued_it() {
    let mut live = Live::bpf(CountFrom::Issue);
    let queued = Event::new(1_000, QUEUE, WRITE | SYNC, 800, 8192);
    let issued = Event { time_ns: 1_500, kind: ISSUE, comm: "kworker/0:1H", ..queued.clone() };
    let issued = Event { inode: 9, hint: 3, stream: 2, ..issued };
    let done = Event { time_ns: 9_000, kind: COMPLETE, ..queued.clone() };
    live.mark("load", 500).expect("in order");
    live.take(&queued.bytes()).expect("an event");
    live.take(&name(9, 0xef53, &["db-wal", "data"], false)).expect("a name");
    live.take(&issued.bytes()).expect("an event");
    live.take(&done.bytes()).expect("an event");
    let (records, live, outcome) = finish(live);
    let [record] = records[..] else { panic!("{records:?}") };
    let text = |symbol| live.symbols().name(symbol);
    assert_eq!((record.op, record.offset, record.len), (Op::Write, 800 * 512, 8192));
    assert_eq!((record.queue.get(), record.issue_ns), (Some(-500), 0));
    assert_eq!(record.complete.get(), Some(7_500));
    assert_eq!((text(record.file), record.inode), ("data/db-wal", 9));
    assert_eq!((record.hint, record.stream, record.pid), (3, 2, 77));
    assert_eq!((text(record.comm), text(record.device)), ("writer", "259,3"));
    assert_eq!((text(record.phase), record.flags), ("load", Flags::SYNC));
    let can = outcome.capabilities;
    assert!(can.file && can.stream && can.queue && can.completion, "{can:?}");
    assert_eq!(can.clock_ns, 1);
}

#[test]
fn operations_and_files_of_every_kind() {
    let mut live = Live::bpf(CountFrom::Issue);
    live.take(&name(1, 0x6264_6576, &[], false)).expect("a name");
    live.take(&name(2, 0xef53, &["c", "b", "a"], true)).expect("a name");
    live.take(&name(3, 0xef53, &[], false)).expect("a name");
    let events = [
        (Event { inode: 1, ..Event::new(1, ISSUE, 0, 8, 4096) }, "read (metadata)"),
        (Event { inode: 2, ..Event::new(2, ISSUE, WRITE, 16, 4096) }, "write …/a/b/c"),
        (Event { inode: 3, ..Event::new(3, ISSUE, WRITE, 24, 4096) }, "write (no name)"),
        (Event { inode: 4, ..Event::new(4, ISSUE, WRITE, 32, 4096) }, "write "),
        (Event::new(5, ISSUE, WRITE | META, 40, 4096), "write (metadata)"),
        (Event::new(6, ISSUE, DISCARD, 48, 1 << 30), "discard "),
        (Event::new(7, ISSUE, WRITE_ZEROES, 56, 4096), "write_zeroes "),
        (Event::new(8, ISSUE, 2 | PREFLUSH, u64::MAX, 0), "flush "),
        (Event::new(9, ISSUE, WRITE | FUA, 64, 4096), "write "),
    ];
    for (event, _) in &events {
        live.take(&event.bytes()).expect("an event");
    }
    live.take(&Event::new(10, ISSUE, PASSED, 0, 512).bytes()).expect("an event");
    live.take(&Event::new(11, 99, WRITE, 0, 512).bytes()).expect("an event");
    live.take(&[0; 79]).expect("counted");
    live.lost(5);
    assert_eq!(live.lost_events(), 5);
    let (records, live, outcome) = finish(live);
    let text =
        |record: &Record| format!("{} {}", record.op.name(), live.symbols().name(record.file));
    let found: Vec<String> = records.iter().map(text).collect();
    let wanted: Vec<&str> = events.iter().map(|(_, wanted)| *wanted).collect();
    assert_eq!(found, wanted);
    assert!(records[8].flags.has(Flags::FUA));
    let skips: Vec<(u64, &str)> =
        outcome.skips.rows().iter().map(|row| (row.count, row.reason.0)).collect();
    assert_eq!(skips.len(), 3, "{skips:?}");
    assert!(skips.iter().any(|skip| skip.0 == 5 && skip.1.contains("lost")), "{skips:?}");
    assert!(skips.iter().any(|skip| skip.0 == 2 && skip.1.contains("not parse")), "{skips:?}");
}

#[test]
fn a_renamed_file_has_its_new_name_from_then_on() {
    let mut live = Live::bpf(CountFrom::Issue);
    for (time, file) in [(1, "000004.dbtmp"), (2, "CURRENT")] {
        live.take(&name(5, 0xef53, &[file], false)).expect("a name");
        let event = Event { inode: 5, ..Event::new(time, ISSUE, WRITE, 8 * time, 4096) };
        live.take(&event.bytes()).expect("an event");
    }
    let (records, live, _) = finish(live);
    let files: Vec<&str> = records.iter().map(|r| live.symbols().name(r.file)).collect();
    assert_eq!(files, ["000004.dbtmp", "CURRENT"]);
}

#[test]
fn devices_without_requests_are_counted_by_their_bios() {
    let mut live = Live::bpf(CountFrom::Queue);
    let queued = Event { inode: 6, ..Event::new(10, QUEUE, WRITE, 8, 4096) };
    live.take(&name(6, 0xef53, &["f"], false)).expect("a name");
    live.take(&queued.bytes()).expect("an event");
    live.take(&Event::new(30, BIO_COMPLETE, WRITE, 8, 4096).bytes()).expect("an event");
    let (records, live, _) = finish(live);
    let [record] = records[..] else { panic!("{records:?}") };
    assert_eq!(live.symbols().name(record.file), "f");
    assert_eq!(record.complete.get(), Some(20));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_bytes_make_nothing_panic(pieces in prop::collection::vec(any_piece(), 0..40)) {
        let mut live = Live::bpf(CountFrom::Issue);
        for piece in &pieces {
            // An event far behind the others is an error, not a panic.
            if live.take(piece).is_err() {
                break;
            }
        }
        let mut records = Vec::new();
        if let Ok(outcome) = live.finish(&mut records) {
            prop_assert!(outcome.lines <= pieces.len() as u64);
        }
    }
}

/// Bytes of the length of an event, of a name, or of neither.
fn any_piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 80..=80),
        prop::collection::vec(any::<u8>(), 536..=536),
        prop::collection::vec(any::<u8>(), 0..100),
        (0..8_u8, any::<[u8; 16]>(), 0..100_u64).prop_map(|(kind, words, time)| {
            let sector = u64::from_ne_bytes(words[..8].try_into().expect("eight"));
            let opf = u32::from_ne_bytes(words[8..12].try_into().expect("four"));
            Event::new(time, kind, opf, sector, 4096).bytes()
        }),
    ]
}
