//! The output of tools that print what the block layer or the disk's driver did gives the
//! requests from which it was made, as far as it contains them.

use crate::common::{Whole, data, observable, options, read, read_pieces};
use prism_testkit::cases;
use prism_trace::{Capabilities, Format, Op, Record, TraceError, detect};
use proptest::prelude::*;

fn whole(name: &str, format: Format) -> Whole {
    let text = data(name);
    assert_eq!(detect(&text), Ok(format), "{name}");
    let whole = read(options(format), &text).expect("whole");
    let pieces = read_pieces(options(format), &[&text], 7).expect("whole");
    assert_eq!(pieces.records, whole.records, "{name}");
    whole
}

/// `issue>complete op offset+length flags pid names`, times in nanoseconds since the first
/// request, then the skipped lines.
fn rows(whole: &Whole) -> Vec<String> {
    let row = |r: &Record| {
        let ns = |ns: Option<i64>| ns.map_or("?".to_owned(), |ns| ns.to_string());
        let times = [r.queue.get(), Some(r.issue_ns), r.complete.get()].map(ns).join(">");
        let names = [r.comm, r.device, r.file].map(|name| whole.symbols.name(name)).join("|");
        format!("{times} {} {}+{} {} {} {names}", r.op.name(), r.offset, r.len, r.flags.0, r.pid)
    };
    let skips = whole.outcome.skips.rows();
    let skips = skips.iter().map(|s| format!("{} from {}: {}", s.count, s.first_line, s.reason.0));
    whole.records.iter().map(row).chain(skips).collect()
}

fn check(format: Format, text: &str, expected: &[&str]) {
    let whole = read(options(format), text.as_bytes()).expect("requests");
    assert_eq!(rows(&whole), expected, "{text}");
}

/// A request as all tools report it, and its times.
type Request = ((u64, u64, Op, i32, String), [i64; 2]);

/// The requests of the recording from which the two texts of biosnoop were made, in the order
/// of their completion, without what a text does not contain.
fn requests(whole: &Whole, how_many: usize) -> Vec<Request> {
    let mut records: Vec<&Record> = whole.records.iter().collect();
    records.sort_by_key(|record| record.complete.get());
    let first = records[0].complete.get().expect("done");
    let one = |r: &&Record| {
        let comm = whole.symbols.name(r.comm).chars().take(14).collect();
        let complete = r.complete.get().expect("done");
        ((r.offset, r.len, r.op, r.pid, comm), [r.issue_ns - first, complete - first])
    };
    records[..how_many].iter().map(one).collect()
}

/// Whether two list the same requests, with times that differ by at most `step_ns`.
fn assert_same(found: &[Request], wanted: &[Request], step_ns: u64) {
    assert_eq!(found.len(), wanted.len());
    for (a, b) in found.iter().zip(wanted) {
        let close = a.1.iter().zip(b.1).all(|(a, b)| a.abs_diff(b) <= step_ns);
        assert!(a.0 == b.0 && close, "{a:?} {b:?}");
    }
}

#[test]
fn biosnoop_of_libbpf_tools() {
    let wanted = requests(&read(options(Format::Ftrace), &data("ring/trace.txt.zst")).unwrap(), 70);
    let found = whole("biosnoop-libbpf.txt", Format::Biosnoop);
    assert_same(&requests(&found, 70), &wanted, 1);
    assert_eq!(found.outcome.skips.rows(), []);
    let can = found.outcome.capabilities;
    assert!(can.discard && can.write_zeroes && can.flush && can.fua && can.sync_meta);
    assert!(can.completion && can.process && !can.queue);
    assert_eq!(can.clock_ns, 1000);
}

