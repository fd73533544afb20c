//! Every format: how it is recognised, and which parser reads it. The parsers know nothing of
//! this list.

use crate::blkparse::{self, Blkparse};
use crate::capabilities::Capabilities;
use crate::data_sets::records::RecordParser;
use crate::data_sets::rows::{Row, Rows};
use crate::data_sets::{
    baleen, disksim, fiu, iotracer, k5cloud, lcs, midas, oracle, spc, systor17, thesios, vscsi,
};
use crate::error::TraceError;
use crate::fio::FioParser;
use crate::format::Format;
use crate::intake::Intake;
use crate::map::MapParser;
use crate::mqsim::{MqsimParser, TimeUnit};
use crate::options::ReaderOptions;
use crate::scan::whole;
use crate::sink::LineParser;
use crate::tools::{biosnoop, etw};
use crate::{alibaba, ftrace, msr, perf, tencent, wiscsee};

/// What reads a format.
pub(crate) enum Parser {
    /// Text of which each line is an event of a request.
    Events(EventParser),
    /// Events of several files, one for each processor.
    Blktrace,
    /// Text of which each line is a request.
    Lines(Box<dyn LineParser>),
    /// Bytes of which each record is a request.
    Records(Box<dyn RecordParser>),
}

/// The parser of `options.format`.
///
/// # Errors
/// What the parser says of its options.
pub(crate) fn parser(options: &ReaderOptions) -> Result<Parser, TraceError> {
    Ok(match options.format {
        Format::Ftrace => Parser::Events(EventParser::Ftrace),
        Format::PerfScript => Parser::Events(EventParser::Perf),
        Format::Wiscsee => Parser::Events(EventParser::Wiscsee),
        Format::Blkparse => {
            let blkparse = Blkparse::new(options.blkparse_format.as_deref())?;
            Parser::Events(EventParser::Blkparse(blkparse))
        }
        Format::Blktrace => Parser::Blktrace,
        Format::Vscsi => Parser::Records(Box::new(vscsi::Vscsi::default())),
        Format::OracleGeneral => Parser::Records(Box::new(oracle::Cached::oracle_general())),
        Format::Lcs => Parser::Records(Box::new(oracle::Cached::lcs())),
        Format::FioIolog => Parser::Lines(Box::new(FioParser::new())),
        Format::Msr => Parser::Lines(Box::new(msr::parser())),
        Format::Alibaba => Parser::Lines(Box::new(alibaba::parser())),
        Format::Tencent => Parser::Lines(Box::new(tencent::parser())),
        // The columns, units and types of SSDsim are those of MQSim, which took them over. The
        // unit of the time is MQSim's own default; another one takes a map.
        Format::Mqsim | Format::Ssdsim => {
            Parser::Lines(Box::new(MqsimParser::new(TimeUnit::Nanosecond)))
        }
        Format::Systor17 => rows(systor17::Systor17::new()),
        Format::K5cloud => rows(k5cloud::K5cloud::new()),
        Format::Spc => rows(spc::Spc::new()),
        Format::Disksim => rows(disksim::Disksim::new()),
        Format::Fiu => rows(fiu::Fiu),
        Format::Midas => rows(midas::Midas::new()),
        Format::Baleen => rows(baleen::Baleen::new()),
        Format::Thesios => rows(thesios::Thesios::new()),
        Format::IoTracer => rows(iotracer::IoTracer::new()),
        Format::Biosnoop => rows(biosnoop::Biosnoop::default()),
        Format::Etw => rows(etw::Etw::default()),
        Format::Map => {
            let what = "the format map needs a map; give one with --map FILE.toml";
            let none = || TraceError::Bad { line: 0, what: what.into() };
            let map = options.map_toml.as_deref().ok_or_else(none)?;
            Parser::Lines(Box::new(MapParser::new(map)?))
        }
    })
}

fn rows(row: impl Row + 'static) -> Parser {
    Parser::Lines(Box::new(Rows::new(row)))
}

/// The parsers of text that consists of events.
pub(crate) enum EventParser {
    Ftrace,
    Perf,
    Wiscsee,
    Blkparse(Blkparse),
}

impl EventParser {
    /// Takes one line.
    #[inline]
    pub fn line(
        &mut self,
        line: &[u8],
        number: u64,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        match self {
            Self::Ftrace => ftrace::line(line, number, intake),
            Self::Perf => perf::line(line, number, intake),
            Self::Wiscsee => wiscsee::line(line, number, intake),
            Self::Blkparse(blkparse) => blkparse.line(line, number, intake),
        }
    }

    /// Takes away what the lines cannot say.
    pub fn limit(&self, capabilities: &mut Capabilities, intake: &Intake) {
        match self {
            Self::Ftrace | Self::Perf => {}
            Self::Wiscsee => wiscsee::limit(capabilities),
            Self::Blkparse(blkparse) => {
                blkparse.limit(capabilities);
                // Old tools print write-zeroes as writes; only one that was printed
                // proves that these could.
                capabilities.write_zeroes = intake.write_zeroes;
            }
        }
    }
}

/// A text format, and whether a line can be of it.
pub(crate) type Recogniser = (Format, fn(&[u8]) -> bool);

/// In the order of preference where a line could be of several.
pub(crate) const RECOGNISERS: [Recogniser; 18] = [
    (Format::Ftrace, |line| ftrace::head(line).is_some_and(|head| is_name(head.name))),
    (Format::PerfScript, |line| perf::head(line).is_some_and(|head| is_name(head.name))),
    // Without its times the text of the tracer cannot be read, but the reader says why.
    (Format::Blkparse, |line| blkparse::fields(line).is_some() || blkparse::is_timeless(line)),
    (Format::Wiscsee, wiscsee::is_line),
    (Format::Msr, is_msr),
    (Format::Alibaba, is_alibaba),
    (Format::Tencent, is_tencent),
    (Format::Mqsim, is_mqsim),
    (Format::Biosnoop, biosnoop::is_line),
    (Format::Etw, etw::is_line),
    (Format::Systor17, systor17::is_line),
    (Format::K5cloud, k5cloud::is_line),
    (Format::Spc, spc::is_line),
    (Format::Disksim, disksim::is_line),
    (Format::Fiu, fiu::is_line),
    (Format::Baleen, baleen::is_line),
    (Format::Thesios, thesios::is_header),
    (Format::IoTracer, |line| iotracer::is_header(line) || iotracer::is_line(line)),
];

/// The binary format that starts with `head`; blktrace apart, whose mark is looked at first.
pub(crate) fn of_binary_head(head: &[u8]) -> Option<Format> {
    if lcs::is_head(head) {
        return Some(Format::Lcs);
    }
    vscsi::is_head(head).then_some(Format::Vscsi)
}

/// The formats that a line fits alike.
pub(crate) fn ambiguous(line: &[u8]) -> Option<&'static str> {
    disksim::is_this_or_midas(line).then_some("disksim and midas")
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
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
