//! The NVMe driver's tracepoints give the same requests as the block layer's of the same
//! minute, and each of their peculiarities is read correctly.

use crate::common::{Whole, data, options, read, read_pieces};
use prism_base::Bytes;
use prism_trace::{
    CountFrom, Flags, Format, LogicalBlock, Op, ReaderOptions, Record, TraceError, detect,
};

fn nvme(format: Format, block: u64) -> ReaderOptions {
    let block = LogicalBlock::new(Bytes(block)).expect("a size of blocks");
    ReaderOptions { count_from: CountFrom::Nvme { block }, ..options(format) }
}

/// The lines of a text whose event is, or is not, of the NVMe driver.
fn only(text: &[u8], wanted: bool) -> Vec<u8> {
    let is_nvme = |line: &&[u8]| memchr::memmem::find(line, b": nvme_").is_some() == wanted;
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').filter(is_nvme).collect();
    lines.concat()
}

/// The parts of a request that both kinds of events contain, sorted: their order differs if two
/// CPUs send at the same time.
fn requests(whole: &Whole) -> Vec<(u64, u64, Op, bool, bool)> {
    let shared = |r: &Record| {
        (r.offset, r.len, r.op, r.flags.has(Flags::FUA), r.flags.has(Flags::READAHEAD))
    };
    let mut all: Vec<_> = whole.records.iter().map(shared).collect();
    all.sort_by_key(|&(offset, len, op, ..)| (offset, len, op as u8));
    all
}

/// All of a record except names, whose numbers depend on what else was read.
fn in_order(whole: &Whole) -> Vec<String> {
    let shared = |r: &Record| {
        let complete = r.complete.get();
        format!(
            "{} {complete:?} {:?} {}+{} {:?} {}",
            r.issue_ns, r.op, r.offset, r.len, r.flags, r.pid
        )
    };
    whole.records.iter().map(shared).collect()
}

#[test]
fn both_drivers_report_the_same_requests() {
    let text = data("nvme-and-block.ftrace.zst");
    let block = read(options(Format::Ftrace), &only(&text, false)).expect("whole");
    let alone = only(&text, true);
    assert_eq!(detect(&alone), Ok(Format::Ftrace));
    let found = read(nvme(Format::Ftrace, 512), &alone).expect("whole");
    // One discard has no ranges.
    let mut wanted = requests(&block);
    wanted.retain(|&(_, _, op, ..)| op != Op::Discard);
    assert_eq!(wanted.len() + 1, block.records.len());
    assert_eq!(requests(&found), wanted);
    assert!(wanted.iter().any(|request| request.3) && wanted.iter().any(|request| request.4));
    let skips: Vec<_> =
        found.outcome.skips.rows().iter().map(|skip| (skip.count, skip.reason.0)).collect();
    assert_eq!(
        skips,
        [
            (1, "completion whose issue is not in the trace"),
            (1, "discard whose ranges the NVMe driver does not print"),
        ]
    );
    let can = found.outcome.capabilities;
    assert_eq!((can.discard, can.sync_meta, can.queue), (false, false, false));
    assert_eq!((can.fua, can.flush, can.write_zeroes, can.stream), (true, true, true, true));
    assert!(can.completion && can.process);
    let device = |record: &Record| found.symbols.name(record.device) == "nvme0n1";
    assert!(found.records.iter().all(device));
    let pieces = read_pieces(nvme(Format::Ftrace, 512), &[&alone], 777).expect("whole");
    assert_eq!(pieces.records, found.records);
}

#[test]
fn together_with_block_events_they_do_not_count() {
    let text = data("nvme-and-block.ftrace.zst");
    let both = read(options(Format::Ftrace), &text).expect("whole");
    let block = read(options(Format::Ftrace), &only(&text, false)).expect("whole");
    assert_eq!(in_order(&both), in_order(&block));
    let skips = both.outcome.skips.rows();
    let lines = only(&text, true).split(|&byte| byte == b'\n').count() as u64 - 1;
    assert_eq!(skips[0].count, lines, "{skips:?}");
    assert_eq!(skips[0].reason.0, "NVMe event of a request that block events count");
    assert!(!both.outcome.only_nvme_commands);
    // And if NVMe commands are requested, the block events do not count.
    let commands = read(nvme(Format::Ftrace, 512), &text).expect("whole");
    let alone = read(nvme(Format::Ftrace, 512), &only(&text, true)).expect("whole");
    assert_eq!(in_order(&commands), in_order(&alone));
}

