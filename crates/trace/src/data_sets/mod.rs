//! Formats of published data sets beside the four that have modules of their own: which
//! parser reads which, and by what each is recognised.
//!
//! What each looks like, its units and its doubts: `docs/spec/trace-formats.md`.

mod baleen;
mod calendar;
mod columns;
mod disksim;
mod fiu;
mod iotracer;
mod k5cloud;
mod layout;
mod lcs;
mod midas;
mod oracle;
mod records;
pub(crate) mod rows;
mod spc;
mod systor17;
mod thesios;
mod vscsi;

pub(crate) use self::records::Records;
use self::rows::Rows;
use crate::detect::Recogniser;
use crate::mqsim::{MqsimParser, TimeUnit};
use crate::reader::Format;
use crate::sink::LineParser;

/// The parser of a text `format`; `None` if it is not one of this module.
pub(crate) fn line_parser(format: Format) -> Option<Box<dyn LineParser>> {
    Some(match format {
        Format::Systor17 => Box::new(Rows::new(systor17::Systor17::new())),
        Format::K5cloud => Box::new(Rows::new(k5cloud::K5cloud::new())),
        Format::Spc => Box::new(Rows::new(spc::Spc::new())),
        Format::Disksim => Box::new(Rows::new(disksim::Disksim::new())),
        // The columns, units and types of SSDsim are those of MQSim, which took them over.
        Format::Ssdsim => Box::new(MqsimParser::new(TimeUnit::Nanosecond)),
        Format::Fiu => Box::new(Rows::new(fiu::Fiu)),
        Format::Midas => Box::new(Rows::new(midas::Midas::new())),
        Format::Baleen => Box::new(Rows::new(baleen::Baleen::new())),
        Format::Thesios => Box::new(Rows::new(thesios::Thesios::new())),
        Format::IoTracer => Box::new(Rows::new(iotracer::IoTracer::new())),
        _ => return None,
    })
}

/// The reader of a binary `format`; `None` if it is not one of this module.
pub(crate) fn records(format: Format) -> Option<Records> {
    Some(match format {
        Format::Vscsi => Records::new(Box::new(vscsi::Vscsi::default())),
        Format::OracleGeneral => Records::new(Box::new(oracle::Cached::oracle_general())),
        Format::Lcs => Records::new(Box::new(oracle::Cached::lcs())),
        _ => return None,
    })
}

/// Lines by which a text format is recognised.
pub(crate) const RECOGNISERS: [Recogniser; 8] = [
    (Format::Systor17, systor17::is_line),
    (Format::K5cloud, k5cloud::is_line),
    (Format::Spc, spc::is_line),
    (Format::Disksim, disksim::is_line),
    (Format::Fiu, fiu::is_line),
    (Format::Baleen, baleen::is_line),
    (Format::Thesios, thesios::is_header),
    (Format::IoTracer, |line| iotracer::is_header(line) || iotracer::is_line(line)),
];

/// The binary format that starts with `head`.
pub(crate) fn recognise(head: &[u8]) -> Option<Format> {
    if lcs::is_head(head) {
        return Some(Format::Lcs);
    }
    vscsi::is_head(head).then_some(Format::Vscsi)
}

/// What a line may be that is of more than one format, and what to do.
pub(crate) fn ambiguous(line: &[u8]) -> Option<&'static str> {
    disksim::is_this_or_midas(line).then_some("disksim and midas")
}
