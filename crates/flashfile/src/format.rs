//! The bytes of superblocks, of sectors of block records and of page headers.
//!
//! Each has a hash over all of its other bytes, so that no flipped byte passes. Numbers are
//! little endian.

use prism_flash::DeviceGeometry;
use twox_hash::{XxHash3_64, XxHash64};

use crate::layout::{Layout, SECTOR};

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 4;
/// The first version with a journal.
const JOURNAL: u32 = 3;
/// The first version whose journal has each entry twice.
const TWO_COPIES: u32 = 4;

const MAGIC: &[u8; 8] = b"PRISMFLS";
/// Offset of the hash of a superblock: the last bytes of its sector, in every version.
const HASH_AT: usize = SECTOR - 8;

/// The hash function of chunks of pages, with its number in the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashKind {
    /// Of files made with version 1; slower than memory.
    XxHash64 = 1,
    Xxh3 = 2,
}

/// How the data of a file is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHash {
    /// The seed.
    identity: u64,
    kind: HashKind,
}

impl ChunkHash {
    fn of(self, chunk: &[u8]) -> u64 {
        match self.kind {
            HashKind::Xxh3 => XxHash3_64::oneshot_with_seed(self.identity, chunk),
            HashKind::XxHash64 => XxHash64::oneshot(self.identity, chunk),
        }
    }
}

/// The content of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) version: u32,
    /// A conversion keeps it, since page headers have such hashes.
    pub(crate) hash: HashKind,
    /// Chosen at random when the file is made; hashes include it, so that no part of another file
    /// is valid in this one.
    pub(crate) identity: u64,
    pub(crate) geometry: DeviceGeometry,
}

/// Why a sector is not a usable superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuperblockError {
    NoMagic,
    Newer(u32),
    /// Also if the disk cannot read it.
    Damaged,
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Superblock {
    /// How data is hashed.
    pub(crate) fn chunk_hash(&self) -> ChunkHash {
        ChunkHash { identity: self.identity, kind: self.hash }
    }

    pub(crate) fn has_journal(&self) -> bool {
        self.version >= JOURNAL
    }

    /// How many times the journal has each entry.
    pub(crate) fn entry_copies(&self) -> usize {
        if self.version >= TWO_COPIES { 2 } else { 1 }
    }

    /// The length of a file of this version, in bytes.
    pub(crate) fn file_len(&self, layout: &Layout) -> u64 {
        if self.has_journal() { layout.len() } else { layout.data.end() }
    }

    pub(crate) fn encode(&self) -> [u8; SECTOR] {
        let g = &self.geometry;
        let numbers = [
            g.channels,
            g.luns_per_channel,
            g.blocks_per_lun,
            g.pages_per_block,
            g.page_size,
            g.oob_size,
            g.max_open_blocks.unwrap_or(0),
        ];
        let mut sector = [0; SECTOR];
        sector[..8].copy_from_slice(MAGIC);
        sector[8..12].copy_from_slice(&self.version.to_le_bytes());
        if self.has_journal() {
            sector[12..16].copy_from_slice(&(self.hash as u32).to_le_bytes());
        }
        sector[16..24].copy_from_slice(&self.identity.to_le_bytes());
        for (place, number) in sector[24..52].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let hash = XxHash64::oneshot(0, &sector[..HASH_AT]);
        sector[HASH_AT..].copy_from_slice(&hash.to_le_bytes());
        sector
    }

    pub(crate) fn decode(sector: &[u8; SECTOR]) -> Result<Self, SuperblockError> {
        if &sector[..8] != MAGIC {
            return Err(SuperblockError::NoMagic);
        }
        if u64_at(sector, HASH_AT) != XxHash64::oneshot(0, &sector[..HASH_AT]) {
            return Err(SuperblockError::Damaged);
        }
        let version = match u32_at(sector, 8) {
            0 => return Err(SuperblockError::Damaged),
            newer if newer > VERSION => return Err(SuperblockError::Newer(newer)),
            known => known,
        };
        let hash = match (version, u32_at(sector, 12)) {
            (1, _) | (JOURNAL.., 1) => HashKind::XxHash64,
            (2, _) | (JOURNAL.., 2) => HashKind::Xxh3,
            _ => return Err(SuperblockError::Damaged),
        };
        let number = |index: usize| u32_at(sector, 24 + 4 * index);
        let geometry = DeviceGeometry {
            channels: number(0),
            luns_per_channel: number(1),
            blocks_per_lun: number(2),
            pages_per_block: number(3),
            page_size: number(4),
            oob_size: number(5),
            max_open_blocks: Some(number(6)).filter(|&open| open > 0),
        };
        geometry.check().map_err(|_| SuperblockError::Damaged)?;
        Ok(Self { version, hash, identity: u64_at(sector, 16), geometry })
    }
}

