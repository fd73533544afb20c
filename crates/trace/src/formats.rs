//! The one place that knows which parser reads a format in which a line stands alone.

use crate::error::TraceError;
use crate::fio::FioParser;
use crate::map::MapParser;
use crate::mqsim::{MqsimParser, TimeUnit};
use crate::reader::{Format, ReaderOptions};
use crate::sink::LineParser;
use crate::{alibaba, data_sets, msr, tencent, tools};

/// The parser of `options.format`.
///
/// # Errors
/// [`TraceError::UnknownFormat`] for a format whose lines do not stand alone, and what
/// the parser says of its options.
pub fn line_parser(options: &ReaderOptions) -> Result<Box<dyn LineParser>, TraceError> {
    Ok(match options.format {
        Format::FioIolog => Box::new(FioParser::new()),
        Format::Msr => Box::new(msr::parser()),
        Format::Alibaba => Box::new(alibaba::parser()),
        Format::Tencent => Box::new(tencent::parser()),
        // MQSim's own default; another unit takes a map.
        Format::Mqsim => Box::new(MqsimParser::new(TimeUnit::Nanosecond)),
        Format::Map => {
            let what = "the format map needs a map; give one with --map FILE.toml";
            let none = || TraceError::Bad { line: 0, what: what.into() };
            Box::new(MapParser::new(options.map_toml.as_deref().ok_or_else(none)?)?)
        }
        Format::Ftrace
        | Format::PerfScript
        | Format::Blkparse
        | Format::Blktrace
        | Format::Wiscsee => {
            return Err(TraceError::UnknownFormat);
        }
        other => {
            let parser = tools::line_parser(other).or_else(|| data_sets::line_parser(other));
            return parser.ok_or(TraceError::UnknownFormat);
        }
    })
}
