//! Samples of published data sets: the meaning of each record, worked out by hand, what is
//! skipped and why, the capabilities of the trace, and how it is recognised.

use crate::common::{Whole, data, observable, options, read, read_pieces};
use prism_base::Named;
use prism_trace::{Capabilities, Format, Record, Symbols, TraceError, detect};

/// What is expected of a sample.
struct Sample {
    name: &'static str,
    format: Format,
    records: usize,
    /// Records by their place, from 0.
    some: &'static [(usize, &'static str)],
    /// Reason, count, first line.
    skipped: &'static [(&'static str, u64, u64)],
    can: Capabilities,
}

/// `issue complete operation offset length`, and what else is known.
fn show(record: &Record, symbols: &Symbols) -> String {
    let Record { issue_ns, complete, op, offset, len, .. } = *record;
    let mut text = format!("{issue_ns} {complete:?} {} {offset} {len}", op.name());
    for (what, symbol) in [("of", record.device), ("by", record.comm), ("in", record.file)] {
        let name = symbols.name(symbol);
        if !name.is_empty() {
            text += &format!(" {what} {name}");
        }
    }
    for (what, number, none) in [
        ("pid", i64::from(record.pid), -1),
        ("stream", i64::from(record.stream), 0),
        ("flags", i64::from(record.flags.0), 0),
        ("queued", record.queue.get().unwrap_or(i64::MIN), i64::MIN),
    ] {
        if number != none {
            text += &format!(" {what} {number}");
        }
    }
    text
}

const BASE: Capabilities = Capabilities::READS_AND_WRITES;
const US: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;
const NO_FIELD: &str = "wrong number of fields";
const NO_NUMBER: &str = "not a number where one is expected";
const NO_OP: &str = "unknown operation";
const NO_LENGTH: &str = "request of zero length";
const TOO_GREAT: &str = "address, size or time out of range";

