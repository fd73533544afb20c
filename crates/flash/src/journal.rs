//! A log of records over a few blocks, for tables that have to survive power loss.
//!
//! The journal has no tables of its own: its user appends changes, and on request returns the whole
//! content of its tables (a *snapshot*). Nothing is changed in place and out-of-band bytes are not
//! used, so a block may be a zone of a zoned device.
//!
//! # Layout on flash
//!
//! A *checkpoint* is a snapshot on one page or more; a checkpoint and the pages of records after it
//! are an *epoch*. Every page has the number of its epoch, its index in the epoch, and a hash. A
//! replay reads the newest epoch whose checkpoint is complete, up to the first missing index. Epoch
//! numbers increase and are never reused, so pages that a power failure left of another epoch are
//! never taken for a part of this one, in whatever order a volatile cache lost pages.
//!
//! # What is durable when
//!
//! [`Journal::sync`] returns when all appended records are durable. It programs pages of records
//! into the block that is being written and continues in the next erased one, so that a session
//! leaves at most one block partly written. If the ring runs short of blocks it writes a checkpoint
//! instead, at the same position, with a sync before and after it; only then are the blocks of the
//! previous epoch erased.
//!
//! The journal never programs a block that an earlier session or a failed operation left partly
//! written: the next [`Journal::sync`] erases all blocks without a part of the replayed epoch and
//! writes a checkpoint from the beginning of an erased block on. The old epoch stays until that is
//! complete, so two blocks can be partly written at once.
//!
//! # Why it never runs out of blocks
//!
//! Of n blocks, a checkpoint may fill m = (n - 1) / 2, rounded down ([`JournalError::Full`]
//! otherwise), and an epoch never occupies more than n - m: if records would need more blocks, a
//! checkpoint is written instead. So m blocks are always free or obsolete, which is room for a
//! checkpoint. If a power failure interrupts it, its pages are obsolete and there is room again,
//! however often. A checkpoint occupies m blocks, or m + 1 if it starts in the middle of one, which
//! is at most n - m; so the invariant holds for the new epoch too. Even the largest checkpoint
//! leaves at least one page for records. A ring works well if its snapshots take a small part of
//! it.
//!
//! # Damage
//!
//! The replay ignores a page of which a byte has changed: records from it on are not returned, as
//! if they had never been synced, because the journal cannot distinguish them from records that a
//! volatile cache lost. A checkpoint is different. Any page of records after it and any page of a
//! later checkpoint proves that it was complete, so if it is damaged, opening fails
//! ([`JournalError::Damaged`]) instead of returning an older one. Only a damaged checkpoint without
//! such a page cannot be distinguished from an interrupted one. A page that no journal wrote is
//! [`JournalError::Foreign`], and opening changes nothing. Replacing a block that cannot be
//! programmed or erased any more is up to the [`Pages`].

mod page;
mod pages;
mod replay;

use std::mem;

use page::{HEADER, Header, Kind, RECORD_HEADER};
pub use pages::Pages;

/// What can go wrong with a journal; `E` is the error of its [`Pages`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError<E> {
    /// The flash failed. The journal stays usable: the next sync begins a new epoch.
    #[error("flash under the journal: {0}")]
    Pages(E),
    /// The ring cannot hold a journal.
    #[error(
        "{blocks} blocks of {pages_per_block} pages of {page_size} bytes hold no journal; \
         give it at least 3 blocks, 1 page and {} bytes", HEADER + 1
    )]
    Unsuitable {
        /// Blocks of the ring.
        blocks: u32,
        /// Pages of a block.
        pages_per_block: u32,
        /// Bytes of a page.
        page_size: usize,
    },
    /// A page holds data that no journal wrote.
    #[error(
        "block {block}, page {page} holds something that is not a journal; \
         erase all blocks of the ring if it is not needed"
    )]
    Foreign {
        /// Block in the ring.
        block: u32,
        /// Page in the block.
        page: u32,
    },
    /// A checkpoint that was durable cannot be read any more.
    #[error(
        "the journal's checkpoint {epoch} is damaged, and with it what it held; \
         erase all blocks of the ring to begin with an empty journal"
    )]
    Damaged {
        /// The number of the checkpoint.
        epoch: u64,
    },
    /// The snapshot is larger than a checkpoint may be. Nothing has been written.
    #[error(
        "a snapshot of {needed} pages does not fit into a checkpoint of at most {most}; \
         give the journal more blocks or keep less in it"
    )]
    Full {
        /// Pages that the snapshot takes.
        needed: u64,
        /// Pages that a checkpoint may take.
        most: u64,
    },
}

/// The position of a page in the order in which a journal wrote its pages; later pages have higher
/// ones. `None` for a damaged page or one that no journal wrote.
#[must_use]
pub fn order_of(page: &[u8]) -> Option<(u64, u64)> {
    match page::decode(page) {
        page::Content::Whole(header, _) => Some((header.epoch, header.index)),
        page::Content::Damaged | page::Content::Foreign => None,
    }
}

/// The result of a call of the journal on pages `P`.
pub type JournalResult<T, P> = Result<T, JournalError<<P as Pages>::Error>>;