#[test]
fn biosnoop_in_python() {
    let mut wanted =
        requests(&read(options(Format::Ftrace), &data("ring/trace.txt.zst")).unwrap(), 70);
    let flushes = wanted.len();
    wanted.retain(|((_, _, op, ..), _)| *op != Op::Flush);
    let flushes = (flushes - wanted.len()) as u64;
    let done = wanted[0].1[1];
    for ((_, _, op, ..), times) in &mut wanted {
        // It prints writes as writes, and everything else as reads.
        *op = if *op == Op::Write { Op::Write } else { Op::Read };
        times.iter_mut().for_each(|ns| *ns -= done);
    }
    let found = whole("biosnoop-bcc.txt", Format::Biosnoop);
    assert_same(&requests(&found, wanted.len()), &wanted, 5_000);
    let skips = found.outcome.skips.rows();
    let reason = "request without bytes, which may have been a flush";
    assert_eq!((skips.len(), skips[0].count, skips[0].reason.0), (1, flushes, reason));
    let can = found.outcome.capabilities;
    assert_eq!((can.discard, can.write_zeroes, can.flush, can.fua), (false, false, false, false));
    assert!(can.completion && can.process && can.queue);
    assert_eq!(can.clock_ns, 10_000);
    // The queue times were invented: 0, 10 and 20 us, alternately.
    let waits = |us: i64| {
        let waited = |r: &&Record| r.issue_ns - r.queue.get().expect("-Q was given") == us * 1000;
        found.records.iter().filter(waited).count() > 10
    };
    assert!(waits(0) && waits(10) && waits(20));
}

#[test]
fn lines_of_biosnoop() {
    check(
        Format::Biosnoop,
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n\
         0.000004    f2fs ckpt 7    1950   xvda1   W 8   4096       0.74\n\
         0.001000    ?              0              R 0          0         0.21\n\
         0.001000    ?              0              R 16         512       0.50\n\
         0.001469    a b            12             R 24         512 S     0.01    1.24\n\
         0.002000    a              12     <unknown> W 24       10485761234.56\n\
         0.002000    a              12     sda     X 24       512    0.10\n\
         TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n",
        &[
            "?>0>740000 write 4096+4096 0 1950 f2fs ckpt 7|xvda1|",
            "955000>965000>2205000 read 12288+512 0 12 a b||",
            "?>1236000>1736000 read 8192+512 0 -1 ||",
            "2 from 6: unknown operation",
            "1 from 3: request without bytes, which may have been a flush",
        ],
    );
    check(
        Format::Biosnoop,
        "0.000000    a              12     sda     FWFSM 8     4096    0.100   0.010\n\
         0.000010    a              12     sda     FF   -1     0      -1.000   0.010\n\
         0.000020    a              12     sda     N    16     512    -1.000   0.010\n\
         0.000030    a              12     sda     N    0      0      -1.000   0.010\n",
        &[
            "-100000>0>10000 write 4096+4096 15 12 a|sda|",
            "?>10000>20000 flush 0+0 0 12 a|sda|",
            "?>20000>30000 write_zeroes 8192+512 0 12 a|sda|",
            "1 from 4: unknown operation",
        ],
    );
}

#[test]
fn disk_events_of_windows() {
    let found = whole("etw.csv", Format::Etw);
    assert_eq!(
        rows(&found),
        [
            r"?>0>10000000 write 65536+65536 0 4 System|0|C:\a, b\$LogFile",
            "?>4903000>9291000 read 336597233152+8192 0 11008 p0|4|Disk6",
            "?>10025000>10100000 flush 0+0 0 4 System|0|",
            "?>10200000>10300000 read 512+512 0 77 p1|4|",
            "2 from 8: event that is not about requests",
            "1 from 14: request of zero length",
        ]
    );
    let expected = Capabilities {
        flush: true,
        completion: true,
        process: true,
        file: true,
        clock_ns: 1000,
        ..Capabilities::READS_AND_WRITES
    };
    assert_eq!(found.outcome.capabilities, expected);
}

