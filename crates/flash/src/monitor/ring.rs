//! The blocks of the monitor's journal: each page is on two of them.
//!
//! A place in the journal's ring is a pair of blocks. One is the *main* block, which has all pages
//! of the place. The other has copies of them, which are read where pages of the main block are
//! damaged, and it becomes the main block if that fails. A device that limits how many blocks may
//! be partly written has no copies: the other block is erased when the main one fails, and takes
//! over.
//!
//! A page in place of a damaged one must not be older, or what was durable would be lost without an
//! error. Both blocks are programmed in step from an erase of both on, so all pages that both have
//! are the same if the last erase of one block was that of the other, too. That is so if both were
//! erased as often, on a medium that counts its erases, or if a page is the same on both, since the
//! journal writes no page a second time: one is the copy of the other. Otherwise the other block is
//! not read: it can be that of a device from before there were copies, or one that cannot be erased
//! any more.
//!
//! Which block is the main one is not recorded. If their pages are the same, it is the block with
//! more of them; otherwise the one with later pages in the order of the journal.

use crate::journal::{Pages, order_of};
use crate::medium::{Medium, MediumError, PageState};

/// Erases with which a block may catch up on the other of its pair, each time pages are written to
/// both. It was erased less often if power failed between the two, or by a version that erased one
/// alone.
const CATCH_UP: u32 = 8;

#[derive(Debug)]
struct Pair {
    blocks: [u32; 2],
    main: usize,
    /// Of each block, whether a program or an erase of it has failed since the device was opened.
    failed: [bool; 2],
    /// Whether all pages that both blocks had when the device was opened are the same.
    has_copies: bool,
    /// Why it is not known which block is the main one.
    unreadable: Option<MediumError>,
    /// Whether the other block has all pages since the place was erased last. It has not if its
    /// erase failed or was interrupted.
    is_copied: bool,
}

impl Pair {
    fn find(medium: &dyn Medium, blocks: [u32; 2]) -> Self {
        let (failed, is_copied) = ([false; 2], false);
        let has_copies = are_same(medium, blocks);
        let (main, unreadable) = match has_copies {
            true => {
                let [first, other] = blocks.map(|block| medium.write_pointer(block));
                (usize::from(other > first), None)
            }
            false => match later(medium, blocks) {
                Ok(main) => (main, None),
                Err(error) => (0, Some(error)),
            },
        };
        Self { blocks, main, failed, has_copies, unreadable, is_copied }
    }

    fn main(&self) -> u32 {
        self.blocks[self.main]
    }

    fn other(&self) -> u32 {
        self.blocks[1 - self.main]
    }
}

/// Reads a page; returns whether it is a whole page of a journal.
fn is_whole(medium: &dyn Medium, block: u32, page: u32, into: &mut [u8]) -> bool {
    let state = medium.read(block, page, 0, into, &mut []);
    state == Ok(PageState::Written) && order_of(into).is_some()
}

/// Whether all pages that both blocks have are the same: the first that is whole on both shows it,
/// or, if there is none, the counts of erases do.
fn are_same(medium: &dyn Medium, blocks: [u32; 2]) -> bool {
    let [first, other] = blocks;
    let page_size = medium.geometry().page_size as usize;
    let (mut page_of_first, mut page_of_other) = (vec![0; page_size], vec![0; page_size]);
    let pages = medium.write_pointer(first).min(medium.write_pointer(other));
    for page in 0..pages {
        if is_whole(medium, first, page, &mut page_of_first)
            && is_whole(medium, other, page, &mut page_of_other)
        {
            return page_of_first == page_of_other;
        }
    }
    let erases = medium.erase_count(first);
    pages > 0 && erases.is_some() && erases == medium.erase_count(other)
}

