//! The check of a whole file: each page has to be what was programmed, and unused bytes zero.

use std::io;

use crate::buffers::Aligned;
use crate::device::FlashFile;
use crate::engine::is_unreadable;
use crate::error::FlashFileError;
use crate::format::Superblock;
use crate::layout::{ALIGN, Layout, Region, SECOND_SUPERBLOCK, SECTOR};
use prism_flash::Medium;

/// Bytes of pages that are read at once.
const PIECE: usize = 1 << 20;
/// Limit of listed findings of one kind, so that a bad disk does not fill the memory.
const LISTED: usize = 1000;

/// The result of [`FlashFile::check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages that were read.
    pub pages: u64,
    /// Pages that are not what was programmed, or cannot be read, as block and page: the first
    /// thousand.
    pub damaged: Vec<(u32, u32)>,
    /// The number of all of them.
    pub damaged_pages: u64,
    /// Other damage, as sentences: structures stored twice, and unused bytes.
    pub other: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damaged_pages == 0 && self.other.is_empty()
    }

    fn note_unreadable(&mut self, pages: &[u64]) {
        for at in pages {
            let at = at / ALIGN * ALIGN;
            let what = format!("the {ALIGN} bytes from byte {at} on cannot be read");
            if self.other.len() < LISTED && !self.other.contains(&what) {
                self.other.push(what);
            }
        }
    }
}

