//! The kernel's `blk` tracer prints the same buffer in several forms, which give the same
//! requests.

use crate::common::{Whole, data, options, read};
use prism_trace::{Format, Record, TraceError, detect};

fn whole(name: &str) -> Whole {
    let text = data(&format!("blk-tracer/{name}.txt.zst"));
    assert_eq!(detect(&text), Ok(Format::Blkparse), "{name}");
    read(options(Format::Blkparse), &text).expect("whole")
}

fn row(whole: &Whole, record: &Record) -> String {
    let names = [record.device, record.comm, record.phase].map(|name| whole.symbols.name(name));
    let (op, offset, len) = (record.op.name(), record.offset, record.len);
    format!("{op} {offset}+{len} {:?} {} {names:?}", record.flags, record.pid)
}

fn times(record: &Record) -> [i64; 3] {
    let [queue, complete] = [record.queue, record.complete].map(|time| time.get().unwrap_or(-1));
    [queue, record.issue_ns, complete]
}

#[test]
fn every_form_of_one_buffer_gives_the_same_requests() {
    let classic = whole("classic");
    assert_eq!(classic.outcome.capabilities.clock_ns, 1);
    // 40 writes of 16 KiB, a flush, a read, a discard, zeroes printed as a write, and 4 MiB
    // in parts of about 512 KiB.
    let of = |op: &str| classic.records.iter().filter(|record| record.op.name() == op).count();
    assert_eq!(["write", "read", "discard", "flush"].map(of), [40 + 1 + 8, 1, 1, 1]);
    assert!(!classic.outcome.capabilities.write_zeroes);
    for name in ["default", "named"] {
        let other = whole(name);
        assert_eq!(other.outcome.capabilities.clock_ns, 1000);
        assert_eq!(other.records.len(), classic.records.len());
        for (a, b) in classic.records.iter().zip(&other.records) {
            assert_eq!(row(&classic, a), row(&other, b));
            let close = times(a).into_iter().zip(times(b)).all(|(a, b)| a.abs_diff(b) <= 1000);
            assert!(close, "{a:?} {b:?}");
        }
        assert_eq!(other.outcome.skips.rows(), []);
    }
    for whole in [classic, whole("default")] {
        let phases = whole.outcome.phases.iter().map(|phase| phase.name.as_str());
        assert_eq!(phases.collect::<Vec<_>>(), ["app", "end"]);
        assert!(whole.records.iter().all(|r| whole.symbols.name(r.phase) == "app"));
        assert_eq!(whole.outcome.unpaired, 0);
    }
}

/// The requests and skipped lines of a text, one each.
fn rows(text: &str) -> Vec<String> {
    let whole = read(options(Format::Blkparse), text.as_bytes()).expect("events");
    let requests = whole.records.iter().map(|record| {
        let [queue, issue, complete] = times(record);
        format!("{queue} {issue} {complete} {}", row(&whole, record))
    });
    let skips = whole.outcome.skips.rows();
    let skips = skips.iter().map(|skip| format!("{} {}", skip.count, skip.reason.0));
    requests.chain(skips).collect()
}

#[test]
fn lines_between_those_of_the_tracer() {
    let text = "# tracer: blk\n\
                a-5 [000] d..1. 4.000001:   7,0   3,1  Q   R 8 + 8 [a b]\n\
                a-5 [000] d..1. 4.000002:   7,0    P   N [a b]\n\
                a-5 [000] d..1. 4.000003:   7,0   3,1  D   R 8 + 8 [a b]\n\
                CPU:0 [LOST 12 EVENTS]\n\
                a-5 [000] d..1. 4.000004: block_rq_complete: 7,0 R () 8 + 8 be,0,4 [0]\n\
                a-5 [000] ...1. 4.000005: tracing_mark_write: phase two\n\
                <idle>-0 [000] d.s1. 4.000009:   7,0    C   R 8 + 8 [0]\n\
                7,0    Q   R 8 + 8 [a b]\n\
                a-5 [000] d..1. 4.000011:   7,0   3,1  D  WS 64 + 8 [a b]\n";
    assert_eq!(
        rows(text),
        [
            r#"-2000 0 6000 read 8+8 Flags(0) 5 ["7,0", "a b", ""]"#.replace("8+8", "4096+4096"),
            r#"-1 8000 -1 write 32768+4096 Flags(1) 5 ["7,0", "a b", "two"]"#.to_owned(),
            "12 events lost by the tracer".to_owned(),
            "1 event that is not about requests".to_owned(),
            "1 line that does not parse".to_owned(),
        ]
    );
}

#[test]
fn marks_of_the_classic_form_have_the_time_of_the_line_before() {
    let text = "tracing_mark_write: phase one\n\
                \x20 7,0    0 4.000001000     5  D   R 8 + 8 [a]\n\
                tracing_mark_write: phase two\n\
                tracing_mark_write: nothing\n\
                \x20 7,0    0 4.000002000     5  D   R 16 + 8 [a]\n";
    let whole = read(options(Format::Blkparse), text.as_bytes()).expect("events");
    let phases: Vec<_> =
        whole.outcome.phases.iter().map(|phase| (&*phase.name, phase.start_ns)).collect();
    assert_eq!(phases, [("one", 0), ("two", 0)]);
    let phase = |record: &Record| whole.symbols.name(record.phase);
    assert_eq!(whole.records.iter().map(phase).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(whole.outcome.skips.rows(), []);
    assert_eq!(whole.outcome.capabilities.clock_ns, 1);
}

#[test]
fn a_text_without_times_is_refused() {
    for line in ["  7,0    Q  WS 0 + 32 [a]", "  7,0   /x  Q FWS [a]", "7,0   1,0  P   N [a]"] {
        let text = format!("# tracer: blk\n#\n{line}\n");
        assert_eq!(detect(text.as_bytes()), Ok(Format::Blkparse));
        match read(options(Format::Blkparse), text.as_bytes()) {
            Err(TraceError::Bad { line: 3, what }) => {
                assert!(what.contains("has no time") && what.contains("context-info"), "{what}");
            }
            other => panic!("{:?}", other.map(|whole| whole.outcome)),
        }
    }
}
