//! Block traces: one record type, readers of many formats (bytes in, records out), generators
//! and text writers.
//!
//! Nothing here opens a file or accesses a device: the crate `host` supplies the bytes.

mod blkparse;
mod blkparse_format;
mod blktrace;
mod blktrace_record;
pub mod capabilities;
pub mod compact;
mod data_sets;
pub mod detect;
pub mod error;
mod event;
pub mod extents;
pub mod facts;
pub mod fields;
pub mod fio;
mod flushes;
mod format;
mod formats;
pub mod fs_layout;
mod ftrace;
pub mod generate;
pub mod generate_options;
pub mod info;
mod intake;
pub mod lines;
pub mod live;
mod load_spec;
pub mod map;
pub mod mqsim;
mod names;
mod nvme;
pub mod options;
pub mod order;
mod pair;
mod perf;
pub mod read_report;
pub mod reader;
pub mod record;
mod ring;
mod rwbs;
mod scan;
pub mod sink;
pub mod skips;
pub mod source;
pub mod summary;
pub mod tally;
#[cfg(test)]
mod testing;
mod tools;
mod tracepoint;
mod waiting;
mod wiscsee;
pub mod write;

pub use capabilities::Capabilities;
pub use detect::{DETECT_BYTES, detect};
pub use error::TraceError;
pub use extents::Extents;
pub use facts::{CountedFrom, PhaseRow, SkipRow, TraceFacts};
pub use format::Format;
pub use fs_layout::FsLayout;
pub use info::{Records, TraceInfo};
pub use live::Live;
pub use load_spec::LoadSpec;
pub use options::{CountFrom, LogicalBlock, ReaderOptions};
pub use prism_base::symbols::{self, Symbol, Symbols};
pub use read_report::{PhaseSpan, ReadReport};
pub use reader::Reader;
pub use record::{Flags, Op, OptTime, Record};
pub use sink::{LineParser, Sink};
pub use skips::{SkipReason, Skips};
pub use source::{Source, SourceError, VecSource, each_record};
pub use tally::{Tallies, Tally};
