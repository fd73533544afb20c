//! The records of the monitor's journal.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::codec::{invalid, load, save};

use crate::medium::DeviceGeometry;
use crate::monitor::levelling::{Exchange, Progress};

/// The version of the tables that this code writes.
const FORMAT: u32 = 2;
/// The oldest version that it reads; it has no [`Record::Levelling`].
const FORMAT_MIN: u32 = 1;

/// A share, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct ShareRecord {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// LUNs of over-provisioning, out of all of them.
    pub(crate) ops_luns: u32,
    /// Blocks that may be partly written at once.
    pub(crate) open_max: u32,
    /// Bandwidth limit in bytes/s; 0 for no limit.
    pub(crate) bandwidth: u64,
    /// Virtual LUNs, in the order of the share.
    pub(crate) luns: Vec<u32>,
    /// The metadata of the level above.
    pub(crate) meta: Vec<u8>,
}

/// One change of the tables, or one part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// The first of every checkpoint.
    Format { geometry: DeviceGeometry, reserved_per_lun: u32 },
    /// The new state of a share; it replaces the former one.
    Share(ShareRecord),
    /// A share was released; its LUNs are not erased.
    Released { id: u32 },
    /// The free LUNs that are not erased yet; all other free LUNs are.
    Dirty { luns: Vec<u32> },
    /// A virtual block is mapped to another block.
    VirtualBlock { virtual_block: u32, block: u32 },
    /// Blocks that are bad.
    Bad { blocks: Vec<u32> },
    /// Erases of blocks from one on.
    Wear { first: u32, counts: Vec<u32> },
    /// Two virtual LUNs are being exchanged; `None` at the end of an exchange.
    Exchange { pair: Option<Exchange> },
    /// The progress of global wear levelling.
    Levelling(Progress),
}

/// Most blocks of one wear record.
pub(crate) const WEAR_CHUNK: usize = 64;

impl Record {
    /// The number of its kind, and its fields.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let out = &mut bytes;
        match self {
            Self::Format { geometry: g, reserved_per_lun } => {
                let open = g.max_open_blocks.unwrap_or(0);
                let shape = [g.channels, g.luns_per_channel, g.blocks_per_lun, g.pages_per_block];
                let rest = [g.page_size, g.oob_size, open, *reserved_per_lun];
                save(&(0u32, FORMAT, shape, rest), out);
            }
            Self::Share(share) => save(&(1u32, share), out),
            Self::Released { id } => save(&(2u32, id), out),
            Self::Dirty { luns } => save(&(3u32, luns), out),
            Self::VirtualBlock { virtual_block, block } => save(&[4, *virtual_block, *block], out),
            Self::Bad { blocks } => save(&(5u32, blocks), out),
            Self::Wear { first, counts } => save(&(6u32, first, counts), out),
            Self::Exchange { pair } => {
                let numbers = pair.map(|p| vec![p.hot, p.cold, p.worn, p.fresh]);
                save(&(7u32, numbers.unwrap_or_default()), out);
            }
            Self::Levelling(progress) => save(&(8u32, progress), out),
        }
        bytes
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> io::Result<Self> {
        let from = &mut bytes;
        let record = match load::<u32>(from)? {
            0 => {
                if !(FORMAT_MIN..=FORMAT).contains(&load::<u32>(from)?) {
                    return Err(invalid("tables of another version"));
                }
                let [channels, luns_per_channel, blocks_per_lun, pages_per_block] = load(from)?;
                let [page_size, oob_size, open, reserved_per_lun] = load::<[u32; 4]>(from)?;
                let max_open_blocks = Some(open).filter(|&open| open > 0);
                let geometry = DeviceGeometry {
                    channels,
                    luns_per_channel,
                    blocks_per_lun,
                    pages_per_block,
                    page_size,
                    oob_size,
                    max_open_blocks,
                };
                Self::Format { geometry, reserved_per_lun }
            }
            1 => Self::Share(load(from)?),
            2 => Self::Released { id: load(from)? },
            3 => Self::Dirty { luns: load(from)? },
            4 => Self::VirtualBlock { virtual_block: load(from)?, block: load(from)? },
            5 => Self::Bad { blocks: load(from)? },
            6 => Self::Wear { first: load(from)?, counts: load(from)? },
            7 => match load::<Vec<u32>>(from)?[..] {
                [] => Self::Exchange { pair: None },
                [hot, cold, worn, fresh] => {
                    Self::Exchange { pair: Some(Exchange { hot, cold, worn, fresh }) }
                }
                _ => return Err(invalid("an exchange of one LUN")),
            },
            8 => Self::Levelling(load(from)?),
            _ => return Err(invalid("a record of a kind that is not known")),
        };
        if from.is_empty() { Ok(record) } else { Err(invalid("more bytes follow")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_decode_to_what_was_encoded() {
        let geometry = DeviceGeometry {
            channels: 1,
            luns_per_channel: 2,
            blocks_per_lun: 3,
            pages_per_block: 4,
            page_size: 512,
            oob_size: 0,
            max_open_blocks: Some(14),
        };
        let share = ShareRecord {
            id: 7,
            name: "cache é".into(),
            ops_luns: 1,
            open_max: 12,
            bandwidth: 1 << 40,
            luns: vec![3, 1],
            meta: vec![1, 2, 3],
        };
        let records = [
            Record::Format { geometry, reserved_per_lun: 3 },
            Record::Share(share),
            Record::Released { id: 3 },
            Record::Dirty { luns: vec![1, 2] },
            Record::VirtualBlock { virtual_block: 4, block: 5 },
            Record::Bad { blocks: vec![] },
            Record::Wear { first: 2, counts: vec![9, 8] },
            Record::Exchange { pair: Some(Exchange { hot: 1, cold: 2, worn: 3, fresh: 4 }) },
            Record::Exchange { pair: None },
            Record::Levelling(Progress {
                all_erases: 1 << 40,
                erases: 3,
                exchanges: 2,
                since_check: 31,
                recent: vec![7, 8],
                noted_at: vec![u32::MAX, 1],
            }),
        ];
        for record in records {
            let bytes = record.encode();
            assert_eq!(Record::decode(&bytes).unwrap(), record);
            for len in 0..bytes.len() {
                assert!(Record::decode(&bytes[..len]).is_err(), "{record:?} cut to {len}");
            }
        }
    }
}