/// The block with the later pages, or, if the last is the same, with more of them.
///
/// # Errors
/// If one block has no page that can be read, so that its pages may be later.
fn later(medium: &dyn Medium, blocks: [u32; 2]) -> Result<usize, MediumError> {
    let mut bytes = vec![0; medium.geometry().page_size as usize];
    // The last whole page, and why there may have been one if there is none.
    let mut newest = |block: u32| {
        let mut unknown = None;
        for page in (0..medium.write_pointer(block)).rev() {
            match medium.read(block, page, 0, &mut bytes, &mut []) {
                Ok(PageState::Written) => match order_of(&bytes) {
                    Some(order) => return (Some(order), None),
                    None => unknown = Some(MediumError::Damaged { block, page }),
                },
                Ok(PageState::Erased | PageState::Torn) => {}
                Err(error) => unknown = Some(error),
            }
        }
        (None, unknown)
    };
    match blocks.map(&mut newest) {
        [(None, Some(error)), (Some(_), _)] | [(Some(_), _), (None, Some(error))] => Err(error),
        // Neither has one: what one of them has is reported when it is read.
        [(None, Some(_)), _] => Ok(0),
        [_, (None, Some(_))] => Ok(1),
        [first, other] => {
            let pages = blocks.map(|block| medium.write_pointer(block));
            Ok(usize::from((other.0, pages[1]) > (first.0, pages[0])))
        }
    }
}

/// The blocks of the journal.
#[derive(Debug, Default)]
pub(crate) struct RingBlocks {
    pairs: Vec<Pair>,
}

impl RingBlocks {
    /// The blocks of a device, in pairs of a first and a second one.
    pub(super) fn find(medium: &dyn Medium, first: Vec<u32>, second: Vec<u32>) -> Self {
        let pairs = first.into_iter().zip(second);
        Self { pairs: pairs.map(|(first, second)| Pair::find(medium, [first, second])).collect() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.pairs.iter().flat_map(|pair| pair.blocks)
    }
}

/// The journal's blocks on their medium.
pub(super) struct Ring<'a> {
    medium: &'a dyn Medium,
    blocks: &'a mut RingBlocks,
    /// Pages that were programmed.
    pub programs: u64,
    /// Blocks that were erased.
    pub erases: u64,
}

impl<'a> Ring<'a> {
    pub(super) fn new(medium: &'a dyn Medium, blocks: &'a mut RingBlocks) -> Self {
        Self { medium, blocks, programs: 0, erases: 0 }
    }

    /// Whether pages are written twice.
    fn makes_copies(&self) -> bool {
        self.medium.geometry().max_open_blocks.is_none()
    }

    fn pair(&mut self, place: u32) -> &mut Pair {
        &mut self.blocks.pairs[place as usize]
    }

    fn program_block(&mut self, block: u32, page: u32, bytes: &[u8]) -> Result<(), MediumError> {
        self.programs += 1;
        self.medium.program(block, page, bytes, &[])
    }

    fn erase_block(&mut self, block: u32) -> Result<(), MediumError> {
        self.erases += 1;
        self.medium.erase(block)
    }

    /// Makes the other block the main one, with a copy of the first `pages` pages.
    ///
    /// # Errors
    /// `error`, the failure of the main block, if the other has failed, too, or a page cannot be
    /// read; or the error of the other block.
    fn take_over(&mut self, place: u32, pages: u32, error: MediumError) -> Result<(), MediumError> {
        let pair = self.pair(place);
        pair.failed[pair.main] = true;
        if pair.failed[1 - pair.main] {
            return Err(error);
        }
        let (from, to, is_copied) = (pair.main(), pair.other(), pair.is_copied);
        // It is not written any more, and must not count as partly written while the other is.
        if self.medium.is_open(from) {
            self.medium.finish(from)?;
        }
        if !is_copied {
            self.erase_block(to)?;
            let mut bytes = vec![0; self.page_size()];
            for page in 0..pages {
                if !is_whole(self.medium, from, page, &mut bytes) {
                    return Err(error);
                }
                self.program_block(to, page, &bytes)?;
            }
        }
        let pair = self.pair(place);
        (pair.main, pair.is_copied) = (1 - pair.main, false);
        Ok(())
    }

