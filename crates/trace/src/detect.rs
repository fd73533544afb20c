//! Recognises the format of a trace by its content.

use crate::blktrace_record::Order;
use crate::error::TraceError;
use crate::format::Format;
use crate::formats::{RECOGNISERS, ambiguous, of_binary_head, of_header};
use crate::lines::without_mark;

/// Bytes of the start of a trace that [`detect`] needs, if the trace is long enough: more than
/// long headers and the first notes of a tracer.
pub const DETECT_BYTES: usize = 1 << 20;

/// Lines that are checked.
const LINES_MAX: usize = 1000;

/// Bytes that are enough to distinguish text from binary data.
const BINARY_BYTES: usize = 64 << 10;

/// The format of a trace that starts with `head`, which is already decompressed.
///
/// # Errors
/// [`TraceError::Empty`], [`TraceError::NotText`] for binary data of no known format, and
/// [`TraceError::UnknownFormat`] for text in which no line is of a known format.
pub fn detect(head: &[u8]) -> Result<Format, TraceError> {
    if head.is_empty() {
        return Err(TraceError::Empty);
    }
    if head.first_chunk().is_some_and(|mark| Order::of_mark(*mark).is_some()) {
        return Ok(Format::Blktrace);
    }
    if let Some(format) = of_binary_head(head) {
        return Ok(format);
    }
    if let Some(what) = not_text(head) {
        return Err(TraceError::NotText { what });
    }
    let head = without_mark(&head[..head.len().min(DETECT_BYTES)]);
    if head.starts_with(b"fio version 2 iolog") || head.starts_with(b"fio version 3 iolog") {
        return Ok(Format::FioIolog);
    }
    of_lines(head)
}

/// The format that most lines of `head` can be of.
fn of_lines(head: &[u8]) -> Result<Format, TraceError> {
    let lines = || {
        let lines = head.split(|&byte| byte == b'\n').take(LINES_MAX);
        lines.map(|line| without_mark(line).trim_ascii_end())
    };
    let mut hits = vec![0_usize; RECOGNISERS.len()];
    let mut binary_lines = 0;
    for line in lines() {
        if is_binary(line) {
            binary_lines += 1;
            continue;
        }
        for (hits, (_, recogniser)) in hits.iter_mut().zip(&*RECOGNISERS) {
            *hits += usize::from(recogniser.fits(line));
        }
    }
    let mut best = None;
    for (&hits, (format, _)) in hits.iter().zip(&*RECOGNISERS) {
        if hits > best.map_or(0, |(most, _)| most) {
            best = Some((hits, *format));
        }
    }
    match best {
        // A crash leaves zeros in the middle of a text; the reader skips and counts such lines.
        Some((hits, format)) if hits > binary_lines => Ok(format),
        _ if is_binary(&head[..head.len().min(BINARY_BYTES)]) => {
            Err(TraceError::NotText { what: NO_KNOWN_BINARY })
        }
        Some((_, format)) => Ok(format),
        None => match (lines().find_map(ambiguous), lines().find_map(of_header)) {
            (Some(formats), _) => Err(TraceError::Ambiguous { formats }),
            // A trace in which no request was recorded.
            (None, Some(format)) => Ok(format),
            (None, None) => match advice_for(lines) {
                Some(advice) => Err(TraceError::OwnColumns { advice }),
                None => Err(TraceError::UnknownFormat),
            },
        },
    }
}

const CUSTOM_BLKPARSE: &str = "the lines look like events of blkparse with a format string; give \
                               the string of `blkparse -f` with --blkparse-format";
const BPFTRACE: &str = "the text is the output of bpftrace, whose columns a script chooses; \
                        describe them with --map FILE.toml, as samples/maps/bpftrace-bio.toml does";