#[test]
fn columns_are_those_of_the_header() {
    let rows = "DiskRead, 723291, p0 (8), 1, 0xf, 0x200, 0x200, 91, 4, 0, 91, 0, U, 0, \"D\"\n";
    // Without a header, those of the published traces.
    check(Format::Etw, rows, &["?>0>91000 read 512+512 0 8 p0|4|D"]);
    assert_eq!(detect(rows.as_bytes()), Ok(Format::Etw));
    let moved = "BeginHeader\nDiskRead, TimeStamp, ElapsedTime, IOSize, ByteOffset, \
                 Process Name ( PID), DiskNum\nEndHeader\n\
                 DiskRead, 1000, 10, 0x400, 0x200, a b (9), 7\n";
    check(Format::Etw, moved, &["?>0>10000 read 512+1024 0 9 a b|7|"]);
    let timeless = "BeginHeader\nDiskRead, TimeStamp, IOSize\nEndHeader\n";
    match read(options(Format::Etw), timeless.as_bytes()) {
        Err(TraceError::Bad { line: 2, what }) => assert!(what.contains("ElapsedTime"), "{what}"),
        other => panic!("{:?}", other.map(|whole| whole.outcome)),
    }
    check(
        Format::Etw,
        &format!(
            "DiskRead, x, p0 (8), 1, 0xf, 0x200, 0x200, 91, 4, 0, 91, 0, U, 0, \"D\"\n{rows}\
             DiskRead, 723291, p0, 1, 0xf, 0x200, 0x200, 91, 4, 0, 91, 0, U, 0, \"D\"\n\
             DiskRead, 723291\n"
        ),
        &[
            "?>0>91000 read 512+512 0 8 p0|4|D",
            "2 from 1: not a number where one is expected",
            "1 from 4: wrong number of fields",
        ],
    );
}

#[test]
fn events_for_wiscsee() {
    let found = whole("wiscsee.txt", Format::Wiscsee);
    assert_eq!(
        rows(&found),
        [
            "?>0>68500 write 136314880+4096 1 1446 ||",
            "?>6000>206000 read 4096+8192 0 1446 ||",
            "?>155989>255989 discard 1048576+8589934592 0 1446 ||",
            "?>62555989>? write 0+512 0 1447 ||",
        ]
    );
    let can = found.outcome.capabilities;
    assert_eq!((can.discard, can.completion, can.process, can.clock_ns), (true, true, true, 1));
    assert_eq!((can.flush, can.fua, can.sync_meta, can.write_zeroes), (false, false, false, false));
    assert_eq!(found.outcome.unpaired, 1);
    check(
        Format::Wiscsee,
        "1 D write 0 512 1.0 0.1 True\n\
         1 D write 1 512 1.0 0.1 True\n\
         1 X write 0 512 1.0 0.1 True\n\
         1 D flush 0 512 1.0 0.1 True\n\
         1 D write 0 512 1.0 0.1\n\
         1 D write 0 512 x 0.1 True\n",
        &[
            "?>0>? write 0+512 1 1 ||",
            "3 from 2: event whose fields do not parse",
            "1 from 5: line that does not parse",
            "1 from 6: not a number where one is expected",
        ],
    );
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_damage_to_lines_does_no_harm(
        (sample, from) in (0_usize..4, 0_usize..3000),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..30), 1..12),
        piece in 1_usize..300,
    ) {
        let names = ["biosnoop-libbpf.txt", "biosnoop-bcc.txt", "etw.csv", "wiscsee.txt"];
        let all = data(names[sample]);
        let mut text = all[from % all.len()..].to_vec();
        text.truncate(600);
        for (place, letter) in edits {
            let place = place.index(text.len());
            let letter = b"0123456789.-, \n\"()RWFNDxe?T\xff\0"[letter % 28];
            if place % 3 == 0 { text.insert(place, letter) } else { text[place] = letter }
        }
        for format in [Format::Biosnoop, Format::Etw, Format::Wiscsee] {
            let show = |piece| {
                let outcome = read_pieces(options(format), &[&text], piece);
                let fits = |r: &Record| r.end() <= i64::MAX as u64 && r.issue_ns >= 0;
                let mut records = outcome.iter().flat_map(|whole| &whole.records);
                assert!(records.all(fits), "{:?}", outcome.map(|whole| whole.records));
                observable(outcome)
            };
            prop_assert_eq!(show(piece), show(text.len()));
        }
        let _ = detect(&text);
    }
}