/// Reads and writes on devices.
const DEVICES: [Sample; 12] = [
    Sample {
        name: "msr.csv",
        format: Format::Msr,
        records: 3,
        some: &[
            (0, "0 283300 write 9056014336 2048 of hm,0"),
            (1, "1000000 1050000 read 4096 8192 of hm,0"),
            (2, "1000100 1000200 read 512 512 of src1,2"),
        ],
        skipped: &[],
        can: Capabilities { completion: true, clock_ns: 100, ..BASE },
    },
    Sample {
        name: "alibaba.csv",
        format: Format::Alibaba,
        records: 3,
        some: &[
            (0, "0 ? read 126703644672 4096 of 0"),
            (1, "28000 ? write 8192 16384 of 419"),
            (2, "28000 ? write 24576 512 of 419"),
        ],
        skipped: &[],
        can: Capabilities { clock_ns: US, ..BASE },
    },
    Sample {
        name: "tencent.csv",
        format: Format::Tencent,
        records: 3,
        some: &[
            (0, "0 ? read 0 4096 of 1063"),
            (1, "1000000000 ? write 2174566400 65536 of 1058"),
            (2, "1000000000 ? read 524288 8192 of 1063"),
        ],
        skipped: &[],
        can: Capabilities { clock_ns: SECOND, ..BASE },
    },
    Sample {
        name: "mqsim.txt",
        format: Format::Mqsim,
        records: 3,
        some: &[
            (0, "0 ? read 336756736 8192 of 0"),
            (1, "2500 ? write 4096 4096 of 0"),
            (2, "7000 ? write 8192 4096 of 1"),
        ],
        skipped: &[],
        can: BASE,
    },
    Sample {
        name: "systor17-vdi.csv",
        format: Format::Systor17,
        records: 24,
        some: &[
            (0, "0 6250000000 read 1048576 65536 of 4"),
            (1, "5000000000 ? write 4096 8192 of 1"),
            (2, "5000001000 5006476000 read 203468398592 32768 of 0"),
            (3, "5100001000 5100002000 write 0 512 of 0"),
            (4, "5689300000 5689800000 read 0 8192 of 2"),
            (23, "5879300000 5879800000 write 155648 8192 of 2"),
        ],
        skipped: &[("the operation is left empty", 1, 5)],
        can: Capabilities { completion: true, clock_ns: US, ..BASE },
    },
    Sample {
        name: "k5cloud.csv",
        format: Format::K5cloud,
        records: 22,
        some: &[
            (0, "0 ? write 4096 512 of 2264"),
            (1, "1000 ? read 48195870720 4096 of 2264"),
            (2, "878164000 ? write 0 65536 of 0"),
            (21, "19878164000 ? read 1245184 65536 of 1"),
        ],
        skipped: &[(NO_OP, 1, 3), (NO_LENGTH, 1, 4)],
        can: Capabilities { clock_ns: US, ..BASE },
    },
    Sample {
        name: "spc.csv",
        format: Format::Spc,
        records: 24,
        some: &[
            (0, "0 ? read 11131756544 24576 of 0"),
            (1, "6000 ? write 10721927168 8192 of 0"),
            (2, "2341000 ? write 10721198080 8192 of 0"),
            (3, "460032000 ? read 1759379456 15872 of 1"),
            (23, "20448300000 ? write 155648 8192 of 3"),
        ],
        skipped: &[(NO_OP, 1, 4), (NO_LENGTH, 1, 5)],
        can: Capabilities { clock_ns: US, ..BASE },
    },
    Sample {
        name: "disksim.txt",
        format: Format::Disksim,
        records: 24,
        some: &[
            (0, "0 ? read 0 2560 of 30"),
            (1, "58865 ? write 51200 4096 of 30"),
            (2, "1308865 ? read 512000 8192 of 2"),
            (3, "1558865 ? write 520192 8192 of 2"),
            (4, "6808865 ? write 0 4096 of 0"),
            (23, "25808865 ? read 77824 4096 of 0"),
        ],
        skipped: &[(NO_FIELD, 1, 5), (NO_LENGTH, 1, 6)],
        can: BASE,
    },
    Sample {
        name: "ssdsim.txt",
        format: Format::Ssdsim,
        records: 22,
        some: &[
            (0, "0 ? read 147272396800 65536 of 0"),
            (1, "100 ? write 0 4096 of 0"),
            (2, "100000 ? write 0 4096 of 0"),
            (21, "119000 ? read 77824 4096 of 0"),
        ],
        skipped: &[(NO_OP, 1, 3)],
        can: BASE,
    },
    Sample {
        name: "fiu.txt",
        format: Format::Fiu,
        records: 24,
        some: &[
            (0, "0 ? write 462983966720 4096 of 6,0 by syslogd pid 4892"),
            (1, "250 ? write 262144 8192 of 6,0 by kjournald pid 2522"),
            (2, "500 ? read 524288 4096 of 8,16 by Web Content pid 77"),
            (3, "1000 ? write 1024000 4096 of 6,0 by imapd pid 100"),
            (23, "89968195792462 ? read 144994910208 4096 of 6,0 by gzip pid 20782"),
        ],
        skipped: &[(NO_NUMBER, 1, 4), (NO_OP, 1, 5)],
        can: Capabilities { process: true, ..BASE },
    },
    Sample {
        name: "midas.txt",
        format: Format::Midas,
        records: 24,
        some: &[
            (0, "0 ? write 1048576 4096"),
            (1, "8000 ? write 0 16384 stream 2"),
            (2, "138000 ? read 0 4096"),
            (3, "888000 ? discard 1048576 4096 stream 1"),
            (4, "1499988000 ? write 0 8192"),
            (23, "20499988000 ? discard 311296 8192 stream 1"),
        ],
        skipped: &[(NO_OP, 1, 5), ("size that is no multiple of 512 bytes", 1, 6)],
        can: Capabilities { discard: true, stream: true, clock_ns: US, ..BASE },
    },
    Sample {
        name: "vscsi-v1.bin",
        format: Format::Vscsi,
        records: 23,
        some: &[
            (0, "0 ? write 21981565440 512"),
            (1, "1000 ? read 4096 65536"),
            (2, "1000000 ? write 4398046511104 4096"),
            (3, "1198000 ? read 0 4096"),
            (22, "20198000 ? write 77824 4096"),
        ],
        skipped: &[
            ("SCSI command that neither moves data nor flushes", 1, 3),
            ("UNMAP, whose ranges are not recorded", 1, 4),
        ],
        can: Capabilities { clock_ns: US, ..BASE },
    },
];

