//! Each peculiarity of the kernel's event text, as a few lines and the requests in them.

use crate::common::{Whole, options, read};
use prism_base::Nanos;
use prism_trace::{CountFrom, Flags, Format, ReaderOptions, Record};

/// `queue>issue>complete op sector+sectors flags pid comm`, times in microseconds since
/// the first issue.
fn row(whole: &Whole, record: &Record) -> String {
    let us = |ns: Option<i64>| ns.map_or("?".to_owned(), |ns| (ns / 1000).to_string());
    let mut flags = String::new();
    for (flag, letter) in [
        (Flags::PREFLUSH, 'P'),
        (Flags::FUA, 'F'),
        (Flags::READAHEAD, 'A'),
        (Flags::SYNC, 'S'),
        (Flags::META, 'M'),
    ] {
        if record.flags.has(flag) {
            flags.push(letter);
        }
    }
    format!(
        "{}>{}>{} {} {}+{} {flags} {} {}",
        us(record.queue.get()),
        us(Some(record.issue_ns)),
        us(record.complete.get()),
        record.op.name(),
        record.offset / 512,
        record.len / 512,
        record.pid,
        whole.symbols.name(record.comm),
    )
}

fn rows(format: Format, count_from: CountFrom, lines: &str) -> Vec<String> {
    let mut options = options(format);
    options.count_from = count_from;
    match read(options, lines.as_bytes()) {
        Err(error) => vec![error.to_string()],
        Ok(whole) => {
            let mut rows: Vec<String> = whole.records.iter().map(|r| row(&whole, r)).collect();
            rows.extend(whole.outcome.skips.rows().into_iter().map(|skip| {
                format!("skipped {} from line {}: {}", skip.count, skip.first_line, skip.reason.0)
            }));
            rows
        }
    }
}

/// Each line is `task-pid us event fields`, with the seconds, the CPU and the flags filled in.
fn check(events: &[&str], expected: &[&str]) {
    assert_eq!(rows(Format::Ftrace, CountFrom::Issue, &text(events)), expected, "{events:#?}");
}

fn text(events: &[&str]) -> String {
    events.iter().map(|event| line(event)).collect()
}

fn line(event: &str) -> String {
    let mut words = event.splitn(4, ' ');
    let mut word = || words.next().expect("an event has four parts");
    let (task, us, name, fields) = (word(), word(), word(), word());
    let us: u32 = us.parse().expect("the time is a number");
    format!("{task:>20}   [001] ..s1.   745.{us:06}: block_{name}: {fields}\n")
}

#[test]
fn the_process_number_follows_the_last_dash_and_the_flags_may_vary() {
    let expected = |pid: &str| vec![format!("?>0>? write 8+8 S {pid} x")];
    for (head, pid) in [
        ("jbd2/loop0-8-10900   [000] .....   745.000001:", "10900"),
        ("f2fs_ckpt-259:0-1409 [000] ....   745.000001:", "1409"),
        ("a b-c-7  [000] d.h1   745.000001:", "7"),
        ("x[1] y-7  [000] d.h1.   745.000001:", "7"),
        ("bash-12 ( 1100) [000] .....   745.000001:", "12"),
        ("bash-12 (-----) [000] .....   745.000001:", "12"),
        ("<...>-99 [127] 745.000001:", "99"),
    ] {
        let text = format!("   {head} block_rq_issue: 7,0 WS 4096 () 8 + 8 be,0,4 [x]\n");
        assert_eq!(rows(Format::Ftrace, CountFrom::Issue, &text), expected(pid), "{head}");
    }
}

