//! The layout of the file, a function of the geometry alone.
//!
//! In this order: two superblocks, the block records, the same records again, the page headers of
//! all pages, the data, the journal. The journal is last, so that files made before version 3,
//! which have none, are converted in place. docs/spec/flash-file.md is the whole format.

use prism_flash::DeviceGeometry;

use crate::journal;

/// The unit that a disk writes atomically, in bytes.
pub(crate) const SECTOR: usize = 512;
/// Alignment of regions in bytes, for direct I/O and page caches.
pub(crate) const ALIGN: u64 = 4096;
/// Offset of the second superblock.
pub(crate) const SECOND_SUPERBLOCK: u64 = ALIGN;
/// Limit of chunks of a page, each with its hash, so that page headers stay small.
const CHUNKS_MAX: u32 = 16;

/// A region of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Region {
    pub(crate) fn end(self) -> u64 {
        self.start + self.len
    }
}

/// The parts of a file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) geometry: DeviceGeometry,
    /// Sectors of each copy of the block records.
    pub(crate) record_sectors: u32,
    pub(crate) records: [Region; 2],
    /// Bytes of a chunk, the part of a page with a hash of its own.
    pub(crate) chunk: u32,
    pub(crate) header: u32,
    /// Page headers of a block begin at a sector of their own.
    pub(crate) headers_of_block: u64,
    pub(crate) headers: Region,
    pub(crate) data: Region,
    /// The two copies of the journal's head, then the log.
    pub(crate) journal: Region,
}

impl Layout {
    /// Block records in a sector.
    pub(crate) const RECORDS: u32 = ((SECTOR - Self::RECORD_HEADER) / Self::RECORD) as u32;
    pub(crate) const RECORD: usize = 8;
    pub(crate) const RECORD_HEADER: usize = 24;
    /// Record sectors in a page of the file.
    pub(crate) const SECTORS: u32 = ALIGN as u32 / SECTOR as u32;
    pub(crate) const HEADER_FIXED: u32 = 16;

    pub(crate) fn new(geometry: DeviceGeometry) -> Self {
        let record_sectors = geometry.blocks().div_ceil(Self::RECORDS);
        let records_len = (u64::from(record_sectors) * SECTOR as u64).next_multiple_of(ALIGN);
        let first = Region { start: SECOND_SUPERBLOCK + ALIGN, len: records_len };
        let second = Region { start: first.end(), len: records_len };
        let page = geometry.page_size;
        let chunk = page.div_ceil(CHUNKS_MAX).next_multiple_of(ALIGN as u32).min(page);
        let needed = Self::HEADER_FIXED + 8 * page.div_ceil(chunk) + geometry.oob_size;
        // A page header is within one sector, or begins at one.
        let sector = SECTOR as u32;
        let header = if needed > sector {
            needed.next_multiple_of(sector)
        } else {
            needed.next_power_of_two()
        };
        let pages = u64::from(geometry.pages_per_block);
        let headers_of_block = (pages * u64::from(header)).next_multiple_of(SECTOR as u64);
        let headers_len = u64::from(geometry.blocks()) * headers_of_block;
        let headers = Region { start: second.end(), len: headers_len.next_multiple_of(ALIGN) };
        let data = Region { start: headers.end(), len: geometry.raw().0 };
        let log_len = journal::log_len(geometry.blocks());
        let journal =
            Region { start: data.end().next_multiple_of(ALIGN), len: 2 * ALIGN + log_len };
        Self {
            geometry,
            record_sectors,
            records: [first, second],
            chunk,
            header,
            headers_of_block,
            headers,
            data,
            journal,
        }
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.journal.end()
    }

    /// The offset of a copy of the journal's head.
    pub(crate) fn head_at(&self, copy: u64) -> u64 {
        self.journal.start + copy * ALIGN
    }

    /// The part of the journal that holds entries.
    pub(crate) fn log(&self) -> Region {
        Region { start: self.head_at(2), len: self.journal.len - 2 * ALIGN }
    }

