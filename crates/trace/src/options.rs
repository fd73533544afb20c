//! The options of a reader: the format, and what the bytes do not contain.

use prism_base::{Bytes, Nanos};

use crate::error::TraceError;
use crate::format::Format;

/// Which event of an event format is counted as the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountFrom {
    /// The issue to the device (`D`, `block_rq_issue`), the usual one.
    Issue,
    /// The entry into the block layer (`Q`, `block_bio_queue`), for stacked devices that
    /// have no issue events.
    Queue,
    /// The command of the NVMe driver (`nvme_setup_cmd`), for traces without block events.
    Nvme {
        /// Size of a logical block, which no event contains.
        block: LogicalBlock,
    },
}

/// The options.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The format.
    pub format: Format,
    /// The `-f` string of blkparse, if one was used.
    pub blkparse_format: Option<String>,
    /// The text of the TOML map, for [`Format::Map`].
    pub map_toml: Option<String>,
    /// Which event is the request.
    pub count_from: CountFrom,
    /// By how much requests may be out of the order of time; `None` for what the format needs.
    pub disorder: Option<Nanos>,
}

/// The size of a logical block of an NVMe namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalBlock(Bytes);

impl LogicalBlock {
    /// The size to which nearly all drives are formatted when they are sold.
    pub const SECTOR: Self = Self(Bytes(512));

    /// A block of `size`, which must be a power of two from 512 B to 64 KiB.
    ///
    /// # Errors
    /// [`TraceError::BlockSize`]
    pub fn new(size: Bytes) -> Result<Self, TraceError> {
        let fits = size.0.is_power_of_two() && (512..=64 << 10).contains(&size.0);
        if fits { Ok(Self(size)) } else { Err(TraceError::BlockSize { size }) }
    }

    /// The size.
    #[must_use]
    pub fn bytes(self) -> Bytes {
        self.0
    }
}
