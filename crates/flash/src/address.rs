//! Addresses of pages in a share.

use std::fmt;

/// A page of a share; calls on a block ignore `page`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The channel, of those the share has LUNs on.
    pub channel: u32,
    /// The LUN, of those the share has on the channel.
    pub lun: u32,
    /// The block of the LUN.
    pub block: u32,
    /// The page of the block.
    pub page: u32,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channel, lun, block, page } = self;
        write!(f, "page {page} of block {block} (channel {channel}, LUN {lun} of the share)")
    }
}

impl Address {
    /// The same block, another page.
    #[must_use]
    pub fn with_page(self, page: u32) -> Self {
        Self { page, ..self }
    }
}