#[test]
fn the_issue_has_the_process_of_the_queued_bio() {
    check(
        &[
            "dd-5 10 bio_queue 7,0 WS 8 + 8 [dd]",
            "kworker/0:1H-44 30 rq_issue 7,0 WS 4096 () 8 + 8 be,0,4 [kworker/0:1H]",
            "<idle>-0 90 rq_complete 7,0 WS () 8 + 8 be,0,4 [0]",
        ],
        &["-20>0>60 write 8+8 S 5 dd"],
    );
    // Without the queue event it is unknown for which process the worker acts.
    check(
        &["kworker/0:1H-44 30 rq_issue 7,0 WS 4096 () 8 + 8 be,0,4 [kworker/0:1H]"],
        &["?>0>? write 8+8 S -1 "],
    );
    check(
        &[
            "dd-5 10 io_start 7,0 R 4096 () 8 + 8 be,0,4 [dd]",
            "kworker/0:1H-44 30 rq_issue 7,0 R 4096 () 8 + 8 be,0,4 [kworker/0:1H]",
        ],
        &["-20>0>? read 8+8  5 dd"],
    );
}

#[test]
fn the_priority_is_missing_before_6_7_and_a_number_in_perf() {
    check(
        &["mkfs.f2fs-1173 5 rq_issue 259,0 D 2147483136 () 0 + 4194303 [mkfs.f2fs]"],
        &["?>0>? discard 0+4194303  1173 mkfs.f2fs"],
    );
    let perf = "my dd 19404 [001]   766.164705:    block:block_rq_issue: \
                7,0 WS 1310720 () 1392640 + 2560 0x2,0,4 [my dd]\n\
                swapper 0 [001]   766.164905:    block:block_rq_complete: \
                7,0 WS () 1392640 + 2560 0x2,0,4 [0]\n";
    assert_eq!(
        rows(Format::PerfScript, CountFrom::Issue, perf),
        ["?>0>200 write 1392640+2560 S 19404 my dd"]
    );
}

#[test]
fn one_forced_write_is_a_flush_the_data_and_a_flush() {
    // The completion of no sectors at the end is the bio's, not a request's.
    check(
        &[
            "jbd2-8 0 bio_queue 7,0 FWFSM 640 + 8 [jbd2]",
            "kworker/0:1H-44 10 rq_issue 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:1H]",
            "x-1 20 rq_complete 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]",
            "kworker/0:1H-44 30 rq_issue 7,0 WSM 4096 () 640 + 8 be,0,3 [kworker/0:1H]",
            "x-1 40 rq_complete 7,0 WSM () 640 + 8 be,0,3 [0]",
            "kworker/0:1H-44 50 rq_issue 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:1H]",
            "x-1 60 rq_complete 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]",
            "x-1 60 rq_complete 7,0 WSM () 640 + 0 be,0,3 [0]",
        ],
        &[
            "-10>0>10 flush 0+0  8 jbd2",
            "-10>20>30 write 640+8 SM 8 jbd2",
            "-10>40>50 flush 0+0  8 jbd2",
        ],
    );
    // A device that executes FUA itself.
    check(
        &[
            "jbd2-8 0 bio_queue 7,0 FWFSM 640 + 8 [jbd2]",
            "kworker/0:1H-44 10 rq_issue 7,0 FF 0 () 0 + 0 [kworker/0:1H]",
            "kworker/0:1H-44 30 rq_issue 7,0 WFSM 4096 () 640 + 8 [kworker/0:1H]",
        ],
        &["-10>0>? flush 0+0  8 jbd2", "-10>20>? write 640+8 FSM 8 jbd2"],
    );
}

#[test]
fn one_flush_serves_all_that_wait() {
    check(
        &[
            "a-1 0 bio_queue 7,0 FWS 0 + 0 [a]",
            "b-2 5 bio_queue 7,0 FWS 0 + 0 [b]",
            "kworker/0:1H-44 10 rq_issue 7,0 FF 0 () 0 + 0 [kworker/0:1H]",
            "x-9 20 rq_complete 7,0 FF () 18446744073709551615 + 0 [0]",
            "x-9 20 rq_complete 7,0 WS () 0 + 0 [0]",
            "x-9 20 rq_complete 7,0 WS () 0 + 0 [0]",
            "c-3 25 bio_queue 7,0 FWS 0 + 0 [c]",
            "kworker/0:1H-44 30 rq_issue 7,0 FF 0 () 0 + 0 [kworker/0:1H]",
        ],
        &["-10>0>10 flush 0+0  1 a", "15>20>? flush 0+0  3 c"],
    );
}