    /// Erases one block of a place, which the other replaces if it is the main one and fails.
    fn erase_one(&mut self, place: u32, index: usize) -> Result<(), MediumError> {
        let makes_copies = self.makes_copies();
        let pair = self.pair(place);
        let is_main = index == pair.main;
        if !is_main && (!makes_copies || pair.failed[index]) {
            return Ok(());
        }
        let block = pair.blocks[index];
        match self.erase_block(block) {
            Err(error @ MediumError::EraseFailed { .. }) if is_main => {
                self.take_over(place, 0, error)
            }
            done if is_main => done,
            done => self.end_copies(place, done),
        }
    }

    /// Copies the pages of a place that is erased, if its other block is erased, too. Equal counts
    /// of erases then show that they are copies.
    fn begin_copies(&mut self, place: u32) -> Result<(), MediumError> {
        let (medium, makes_copies) = (self.medium, self.makes_copies());
        let pair = self.pair(place);
        let is_erased = medium.read(pair.other(), 0, 0, &mut [], &mut []) == Ok(PageState::Erased);
        pair.is_copied = false;
        if !makes_copies || !is_erased {
            return Ok(());
        }
        for _ in 0..CATCH_UP {
            let pair = self.pair(place);
            let [first, second] = pair.blocks.map(|block| medium.erase_count(block));
            if first == second || pair.failed != [false; 2] {
                break;
            }
            self.erase_one(place, usize::from(second < first))?;
        }
        let pair = self.pair(place);
        pair.is_copied = pair.failed == [false; 2];
        Ok(())
    }

    /// Stops copying to the other block until the place is erased, if that block has failed.
    fn end_copies(&mut self, place: u32, done: Result<(), MediumError>) -> Result<(), MediumError> {
        match done {
            Err(MediumError::ProgramFailed { .. } | MediumError::EraseFailed { .. }) => {
                let pair = self.pair(place);
                (pair.failed[1 - pair.main], pair.is_copied) = (true, false);
                Ok(())
            }
            done => done,
        }
    }
}

impl Pages for Ring<'_> {
    type Error = MediumError;

    fn blocks(&self) -> u32 {
        self.blocks.pairs.len() as u32
    }

    fn pages_per_block(&self) -> u32 {
        self.medium.geometry().pages_per_block
    }

    fn page_size(&self) -> usize {
        self.medium.geometry().page_size as usize
    }

    fn read(&mut self, place: u32, page: u32, into: &mut [u8]) -> Result<PageState, MediumError> {
        let medium = self.medium;
        let pair = self.pair(place);
        if let Some(error) = &pair.unreadable {
            return Err(error.clone());
        }
        let (main, other) = (pair.main(), pair.other());
        let state = medium.read(main, page, 0, into, &mut []);
        let is_known = match state {
            Ok(PageState::Written) => order_of(into).is_some(),
            Ok(PageState::Erased) => true,
            Ok(PageState::Torn) | Err(_) => false,
        };
        if is_known || !pair.has_copies {
            return state;
        }
        match medium.read(other, page, 0, into, &mut []) {
            Ok(PageState::Written) if order_of(into).is_some() => Ok(PageState::Written),
            // It may have been whole when the device was opened before.
            Err(error) => Err(error),
            Ok(_) => medium.read(main, page, 0, into, &mut []),
        }
    }

    fn program(&mut self, place: u32, page: u32, bytes: &[u8]) -> Result<(), MediumError> {
        if page == 0 {
            self.begin_copies(place)?;
        }
        let pair = self.pair(place);
        let (main, copy) = (pair.main(), pair.other());
        match self.program_block(main, page, bytes) {
            Err(error @ MediumError::ProgramFailed { .. }) => {
                self.take_over(place, page, error)?;
                return self.program_block(copy, page, bytes);
            }
            done => done?,
        }
        if !self.pair(place).is_copied {
            return Ok(());
        }
        let copied = self.program_block(copy, page, bytes);
        self.end_copies(place, copied)
    }

    fn erase(&mut self, place: u32) -> Result<(), MediumError> {
        self.pair(place).is_copied = false;
        self.erase_one(place, 0)?;
        self.erase_one(place, 1)
    }

    fn sync(&mut self) -> Result<(), MediumError> {
        self.medium.sync()
    }
}
