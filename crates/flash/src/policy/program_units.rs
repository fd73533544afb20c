//! The layout of a program unit on pages, and its header, which lists its units.
//!
//! A program unit is what an FTL programs at once. If pages have enough out-of-band bytes, a
//! program unit is one page with its header out of band. Otherwise, as on zoned devices, it is
//! several pages, and the first is the header: no level above the raw level needs out-of-band
//! bytes.

use std::hash::Hasher;

use prism_base::Bytes;
use prism_base::codec::load;
use prism_ftl::UnitWrite;
use prism_nand::{Geometry, UnitTag};
use twox_hash::XxHash64;

use crate::monitor::ShareGeometry;

/// The first bytes of every header.
const MAGIC: u32 = 0x3157_5250;
/// Bytes of a header without those of its units: magic, count, sequence, checksum.
const FIXED: u32 = 4 + 4 + 8 + 8;
/// Bytes of a header for each unit: logical unit, version.
const PER_UNIT: u32 = 4 + 8;
/// Limit of pages of a program unit with its header in band: the header then takes a sixteenth.
const PROGRAM_UNIT_PAGES_MAX: u32 = 16;

/// Minimum of program units of a block, if it has enough pages.
const PROGRAM_UNITS_MIN: u32 = 4;

/// The layout of program units on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramUnitFormat {
    pub(crate) unit: u32,
    pub(crate) page_size: u32,
    /// Pages of a program unit, and whether the first is its header.
    pub(crate) pages: u32,
    pub(crate) in_band: bool,
    pub(crate) units: u32,
    pub(crate) program_units_per_block: u32,
    /// Pages at the end of a block that are too few for a program unit.
    pub(crate) rest: u32,
}

impl ProgramUnitFormat {
    /// The format for mapping units of `unit` bytes, which divide a page.
    pub(crate) fn new(share: &ShareGeometry, unit: u32) -> Self {
        let (page_size, block) = (share.page_size, share.pages_per_block);
        let per_page = page_size / unit;
        let header = |units: u32| FIXED + PER_UNIT * units;
        if header(per_page) <= share.oob_size {
            let (pages, in_band, rest) = (1, false, 0);
            let (units, program_units_per_block) = (per_page, block);
            return Self { unit, page_size, pages, in_band, units, program_units_per_block, rest };
        }
        let fits = |pages: &u32| header((pages - 1) * per_page) <= page_size;
        // Cleaning frees whole program units, so a block has to have several.
        let most = PROGRAM_UNIT_PAGES_MAX.min(block / PROGRAM_UNITS_MIN).max(2);
        let most = (2..=most).rev().find(fits).unwrap_or(2);
        // A program unit length that divides the block wastes nothing, if it is not much shorter.
        let even = (most / 2 + 1..=most).rev().find(|pages| block.is_multiple_of(*pages));
        let pages = even.unwrap_or(most);
        Self {
            unit,
            page_size,
            pages,
            in_band: true,
            units: (pages - 1) * per_page,
            program_units_per_block: block / pages,
            rest: block % pages,
        }
    }

    /// The geometry for the FTL: pages with data only, in `die_groups` die groups.
    pub(crate) fn geometry(&self, die_groups: u32, blocks_per_die_group: u32) -> Geometry {
        Geometry {
            channels: 1,
            dies_per_channel: die_groups,
            planes: 1,
            planes_ganged: 1,
            blocks_per_plane: blocks_per_die_group,
            pages_per_block: self.program_units_per_block,
            pages_per_program: 1,
            dies_per_superblock: 1,
            parity: false,
            page: Bytes(u64::from(self.program_unit_bytes())),
            unit: Bytes(u64::from(self.unit)),
            slc: None,
        }
    }

    /// Bytes of data in a program unit.
    pub(crate) fn program_unit_bytes(&self) -> u32 {
        self.units * self.unit
    }

    /// Bytes of data in a block.
    pub(crate) fn block_bytes(&self) -> u64 {
        u64::from(self.program_unit_bytes()) * u64::from(self.program_units_per_block)
    }

    /// The page of the block with unit `place` of program unit `program_unit`, and the unit's
    /// offset in the page.
    #[inline]
    pub(crate) fn place(&self, program_unit: u32, place: u32) -> (u32, u32) {
        if !self.in_band {
            return (program_unit, place * self.unit);
        }
        let at = place * self.unit;
        (program_unit * self.pages + 1 + at / self.page_size, at % self.page_size)
    }

    /// The page that has the header of program unit `program_unit`.
    pub(crate) fn header_page(&self, program_unit: u32) -> u32 {
        program_unit * self.pages
    }