/// blkparse prints the end of the bio as its sector alone.
#[test]
fn a_forced_write_in_blkparse() {
    let text = "\
        7,0 1 1 1.000000000 8 Q FWFSM 640 + 8 [jbd2]\n\
        7,0 1 2 1.000010000 44 D FN [kworker/0:1H]\n\
        7,0 1 3 1.000020000 0 C FN 0 [0]\n\
        7,0 1 4 1.000030000 44 D WSM 640 + 8 [kworker/0:1H]\n\
        7,0 1 5 1.000040000 0 C WSM 640 + 8 [0]\n\
        7,0 1 6 1.000050000 0 C WSM 640 [0]\n\
        7,0 1 7 1.000060000 44 D FN [kworker/0:1H]\n\
        7,0 1 8 1.000070000 5 D R 36 (12 00 00 00 24 00) [smart]\n\
        7,0 1 9 1.000080000 5 C R (12 00 00 00 24 00) [0]\n";
    assert_eq!(
        rows(Format::Blkparse, CountFrom::Issue, text),
        [
            "-10>0>10 flush 0+0  8 jbd2",
            "-10>20>30 write 640+8 SM 8 jbd2",
            "?>50>? flush 0+0  -1 ",
            "skipped 1 from line 8: command that neither moves data nor flushes \
             (passed through, zone management)",
        ]
    );
}

/// The second bio came too late for the flush, as only the completions show.
#[test]
fn a_bio_queued_just_before_a_flush_may_get_its_own() {
    check(
        &[
            "a-1 0 bio_queue 7,0 FWS 0 + 0 [a]",
            "b-2 5 bio_queue 7,0 FWS 0 + 0 [b]",
            "kworker/0:1H-44 10 rq_issue 7,0 FF 0 () 0 + 0 [kworker/0:1H]",
            "x-9 20 rq_complete 7,0 FF () 18446744073709551615 + 0 [0]",
            "x-9 20 rq_complete 7,0 WS () 0 + 0 [0]",
            "kworker/0:1H-44 30 rq_issue 7,0 FF 0 () 0 + 0 [kworker/0:1H]",
        ],
        &["-10>0>10 flush 0+0  1 a", "-5>20>? flush 0+0  2 b"],
    );
}

#[test]
fn nameless_requests() {
    check(
        &[
            "a-1 0 rq_issue 7,0 NS 65536 () 8388480 + 128 be,0,4 [a]",
            "a-1 1 rq_issue 7,0 N 512 (12 01 00) 0 + 0 be,0,4 [a]",
            "a-1 2 rq_issue 7,0 WZS 4096 () 8 + 8 be,0,4 [a]",
        ],
        &[
            "?>0>? write_zeroes 8388480+128 S 1 a",
            "?>2>? write_zeroes 8+8 S 1 a",
            "skipped 1 from line 2: command that neither moves data nor flushes \
             (passed through, zone management)",
        ],
    );
}