/// Traces of kernels and hypervisors with more information.
const EVENTS: [Sample; 3] = [
    Sample {
        name: "vscsi-v2.bin",
        format: Format::Vscsi,
        records: 23,
        some: &[
            (0, "0 350000 write 21981565440 512"),
            (1, "198000 1398000 flush 0 0"),
            (2, "298000 298000 read 8192 4096"),
            (22, "20198000 20448000 write 77824 4096"),
        ],
        skipped: &[],
        can: Capabilities { completion: true, flush: true, clock_ns: US, ..BASE },
    },
    Sample {
        name: "io-tracer.csv",
        format: Format::IoTracer,
        records: 24,
        some: &[
            (
                0,
                "0 1234000 write 1048576000 8192 of 259:0 by python3 pid 1234 flags 3 \
                 queued -250000",
            ),
            (1, "1234567 3234567 flush 0 0 of 259:0 by python3 pid 1234"),
            (2, "1734000 2234000 read 4096 4096 of 259:0 by python3 pid 1234 flags 16"),
            (3, "4134000 4234000 discard 2097152 8388608 of 259:0 by python3 pid 1234 flags 1"),
            (
                4,
                "9999999000000 10000000000000 write 0 4096 of 8:16 by python3 pid 1234 \
                 queued 9999998500000",
            ),
            (
                23,
                "10018999000000 10019000000000 read 77824 4096 of 8:16 by python3 pid 1234 \
                 queued 10018998500000",
            ),
        ],
        skipped: &[(NO_OP, 1, 6)],
        can: Capabilities { queue: true, clock_ns: 1, ..TRACER },
    },
    Sample {
        name: "io-tracer-old.csv",
        format: Format::IoTracer,
        records: 22,
        some: &[
            (0, "0 1234000 write 1048576000 8192 by python3 pid 1234"),
            (1, "7278000 7778000 write 2097152 4096 by jbd2/sda1-8 pid 55 flags 15"),
            (2, "14877528000 14877778000 read 0 4096 by fio pid 9"),
            (21, "33877528000 33877778000 write 77824 4096 by fio pid 9 flags 1"),
        ],
        skipped: &[(TOO_GREAT, 1, 3), (NO_OP, 1, 4)],
        can: TRACER,
    },
];

const TRACER: Capabilities = Capabilities {
    discard: true,
    flush: true,
    fua: true,
    sync_meta: true,
    completion: true,
    process: true,
    clock_ns: US,
    ..BASE
};