/// The record of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Erases so far; also the epoch that the page headers of its pages carry.
    pub(crate) erases: u32,
    /// Pages programmed since the last erase.
    pub(crate) programmed: u16,
    pub(crate) finished: bool,
    pub(crate) factory_bad: bool,
}

impl Record {
    const FINISHED: u16 = 1;
    const FACTORY_BAD: u16 = 2;

    pub(crate) fn encode(self) -> [u8; Layout::RECORD] {
        let flags = u16::from(self.finished) * Self::FINISHED
            + u16::from(self.factory_bad) * Self::FACTORY_BAD;
        let mut bytes = [0; Layout::RECORD];
        bytes[..4].copy_from_slice(&self.erases.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.programmed.to_le_bytes());
        bytes[6..].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let flags = u16::from_le_bytes([bytes[6], bytes[7]]);
        let known = flags <= Self::FINISHED + Self::FACTORY_BAD;
        known.then(|| Self {
            erases: u32_at(bytes, 0),
            programmed: u16::from_le_bytes([bytes[4], bytes[5]]),
            finished: flags & Self::FINISHED != 0,
            factory_bad: flags & Self::FACTORY_BAD != 0,
        })
    }
}

/// Encodes sector `index` of the records, as of journal entry `sequence`.
pub(crate) fn encode_records(
    identity: u64,
    sequence: u64,
    index: u32,
    records: &[Record],
) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    sector[8..16].copy_from_slice(&sequence.to_le_bytes());
    sector[16..20].copy_from_slice(&index.to_le_bytes());
    let places = sector[Layout::RECORD_HEADER..].chunks_exact_mut(Layout::RECORD);
    for (place, record) in places.zip(records) {
        place.copy_from_slice(&record.encode());
    }
    let hash = XxHash64::oneshot(identity, &sector[8..]);
    sector[..8].copy_from_slice(&hash.to_le_bytes());
    sector
}

/// The sequence and the records of a sector, `None` if it is damaged or belongs elsewhere.
pub(crate) fn decode_records(
    identity: u64,
    index: u32,
    pages_per_block: u32,
    sector: &[u8],
    count: usize,
) -> Option<(u64, Vec<Record>)> {
    let whole = u64_at(sector, 0) == XxHash64::oneshot(identity, &sector[8..]);
    if !whole || u32_at(sector, 16) != index {
        return None;
    }
    let places = sector[Layout::RECORD_HEADER..].chunks_exact(Layout::RECORD).take(count);
    let records: Option<Vec<_>> = places.map(Record::decode).collect();
    let fits = |record: &Record| u32::from(record.programmed) <= pages_per_block;
    let records = records.filter(|records| records.iter().all(fits))?;
    Some((u64_at(sector, 8), records))
}

/// Writes into `header` that page number `page` was programmed with `data` in `epoch`.
pub(crate) fn encode_header(
    layout: &Layout,
    hash: ChunkHash,
    page: u64,
    epoch: u32,
    data: &[u8],
    oob: &[u8],
    header: &mut [u8],
) {
    header.fill(0);
    header[8..12].copy_from_slice(&epoch.to_le_bytes());
    let fixed = Layout::HEADER_FIXED as usize;
    let chunks = data.chunks(layout.chunk as usize);
    let hashes = 8 * chunks.len();
    for (place, chunk) in header[fixed..].chunks_exact_mut(8).zip(chunks) {
        place.copy_from_slice(&hash.of(chunk).to_le_bytes());
    }
    let spare = &mut header[fixed + hashes..][..layout.geometry.oob_size as usize];
    // The value of erased cells.
    spare.fill(0xFF);
    spare[..oob.len()].copy_from_slice(oob);
    let hash = XxHash64::oneshot(hash.identity ^ page, &header[8..]);
    header[..8].copy_from_slice(&hash.to_le_bytes());
}

/// The erases of the block when the page was programmed.
pub(crate) fn header_epoch(header: &[u8]) -> u32 {
    u32_at(header, 8)
}

/// Whether `header` is that of page number `page` in `epoch`.
pub(crate) fn header_is_whole(identity: u64, page: u64, epoch: u32, header: &[u8]) -> bool {
    header_epoch(header) == epoch
        && u64_at(header, 0) == XxHash64::oneshot(identity ^ page, &header[8..])
}

