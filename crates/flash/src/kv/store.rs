//! The store behind its lock: records are collected on a page in memory, programmed, and entered
//! into the index when all of their pieces are programmed.

use std::collections::VecDeque;

use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::kv::frontier::{Frontier, InFlight, Open};
use crate::kv::index::{Entry, Index, PieceAddress, Stored, Waiting, bytes_of, exchange};
use crate::kv::page::{self, DELETED, Piece, piece_size};
use crate::kv::room::{Longest, Shape};
use crate::medium::PageState;
use crate::monitor::{OpCounts, Share};

/// Indices of the frontiers.
pub(super) const USER: usize = 0;
pub(super) const COPIES: usize = 1;

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Erased,
    Open,
    /// Closed: a candidate for cleaning.
    Closed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) used: Use,
    /// Bytes of live pieces.
    pub(super) live: u64,
    /// The sequence number of its last page, if it is closed.
    pub(super) closed: u64,
}

#[derive(Debug)]
pub(super) struct Store {
    pub(super) share: Share,
    pub(super) shape: Shape,
    pub(super) blocks_per_lun: u32,
    pub(super) blocks: Vec<Block>,
    /// Erased blocks by LUN, and their number.
    pub(super) free: Vec<VecDeque<u32>>,
    pub(super) free_count: u32,
    /// The LUN of the next block.
    pub(super) next_lun: usize,
    pub(super) index: Index,
    pub(super) fronts: [Frontier; 2],
    pub(super) next_sequence: u64,
    pub(super) next_page: u64,
    pub(super) longest: Longest,
    /// Bytes charged for all records on flash or in flight, and those for tombstones among them.
    pub(super) charged: u64,
    pub(super) tombstones: u64,
    /// Bytes charged for the newest record of each key.
    pub(super) newest: u64,
    /// The end of the last read for a copy.
    pub(super) copied: SimTime,
    /// The end of the last program.
    pub(super) end: SimTime,
    pub(super) counts: OpCounts,
    /// Bytes of keys and values set, and of keys deleted.
    pub(super) written: u64,
    /// The error after which nothing more is written.
    pub(super) failed: Option<FlashError>,
}