#[test]
fn merged_and_split_bios() {
    check(
        &[
            "a-1 0 bio_queue 7,0 R 16 + 8 [a]",
            "b-2 1 bio_queue 7,0 R 8 + 8 [b]",
            "c-3 2 bio_queue 7,0 R 24 + 8 [c]",
            "k-4 5 rq_issue 7,0 R 12288 () 8 + 24 [k]",
            "k-4 6 rq_issue 7,0 R 4096 () 24 + 8 [k]",
        ],
        &["-5>0>? read 8+24  1 a", "?>1>? read 24+8  4 k"],
    );
    check(
        &[
            "a-1 0 bio_queue 7,0 W 0 + 24 [a]",
            "k-4 5 rq_issue 7,0 W 4096 () 0 + 8 [k]",
            "k-4 6 rq_issue 7,0 W 8192 () 8 + 16 [k]",
        ],
        &["-5>0>? write 0+8  1 a", "-5>1>? write 8+16  1 a"],
    );
    // The rest of the split bio is shorter than before, and includes no other bio.
    check(
        &[
            "a-1 0 bio_queue 7,0 W 0 + 24 [a]",
            "b-2 1 bio_queue 7,0 W 24 + 8 [b]",
            "k-4 5 rq_issue 7,0 W 4096 () 0 + 8 [k]",
            "k-4 6 rq_issue 7,0 W 12288 () 8 + 24 [k]",
            "c-3 7 bio_queue 7,0 W 24 + 8 [c]",
            "k-4 8 rq_issue 7,0 W 4096 () 24 + 8 [k]",
        ],
        &["-5>0>? write 0+8  1 a", "-5>1>? write 8+24  1 a", "2>3>? write 24+8  3 c"],
    );
    // The second part goes first.
    check(
        &[
            "a-1 0 bio_queue 7,0 W 0 + 24 [a]",
            "a-1 1 split 7,0 W 0 / 8 [a]",
            "k-4 5 rq_issue 7,0 W 8192 () 8 + 16 [k]",
            "k-4 6 rq_issue 7,0 W 4096 () 0 + 8 [k]",
            "c-3 7 bio_queue 7,0 W 8 + 8 [c]",
            "k-4 8 rq_issue 7,0 W 4096 () 8 + 8 [k]",
        ],
        &["-5>0>? write 8+16  1 a", "-5>1>? write 0+8  1 a", "2>3>? write 8+8  3 c"],
    );
}

#[test]
fn two_requests_for_one_sector() {
    check(
        &[
            "a-1 0 bio_queue 7,0 R 8 + 8 [a]",
            "b-2 1 bio_queue 7,0 R 8 + 8 [b]",
            "k-4 5 rq_issue 7,0 R 4096 () 8 + 8 [k]",
            "k-4 6 rq_issue 7,0 R 4096 () 8 + 8 [k]",
            "k-4 8 rq_complete 7,0 R () 8 + 8 [0]",
            "k-4 9 rq_complete 7,0 R () 8 + 8 [0]",
        ],
        &["-5>0>3 read 8+8  1 a", "-4>1>4 read 8+8  2 b"],
    );
}

#[test]
fn remaps_carry_the_process_down() {
    check(
        &[
            "a-1 0 bio_queue 253,0 W 8 + 8 [a]",
            "crypt-2 1 bio_remap 7,0 W 2056 + 8 <- (253,0) 8",
            "crypt-2 2 bio_queue 7,0 W 2056 + 8 [crypt]",
            "crypt-2 5 rq_issue 7,0 W 4096 () 2056 + 8 [crypt]",
            "b-3 6 bio_queue 7,0 W 2056 + 8 [b]",
            "b-3 7 rq_issue 7,0 W 4096 () 2056 + 8 [b]",
        ],
        &["-5>0>? write 2056+8  1 a", "1>2>? write 2056+8  3 b"],
    );
    check(
        &[
            "a-1 0 bio_queue 253,0 FWS 0 + 0 [a]",
            "a-1 1 bio_remap 7,0 FWS 0 + 0 <- (253,0) 0",
            "w-2 2 bio_queue 7,0 FWS 0 + 0 [w]",
            "w-2 5 rq_issue 7,0 FF 0 () 0 + 0 [w]",
        ],
        &["-5>0>? flush 0+0  1 a"],
    );
}

#[test]
fn partial_completions_and_requeues() {
    check(
        &[
            "a-1 0 rq_issue 7,0 R 8192 () 8 + 16 [a]",
            "a-1 1 rq_complete 7,0 R () 8 + 8 [0]",
            "a-1 5 rq_complete 7,0 R () 16 + 8 [0]",
        ],
        &["?>0>5 read 8+16  1 a"],
    );
    check(
        &[
            "a-1 0 bio_queue 7,0 W 8 + 8 [a]",
            "k-2 1 rq_issue 7,0 W 4096 () 8 + 8 [k]",
            "k-2 2 rq_requeue 7,0 W () 8 + 8 [0]",
            "k-2 5 rq_issue 7,0 W 4096 () 8 + 8 [k]",
            "k-2 9 rq_complete 7,0 W () 8 + 8 [0]",
        ],
        &["-5>0>4 write 8+8  1 a"],
    );
}

