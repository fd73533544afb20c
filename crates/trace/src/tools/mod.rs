//! Texts of tools that print a request in one line once it is done: which parser reads
//! which, and by what each is recognised.
//!
//! What each looks like and what it cannot tell: `docs/spec/event-formats.md`.

mod biosnoop;
mod etw;

use crate::data_sets::rows::Rows;
use crate::detect::Recogniser;
use crate::reader::Format;
use crate::sink::LineParser;

/// How far back the issue may lie from its completion, in whose order the lines stand: the
/// block layer itself gives a command up after 30 s.
const DISORDER_NS: u64 = 30_000_000_000;

/// The parser of `format`; `None` if it is not one of this module.
pub(crate) fn line_parser(format: Format) -> Option<Box<dyn LineParser>> {
    Some(match format {
        Format::Biosnoop => Box::new(Rows::new(biosnoop::Biosnoop::default())),
        Format::Etw => Box::new(Rows::new(etw::Etw::default())),
        _ => return None,
    })
}

/// Lines by which a format is recognised.
pub(crate) const RECOGNISERS: [Recogniser; 2] =
    [(Format::Biosnoop, biosnoop::is_line), (Format::Etw, etw::is_line)];
