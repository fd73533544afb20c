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

/// The bits of the numbers in [`Address::to_bits`]: as many as [`DeviceGeometry`] allows.
///
/// [`DeviceGeometry`]: crate::DeviceGeometry
const PAGE_BITS: u32 = 16;
const BLOCK_BITS: u32 = 20;
const LUN_BITS: u32 = 10;
const CHANNEL_BITS: u32 = 10;

impl Address {
    /// The same block, another page.
    #[must_use]
    pub fn with_page(self, page: u32) -> Self {
        Self { page, ..self }
    }

    /// The address in one word, for maps of an application:
    ///
    /// | bits | number |
    /// |---|---|
    /// | 0 to 15 | page |
    /// | 16 to 35 | block |
    /// | 36 to 45 | LUN |
    /// | 46 to 55 | channel |
    /// | 56 to 63 | 0, free for the application |
    ///
    /// Words are ordered as addresses are. The layout does not change between versions.
    ///
    /// # Panics
    /// If a number is larger than on any device; [`Address::checked_bits`] returns `None` then.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.checked_bits().expect("an address of a device has 56 bits")
    }

    /// As [`Address::to_bits`]; `None` if a number is larger than on any device.
    #[must_use]
    pub fn checked_bits(self) -> Option<u64> {
        let parts = [
            (self.channel, CHANNEL_BITS),
            (self.lun, LUN_BITS),
            (self.block, BLOCK_BITS),
            (self.page, PAGE_BITS),
        ];
        parts.into_iter().try_fold(0, |word, (number, bits)| {
            (number >> bits == 0).then_some(word << bits | u64::from(number))
        })
    }

    /// The address of a word from [`Address::to_bits`]; `None` if one of the highest 8 bits is set.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let mut rest = bits;
        let mut take = |bits: u32| {
            let number = rest & ((1 << bits) - 1);
            rest >>= bits;
            number as u32
        };
        let (page, block) = (take(PAGE_BITS), take(BLOCK_BITS));
        let (lun, channel) = (take(LUN_BITS), take(CHANNEL_BITS));
        (rest == 0).then_some(Self { channel, lun, block, page })
    }
}