/// Whether `data`, which begins at chunk `first` of a page, is what its page header says.
pub(crate) fn data_is_whole(
    layout: &Layout,
    hash: ChunkHash,
    header: &[u8],
    first: usize,
    data: &[u8],
) -> bool {
    let hashes = &header[Layout::HEADER_FIXED as usize + 8 * first..];
    let mut chunks = data.chunks(layout.chunk as usize).zip(hashes.chunks_exact(8));
    chunks.all(|(chunk, kept)| u64_at(kept, 0) == hash.of(chunk))
}

/// The out-of-band bytes of a page, in its page header.
pub(crate) fn oob_of<'a>(layout: &Layout, header: &'a [u8]) -> &'a [u8] {
    let chunks = layout.geometry.page_size.div_ceil(layout.chunk);
    &header[(Layout::HEADER_FIXED + 8 * chunks) as usize..][..layout.geometry.oob_size as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: DeviceGeometry = DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun: 9,
        pages_per_block: 4,
        page_size: 9000,
        oob_size: 20,
        max_open_blocks: Some(14),
    };

    #[test]
    fn superblocks_come_back_and_no_flipped_byte_passes() {
        let hash = HashKind::Xxh3;
        let superblock = Superblock { version: VERSION, hash, identity: 77, geometry: GEOMETRY };
        let mut sector = superblock.encode();
        assert_eq!(Superblock::decode(&sector), Ok(superblock));
        for (version, hash) in [
            (1, HashKind::XxHash64),
            (2, HashKind::Xxh3),
            (3, HashKind::XxHash64),
            (4, HashKind::XxHash64),
        ] {
            let other = Superblock { version, hash, ..superblock };
            assert_eq!(Superblock::decode(&other.encode()), Ok(other));
        }
        for at in 0..SECTOR {
            sector[at] ^= 0x10;
            assert!(Superblock::decode(&sector).is_err(), "byte {at}");
            sector[at] ^= 0x10;
        }
        sector[8] = 9;
        let hash = XxHash64::oneshot(0, &sector[..HASH_AT]);
        sector[HASH_AT..].copy_from_slice(&hash.to_le_bytes());
        assert_eq!(Superblock::decode(&sector), Err(SuperblockError::Newer(9)));
        assert_eq!(Superblock::decode(&[0; SECTOR]), Err(SuperblockError::NoMagic));
    }

    #[test]
    fn records_come_back_and_no_flipped_byte_passes() {
        let record = |erases, programmed| Record { erases, programmed, ..Record::default() };
        let records =
            [record(7, 4), Record { finished: true, ..record(1, 2) }, record(u32::MAX, 0)];
        let mut sector = encode_records(5, 12, 3, &records);
        assert_eq!(decode_records(5, 3, 4, &sector, 3), Some((12, records.to_vec())));
        assert_eq!(decode_records(6, 3, 4, &sector, 3), None, "another file");
        assert_eq!(decode_records(5, 2, 4, &sector, 3), None, "another place");
        assert_eq!(decode_records(5, 3, 3, &sector, 3), None, "more pages than a block has");
        for at in 0..SECTOR {
            sector[at] ^= 1;
            assert_eq!(decode_records(5, 3, 4, &sector, 3), None, "byte {at}");
            sector[at] ^= 1;
        }
    }

    #[test]
    fn headers_say_what_was_programmed() {
        let layout = Layout::new(GEOMETRY);
        let data: Vec<u8> = (0..9000u32).map(|i| ((i * 7919) >> 7) as u8).collect();
        let [hash, older] =
            [HashKind::Xxh3, HashKind::XxHash64].map(|kind| ChunkHash { identity: 5, kind });
        let mut header = vec![1; layout.header as usize];
        encode_header(&layout, hash, 11, 3, &data, b"spare", &mut header);
        assert!(
            header_is_whole(5, 11, 3, &header) && data_is_whole(&layout, hash, &header, 0, &data)
        );
        assert!(data_is_whole(&layout, hash, &header, 1, &data[4096..8192]));
        assert!(data_is_whole(&layout, hash, &header, 2, &data[8192..]));
        assert!(!data_is_whole(&layout, hash, &header, 0, &data[4096..8192]));
        assert_eq!(oob_of(&layout, &header), [&b"spare"[..], &[0xFF; 15]].concat());
        assert!(!data_is_whole(&layout, older, &header, 0, &data), "a file of version 1");
        assert!(!header_is_whole(5, 10, 3, &header) && !header_is_whole(5, 11, 2, &header));
        for at in 0..header.len() {
            header[at] ^= 0x80;
            assert!(!header_is_whole(5, 11, 3, &header), "byte {at}");
            header[at] ^= 0x80;
        }
    }
}