/// Objects and files, whose addresses the reader assigns.
const OBJECTS: [Sample; 6] = [
    Sample {
        name: "baleen.txt",
        format: Format::Baleen,
        records: 26,
        some: &[
            (0, "0 ? read 0 4325376"),
            (1, "21940000 ? read 0 131072"),
            (2, "421940000 ? write 4325376 131072"),
            // The first two chunks of the block are new, the next two are its first ones.
            (3, "671940000 ? write 4456448 262144"),
            (4, "671940000 ? write 0 262144"),
            (5, "2421940000 ? read 4820992 131072"),
            (6, "8421940000 ? write 4980736 262144"),
            (25, "27421940000 ? read 9961472 262144"),
        ],
        skipped: &[(NO_OP, 1, 5)],
        can: Capabilities { address: false, clock_ns: 10_000, ..BASE },
    },
    Sample {
        name: "thesios.csv",
        format: Format::Thesios,
        records: 25,
        some: &[
            (0, "0 ? read 135168 4096 by spanner in 00b7d2"),
            (1, "125000000 137500000 read 0 65536 by bigtable in f8e1c0aa"),
            (2, "375000000 376000000 write 131072 131072 by spanner in 00b7d2"),
            (3, "875000000 895000000 read 0 131072 by bigtable in f8e1c0aa"),
            (4, "875000000 895000000 read 262144 131072 by bigtable in f8e1c0aa"),
            (5, "9875000000 9880000000 write 393216 131072 by blobstore in 000000"),
            (24, "28875000000 28880000000 read 2883584 131072 by blobstore in 000013"),
        ],
        skipped: &[("read from the server's memory, not from its drive", 1, 4), (NO_OP, 1, 8)],
        can: Capabilities {
            address: false,
            completion: true,
            process: true,
            file: true,
            clock_ns: 1_000_000,
            ..BASE
        },
    },
    Sample {
        name: "oracle-general.bin",
        format: Format::OracleGeneral,
        records: 25,
        some: &[
            (0, "0 ? read 0 4096"),
            (1, "0 ? read 4096 512"),
            // The first object has grown past the second.
            (2, "1000000000 ? read 0 4096"),
            (3, "1000000000 ? read 8192 5904"),
            (4, "2000000000 ? read 4096 512"),
            (5, "10000000000 ? read 16384 4096"),
            (24, "29000000000 ? read 53248 4096"),
        ],
        skipped: &[(NO_LENGTH, 1, 3)],
        can: Capabilities { operation: false, address: false, clock_ns: SECOND, ..BASE },
    },
    Sample {
        name: "lcs-large.bin.zst",
        format: Format::Lcs,
        records: 24,
        some: &[
            (0, "0 ? write 0 4096 of 3"),
            (1, "0 ? write 4096 8192 of 3"),
            (2, "1000000000 ? read 0 4096 of 4"),
            (3, "1000000000 ? discard 0 4096 of 4"),
            (4, "5000000000 ? write 12288 4096 of 1"),
            (23, "24000000000 ? read 28672 4096 of 1"),
        ],
        skipped: &[(NO_OP, 1, 5), (TOO_GREAT, 1, 6)],
        can: Capabilities { address: false, discard: true, clock_ns: SECOND, ..BASE },
    },
    Sample {
        name: "lcs-small.bin",
        format: Format::Lcs,
        records: 22,
        some: &[
            (0, "0 ? write 0 100 of 0"),
            // An operation that is left out.
            (1, "1000000 ? read 4096 4097 of 0"),
            (2, "500000000 ? read 12288 512 of 0"),
            (3, "501000000 ? read 0 512 of 0"),
            (21, "519000000 ? read 81920 512 of 0"),
        ],
        skipped: &[],
        can: Capabilities { operation: false, address: false, clock_ns: 1_000_000, ..BASE },
    },
    Sample {
        name: "lcs-format.bin",
        format: Format::Lcs,
        records: 22,
        some: &[
            (0, "0 ? read 0 4096 of 2"),
            (1, "0 ? write 4096 4096 of 2"),
            (2, "1000000000 ? read 8192 4096 of 0"),
            (21, "20000000000 ? read 77824 4096 of 0"),
        ],
        skipped: &[],
        can: Capabilities { address: false, discard: true, clock_ns: SECOND, ..BASE },
    },
];

fn samples() -> impl Iterator<Item = &'static Sample> {
    DEVICES.iter().chain(&EVENTS).chain(&OBJECTS)
}