#[test]
fn lines_out_of_order() {
    check(
        &[
            "k-2 30 rq_complete 7,0 W () 8 + 8 [0]",
            "k-2 10 rq_issue 7,0 W 4096 () 8 + 8 [k]",
            "a-1 5 bio_queue 7,0 W 8 + 8 [a]",
        ],
        &["-5>0>20 write 8+8  1 a"],
    );
    // The same timestamp, and the completion printed first.
    check(
        &["k-2 10 rq_complete 7,0 W () 8 + 8 [0]", "k-2 10 rq_issue 7,0 W 4096 () 8 + 8 [k]"],
        &["?>0>0 write 8+8  2 k"],
    );
    check(
        &["k-2 10 rq_complete 7,0 W () 8 + 8 [0]", "k-2 11 rq_issue 7,0 W 4096 () 8 + 8 [k]"],
        &[
            "?>0>? write 8+8  2 k",
            "skipped 1 from line 1: completion whose issue is not in the trace",
        ],
    );
    let late = format!(
        "{}{}",
        line("k-2 10 rq_issue 7,0 W 4096 () 8 + 8 [k]"),
        line("k-2 10 rq_issue 7,0 W 4096 () 8 + 8 [k]").replace("745.", "743.")
    );
    let error = "line 2: time goes back by 2 s, and requests are sorted only within 1 s; sort the \
                 trace by time, or give --disorder at least 2s: larger steps back may follow";
    assert_eq!(rows(Format::Ftrace, CountFrom::Issue, &late), [error]);
    let sorted = ReaderOptions { disorder: Some(Nanos(2_000_000_000)), ..options(Format::Ftrace) };
    let sorted = read(sorted, late.as_bytes()).expect("the window is wide enough").records;
    assert_eq!(sorted.iter().map(|record| record.issue_ns).collect::<Vec<_>>(), [0, 2_000_000_000]);
}

#[test]
fn a_lost_completion_does_not_hold_the_others_for_ever() {
    let mut lines = line("a-1 0 rq_issue 7,0 R 4096 () 800 + 8 [a]");
    for second in 746..800 {
        let issue = line("a-1 0 rq_issue 7,0 R 4096 () 8 + 8 [a]");
        let complete = line("a-1 9 rq_complete 7,0 R () 8 + 8 [0]");
        lines += &(issue + &complete).replace("745.", &format!("{second}."));
    }
    let mut reader = prism_trace::Reader::new(options(Format::Ftrace), 1).expect("no options");
    let mut out = Vec::new();
    reader.feed(0, lines.as_bytes(), &mut out).expect("in order");
    assert!(out.len() > 40 && out[0].complete.get().is_none(), "{} left", out.len());
    let late = line("a-1 10 rq_complete 7,0 R () 800 + 8 [0]").replace("745.", "799.");
    reader.feed(0, late.as_bytes(), &mut out).expect("in order");
    let outcome = reader.finish(&mut out).expect("there are events");
    assert_eq!((outcome.unpaired, outcome.skips.rows()[0].first_line), (1, 110));
    assert_eq!(out.len(), 55);
}

#[test]
fn stacked_devices_have_queue_events_only() {
    let events = text(&[
        "a-1 10 bio_queue 253,0 W 8 + 8 [a]",
        "a-1 11 bio_queue 253,0 FWS 0 + 0 [a]",
        "a-1 15 bio_complete 253,0 W 8 + 8 [0]",
        "a-1 16 bio_complete 253,0 FWS 0 + 0 [0]",
    ]);
    let whole = read(options(Format::Ftrace), events.as_bytes()).expect("there are events");
    assert!(whole.outcome.only_queue_events && whole.records.is_empty());
    assert_eq!(
        rows(Format::Ftrace, CountFrom::Queue, &events),
        ["0>0>5 write 8+8  1 a", "1>1>6 flush 0+0 S 1 a"]
    );
}