#[test]
fn alone_they_ask_to_be_read_again() {
    let text = only(&data("nvme-and-block.ftrace.zst"), true);
    let whole = read(options(Format::Ftrace), &text).expect("something");
    assert!(whole.outcome.only_nvme_commands && whole.records.is_empty());
    assert!(!whole.outcome.only_queue_events);
}

/// `issue>complete op offset+length flags stream pid comm device`, times in microseconds
/// since the first command, then the skipped lines, then how many never completed.
fn rows(options: ReaderOptions, text: &str) -> Vec<String> {
    let whole = read(options, text.as_bytes()).expect("events");
    let row = |r: &Record| {
        let us = |ns: Option<i64>| ns.map_or("?".to_owned(), |ns| (ns / 1000).to_string());
        let (op, flags, stream) = (r.op.name(), r.flags.0, r.stream);
        let names = [r.comm, r.device].map(|name| whole.symbols.name(name)).join(" ");
        let (issue, complete) = (us(Some(r.issue_ns)), us(r.complete.get()));
        format!("{issue}>{complete} {op} {}+{} {flags} {stream} {} {names}", r.offset, r.len, r.pid)
    };
    let skips = whole.outcome.skips.rows();
    let skips = skips.iter().map(|skip| format!("{} {}", skip.count, skip.reason.0));
    let unpaired = Some(whole.outcome.unpaired).filter(|count| *count > 0);
    let unpaired = unpaired.map(|count| format!("{count} unpaired"));
    whole.records.iter().map(row).chain(skips).chain(unpaired).collect()
}

/// Each line is `us task-pid event fields`.
fn check(events: &[&str], expected: &[&str]) {
    let line = |event: &&str| {
        let mut words = event.splitn(4, ' ');
        let [us, task, name, fields] = [(); 4].map(|()| words.next().expect("four parts"));
        let name = if name == "do" { "nvme_setup_cmd" } else { "nvme_complete_rq" };
        let us: u32 = us.parse().expect("a number");
        format!("{task:>20} [001] ..... 9.{us:06}: {name}: {fields}\n")
    };
    let text: String = events.iter().map(line).collect();
    assert_eq!(rows(nvme(Format::Ftrace, 4096), &text), expected, "{events:#?}");
}

#[test]
fn commands_of_every_kind() {
    check(
        &[
            "10 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
             cmd=(nvme_cmd_read slba=2, len=0, ctrl=0x8000, dsmgmt=7, reftag=0)",
            "15 a-5 do nvme0: disk=nvme0n1, qid=2, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
             cmd=(nvme_cmd_write slba=2, len=3, ctrl=0x4020, dsmgmt=131079, reftag=0)",
            "16 kworker/0:1H-6 do nvme0: disk=nvme0n1, qid=2, cmdid=8, nsid=1, flags=0x0, \
             meta=0x0, cmd=(nvme_cmd_write_zeroes slba=9, len=1, ctrl=0x200, dsmgmt=65536, x=0)",
            "20 <...>-6 done nvme0: disk=nvme0n1, qid=2, cmdid=7, res=0x0, retries=0, status=0x0",
            "25 b-5 done nvme0: disk=nvme0n1, qid=1, cmdid=7, res=0x0, retries=0, status=0x0",
            "26 <...>-8 do nvme1: disk=nvme1n1, qid=2, cmdid=7, nsid=1, flags=0x0, meta=0x0, \
             cmd=(nvme_cmd_flush cdw10=00 00 00 00)",
            "27 a-5 do nvme1: disk=nvme1n1, qid=2, cmdid=8, nsid=1, flags=0x0, meta=0x0, \
             cmd=(nvme_cmd_zone_append slba=4, len=0, ctrl=0x10, dsmgmt=196608, reftag=0)",
            "28 a-5 done nvme1: disk=nvme1n1, qid=2, cmdid=7, res=0x0",
        ],
        &[
            format!("0>15 read 8192+4096 {} 0 5 a nvme0n1", Flags::READAHEAD.0).as_str(),
            format!("5>10 write 8192+16384 {} 2 5 a nvme0n1", Flags::FUA.0).as_str(),
            "6>? write_zeroes 36864+8192 0 0 -1  nvme0n1",
            "16>18 flush 0+0 0 0 8  nvme1n1",
            "17>? write 16384+4096 0 3 5 a nvme1n1",
            "2 unpaired",
        ],
    );
}