/// What to do with lines of no known format that are known to have columns of their own.
fn advice_for<'a, I: Iterator<Item = &'a [u8]>>(lines: impl Fn() -> I) -> Option<&'static str> {
    let attached = |line: &[u8]| line.starts_with(b"Attaching ") && line.ends_with(b"...");
    if lines().next().is_some_and(attached) {
        return Some(BPFTRACE);
    }
    let some = || lines().filter(|line| !line.is_empty());
    let (all, events) = (some().count(), some().filter(|line| is_blkparse_event(line)).count());
    (events > all / 2).then_some(CUSTOM_BLKPARSE)
}

/// Whether a field of `line` is an action of blkparse and the next one its operation.
fn is_blkparse_event(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> =
        line.split(|byte| b" \t,;:|".contains(byte)).filter(|field| !field.is_empty()).collect();
    let is_action = |field: &[u8]| field.len() == 1 && b"QGIDCMFPUSRX".contains(&field[0]);
    let is_rwbs = |field: &[u8]| field.len() <= 5 && field.iter().all(|c| b"RWDFNSMA".contains(c));
    let pair = |pair: &[&[u8]]| is_action(pair[0]) && is_rwbs(pair[1]);
    fields.len() > 3 && fields.windows(2).any(pair)
}

/// Where a tar archive has its mark, after the name and attributes of its first file.
const TAR_MARK_AT: usize = 257;

/// The message for binary data without a known magic number.
const NO_KNOWN_BINARY: &str = "binary, and of no known format; traces of caches without a header \
                               take --format oracle-general";

/// What `head` is and what to do, if it begins as something that is known not to be text.
pub fn not_text(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 10] = [
        (b"PERFILE2", "a recording of perf; print it with `perf script` first"),
        (
            b"\x17\x08\x44tracing",
            "a recording of trace-cmd; print it with `trace-cmd report` first",
        ),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"),
        (b"\x1f\x8b", "compressed with gzip; unpack it first"),
        (b"\xfd7zXZ\0", "compressed with xz; unpack it first, as `xz -d` does"),
        (b"BZh", "compressed with bzip2; unpack it first, as `bunzip2` does"),
        (b"\x04\x22\x4d\x18", "compressed with lz4; unpack it first, as `lz4 -d` does"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first, as `7z x` does"),
        (b"PK\x03\x04", "a zip archive; unpack it first, as `unzip` does"),
        (b"PAR1", "a Parquet file, not a trace"),
    ];
    if let Some((_, what)) = known.into_iter().find(|(mark, _)| head.starts_with(mark)) {
        return Some(what);
    }
    if head.get(TAR_MARK_AT..).is_some_and(|rest| rest.starts_with(b"ustar")) {
        return Some("a tar archive; unpack it first, as `tar -xf` does, and name the trace in it");
    }
    is_utf16(&head[..head.len().min(BINARY_BYTES)])
        .then_some("text in UTF-16; turn it into UTF-8 first, as `iconv -f UTF-16 -t UTF-8` does")
}

/// Whether `bytes` cannot be text, or not all of them.
fn is_binary(bytes: &[u8]) -> bool {
    let odd = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0x0c);
    let many = bytes.iter().filter(|byte| odd(byte)).count() > bytes.len() / 20;
    many || memchr::memchr(0, bytes).is_some()
}