impl Store {
    /// Runs a call that writes. If the device fails in it, nothing is written any more, as the
    /// state in memory may differ from that on flash.
    pub(super) fn write<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let done = call(self);
        self.failed = done.as_ref().err().cloned();
        done
    }

    pub(super) fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let len = value.map_or(DELETED, |value| value.len() as u32);
        let part = value.unwrap_or_default();
        let waiting = Waiting { sequence, value: value.map(<[u8]>::to_vec) };
        self.newest += self.charge_of(key.len(), len);
        self.newest -= self.charge_of_newest(key);
        let entry = self.index.entry(key.into()).or_default();
        entry.waiting = Some(Box::new(waiting));
        self.longest = self.longest.with(key.len(), part.len());
        self.written += (key.len() + part.len()) as u64;
        self.charge(key.len(), len);
        self.append(USER, Piece { sequence, len, offset: 0, key, part }, None)
    }

    /// Whether there is room for a record. Makes room if it is taken by replaced records or old
    /// tombstones.
    pub(super) fn admit(&mut self, key: &[u8], value: usize) -> Result<bool> {
        let charge = self.shape.charge(key.len(), value);
        let longest = self.longest.with(key.len(), value);
        let capacity = self.shape.capacity(longest);
        while self.newest - self.charge_of_newest(key) + charge > capacity {
            let least = self.newest.saturating_sub(self.charge_of_newest(key) + self.tombstones);
            if least + charge > capacity || !self.clean()? {
                return Ok(false);
            }
        }
        // With nothing in flight, only the newest record of each key is charged.
        if self.charged + charge > self.shape.bound_for_values(longest) {
            self.program_begun(USER)?;
        }
        Ok(self.charged + charge <= self.shape.bound_for_values(longest))
    }

    /// Bytes charged for the newest record of a key.
    fn charge_of_newest(&self, key: &[u8]) -> u64 {
        let len = self.index.get(key).and_then(Entry::newest_len);
        len.map_or(0, |len| self.charge_of(key.len(), len))
    }

    pub(super) fn has_room_to_delete(&self, key: &[u8]) -> bool {
        self.charged + self.charge_of(key.len(), DELETED) <= self.shape.bound(self.longest)
    }

    /// Bytes charged for a record.
    pub(super) fn charge_of(&self, key: usize, len: u32) -> u64 {
        self.shape.charge(key, if len == DELETED { 0 } else { len as usize })
    }

    pub(super) fn charge(&mut self, key: usize, len: u32) {
        let charge = self.charge_of(key, len);
        self.charged += charge;
        self.tombstones += if len == DELETED { charge } else { 0 };
    }

    fn discharge(&mut self, key: usize, len: u32) {
        let charge = self.charge_of(key, len);
        self.charged -= charge;
        self.tombstones -= if len == DELETED { charge } else { 0 };
    }

    /// Appends a record, or a copy of the piece at `origin`, to the page of a frontier, split where
    /// the page ends.
    pub(super) fn append(
        &mut self,
        which: usize,
        piece: Piece<'_>,
        origin: Option<PieceAddress>,
    ) -> Result<()> {
        let (len, key) = (piece.len, piece.key.into());
        let (sequence, left) = (piece.sequence, piece.part.len() as u32);
        let in_flight = InFlight { key, sequence, len, origin, left, places: Vec::new() };
        self.fronts[which].in_flight.push_back(in_flight);
        let (mut piece, part_min) = (piece, self.shape.part_min());
        loop {
            let front = &mut self.fronts[which];
            let head = piece_size(piece.key.len(), 0);
            let rest = self.shape.page_size - front.page.len();
            let all = piece.part.len();
            let here = if head + all <= rest {
                all
            } else if all >= 2 * part_min && rest >= head + part_min {
                (rest - head).min(all - part_min)
            } else {
                self.program(which)?;
                continue;
            };
            let (part, after) = piece.part.split_at(here);
            front.pieces.push((front.page.len() as u32, here as u32));
            Piece { part, ..piece }.encode(&mut front.page);
            if after.is_empty() {
                return Ok(());
            }
            piece = Piece { offset: piece.offset + here as u32, part: after, ..piece };
            self.program(which)?;
        }
    }

    /// Programs the page of a frontier, if it holds a piece.
    pub(super) fn program_begun(&mut self, which: usize) -> Result<()> {
        if self.fronts[which].is_begun() { self.program(which) } else { Ok(()) }
    }

    /// Programs the page of a frontier, and enters the records that are complete with it into the
    /// index.
    pub(super) fn program(&mut self, which: usize) -> Result<()> {
        let slot = self.slot(which)?;
        let ready = if which == USER { self.share.now_if_timed()? } else { self.copied };
        let front = &mut self.fronts[which];
        let at = front.slots[slot].expect("an open slot");
        let used = (front.page.len() - page::PAGE_HEADER) as u64;
        page::seal(&mut front.page, self.next_page, self.shape.page_size);
        let access = self.share.access(at.block, at.page, front.cause, ready);
        let programmed = self.share.program(access, &front.page, &[])?;
        self.counts.programs[front.cause] += 1;
        self.end = self.end.max(programmed.end);
        let next = Open { page: at.page + 1, ..at };
        let full = next.page == self.shape.pages;
        front.slots[slot] = (!full).then_some(next);
        let mut done = Vec::new();
        front.programmed(at, |in_flight| done.push(in_flight));
        let block = &mut self.blocks[at.block as usize];
        block.live += used;
        if full {
            *block = Block { used: Use::Closed, closed: self.next_page, ..*block };
        }
        self.next_page += 1;
        if which == USER {
            self.share.reach_if_timed(programmed.sent)?;
            // The next block and copies of this one must not survive a power failure without it.
            if full {
                self.share.sync_if_volatile()?;
            }
        }
        for in_flight in done {
            match in_flight.origin {
                None => self.settle(in_flight),
                Some(origin) => self.moved(&in_flight, origin),
            }
        }
        Ok(())
    }

    /// The slot of a frontier that takes the next page, with an open block.
    fn slot(&mut self, which: usize) -> Result<usize> {
        let width = self.fronts[which].slots.len();
        for _ in 0..width {
            let turn = self.fronts[which].turn;
            self.fronts[which].turn = (turn + 1) % width;
            if self.fronts[which].slots[turn].is_some() {
                return Ok(turn);
            }
            let left_to_others = match which {
                USER => {
                    while self.free_count <= self.shape.reserve && self.clean()? {}
                    self.shape.reserve
                }
                // The last erased block is opened only if copies have no other.
                _ => u32::from(self.fronts[which].has_open()),
            };
            if self.free_count > left_to_others {
                let block = self.take_erased();
                self.fronts[which].slots[turn] = Some(Open { block, page: 0 });
                return Ok(turn);
            }
        }
        let what = "no block can be cleaned: the share has become smaller; grow it".into();
        Err(FlashError::NoSpace { what })
    }

    /// An erased block of the next LUN in turn.
    fn take_erased(&mut self) -> u32 {
        let luns = self.free.len();
        let turn = (0..luns).map(|step| (self.next_lun + step) % luns);
        let lun = turn.into_iter().find(|&lun| !self.free[lun].is_empty());
        let lun = lun.expect("the caller has seen that a block is erased");
        self.next_lun = (lun + 1) % luns;
        let block = self.free[lun].pop_front().expect("just seen");
        self.free_count -= 1;
        self.blocks[block as usize].used = Use::Open;
        block
    }

    pub(super) fn put_erased(&mut self, block: u32) {
        self.blocks[block as usize] = Block { used: Use::Erased, live: 0, closed: 0 };
        self.free[(block / self.blocks_per_lun) as usize].push_back(block);
        self.free_count += 1;
    }

    /// A record is completely on flash: it replaces the previous one of its key.
    fn settle(&mut self, in_flight: InFlight) {
        let InFlight { key, sequence, len, places, .. } = in_flight;
        let stored = Stored { sequence, len, places: places.into() };
        let entry = self.index.get_mut(&key).expect("a record in flight has an entry");
        entry.waiting.take_if(|waiting| waiting.sequence == sequence);
        if let Some(old) = entry.stored.replace(stored) {
            if old.len != DELETED {
                entry.dead += old.places.len() as u32;
            }
            self.no_longer_live(key.len(), &old.places);
            self.discharge(key.len(), old.len);
        }
        self.remove_tombstone(&key);
    }

    /// A piece of a record has been copied: updates its address, or addresses if it was split.
    fn moved(&mut self, in_flight: &InFlight, origin: PieceAddress) {
        let InFlight { key, sequence, places, .. } = in_flight;
        let stored = self.index.get_mut(key).and_then(|entry| entry.stored.as_mut());
        let stored = stored.filter(|stored| stored.sequence == *sequence);
        let found = match (stored, self.fronts[USER].in_flight.front_mut()) {
            (Some(stored), _) => {
                let mut all = std::mem::take(&mut stored.places).into_vec();
                let found = exchange(&mut all, origin, places);
                stored.places = all.into();
                found
            }
            (None, Some(first)) => exchange(&mut first.places, origin, places),
            (None, None) => false,
        };
        assert!(found, "a piece was copied that is not live");
        self.no_longer_live(key.len(), &[origin]);
    }

    /// Whether the piece of this record at this address is live.
    pub(super) fn is_live(&self, piece: &Piece<'_>, place: PieceAddress) -> bool {
        let stored = self.index.get(piece.key).and_then(|entry| entry.stored.as_ref());
        if let Some(stored) = stored.filter(|stored| stored.sequence == piece.sequence) {
            return stored.places.contains(&place);
        }
        let first = self.fronts[USER].in_flight.front();
        first.is_some_and(|f| f.sequence == piece.sequence && f.places.contains(&place))
    }

    fn no_longer_live(&mut self, key: usize, places: &[PieceAddress]) {
        for place in places {
            self.blocks[place.block as usize].live -= bytes_of(key, &[*place]);
        }
    }

    /// Removes the tombstone of a key that has no older piece on flash.
    pub(super) fn remove_tombstone(&mut self, key: &[u8]) {
        let Some(entry) = self.index.get_mut(key) else { return };
        if entry.dead > 0 {
            return;
        }
        let tombstone = entry.stored.take_if(|stored| stored.len == DELETED);
        let was_newest = entry.waiting.is_none();
        if entry.stored.is_none() && entry.waiting.is_none() {
            self.index.remove(key);
        }
        if let Some(tombstone) = tombstone {
            self.no_longer_live(key.len(), &tombstone.places);
            self.discharge(key.len(), DELETED);
            self.newest -= if was_newest { self.charge_of(key.len(), DELETED) } else { 0 };
        }
    }

    /// Makes all earlier writes durable.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.program_begun(USER)?;
        self.share.sync_if_volatile()?;
        self.share.reach_if_timed(self.end)
    }

    /// The value of a key, and the end of its read.
    pub(super) fn value(&mut self, key: &[u8], now: SimTime) -> Result<(Option<Vec<u8>>, SimTime)> {
        let Some(entry) = self.index.get(key) else { return Ok((None, now)) };
        match (&entry.waiting, &entry.stored) {
            (Some(waiting), _) => Ok((waiting.value.clone(), now)),
            (None, Some(stored)) if stored.len != DELETED => {
                self.counts.reads[Cause::Host] += stored.places.len() as u64;
                let (value, end) = read(&self.share, key, stored, now)?;
                Ok((Some(value), end))
            }
            _ => Ok((None, now)),
        }
    }
}

/// Reads the value of a record: of each page only its piece.
fn read(share: &Share, key: &[u8], stored: &Stored, now: SimTime) -> Result<(Vec<u8>, SimTime)> {
    let mut value = Vec::with_capacity(stored.len as usize);
    let (mut bytes, mut end) = (Vec::new(), now);
    for place in &stored.places {
        bytes.resize(piece_size(key.len(), place.part as usize), 0);
        let access = share.access(place.block, place.page, Cause::Host, now);
        let (state, read) = share.read(access, place.at, &mut bytes, &mut [])?;
        end = end.max(read);
        let wanted = (key, stored.sequence, value.len() as u32);
        let piece = Piece::decode(&bytes).filter(|_| state == PageState::Written);
        match piece.filter(|piece| (piece.key, piece.sequence, piece.offset) == wanted) {
            Some(piece) => value.extend_from_slice(piece.part),
            None => {
                let at = share.path().address(place.block, place.page);
                return Err(FlashError::Torn { at });
            }
        }
    }
    Ok((value, end))
}