#[test]
fn what_is_no_request_is_counted() {
    let issue = line("k-2 10 rq_issue 7,0 W 4096 () 8 + 8 [k]");
    for (other, expected) in [
        ("# tracer: nop", None),
        ("cpus=2", None),
        ("CPU:0 [LOST 123 EVENTS]", Some("skipped 123 from line 1: events lost by the tracer")),
        ("CPU:0 [LOST EVENTS]", Some("skipped 1 from line 1: events lost by the tracer")),
        ("CPU:1 [7 EVENTS DROPPED]", Some("skipped 7 from line 1: events lost by the tracer")),
        ("nonsense", Some("skipped 1 from line 1: line that does not parse")),
        (
            " dd-1 [000] ..... 745.000001: sched_waking: comm=dd pid=1",
            Some("skipped 1 from line 1: event that is not about requests"),
        ),
        (
            " dd-1 [000] ..... 745.000001: block_rq_issue: 7,0 ?? 4096 () 8 + 8 [x]",
            Some("skipped 1 from line 1: event whose fields do not parse"),
        ),
        (" dd-1 [000] ..... 745.000001: nvme_sq: nvme0: qid=1", None),
        (" dd-1 [000] ..... 745.000001: block_plug: [dd]", None),
        (" dd-1 [000] ..... 745.000001: block_getrq: 7,0 R 8 + 8 [dd]", None),
    ] {
        let mut all = vec!["?>0>? write 8+8  2 k"];
        all.extend(expected);
        let text = format!("{other}\n{issue}");
        assert_eq!(rows(Format::Ftrace, CountFrom::Issue, &text), all, "{other}");
    }
    let long = format!("{}\n{issue}", "x".repeat(70_000));
    let expected = ["?>0>? write 8+8  2 k", "skipped 1 from line 1: line longer than 64 KiB"];
    assert_eq!(rows(Format::Ftrace, CountFrom::Issue, &long), expected);
    assert_eq!(
        rows(Format::Ftrace, CountFrom::Issue, "one\ntwo\n"),
        ["none of the 2 lines is a request of the format ftrace: 2 times \"line that does not \
             parse\" (first at line 1); check --format"]
    );
    assert_eq!(rows(Format::Ftrace, CountFrom::Issue, ""), ["the input is empty"]);
}

#[test]
fn trace_cmd_pads_names_and_prints_marks_in_its_own_way() {
    let text = "cpus=2\n\
        bash-9 [000]   10.000001: print:                tracing_mark_write: phase load\n\
        dd-77  [001]   10.000002: block_rq_issue:       8,0 RA 4096 () 1 + 8 [dd]\n\
        bash-9 [000]   10.000012: bprint:               tracing_mark_write: phase x\n\
        bash-9 [000]   10.000022: tracing_mark_write: phase run\n\
        dd-77  [001]   10.000032: block_rq_issue:       8,0 RA 4096 () 1 + 8 [dd]\n";
    let whole = read(options(Format::Ftrace), text.as_bytes()).expect("there are events");
    let phases: Vec<String> = whole
        .records
        .iter()
        .map(|record| {
            format!("{} {}", whole.symbols.name(record.phase), whole.symbols.name(record.device))
        })
        .collect();
    assert_eq!(phases, ["load 8,0", "run 8,0"]);
    let spans: Vec<(&str, i64, i64)> = whole
        .outcome
        .phases
        .iter()
        .map(|phase| (phase.name.as_str(), phase.start_ns, phase.end_ns))
        .collect();
    assert_eq!(spans, [("load", -1_000, 20_000), ("run", 20_000, 30_000)]);
}
