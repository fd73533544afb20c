//! All formats: how each is recognised, and which parser reads it. The parsers do not depend on
//! this list.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::blkparse::{self, Blkparse};
use crate::capabilities::Capabilities;
use crate::data_sets::records::RecordParser;
use crate::data_sets::rows::{Row, Rows};
use crate::data_sets::{baleen, disksim, fiu, iotracer, lcs, midas, oracle, thesios, vscsi};
use crate::error::TraceError;
use crate::fio::FioParser;
use crate::format::Format;
use crate::intake::Intake;
use crate::map::MapParser;
use crate::mqsim::{self, MqsimParser};
use crate::options::ReaderOptions;
use crate::sink::LineParser;
use crate::tools::{biosnoop, etw};
use crate::{ftrace, perf, wiscsee};

/// What reads a format.
pub(crate) enum Parser {
    /// Text of which each line is an event of a request.
    Events(EventParser),
    /// Events of several files, one for each CPU.
    Blktrace,
    /// Text of which each line is a request.
    Lines(Box<dyn LineParser>),
    /// Bytes of which each record is a request.
    Records(Box<dyn RecordParser>),
}

/// The parser of `options.format`.
///
/// # Errors
/// The error of the parser if its options are invalid.
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
        Format::Msr => mapped(MSR),
        Format::Alibaba => mapped(ALIBABA),
        Format::Tencent => mapped(TENCENT),
        Format::Systor17 => mapped(SYSTOR17),
        Format::K5cloud => mapped(K5CLOUD),
        Format::Spc => mapped(SPC),
        // MQSim adopted the columns, units and types of SSDsim.
        Format::Mqsim | Format::Ssdsim => Parser::Lines(Box::new(MqsimParser)),
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

/// The maps of the formats that are read through a map.
const MSR: &str = include_str!("../../../samples/maps/msr.toml");
const ALIBABA: &str = include_str!("../../../samples/maps/alibaba.toml");
const TENCENT: &str = include_str!("../../../samples/maps/tencent.toml");
const SYSTOR17: &str = include_str!("../../../samples/maps/systor17.toml");
const K5CLOUD: &str = include_str!("../../../samples/maps/k5cloud.toml");
const SPC: &str = include_str!("../../../samples/maps/spc.toml");

fn mapped(map: &str) -> Parser {
    Parser::Lines(Box::new(MapParser::new(map).expect("a built-in map is right")))
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
    /// Reads one line.
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

    /// Clears the capabilities that the lines cannot have.
    pub fn limit(&self, capabilities: &mut Capabilities, intake: &Intake) {
        match self {
            Self::Ftrace | Self::Perf => {}
            Self::Wiscsee => wiscsee::limit(capabilities),
            Self::Blkparse(blkparse) => {
                blkparse.limit(capabilities);
                // Old tools print write-zeroes as writes; only a printed write-zeroes proves
                // that the tool distinguishes them.
                capabilities.write_zeroes = intake.write_zeroes;
            }
        }
    }
}

/// How a line of a text format is recognised.
pub(crate) enum Recogniser {
    Function(fn(&[u8]) -> bool),
    Pattern(Regex),
}

impl Recogniser {
    /// Whether `line` can be of the format.
    pub fn fits(&self, line: &[u8]) -> bool {
        match self {
            Self::Function(is_line) => is_line(line),
            Self::Pattern(pattern) => pattern.is_match(line),
        }
    }
}

/// The text formats, in the order of preference where a line could be of several.
pub(crate) static RECOGNISERS: LazyLock<[(Format, Recogniser); 18]> = LazyLock::new(|| {
    use Recogniser::Function;
    [
        (
            Format::Ftrace,
            Function(|line| ftrace::head(line).is_some_and(|head| is_name(head.name))),
        ),
        (
            Format::PerfScript,
            Function(|line| perf::head(line).is_some_and(|head| is_name(head.name))),
        ),
        // Without its times the text of the tracer cannot be read, but the reader says why.
        (
            Format::Blkparse,
            Function(|line| blkparse::fields(line).is_some() || blkparse::is_timeless(line)),
        ),
        (Format::Wiscsee, Function(wiscsee::is_line)),
        (Format::Msr, columns("N,T,N,(?i:read|write),N,N,N")),
        (Format::Alibaba, columns("N,[RWrw],N,N,N")),
        (Format::Tencent, columns("N,N,N,[01],N")),
        (Format::Mqsim, Function(mqsim::is_line)),
        (Format::Biosnoop, Function(biosnoop::is_line)),
        (Format::Etw, Function(etw::is_line)),
        (Format::Systor17, columns("D,D?,[RW]?,N,N,N")),
        (Format::K5cloud, columns("N,D,[RW],N,N")),
        (Format::Spc, columns("N,N,N,[RWrw],D(,.*)?")),
        (Format::Disksim, Function(disksim::is_line)),
        (Format::Fiu, Function(fiu::is_line)),
        (Format::Baleen, Function(baleen::is_line)),
        (Format::Thesios, Function(thesios::is_header)),
        (Format::IoTracer, Function(|line| iotracer::is_header(line) || iotracer::is_line(line))),
    ]
});

/// Recognises columns between commas: `N` is a whole number, `D` a number with a decimal point,
/// and `T` any text. White space around a column does not matter.
fn columns(pattern: &str) -> Recogniser {
    let pattern = pattern
        .replace(',', r"\s*,\s*")
        .replace('N', "[0-9]{1,19}")
        .replace('D', r"(?:[0-9]+\.[0-9]*(?:[eE]-?[0-9]+)?)")
        .replace('T', "[^,]*");
    Recogniser::Pattern(Regex::new(&format!(r"(?-u)^\s*{pattern}\s*$")).expect("a pattern"))
}

/// The binary format that starts with `head`, except blktrace, which is checked first.
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

/// Headers of text formats whose requests are recognised by their own lines. The data sets are
/// published without a header or with this one; the case of its letters varies between copies.
const HEADERS: [(Format, &str); 7] = [
    (Format::Blkparse, "# tracer: blk"),
    (Format::Ftrace, "# tracer:"),
    (Format::Ftrace, "cpus="),
    (Format::Msr, "timestamp,hostname,disknumber,type,offset,size"),
    (Format::Alibaba, "device_id,opcode,offset,length,timestamp"),
    (Format::Tencent, "timestamp,offset,size,iotype,volumeid"),
    (Format::Systor17, "timestamp,response,iotype,lun,offset,size"),
];

/// The format whose header `line` begins with.
pub(crate) fn of_header(line: &[u8]) -> Option<Format> {
    let line: Vec<u8> = if line.contains(&b',') {
        let letters = line.iter().filter(|byte| !byte.is_ascii_whitespace());
        letters.map(u8::to_ascii_lowercase).collect()
    } else {
        line.to_vec()
    };
    HEADERS
        .iter()
        .find(|(_, header)| line.starts_with(header.as_bytes()))
        .map(|(format, _)| *format)
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