#[test]
fn what_is_no_request_and_what_is_lost() {
    check(
        &[
            "10 a-5 do nvme0: qid=0, cmdid=7, nsid=0, flags=0x0, meta=0x0, \
             cmd=(nvme_admin_identify cns=1, ctrlid=0)",
            "11 a-5 done nvme0: qid=0, cmdid=7, res=0x0, retries=0, flags=0x2, status=0x0",
            "12 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=7, nsid=1, cmd=(0x12 cdw10=01 00 00)",
            "13 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=8, cmd=(nvme_cmd_dsm nr=0, attributes=4)",
            "14 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=9, cmd=(nvme_cmd_dsm nr=0, attributes=1)",
            "15 a-5 done nvme0: disk=nvme0n1, qid=1, cmdid=8, res=0x0",
            "16 a-5 done nvme0: disk=nvme0n1, qid=1, cmdid=7, res=0x0",
            // There is no command for this completion.
            "17 a-5 done nvme0: disk=nvme0n1, qid=1, cmdid=7, res=0x0",
            // The number is used again before the completion came.
            "20 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=7, cmd=(nvme_cmd_read slba=1, len=0, \
             ctrl=0x0, dsmgmt=0, reftag=0)",
            "30 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=7, cmd=(nvme_cmd_read slba=1, len=1, \
             ctrl=0x0, dsmgmt=0, reftag=0)",
            "35 a-5 done nvme0: disk=nvme0n1, qid=1, cmdid=7, res=0x0",
            // Beyond every drive, and damaged.
            "40 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=7, cmd=(nvme_cmd_read \
             slba=18446744073709551615, len=0, ctrl=0x0, dsmgmt=0, reftag=0)",
            "41 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=70000, cmd=(nvme_cmd_flush)",
            "42 a-5 do nvme0: disk=nvme0n1, qid=1, cmdid=7, cmd=(nvme_cmd_read slba=1)",
            "43 a-5 do [FAILED TO PARSE] ctrl_id=0 qid=1 opcode=1 cid=7 nsid=1",
        ],
        &[
            "0>? read 4096+4096 0 0 5 a nvme0n1",
            "10>15 read 4096+8192 0 0 5 a nvme0n1",
            "4 event whose fields do not parse",
            "3 command that neither moves data nor flushes (passed through, zone management)",
            "1 discard whose ranges the NVMe driver does not print",
            "1 completion whose issue is not in the trace",
            "1 unpaired",
        ],
    );
}

#[test]
fn perf_prints_the_same_fields() {
    let text = "my dd 19404 [001]   766.164705:   nvme:nvme_setup_cmd: nvme0: disk=nvme0n1, \
                qid=1, cmdid=7, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_write slba=1, \
                len=0, ctrl=0x0, dsmgmt=0, reftag=0)\n\
                swapper     0 [001]   766.164805: nvme:nvme_complete_rq: nvme0: disk=nvme0n1, \
                qid=1, cmdid=7, res=0x0, retries=0, flags=0x0, status=0x0\n";
    assert_eq!(detect(text.as_bytes()), Ok(Format::PerfScript));
    let expected = ["0>100 write 512+512 0 0 19404 my dd nvme0n1"];
    assert_eq!(rows(nvme(Format::PerfScript, 512), text), expected);
}

#[test]
fn sizes_that_no_block_has() {
    for size in [0, 1, 511, 513, 520, 4160, 128 << 10, u64::MAX] {
        assert_eq!(
            LogicalBlock::new(Bytes(size)),
            Err(TraceError::BlockSize { size: Bytes(size) })
        );
    }
    for size in [512, 4096, 64 << 10] {
        assert_eq!(LogicalBlock::new(Bytes(size)).map(LogicalBlock::bytes), Ok(Bytes(size)));
    }
}
