//! The one place that knows which parser reads a format in which a line stands alone.

use crate::alibaba::{self, AlibabaParser};
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fio::{self, FioParser};
use crate::map::MapParser;
use crate::mqsim::{self, MqsimParser, TimeUnit};
use crate::msr::{self, MsrParser};
use crate::reader::{Format, ReaderOptions};
use crate::sink::LineParser;
use crate::tencent::{self, TencentParser};

/// Disorder that is put right, in nanoseconds, where a format says nothing else: lines
/// written at completion stand behind later ones by as long as a request takes.
const DISORDER_NS: u64 = 1_000_000_000;

/// A parser and what the reader must know of its format.
pub struct LineFormat {
    /// Reads the lines.
    pub parser: Box<dyn LineParser>,
    /// What the format can carry.
    pub capabilities: Capabilities,
    /// Disorder that is put right, in nanoseconds.
    pub window_ns: u64,
}

/// The parser of `options.format`.
///
/// # Errors
/// [`TraceError::UnknownFormat`] for a format that has no such parser, and what the
/// parser says of its options.
pub fn line_format(options: &ReaderOptions) -> Result<LineFormat, TraceError> {
    let usual = |parser: Box<dyn LineParser>, capabilities| LineFormat {
        parser,
        capabilities,
        window_ns: DISORDER_NS,
    };
    Ok(match options.format {
        Format::Ftrace | Format::PerfScript | Format::Blkparse | Format::Blktrace => {
            return Err(TraceError::UnknownFormat);
        }
        Format::FioIolog => usual(Box::new(FioParser::new()), fio::CAPABILITIES),
        Format::Msr => usual(Box::new(MsrParser::new()), msr::CAPABILITIES),
        Format::Alibaba => usual(Box::new(AlibabaParser::new()), alibaba::CAPABILITIES),
        Format::Tencent => LineFormat {
            parser: Box::new(TencentParser::new()),
            capabilities: tencent::CAPABILITIES,
            window_ns: tencent::DISORDER.0,
        },
        Format::Mqsim => {
            usual(Box::new(MqsimParser::new(TimeUnit::Nanosecond)), mqsim::CAPABILITIES)
        }
        Format::Map => {
            let parser = MapParser::new(options.map_toml.as_deref().unwrap_or_default())?;
            let capabilities = parser.capabilities();
            usual(Box::new(parser), capabilities)
        }
    })
}