#[test]
fn records_are_what_the_lines_say() {
    for sample in samples() {
        let name = sample.name;
        let Whole { records, outcome, symbols } =
            read(options(sample.format), &data(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        for &(place, expected) in sample.some {
            assert_eq!(show(&records[place], &symbols), expected, "{name}: record {place}");
        }
        assert_eq!(records.len(), sample.records, "{name}");
        let skipped: Vec<_> = outcome
            .skips
            .rows()
            .iter()
            .map(|row| (row.reason.0, row.count, row.first_line))
            .collect();
        assert_eq!(skipped, sample.skipped, "{name}");
        assert_eq!(outcome.capabilities, sample.can, "{name}");
        let unknown = records.iter().filter(|record| record.complete.get().is_none()).count();
        let unpaired = if sample.can.completion { unknown as u64 } else { 0 };
        assert_eq!(outcome.unpaired, unpaired, "{name}");
    }
}

#[test]
fn how_the_bytes_are_cut_does_not_matter() {
    for sample in samples() {
        let bytes = data(sample.name);
        let at = |piece| observable(read_pieces(options(sample.format), &[&bytes], piece));
        let whole = at(bytes.len());
        for piece in [1, 7, 39, 1000] {
            assert_eq!(at(piece), whole, "{} in pieces of {piece}", sample.name);
        }
    }
}

#[test]
fn formats_are_recognised_where_that_is_safe() {
    for sample in samples() {
        let expected = match sample.format {
            // The same columns as MQSim's.
            Format::Ssdsim => Ok(Format::Mqsim),
            Format::Midas => Err(TraceError::Ambiguous { formats: "disksim and midas" }),
            Format::OracleGeneral => {
                let refused = detect(&data(sample.name)).unwrap_err().to_string();
                assert!(refused.contains("--format oracle-general"), "{refused}");
                continue;
            }
            format => Ok(format),
        };
        assert_eq!(detect(&data(sample.name)), expected, "{}", sample.name);
    }
}

#[test]
fn what_is_near_a_format_is_not_taken_for_it() {
    let midas_or_disksim = Err(TraceError::Ambiguous { formats: "disksim and midas" });
    for (text, expected) in [
        // A device above 3 cannot be a type of MiDAS; 3 could be.
        ("13.191135 4 0 5 1", Ok(Format::Disksim)),
        ("13.191135 3 0 5 1", midas_or_disksim),
        // Whole numbers are of MQSim or SSDsim.
        ("13 4 0 5 1", Ok(Format::Mqsim)),
        ("0,20941264,8192,W,0.551706,Alpha/NT", Ok(Format::Spc)),
        // Tencent's type is a number, Alibaba's operation comes second.
        ("0,20941264,8192,1,551706", Ok(Format::Tencent)),
        ("0,R,126703644672,4096,1577808000000626", Ok(Format::Alibaba)),
        ("2264,86400.121837000,R,48195870720,4096", Ok(Format::K5cloud)),
        ("2264,86400,R,48195870720,4096", Err(TraceError::UnknownFormat)),
        // The example in the description of the data set, and one with another clock.
        ("310 262144 4325376 1572074461.57806 1 24 3 5", Ok(Format::Baleen)),
        ("10 102400 131072 1000 2 0 0 0", Err(TraceError::UnknownFormat)),
        ("0 4892 syslogd 904265560 8 W 6 0 531e779e", Err(TraceError::UnknownFormat)),
    ] {
        assert_eq!(detect(text.as_bytes()), expected, "{text}");
    }
    // One record of a binary format without a magic number could be anything.
    for name in ["vscsi-v1.bin", "vscsi-v2.bin"] {
        assert!(detect(&data(name)[..40]).is_err(), "{name}");
    }
}

#[test]
fn damage_that_makes_the_rest_meaningless_is_refused() {
    let check = |format, bytes: &[u8], expected: &str| {
        let refused = read(options(format), bytes).err().map(|error| error.to_string());
        let refused = refused.unwrap_or_else(|| panic!("{expected}: was read"));
        assert!(refused.contains(expected), "{refused}");
    };
    let vscsi = data("vscsi-v1.bin");
    check(Format::Vscsi, &vscsi[..100], "line 4: record 4 is cut off after 4 bytes");
    check(Format::Vscsi, &[&vscsi[..32], &[0; 32]].concat(), "record 2 has no valid vscsi version");
    let both = [&vscsi[..32], &data("vscsi-v2.bin")[..40]].concat();
    check(Format::Vscsi, &both, "record 2 is of another version");
    check(Format::OracleGeneral, b"half a record", "record 1 is cut off after 13 bytes");
    // Text that is read as records has times in no order.
    let text = b"0 4892 syslogd 904265560 8 W 6 0 531e779e\n".repeat(10);
    check(Format::OracleGeneral, &text[..408], "time goes back by");

    let lcs = data("lcs-small.bin");
    let changed = |at: usize, byte: u8| {
        let mut bytes = lcs.clone();
        bytes[at] = byte;
        bytes
    };
    check(Format::Lcs, &lcs[..700], "cut off after 700 bytes");
    check(Format::Lcs, &changed(0, 0), "does not begin with the mark of lcs");
    check(Format::Lcs, &changed(8, 9), "has version 9; versions 1 to 2 are known");
    check(Format::Lcs, &changed(124, 9), "unknown unit of time 9");
    let mut unmarked = data("lcs-large.bin.zst");
    unmarked[8191] = 0;
    check(Format::Lcs, &unmarked, "does not end with its mark");
    let formatted = |at: usize, byte: u8| {
        let mut bytes = data("lcs-format.bin");
        bytes[at] = byte;
        bytes
    };
    check(Format::Lcs, &formatted(8, b'>'), "does not begin with < (little-endian)");
    check(Format::Lcs, &formatted(9, b'x'), "has the unknown code 'x'");
    check(Format::Lcs, &formatted(248, 0), "does not say which field is the object");
    check(Format::Lcs, &formatted(248, 7), "names field 7, but its format has 6");
    check(Format::Lcs, &formatted(249, 6), "is a floating-point number");

    let thesios = data("thesios.csv");
    let header_end = thesios.iter().position(|&byte| byte == b'\n').unwrap();
    check(Format::Thesios, &thesios[header_end + 1..], "the header has no column filename");
    check(Format::IoTracer, b"timestamp,pid\n", "line 1: the header has no column operation");
}

#[test]
fn a_header_may_come_again() {
    let systor = data("systor17-vdi.csv");
    let twice = [&systor[..], &systor[..]].concat();
    let once = read(options(Format::Systor17), &systor).unwrap();
    let both = read(options(Format::Systor17), &twice).unwrap();
    assert_eq!(both.records.len(), 2 * once.records.len());
    let skipped = both.outcome.skips.rows();
    assert_eq!((skipped.len(), skipped[0].count), (1, 2), "{skipped:?}");
}

#[test]
fn examples_in_the_document_are_read() {
    let document = include_str!("../../../../docs/spec/trace-formats.md");
    let mut examples = 0;
    for block in document.split("\n```text ").skip(1) {
        let (name, rest) = block.split_once('\n').expect("a block has lines");
        let (text, _) = rest.split_once("```").expect("a block ends");
        let format = Format::from_name(name).unwrap_or_else(|| panic!("no format {name}"));
        let whole =
            read(options(format), text.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let headers = usize::from(text.starts_with(char::is_alphabetic));
        assert_eq!(whole.records.len() + headers, text.lines().count(), "{name}");
        assert!(whole.outcome.skips.rows().is_empty(), "{name}");
        examples += 1;
    }
    assert_eq!(examples, 10);
    for sample in samples() {
        let name = sample.format.name();
        assert!(document.contains(&format!("| `{name}` |")), "{name} is not in the table");
    }
}
