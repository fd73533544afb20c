//! The records of the monitor's journal.

use prism_base::codec::{DecodeError, Decoder, Encoder};

use crate::medium::DeviceGeometry;
use crate::monitor::levelling::{Exchange, Progress};

/// The version of the tables that this code writes.
const FORMAT: u32 = 2;
/// The oldest version that it reads; it has no [`Record::Levelling`].
const FORMAT_MIN: u32 = 1;

/// A share, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        match self {
            Self::Format { geometry: g, reserved_per_lun } => {
                let open = g.max_open_blocks.unwrap_or(0);
                let shape = [g.channels, g.luns_per_channel, g.blocks_per_lun, g.pages_per_block];
                out.u32(0);
                out.u32(FORMAT);
                shape.into_iter().for_each(|number| out.u32(number));
                [g.page_size, g.oob_size, open, *reserved_per_lun]
                    .into_iter()
                    .for_each(|number| out.u32(number));
            }
            Self::Share(share) => {
                out.u32(1);
                out.u32(share.id);
                out.column_u8(share.name.as_bytes());
                out.u32(share.ops_luns);
                out.u32(share.open_max);
                out.u64(share.bandwidth);
                out.column_u32(&share.luns);
                out.column_u8(&share.meta);
            }
            Self::Released { id } => {
                out.u32(2);
                out.u32(*id);
            }
            Self::Dirty { luns } => {
                out.u32(3);
                out.column_u32(luns);
            }
            Self::VirtualBlock { virtual_block, block } => {
                out.u32(4);
                out.u32(*virtual_block);
                out.u32(*block);
            }
            Self::Bad { blocks } => {
                out.u32(5);
                out.column_u32(blocks);
            }
            Self::Wear { first, counts } => {
                out.u32(6);
                out.u32(*first);
                out.column_u32(counts);
            }
            Self::Exchange { pair } => {
                out.u32(7);
                let numbers = pair.map(|p| vec![p.hot, p.cold, p.worn, p.fresh]);
                out.column_u32(&numbers.unwrap_or_default());
            }
            Self::Levelling(progress) => {
                out.u32(8);
                out.u64(progress.all_erases);
                out.u64(progress.erases);
                out.u64(progress.exchanges);
                out.u32(progress.since_check);
                out.column_u32(&progress.recent);
                out.column_u32(&progress.noted_at);
            }
        }
        out.into_bytes()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = Decoder::new(bytes);
        let most = bytes.len();
        let record = match from.u32()? {
            0 => {
                if !(FORMAT_MIN..=FORMAT).contains(&from.u32()?) {
                    return Err(from.wrong("tables of another version"));
                }
                let mut next = || from.u32();
                let geometry = DeviceGeometry {
                    channels: next()?,
                    luns_per_channel: next()?,
                    blocks_per_lun: next()?,
                    pages_per_block: next()?,
                    page_size: next()?,
                    oob_size: next()?,
                    max_open_blocks: Some(next()?).filter(|&open| open > 0),
                };
                Self::Format { geometry, reserved_per_lun: next()? }
            }
            1 => Self::Share(ShareRecord {
                id: from.u32()?,
                name: String::from_utf8(from.column_u8()?.to_vec())
                    .map_err(|_| from.wrong("a name that is no text"))?,
                ops_luns: from.u32()?,
                open_max: from.u32()?,
                bandwidth: from.u64()?,
                luns: from.list_u32(most)?,
                meta: from.column_u8()?.to_vec(),
            }),
            2 => Self::Released { id: from.u32()? },
            3 => Self::Dirty { luns: from.list_u32(most)? },
            4 => Self::VirtualBlock { virtual_block: from.u32()?, block: from.u32()? },
            5 => Self::Bad { blocks: from.list_u32(most)? },
            6 => Self::Wear { first: from.u32()?, counts: from.list_u32(most)? },
            7 => match from.list_u32(4)?[..] {
                [] => Self::Exchange { pair: None },
                [hot, cold, worn, fresh] => {
                    Self::Exchange { pair: Some(Exchange { hot, cold, worn, fresh }) }
                }
                _ => return Err(from.wrong("an exchange of one LUN")),
            },
            8 => Self::Levelling(Progress {
                all_erases: from.u64()?,
                erases: from.u64()?,
                exchanges: from.u64()?,
                since_check: from.u32()?,
                recent: from.list_u32(most)?,
                noted_at: from.list_u32(most)?,
            }),
            _ => return Err(from.wrong("a record of a kind that is not known")),
        };
        from.end()?;
        Ok(record)
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
            assert_eq!(Record::decode(&bytes).as_ref(), Ok(&record));
            for len in 0..bytes.len() {
                assert!(Record::decode(&bytes[..len]).is_err(), "{record:?} cut to {len}");
            }
        }
    }
}
