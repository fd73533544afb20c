//! Recovery: reads all blocks and takes the newest complete record of each key.

use std::collections::{BTreeMap, VecDeque};

use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::kv::frontier::Frontier;
use crate::kv::index::{Entry, Index, PieceAddress, Stored, bytes_of};
use crate::kv::page::{self, DELETED};
use crate::kv::room::{Longest, Shape};
use crate::kv::store::{Block, COPIES, Store, USER, Use};
use crate::medium::PageState;
use crate::monitor::{Hold, Level, OpCounts, Share};

/// A piece on flash.
#[derive(Debug)]
struct FoundPiece {
    /// Sequence number of its record.
    sequence: u64,
    offset: u32,
    /// Sequence number of its page.
    programmed: u64,
    len: u32,
    place: PieceAddress,
}

/// The pieces on flash, by their keys.
type Pieces = BTreeMap<Box<[u8]>, Vec<FoundPiece>>;

impl Store {
    /// Recovers the store on `share`.
    pub(super) fn recover(share: Share) -> Result<Self> {
        let geometry = share.geometry()?;
        let is_volatile = share.is_volatile()?;
        // Writes that a former process left in a volatile cache must not be lost while later ones
        // survive.
        if is_volatile {
            share.sync()?;
        }
        let shape = Shape::new(&geometry, is_volatile);
        let frontier = |which: usize, cause| Frontier::new(cause, shape.width[which]);
        let mut store = Self {
            shape,
            blocks_per_lun: geometry.blocks_per_lun,
            blocks: vec![
                Block { used: Use::Closed, live: 0, closed: 0 };
                geometry.blocks() as usize
            ],
            free: vec![VecDeque::new(); geometry.luns as usize],
            free_count: 0,
            next_lun: 0,
            index: Index::new(),
            fronts: [frontier(USER, Cause::Host), frontier(COPIES, Cause::Gc)],
            next_sequence: 1,
            next_page: 1,
            longest: Longest::default(),
            charged: 0,
            tombstones: 0,
            newest: 0,
            copied: SimTime::ZERO,
            end: share.now_if_timed()?,
            counts: OpCounts::default(),
            written: 0,
            failed: None,
            share,
        };
        let mut pieces = Pieces::new();
        for block in 0..store.shape.blocks {
            store.scan_block(block, &mut pieces)?;
        }
        store.share.reach_if_timed(store.end)?;
        for (key, found) in pieces {
            store.take_over(key, found);
        }
        Ok(store)
    }

    /// Reads a block and closes it.
    fn scan_block(&mut self, block: u32, pieces: &mut Pieces) -> Result<()> {
        let written = self.share.write_pointer(block)?;
        if written == 0 {
            // A block whose erase was interrupted has to be erased again.
            if self.share.state_of(block)? == PageState::Erased {
                self.put_erased(block);
            }
            return Ok(());
        }
        self.share.finish_if_open(block)?;
        let mut bytes = vec![0; self.shape.page_size];
        let now = self.share.now_if_timed()?;
        for page in 0..written {
            let access = self.share.access(block, page, Cause::Host, now);
            let (state, end) = self.share.read(access, 0, &mut bytes, &mut [])?;
            self.counts.reads[Cause::Host] += 1;
            self.end = self.end.max(end);
            let opened = page::open(&bytes).filter(|_| state == PageState::Written);
            let Some((programmed, found)) = opened else { continue };
            self.next_page = self.next_page.max(programmed + 1);
            self.blocks[block as usize].closed = programmed;
            for (at, piece) in found {
                self.next_sequence = self.next_sequence.max(piece.sequence + 1);
                let (sequence, offset, len) = (piece.sequence, piece.offset, piece.len);
                let place = PieceAddress { block, page, at, part: piece.part.len() as u32 };
                let found = FoundPiece { sequence, offset, programmed, len, place };
                pieces.entry(piece.key.into()).or_default().push(found);
            }
        }
        Ok(())
    }

    /// Adds a key to the index, from its pieces on flash.
    fn take_over(&mut self, key: Box<[u8]>, mut found: Vec<FoundPiece>) {
        found.sort_by_key(|f| (std::cmp::Reverse(f.sequence), f.offset, f.programmed));
        let of_records = found.chunk_by(|a, b| a.sequence == b.sequence);
        let stored = of_records.into_iter().find_map(complete);
        let all = found.iter().filter(|f| f.len != DELETED).count();
        let mut entry = Entry { stored, waiting: None, dead: all as u32 };
        if let Some(stored) = &entry.stored {
            let data = stored.len != DELETED;
            entry.dead -= if data { stored.places.len() as u32 } else { 0 };
            self.longest = self.longest.with(key.len(), if data { stored.len } else { 0 } as usize);
            for place in &stored.places {
                self.blocks[place.block as usize].live += bytes_of(key.len(), &[*place]);
            }
            self.charge(key.len(), stored.len);
            self.newest += self.charge_of(key.len(), stored.len);
        }
        self.index.insert(key.clone(), entry);
        self.remove_tombstone(&key);
    }
}

/// The record that pieces, sorted by offset and program, form together, if none is missing.
///
/// Copies of a piece are the piece again, or parts of it. Of pieces with the same offset the one
/// programmed first is the largest, and it wins: copies of an interrupted cleaning are garbage, and
/// their block is free again.
fn complete(found: &[FoundPiece]) -> Option<Stored> {
    let first = &found[0];
    let (sequence, len) = (first.sequence, first.len);
    let (mut places, mut next) = (Vec::new(), None);
    for piece in found {
        if piece.offset == next.unwrap_or(0) && (next.is_none() || piece.place.part > 0) {
            places.push(piece.place);
            next = Some(piece.offset + piece.place.part);
        }
    }
    let wanted = if len == DELETED { 0 } else { len };
    (next == Some(wanted)).then(|| Stored { sequence, len, places: places.into() })
}

/// Prepares a share for its first use, or checks that it holds a store.
pub(super) fn claim(share: &Share) -> Result<Hold> {
    let hold = share.hold(Some(Level::Pairs))?;
    let geometry = share.geometry()?;
    if geometry.max_open_blocks < 2 {
        let what = "a store needs two open blocks: set open_blocks in the allocation".into();
        return Err(FlashError::NoSpace { what });
    }
    let mark = vec![Level::Pairs as u8, page::FORMAT];
    let meta = share.meta()?;
    if meta == mark {
        return Ok(hold);
    }
    if !meta.is_empty() {
        let what = format!("a store of another version: {meta:?}, where {mark:?} is known");
        return Err(FlashError::NotFormatted { what });
    }
    if Shape::new(&geometry, share.is_volatile()?).capacity(Longest::default()) == 0 {
        let what = format!(
            "{} blocks of {} pages cannot be cleaned: give the store a larger share",
            geometry.blocks(),
            geometry.pages_per_block
        );
        return Err(FlashError::NoSpace { what });
    }
    for block in 0..geometry.blocks() {
        if share.write_pointer(block)? > 0 {
            let what = format!(
                "block {block} of the share is in use by the raw or the function level: \
                 erase it, or take a share of its own"
            );
            return Err(FlashError::Busy { what });
        }
    }
    share.set_meta(mark)?;
    Ok(hold)
}