/// A record that no checkpoint could hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {length} bytes is too long for the journal, which takes at most {most}")]
pub struct RecordTooLong {
    /// Bytes of the record.
    pub length: usize,
    /// Bytes that a record may have.
    pub most: usize,
}

/// The geometry of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ring {
    blocks: u32,
    pages_per_block: u32,
    page_size: usize,
}

impl Ring {
    fn of<P: Pages>(pages: &P) -> JournalResult<Self, P> {
        let (blocks, pages_per_block) = (pages.blocks(), pages.pages_per_block());
        let page_size = pages.page_size();
        if blocks < 3 || pages_per_block < 1 || page_size <= HEADER {
            return Err(JournalError::Unsuitable { blocks, pages_per_block, page_size });
        }
        Ok(Self { blocks, pages_per_block, page_size })
    }

    /// Bytes of records that fit on a page.
    fn room(self) -> usize {
        self.page_size - HEADER
    }

    /// Pages that a stream of records takes; an empty checkpoint takes one too.
    fn pages_for(self, stream: &[u8]) -> u64 {
        stream.len().div_ceil(self.room()).max(1) as u64
    }

    /// Blocks that a checkpoint may fill.
    fn checkpoint_blocks(self) -> u32 {
        (self.blocks - 1) / 2
    }

    /// Pages that a checkpoint may take.
    fn checkpoint_pages(self) -> u64 {
        u64::from(self.checkpoint_blocks()) * u64::from(self.pages_per_block)
    }

    /// All blocks, once around, `cursor` last.
    fn after(self, cursor: u32) -> impl Iterator<Item = u32> {
        (cursor + 1..self.blocks).chain(0..=cursor)
    }

    /// Blocks that an epoch may occupy.
    fn epoch_blocks(self) -> u32 {
        self.blocks - self.checkpoint_blocks()
    }
}

/// The position of the next page.
#[derive(Clone, Copy, Debug)]
struct Position {
    block: u32,
    page: u32,
    /// Its index in the epoch.
    index: u64,
}

/// A log of records over the blocks of a [`Pages`], which is passed to each call and must always be
/// the same.
#[derive(Debug)]
pub struct Journal {
    ring: Ring,
    /// What was appended and is not yet durable, as a stream of records.
    pending: Vec<u8>,
    /// The epoch that a replay would find, 0 if there is none.
    epoch: u64,
    /// The highest number that an epoch ever had.
    newest: u64,
    /// The blocks of `epoch`.
    chain: Vec<u32>,
    /// Of each block, whether it is erased and may be written.
    erased: Vec<bool>,
    /// The block taken last; the search for the next one starts after it.
    cursor: u32,
    /// Where the epoch continues. `None` after opening and after a failed operation: a new epoch
    /// begins in an erased block.
    at: Option<Position>,
    buffer: Vec<u8>,
}

impl Journal {
    /// Opens the journal on a ring and returns its records: those of the newest complete
    /// checkpoint, then those after it. A ring without a page written is an empty journal.
    ///
    /// Writes nothing. It syncs the ring first, so that the returned records are durable even if a
    /// process ended, without a power failure, before its sync. Reads every page of the ring.
    ///
    /// # Errors
    /// [`JournalError::Unsuitable`], [`JournalError::Foreign`], [`JournalError::Damaged`],
    /// and [`JournalError::Pages`] if the flash fails.
    pub fn open<P: Pages>(pages: &mut P) -> JournalResult<(Self, Vec<Vec<u8>>), P> {
        let ring = Ring::of(pages)?;
        pages.sync().map_err(JournalError::Pages)?;
        let found = replay::replay(pages, ring)?;
        let journal = Self {
            ring,
            pending: Vec::new(),
            epoch: found.epoch,
            newest: found.newest,
            chain: found.chain,
            erased: found.erased,
            cursor: found.cursor,
            at: None,
            buffer: vec![0; ring.page_size],
        };
        Ok((journal, found.records))
    }

    /// The longest record that the journal takes, in bytes: one that fills a checkpoint.
    #[must_use]
    pub fn record_most(&self) -> usize {
        let most = self.ring.checkpoint_pages().saturating_mul(self.ring.room() as u64);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        most.saturating_sub(RECORD_HEADER).min(u32::MAX as usize)
    }

    /// Adds a record in memory; [`Journal::sync`] makes it durable. Records may span pages.
    ///
    /// # Errors
    /// [`RecordTooLong`] if it has more than [`Journal::record_most`] bytes.
    pub fn append(&mut self, record: &[u8]) -> Result<(), RecordTooLong> {
        let most = self.record_most();
        if record.len() > most {
            return Err(RecordTooLong { length: record.len(), most });
        }
        page::push_record(&mut self.pending, record);
        Ok(())
    }

