//! Recognises a format by its content.

use crate::blktrace_record::Order;
use crate::error::TraceError;
use crate::reader::Format;
use crate::scan::whole;
use crate::{blkparse, data_sets, ftrace, perf, tools, wiscsee};

/// Bytes of the start of a trace that [`detect`] wants, if there are as many: enough to
/// get past long headers and the first notes of a tracer.
pub const DETECT_BYTES: usize = 1 << 20;

/// Lines looked at.
const LINES_MAX: usize = 1000;

/// The format of a trace that starts with `head`, already unpacked.
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
    if let Some(format) = data_sets::recognise(head) {
        return Ok(format);
    }
    if let Some(what) = binary(head) {
        return Err(TraceError::NotText { what });
    }
    let head = &head[..head.len().min(DETECT_BYTES)];
    if head.starts_with(b"fio version 2 iolog") || head.starts_with(b"fio version 3 iolog") {
        return Ok(Format::FioIolog);
    }
    let recognisers =
        || RECOGNISERS.into_iter().chain(tools::RECOGNISERS).chain(data_sets::RECOGNISERS);
    let lines = || head.split(|&byte| byte == b'\n').take(LINES_MAX).map(<[u8]>::trim_ascii_end);
    let mut hits = vec![0_usize; recognisers().count()];
    for line in lines() {
        for (hits, (_, is_one)) in hits.iter_mut().zip(recognisers()) {
            *hits += usize::from(is_one(line));
        }
    }
    let mut best = None;
    for (&hits, (format, _)) in hits.iter().zip(recognisers()) {
        if hits > best.map_or(0, |(most, _)| most) {
            best = Some((hits, format));
        }
    }
    match (best, lines().find_map(data_sets::ambiguous)) {
        (Some((_, format)), _) => Ok(format),
        (None, Some(formats)) => Err(TraceError::Ambiguous { formats }),
        (None, None) => Err(TraceError::UnknownFormat),
    }
}

/// A format, and whether a line can be of it.
pub(crate) type Recogniser = (Format, fn(&[u8]) -> bool);

/// In the order of preference where a line could be of several.
const RECOGNISERS: [Recogniser; 8] = [
    (Format::Ftrace, |line| ftrace::head(line).is_some_and(|head| is_name(head.name))),
    (Format::PerfScript, |line| perf::head(line).is_some_and(|head| is_name(head.name))),
    // Without its times the text of the tracer cannot be read, but the reader says why.
    (Format::Blkparse, |line| blkparse::fields(line).is_some() || blkparse::is_timeless(line)),
    (Format::Wiscsee, wiscsee::is_line),
    (Format::Msr, is_msr),
    (Format::Alibaba, is_alibaba),
    (Format::Tencent, is_tencent),
    (Format::Mqsim, is_mqsim),
];

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// What to say of binary data that has none of the known marks.
const NO_KNOWN_BINARY: &str = "binary, and of no known format; traces of caches without a header \
                               take --format oracle-general";

/// What binary data seems to be; `None` for text.
fn binary(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 6] = [
        (b"PERFILE2", "a recording of perf; print it with `perf script` first"),
        (
            b"\x17\x08\x44tracing",
            "a recording of trace-cmd; print it with `trace-cmd report` first",
        ),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"),
        (b"\x1f\x8b", "compressed with gzip; unpack it first"),
        (b"\xfd7zXZ\0", "compressed with xz; unpack it first"),
        (b"PAR1", "a Parquet file, not a trace"),
    ];
    if let Some((_, what)) = known.into_iter().find(|(mark, _)| head.starts_with(mark)) {
        return Some(what);
    }
    let start = &head[..head.len().min(64 << 10)];
    if is_utf16(start) {
        return Some(
            "text in UTF-16; turn it into UTF-8 first, as `iconv -f UTF-16 -t UTF-8` does",
        );
    }
    let odd = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0x0c);
    let many = start.iter().filter(|byte| odd(byte)).count() > start.len() / 20;
    let is_binary = many || memchr::memchr(0, start).is_some();
    is_binary.then_some(NO_KNOWN_BINARY)
}