/// Whether `start` has the byte order mark of UTF-16, or every second byte is zero as in ASCII
/// text in UTF-16.
fn is_utf16(start: &[u8]) -> bool {
    let zeros = |from: usize| start.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let most = |zeros: usize| start.len() > 16 && zeros > start.len() / 2 * 9 / 10;
    let (even, odd) = (zeros(0), zeros(1));
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") || most(even) != most(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_their_lines() {
        let (ftrace, perf) = (FTRACE, PERF);
        let trace_cmd =
            "cpus=2\n  dd-77 [001] 766.164705: block_rq_issue:      7,0 R 8 () 1 + 8 [dd]";
        let unpack = Err(TraceError::NotText { what: "compressed with gzip; unpack it first" });
        let binary = Err(TraceError::NotText { what: NO_KNOWN_BINARY });
        for (head, expected) in [
            (ftrace, Ok(Format::Ftrace)),
            (trace_cmd, Ok(Format::Ftrace)),
            (perf, Ok(Format::PerfScript)),
            ("259,0 1 9 0.07 167 Q RAM 4104 + 8 [dd]", Ok(Format::Blkparse)),
            ("# tracer: blk\n 7,0 1 844.34 22 C WSM 8719008 [0]", Ok(Format::Blkparse)),
            ("a-1 [000] d..1. 4.180761:   7,0    Q  WS 0 + 32 [a]", Ok(Format::Blkparse)),
            ("a-1 [000] d..1. 4.180761:   7,0   /x  Q  WS 0 + 32 [a]", Ok(Format::Blkparse)),
            ("# tracer: blk\n  7,0    Q  WS 0 + 32 [a]", Ok(Format::Blkparse)),
            ("\x07tae\0\0", Ok(Format::Blktrace)),
            ("eat\x08\0\0", Ok(Format::Blktrace)),
            ("fio version 3 iolog\n22 /f add\n", Ok(Format::FioIolog)),
            ("128166385295514663,hm,0,Write,9056014336,2048,2833", Ok(Format::Msr)),
            ("0,R,126703644672,4096,1577808000000626\r\n", Ok(Format::Alibaba)),
            ("id,op,offset,length,time\n0,W,1,4096,15", Ok(Format::Alibaba)),
            ("1538323200,4247200,128,1,1058", Ok(Format::Tencent)),
            ("11413000 0 657728 16 1\n", Ok(Format::Mqsim)),
            ("", Err(TraceError::Empty)),
            ("hello world\n", Err(TraceError::UnknownFormat)),
            (
                "0.000000000,167,dd,Q,RM,69896,8,4096\n0.000130510,167,dd,D,RM,69896,8,4096\n",
                Err(TraceError::OwnColumns { advice: CUSTOM_BLKPARSE }),
            ),
            (
                "Attaching 5 probes...\nts_ns,dev,rwbs,sector\n391,254:0,RA,12581000\n",
                Err(TraceError::OwnColumns { advice: BPFTRACE }),
            ),
            ("\n\n", Err(TraceError::UnknownFormat)),
            ("# tracer: nop\n#\n# entries-in-buffer/written: 0/0   #P:2\n", Ok(Format::Ftrace)),
            ("cpus=2\n", Ok(Format::Ftrace)),
            ("# tracer: blk\n#\n", Ok(Format::Blkparse)),
            ("device_id,opcode,offset,length,timestamp\r\n", Ok(Format::Alibaba)),
            ("Timestamp,Response,IOType,LUN,Offset,Size", Ok(Format::Systor17)),
            ("Timestamp, Hostname, DiskNumber, Type, Offset, Size, ResponseTime", Ok(Format::Msr)),
            ("timestamp,offset,size,ioType,volumeID", Ok(Format::Tencent)),
            ("name,value\n", Err(TraceError::UnknownFormat)),
            ("\x1f\u{8b}", binary.clone()),
            ("ab\0cd", binary.clone()),
        ] {
            assert_eq!(detect(head.as_bytes()), expected, "{head:?}");
        }
        assert_eq!(detect(b"\x1f\x8b\x08\0"), unpack);
        for (head, packed) in [
            (&b"BZh91AY&SY"[..], "bzip2"),
            (b"\xfd7zXZ\0\0\x04", "xz"),
            (b"\x04\x22\x4d\x18\x64", "lz4"),
            (b"PK\x03\x04\x14\0", "a zip archive"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"),
            (&[&[b'a'; TAR_MARK_AT], &b"ustar\x0000"[..], &[0; 248]].concat(), "a tar archive"),
        ] {
            let refused = detect(head).unwrap_err().to_string();
            assert!(refused.contains(packed) && refused.contains("; unpack it"), "{refused}");
        }
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for wide in [wide(ftrace), wide("\u{feff}hello"), [&[0], &wide(ftrace)[..]].concat()] {
            let refused = detect(&wide).unwrap_err().to_string();
            assert!(refused.contains("UTF-16"), "{refused}");
        }
        assert_eq!(detect(&[0; 4096]), binary);
    }

    #[test]
    fn a_byte_order_mark_and_some_damage_change_no_format() {
        for (format, text) in TEXTS {
            assert_eq!(detect(format!("\u{feff}{text}").as_bytes()), Ok(format));
        }
        assert_eq!(detect("\u{feff}fio version 3 iolog\n".as_bytes()), Ok(Format::FioIolog));
        let lines = include_str!("../../../samples/formats/alibaba.csv");
        for damage in ["\0", "0,R,1\0 2,4096,15\n", &"\0".repeat(32 << 10)] {
            for text in [format!("{damage}{lines}"), format!("{lines}{damage}\n{lines}")] {
                assert_eq!(detect(text.as_bytes()), Ok(Format::Alibaba), "{:?}", &text[..9]);
            }
        }
        let one_line = [&[7; 4096], FTRACE.as_bytes(), &[b'\n', 1, 2, 3]].concat();
        let binary = Err(TraceError::NotText { what: NO_KNOWN_BINARY });
        assert_eq!(detect(&one_line), binary);
    }

    /// Samples of text, and the format whose lines they are.
    const TEXTS: [(Format, &str); 20] = [
        (Format::Ftrace, FTRACE),
        (Format::PerfScript, PERF),
        (Format::Blkparse, include_str!("../../../samples/formats/blkparse-default.txt")),
        (Format::Blkparse, include_str!("../tests/data/ftrace-blk-tracer-classic.txt")),
        (Format::Msr, include_str!("../../../samples/formats/msr.csv")),
        (Format::Alibaba, include_str!("../../../samples/formats/alibaba.csv")),
        (Format::Tencent, include_str!("../../../samples/formats/tencent.csv")),
        (Format::Mqsim, include_str!("../../../samples/formats/mqsim.txt")),
        (Format::Biosnoop, include_str!("../tests/data/biosnoop-bcc.txt")),
        (Format::Etw, include_str!("../tests/data/etw.csv")),
        (Format::Wiscsee, include_str!("../tests/data/wiscsee.txt")),
        (Format::Systor17, include_str!("../tests/data/systor17-vdi.csv")),
        (Format::K5cloud, include_str!("../tests/data/k5cloud.csv")),
        (Format::Spc, include_str!("../tests/data/spc.csv")),
        (Format::Disksim, include_str!("../tests/data/disksim.txt")),
        (Format::Fiu, include_str!("../tests/data/fiu.txt")),
        (Format::Baleen, include_str!("../tests/data/baleen.txt")),
        (Format::Thesios, include_str!("../tests/data/thesios.csv")),
        (Format::IoTracer, include_str!("../tests/data/io-tracer.csv")),
        (Format::IoTracer, include_str!("../tests/data/io-tracer-old.csv")),
    ];

    const FTRACE: &str =
        " jbd2/loop0-8-10900 [000] ..... 745.098260: block_rq_issue: 7,0 FF 0 () 0 + 0 [x]";
    const PERF: &str =
        " dd 19404 [001] 766.164705: block:block_rq_issue: 7,0 WS 8 () 1 + 8 0x2,0,4 [dd]";

    /// No line of one format is recognised as another format.
    #[test]
    fn every_line_against_every_recogniser() {
        for (own, text) in TEXTS {
            let mut hits = 0;
            for line in text.lines() {
                for (format, recogniser) in &*RECOGNISERS {
                    let is_hit = recogniser.fits(line.trim_end().as_bytes());
                    assert!(!is_hit || *format == own, "{line} of {own:?} as {format:?}");
                    hits += usize::from(is_hit);
                }
            }
            assert!(hits > 0, "{own:?}");
            assert_eq!(of_binary_head(text.as_bytes()), None, "{own:?}");
        }
        let midas = include_str!("../tests/data/midas.txt");
        for line in midas.lines() {
            for (format, recogniser) in &*RECOGNISERS {
                assert!(!recogniser.fits(line.as_bytes()), "{line} of MiDAS as {format:?}");
            }
        }
    }
}