    /// The block of the page with this number, and the page in it.
    pub(crate) fn place_of(&self, number: u32) -> (u32, u32) {
        let pages = self.geometry.pages_per_block;
        (number / pages, number % pages)
    }

    /// The record sector with a block's record.
    pub(crate) fn record_sector(block: u32) -> u32 {
        block / Self::RECORDS
    }

    pub(crate) fn record_sector_at(&self, copy: usize, sector: u32) -> u64 {
        self.records[copy].start + u64::from(sector) * SECTOR as u64
    }

    pub(crate) fn header_at(&self, block: u32, page: u32) -> u64 {
        let in_block = u64::from(page) * u64::from(self.header);
        self.headers.start + u64::from(block) * self.headers_of_block + in_block
    }

    /// A page's number in the device.
    pub(crate) fn page_number(&self, block: u32, page: u32) -> u64 {
        u64::from(block) * u64::from(self.geometry.pages_per_block) + u64::from(page)
    }

    pub(crate) fn page_at(&self, block: u32, page: u32) -> u64 {
        self.data.start + self.page_number(block, page) * u64::from(self.geometry.page_size)
    }

    /// Whether pages can be read and written with direct I/O.
    pub(crate) fn fits_direct_io(&self) -> bool {
        u64::from(self.geometry.page_size).is_multiple_of(ALIGN)
    }

    /// The bytes of each block's page headers that are never written.
    pub(crate) fn header_padding(&self) -> u64 {
        let used = u64::from(self.geometry.pages_per_block) * u64::from(self.header);
        self.headers_of_block - used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(page_size: u32, oob_size: u32) -> Layout {
        Layout::new(DeviceGeometry {
            channels: 2,
            luns_per_channel: 2,
            blocks_per_lun: 16,
            pages_per_block: 5,
            page_size,
            oob_size,
            max_open_blocks: None,
        })
    }

    /// The example of docs/spec/flash-file.md.
    #[test]
    fn the_example_of_the_format() {
        let geometry =
            DeviceGeometry { blocks_per_lun: 64, pages_per_block: 16, ..layout(4096, 64).geometry };
        let layout = Layout::new(geometry);
        assert_eq!((layout.record_sectors, layout.header, layout.headers_of_block), (5, 128, 2048));
        assert_eq!(layout.headers, Region { start: 16_384, len: 524_288 });
        assert_eq!(layout.data.start, 540_672);
        assert_eq!(layout.journal, Region { start: 17_317_888, len: 1_064_960 });
        assert_eq!((layout.log().start, layout.len()), (17_326_080, 18_382_848));
    }

    /// 64 blocks take two sectors of records; of each page size, chunk and page header by hand.
    #[test]
    fn regions_follow_each_other() {
        for (page, oob, chunk, header) in [
            (512, 0, 512, 32),
            (4096, 0, 4096, 32),
            (4096, 64, 4096, 128),
            (16_384, 0, 4096, 64),
            (16_384, 512, 4096, 1024),
            (18_432, 0, 4096, 64),
            (1 << 20, 0, 65_536, 256),
        ] {
            let layout = layout(page, oob);
            assert_eq!((layout.chunk, layout.header), (chunk, header), "page {page}, oob {oob}");
            assert_eq!(layout.record_sectors, 2);
            assert_eq!(layout.records[0], Region { start: 8192, len: 4096 });
            assert_eq!(layout.records[1], Region { start: 12_288, len: 4096 });
            let per_block = u64::from(5 * header).next_multiple_of(512);
            assert_eq!(layout.headers.start, 16_384);
            assert_eq!(layout.header_at(3, 2), 16_384 + 3 * per_block + 2 * u64::from(header));
            assert!(layout.data.start >= 16_384 + 64 * per_block);
            assert!(layout.data.start.is_multiple_of(4096));
            assert_eq!(layout.page_at(1, 1), layout.data.start + 6 * u64::from(page));
            assert_eq!(layout.journal.start, layout.page_at(64, 0).next_multiple_of(4096));
            assert_eq!(layout.place_of(layout.page_number(7, 3) as u32), (7, 3));
        }
    }
}