impl FlashFile {
    /// Reads the whole device. `progress` is called with the pages read and their total. Pages
    /// programmed since the last sync are included, and are not durable afterwards. What the
    /// journal holds was checked by opening.
    ///
    /// # Errors
    /// [`FlashFileError::Io`] if it cannot be read, or programmed pages cannot be written; the
    /// device is read-only then.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport, FlashFileError> {
        let name = self.name.clone();
        let broken = |operation, source| FlashFileError::Io { file: name, operation, source };
        let mut core = self.core();
        if core.refusal.is_none() {
            let written = core.headers().write_back(&self.engine);
            if let Err(error) = written {
                // Reported here, and by every sync from now on.
                let _ = core.refuse("writing", &error);
                return Err(broken("writing", error));
            }
        }
        drop(core);
        self.check_all(progress).map_err(|error| broken("reading", error))
    }

    fn check_all(&self, progress: &mut dyn FnMut(u64, u64)) -> io::Result<CheckReport> {
        let mut report = CheckReport { other: self.damage.clone(), ..CheckReport::default() };
        // Cached headers may be intact where the file is damaged by now.
        self.core().headers().forget();
        self.check_superblocks(&mut report)?;
        self.check_padding(&mut report)?;
        let blocks = self.layout.geometry.blocks();
        let total: u64 = (0..blocks).map(|block| u64::from(self.write_pointer(block))).sum();
        let geometry = self.layout.geometry;
        let page_size = geometry.page_size as usize;
        let at_once = (PIECE / page_size).clamp(1, geometry.pages_per_block as usize);
        let mut piece = Aligned::new(at_once * page_size)?;
        for block in 0..blocks {
            self.check_block(block, piece.as_mut(), &mut report)?;
            progress(report.pages, total);
        }
        Ok(report)
    }

    /// Reads the pages of a block, in pieces of whole pages, and checks each.
    fn check_block(
        &self,
        block: u32,
        piece: &mut [u8],
        report: &mut CheckReport,
    ) -> io::Result<()> {
        let size = self.layout.geometry.page_size as usize;
        let at_once = (piece.len() / size) as u32;
        let record = self.record(block);
        let (pages, epoch) = (u32::from(record.programmed), record.erases);
        for first in (0..pages).step_by(at_once as usize) {
            let end = (first + at_once).min(pages);
            let bytes = &mut piece[..(end - first) as usize * size];
            let page_at = self.layout.page_at(block, first);
            self.engine.read_ahead(Region { start: page_at, len: 2 * bytes.len() as u64 });
            let unreadable = self.read_to_check(page_at, bytes)?;
            for (page, bytes) in (first..end).zip(bytes.chunks(size)) {
                report.pages += 1;
                let is_damaged = unreadable.contains(&(page - first))
                    || match self.check_chunks((block, page, epoch), 0, bytes, &mut []) {
                        Err(error) if is_unreadable(&error) => true,
                        checked => checked?.is_some(),
                    };
                // A block that is erased meanwhile is not damaged.
                if is_damaged && self.record(block).erases == epoch {
                    report.damaged_pages += 1;
                    if report.damaged.len() < LISTED {
                        report.damaged.push((block, page));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads pages that follow each other. Returns which of them the disk cannot read.
    fn read_to_check(&self, at: u64, pages: &mut [u8]) -> io::Result<Vec<u32>> {
        match self.engine.read_pages(at, 0, pages) {
            Err(error) if is_unreadable(&error) => {}
            read => return read.map(|()| Vec::new()),
        }
        let size = self.layout.geometry.page_size as usize;
        let mut unreadable = Vec::new();
        for ((page, at), bytes) in (0..).zip((at..).step_by(size)).zip(pages.chunks_mut(size)) {
            match self.engine.read_pages(at, 0, bytes) {
                Err(error) if is_unreadable(&error) => unreadable.push(page),
                read => read?,
            }
        }
        Ok(unreadable)
    }

    /// A damaged copy was reported when the file was opened; two that differ were not.
    fn check_superblocks(&self, report: &mut CheckReport) -> io::Result<()> {
        let mut copies = [[0; SECTOR]; 2];
        for (copy, at) in copies.iter_mut().zip([0, SECOND_SUPERBLOCK]) {
            report.note_unreadable(&self.engine.read_copies(at, copy)?);
        }
        let [one, two] = copies.map(|copy| Superblock::decode(&copy));
        if one.is_ok() && two.is_ok() && one != two {
            report.other.push("the two superblocks differ".into());
        }
        Ok(())
    }

    /// Bytes that are never written have to be zero.
    fn check_padding(&self, report: &mut CheckReport) -> io::Result<()> {
        let layout = self.layout;
        let sector = SECTOR as u64;
        let mut unused = vec![
            Region { start: sector, len: ALIGN - sector },
            Region { start: SECOND_SUPERBLOCK + sector, len: ALIGN - sector },
        ];
        for records in layout.records {
            let used = u64::from(layout.record_sectors) * sector;
            unused.push(Region { start: records.start + used, len: records.len - used });
        }
        let padding = layout.header_padding();
        if padding > 0 {
            unused.extend((0..layout.geometry.blocks()).map(|block| Region {
                start: layout.header_at(block, 0) + layout.headers_of_block - padding,
                len: padding,
            }));
        }
        let used = u64::from(layout.geometry.blocks()) * layout.headers_of_block;
        unused.push(Region { start: layout.headers.start + used, len: layout.headers.len - used });
        if self.superblock.has_journal() {
            let start = layout.data.end();
            unused.push(Region { start, len: layout.journal.start - start });
            unused.extend(
                (0..2).map(|copy| Region {
                    start: layout.head_at(copy) + sector,
                    len: ALIGN - sector,
                }),
            );
        }
        let mut bytes = Vec::new();
        for region in unused {
            bytes.resize(region.len as usize, 0);
            report.note_unreadable(&self.engine.read_copies(region.start, &mut bytes)?);
            let dirty = bytes.iter().position(|&byte| byte != 0);
            if let Some(at) = dirty.filter(|_| report.other.len() < LISTED) {
                let at = region.start + at as u64;
                report.other.push(format!("byte {at} is unused and not zero"));
            }
        }
        Ok(())
    }
}

/// The length of a file with a device of `geometry`; it is sparse, so only written parts use disk
/// space.
///
/// # Panics
/// If the geometry is out of range.
#[must_use]
pub fn file_len(geometry: prism_flash::DeviceGeometry) -> prism_base::Bytes {
    geometry.check().expect("a valid geometry");
    prism_base::Bytes(Layout::new(geometry).len())
}