    /// Makes everything that was appended durable. Does nothing if nothing was.
    ///
    /// `snapshot` is called if a checkpoint is due. It returns records equivalent to those that a
    /// replay would return followed by those appended since. Data outside of the journal that
    /// records refer to has to be durable before this call if it must not be missing after a power
    /// failure.
    ///
    /// # Errors
    /// [`JournalError::Full`] if the snapshot is too large, and [`JournalError::Pages`] if the
    /// flash fails. The appended records then stay pending for the next sync; after a failure none,
    /// all or the first of them may be durable.
    ///
    /// # Panics
    /// If the geometry of `pages` is not that of the ring that was opened, or a record of the
    /// snapshot has 4 GiB or more.
    pub fn sync<P: Pages>(
        &mut self,
        pages: &mut P,
        snapshot: impl FnOnce() -> Vec<Vec<u8>>,
    ) -> JournalResult<(), P> {
        let same = Ring::of(pages).is_ok_and(|ring| ring == self.ring);
        assert!(same, "a journal stays on the ring that it was opened on");
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = mem::take(&mut self.pending);
        let room = self.at.filter(|&at| self.has_room(at, &pending));
        let result = match room {
            Some(at) => self.log(pages, at, &pending),
            None => self.checkpoint(pages, &snapshot()),
        };
        if result.is_err() {
            self.pending = pending;
        }
        result
    }

    /// Whether these records fit into the epoch.
    fn has_room(&self, at: Position, stream: &[u8]) -> bool {
        let here = u64::from(self.ring.pages_per_block - at.page);
        let beyond = self.ring.pages_for(stream).saturating_sub(here);
        let blocks = beyond.div_ceil(u64::from(self.ring.pages_per_block));
        self.chain.len() as u64 + blocks <= u64::from(self.ring.epoch_blocks())
    }

    /// Writes records to the current epoch, from `at` on.
    fn log<P: Pages>(
        &mut self,
        pages: &mut P,
        at: Position,
        stream: &[u8],
    ) -> JournalResult<(), P> {
        self.at = None;
        let mut chain = mem::take(&mut self.chain);
        // Blocks taken before a failure stay in the chain: their pages may be replayed.
        let written = self.program(pages, self.epoch, Kind::Records, at, stream, &mut chain);
        self.chain = chain;
        let at = written?;
        pages.sync().map_err(JournalError::Pages)?;
        self.at = Some(at);
        Ok(())
    }

    /// Begins a new epoch and drops the old one.
    fn checkpoint<P: Pages>(
        &mut self,
        pages: &mut P,
        snapshot: &[Vec<u8>],
    ) -> JournalResult<(), P> {
        let mut stream = Vec::new();
        snapshot.iter().for_each(|record| page::push_record(&mut stream, record));
        let (needed, most) = (self.ring.pages_for(&stream), self.ring.checkpoint_pages());
        if needed > most {
            return Err(JournalError::Full { needed, most });
        }
        let fresh = Position { block: self.cursor, page: self.ring.pages_per_block, index: 0 };
        let at = self.at.take().map_or(fresh, |at| Position { index: 0, ..at });
        self.erase_unused(pages)?;
        pages.sync().map_err(JournalError::Pages)?;
        self.newest += 1;
        let mut chain = Vec::new();
        let at = self.program(pages, self.newest, Kind::Checkpoint, at, &stream, &mut chain)?;
        pages.sync().map_err(JournalError::Pages)?;
        self.epoch = self.newest;
        self.chain = chain;
        self.erase_unused(pages)?;
        self.at = Some(at);
        Ok(())
    }

    /// Programs a stream of records from `at` on as pages of `epoch`, adds their blocks to `chain`,
    /// and returns the position after them.
    fn program<P: Pages>(
        &mut self,
        pages: &mut P,
        epoch: u64,
        kind: Kind,
        mut at: Position,
        mut stream: &[u8],
        chain: &mut Vec<u32>,
    ) -> JournalResult<Position, P> {
        loop {
            let (content, rest) = stream.split_at(stream.len().min(self.ring.room()));
            if at.page == self.ring.pages_per_block {
                (at.block, at.page) = (self.take_block(), 0);
            }
            if chain.last() != Some(&at.block) {
                chain.push(at.block);
            }
            let ends = kind == Kind::Checkpoint && rest.is_empty();
            let kind = if ends { Kind::CheckpointEnd } else { kind };
            let header = Header { epoch, index: at.index, base: self.epoch, kind };
            page::encode(header, content, &mut self.buffer);
            pages.program(at.block, at.page, &self.buffer).map_err(JournalError::Pages)?;
            at.page += 1;
            at.index += 1;
            if rest.is_empty() {
                return Ok(at);
            }
            stream = rest;
        }
    }

    /// The next erased block of the ring.
    fn take_block(&mut self) -> u32 {
        let block = self.ring.after(self.cursor).find(|&block| self.erased[block as usize]);
        let block = block.expect("an epoch leaves room for a checkpoint");
        self.erased[block as usize] = false;
        self.cursor = block;
        block
    }

    /// Erases every block outside of the epoch that is not erased.
    fn erase_unused<P: Pages>(&mut self, pages: &mut P) -> JournalResult<(), P> {
        for block in self.ring.after(self.cursor) {
            if !self.erased[block as usize] && !self.chain.contains(&block) {
                pages.erase(block).map_err(JournalError::Pages)?;
                self.erased[block as usize] = true;
            }
        }
        Ok(())
    }
}
