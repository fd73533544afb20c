//! The blocks of the monitor's journal: each page is on two of them.
//!
//! A place of the journal's ring is a pair of blocks. One is the *main* block, which has all pages
//! of the place. The other has copies of them, which are read where pages of the main block are
//! damaged, and it becomes the main block if that fails. A device that limits how many blocks may
//! be partly written has no copies, and the other block is erased until the main one fails.
//!
//! Which block is the main one is not recorded: it is the one whose first page was written later,
//! or, if both have the same first page, the one with more pages. A pair whose other block is
//! erased or older is no error: it is that of a device made before there were copies, or a block
//! that cannot be programmed any more.

use crate::journal::{Pages, order_of};
use crate::medium::{Medium, MediumError, PageState};

/// The place of a page in the order in which pages were written.
type Order = (u64, u64);

#[derive(Debug)]
struct Pair {
    blocks: [u32; 2],
    main: usize,
    /// Of each block, whether a program or an erase of it has failed since the device was opened.
    failed: [bool; 2],
    /// Whether the other block has copies of the pages that the main block had when the device was
    /// opened; `None` if that was not looked at.
    has_copies: Option<bool>,
    /// Whether the other block has got all pages since the place was erased last. It has not if its
    /// erase failed or was interrupted.
    is_copied: bool,
}

impl Pair {
    fn main(&self) -> u32 {
        self.blocks[self.main]
    }

    fn other(&self) -> u32 {
        self.blocks[1 - self.main]
    }
}

/// The blocks of the journal.
#[derive(Debug, Default)]
pub(crate) struct RingBlocks {
    pairs: Vec<Pair>,
}

impl RingBlocks {
    /// The blocks of a device, in pairs of a first and an alternate one.
    pub(super) fn find(medium: &dyn Medium, first: Vec<u32>, alternate: Vec<u32>) -> Self {
        let mut page = vec![0; medium.geometry().page_size as usize];
        let pairs = first.into_iter().zip(alternate).map(|(first, alternate)| {
            let blocks = [first, alternate];
            let (failed, has_copies, is_copied) = ([false; 2], None, false);
            let mut pair = Pair { blocks, main: 0, failed, has_copies, is_copied };
            pair.main = match pair.blocks.map(|block| age(medium, block, &mut page)) {
                [Some(first), Some(alternate)] => usize::from(alternate > first),
                [None, None] => 0,
                // What cannot be read may be newer than what can be.
                [first, _] => {
                    let unreadable = usize::from(first.is_some());
                    pair.main = unreadable;
                    if pair.has_copies(medium) { 1 - unreadable } else { unreadable }
                }
            };
            pair
        });
        Self { pairs: pairs.collect() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.pairs.iter().flat_map(|pair| pair.blocks)
    }
}

/// How old a block is: the order of its first page, if it has one, and the number of its pages.
/// `None` if that page cannot be read.
fn age(medium: &dyn Medium, block: u32, page: &mut [u8]) -> Option<(Option<Order>, u32)> {
    let order = match medium.read(block, 0, 0, page, &mut []) {
        Ok(PageState::Written) => Some(order_of(page)?),
        Ok(PageState::Erased | PageState::Torn) => None,
        Err(_) => return None,
    };
    Some((order, medium.write_pointer(block)))
}

/// Reads a page; returns its order if it is a whole page of a journal.
fn whole(medium: &dyn Medium, block: u32, page: u32, into: &mut [u8]) -> Option<Order> {
    let state = medium.read(block, page, 0, into, &mut []);
    if state == Ok(PageState::Written) { order_of(into) } else { None }
}

impl Pair {
    /// Whether the other block has copies of the pages of the main one: no page that is whole on
    /// both is another one there, and if there is none, both have as many pages.
    fn has_copies(&mut self, medium: &dyn Medium) -> bool {
        if let Some(known) = self.has_copies {
            return known;
        }
        let (main, other) = (self.main(), self.other());
        let counts = [main, other].map(|block| medium.write_pointer(block));
        let mut bytes = vec![0; medium.geometry().page_size as usize];
        let mut is_same = counts[0] == counts[1];
        for page in 0..counts[0].min(counts[1]) {
            let orders = [main, other].map(|block| whole(medium, block, page, &mut bytes));
            if let [Some(main), Some(other)] = orders {
                is_same = main == other;
                if !is_same {
                    break;
                }
            }
        }
        self.has_copies = Some(is_same);
        is_same
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

    /// Makes the other block the main one, with a copy of the first `pages` pages, if it can.
    ///
    /// # Errors
    /// `error`, the failure of the main block, if the other has failed, too, or a page cannot be
    /// read; those of the other block.
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
                if whole(self.medium, from, page, &mut bytes).is_none() {
                    return Err(error);
                }
                self.program_block(to, page, &bytes)?;
            }
        }
        let pair = self.pair(place);
        (pair.main, pair.is_copied) = (1 - pair.main, false);
        Ok(())
    }

    /// Ends the copies of a place until it is erased, if its other block has failed.
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
        let (main, other) = (pair.main(), pair.other());
        let state = medium.read(main, page, 0, into, &mut []);
        let is_whole = state == Ok(PageState::Written) && order_of(into).is_some();
        if is_whole || state == Ok(PageState::Erased) || !pair.has_copies(medium) {
            return state;
        }
        if whole(medium, other, page, into).is_some() {
            return Ok(PageState::Written);
        }
        medium.read(main, page, 0, into, &mut [])
    }

    fn program(&mut self, place: u32, page: u32, bytes: &[u8]) -> Result<(), MediumError> {
        let (medium, makes_copies) = (self.medium, self.makes_copies());
        let pair = self.pair(place);
        let (main, copy) = (pair.main(), pair.other());
        if page == 0 {
            let may_copy = makes_copies && !pair.failed[1 - pair.main];
            pair.is_copied =
                may_copy && medium.read(copy, 0, 0, &mut [], &mut []) == Ok(PageState::Erased);
        }
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
        let makes_copies = self.makes_copies();
        let pair = self.pair(place);
        pair.is_copied = false;
        let (main, copy) = (pair.main(), pair.other());
        let may_copy = makes_copies && !pair.failed[1 - pair.main];
        match self.erase_block(main) {
            Err(error @ MediumError::EraseFailed { .. }) => return self.take_over(place, 0, error),
            done => done?,
        }
        if !may_copy {
            return Ok(());
        }
        let erased = self.erase_block(copy);
        self.end_copies(place, erased)
    }

    fn sync(&mut self) -> Result<(), MediumError> {
        self.medium.sync()
    }
}