    /// Bytes of the header of a full program unit.
    pub(crate) fn header_bytes(&self) -> u32 {
        FIXED + PER_UNIT * self.units
    }
}

/// The entry of one unit in the header of a program unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The logical unit; `None` for padding.
    pub(crate) lpn: Option<u32>,
    pub(crate) version: u64,
}

impl Tag {
    pub(crate) fn unit_tag(self) -> UnitTag {
        self.lpn.map_or(UnitTag::Pad, UnitTag::Data)
    }
}

/// The header of a program unit with `tags` from its first unit on, into `out`.
pub(crate) fn encode_header(sequence: u64, tags: &[Tag], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&(tags.len() as u32).to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    for tag in tags {
        out.extend_from_slice(&tag.lpn.unwrap_or(UnitWrite::PAD).to_le_bytes());
        out.extend_from_slice(&tag.version.to_le_bytes());
    }
    let checksum = checksum(out);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Decodes a header: returns the sequence of the program unit and fills `tags`; `None` if this is
/// no header.
pub(crate) fn decode_header(bytes: &[u8], tags: &mut Vec<Tag>) -> Option<u64> {
    let mut from = bytes;
    let (magic, count, sequence): (u32, u32, u64) = load(&mut from).ok()?;
    if magic != MAGIC {
        return None;
    }
    let len = 16usize.checked_add(PER_UNIT as usize * count as usize)?;
    let stored = bytes.get(len..len + 8)?;
    if stored != checksum(&bytes[..len]).to_le_bytes() {
        return None;
    }
    tags.clear();
    for _ in 0..count {
        let (lpn, version): (u32, u64) = load(&mut from).ok()?;
        tags.push(Tag { lpn: (lpn != UnitWrite::PAD).then_some(lpn), version });
    }
    Some(sequence)
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(pages_per_block: u32, page_size: u32, oob_size: u32) -> ShareGeometry {
        ShareGeometry {
            channels: vec![vec![0]],
            luns: 1,
            ops_luns: 0,
            blocks_per_lun: 8,
            pages_per_block,
            page_size,
            oob_size,
            max_open_blocks: u32::MAX,
        }
    }

    #[test]
    fn headers_go_out_of_band_if_they_fit() {
        let program_unit = ProgramUnitFormat::new(&share(64, 16384, 1024), 4096);
        assert_eq!(
            (
                program_unit.pages,
                program_unit.in_band,
                program_unit.units,
                program_unit.program_units_per_block
            ),
            (1, false, 4, 64)
        );
        assert_eq!((program_unit.place(5, 3), program_unit.header_page(5)), ((5, 3 * 4096), 5));
        // `prism device create` gives pages of 16 KiB 80 bytes, so that these fit.
        assert!(!ProgramUnitFormat::new(&share(64, 16384, 80), 4096).in_band);
        let program_unit = ProgramUnitFormat::new(&share(64, 4096, 0), 4096);
        assert_eq!(
            (
                program_unit.pages,
                program_unit.in_band,
                program_unit.units,
                program_unit.program_units_per_block
            ),
            (16, true, 15, 4)
        );
        assert_eq!((program_unit.place(1, 0), program_unit.header_page(1)), ((17, 0), 16));
        let program_unit = ProgramUnitFormat::new(&share(127, 4096, 0), 4096);
        assert_eq!(
            (program_unit.pages, program_unit.program_units_per_block, program_unit.rest),
            (16, 7, 15)
        );
        // Tags of many small units would not fit into one header page.
        let program_unit = ProgramUnitFormat::new(&share(64, 4096, 16), 512);
        assert!(
            program_unit.header_bytes() <= 4096
                && program_unit.units == (program_unit.pages - 1) * 8
        );
    }

    #[test]
    fn headers_decode_and_damage_is_detected() {
        let tags = [Tag { lpn: Some(7), version: 9 }, Tag { lpn: None, version: 0 }];
        let (mut bytes, mut back) = (Vec::new(), Vec::new());
        encode_header(42, &tags, &mut bytes);
        assert_eq!(bytes.len() as u32, FIXED + 2 * PER_UNIT);
        let mut page = bytes.clone();
        page.resize(100, 0xFF);
        assert_eq!(decode_header(&page, &mut back), Some(42));
        assert_eq!(back, tags);
        for byte in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[byte] ^= 0x10;
            assert_eq!(decode_header(&wrong, &mut back), None, "byte {byte}");
            assert_eq!(decode_header(&bytes[..byte], &mut back), None);
        }
    }
}