/// Whether `start` has the mark of UTF-16, or every second byte of its ASCII text is zero.
fn is_utf16(start: &[u8]) -> bool {
    let zeros = |from: usize| start.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let most = |zeros: usize| start.len() > 16 && zeros > start.len() / 2 * 9 / 10;
    let (even, odd) = (zeros(0), zeros(1));
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") || most(even) != most(odd)
}

fn cells<const N: usize>(line: &[u8], separator: u8) -> Option<[&[u8]; N]> {
    let mut cells = [&line[..0]; N];
    let mut parts = line.split(|&byte| byte == separator).filter(|cell| {
        // Columns made of spaces may be padded with several.
        separator != b' ' || !cell.is_empty()
    });
    for cell in &mut cells {
        *cell = parts.next()?.trim_ascii();
    }
    parts.next().is_none().then_some(cells)
}

fn numbers(cells: &[&[u8]]) -> bool {
    cells.iter().all(|cell| whole(cell).is_some())
}

fn is_msr(line: &[u8]) -> bool {
    cells(line, b',').is_some_and(|[time, _, disk, op, offset, size, response]| {
        (op.eq_ignore_ascii_case(b"read") || op.eq_ignore_ascii_case(b"write"))
            && numbers(&[time, disk, offset, size, response])
    })
}

fn is_alibaba(line: &[u8]) -> bool {
    cells(line, b',').is_some_and(|[device, op, offset, size, time]| {
        matches!(op, b"R" | b"W" | b"r" | b"w") && numbers(&[device, offset, size, time])
    })
}

fn is_tencent(line: &[u8]) -> bool {
    cells(line, b',').is_some_and(|[time, offset, size, op, volume]| {
        matches!(op, b"0" | b"1") && numbers(&[time, offset, size, volume])
    })
}

fn is_mqsim(line: &[u8]) -> bool {
    let is_one = |[time, device, lba, size, op]: [&[u8]; 5]| {
        matches!(op, b"0" | b"1") && numbers(&[time, device, lba, size])
    };
    cells(line, b' ').or_else(|| cells(line, b'\t')).is_some_and(is_one)
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
            ("\n\n", Err(TraceError::UnknownFormat)),
            ("\x1f\u{8b}", binary.clone()),
            ("ab\0cd", binary.clone()),
        ] {
            assert_eq!(detect(head.as_bytes()), expected, "{head:?}");
        }
        assert_eq!(detect(b"\x1f\x8b\x08\0"), unpack);
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for wide in [wide(ftrace), wide("\u{feff}hello"), [&[0], &wide(ftrace)[..]].concat()] {
            let refused = detect(&wide).unwrap_err().to_string();
            assert!(refused.contains("UTF-16"), "{refused}");
        }
        assert_eq!(detect(&[0; 4096]), binary);
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

    /// No line of one format is taken for one of another, not even among many.
    #[test]
    fn every_line_against_every_recogniser() {
        let all =
            || RECOGNISERS.into_iter().chain(tools::RECOGNISERS).chain(data_sets::RECOGNISERS);
        for (own, text) in TEXTS {
            let mut hits = 0;
            for line in text.lines() {
                for (format, is_one) in all() {
                    let is_hit = is_one(line.trim_end().as_bytes());
                    assert!(!is_hit || format == own, "{line} of {own:?} as {format:?}");
                    hits += usize::from(is_hit);
                }
            }
            assert!(hits > 0, "{own:?}");
            assert_eq!(data_sets::recognise(text.as_bytes()), None, "{own:?}");
        }
        let midas = include_str!("../tests/data/midas.txt");
        for line in midas.lines() {
            for (format, is_one) in all() {
                assert!(!is_one(line.as_bytes()), "{line} of MiDAS as {format:?}");
            }
        }
    }
}
