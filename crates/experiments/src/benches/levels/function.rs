//! The store at the function level: it maps pages and cleans. The library allocates and erases
//! blocks and levels their wear.
//!
//! Cleaning is Algorithm IV.2 of the Prism-SSD paper with greedy victims: when few blocks are free,
//! the valid pages of a block are copied to other blocks and the block is trimmed.

use std::collections::BTreeMap;
use std::sync::Arc;

use prism_flash::Result;
use prism_flash::function::{Channel, Function, Queue, Unit};
use prism_flash::raw::Address;

use super::{Done, Store};

/// The tag of commands that the store issues for cleaning.
const OWN: u64 = u32::MAX as u64;
/// Tags with this bit are those of reads. The upper half of the tag of a write is the LUN.
const READ: u64 = 1 << 31;

/// Commands in flight, copies for cleaning included.
const QUEUE_LENGTH: usize = 4096;

/// Commands that a LUN may have more in flight than another when it is its turn.
const AHEAD: u32 = 2;

/// Blocks per LUN below which a channel is cleaned: free blocks, and blocks waiting for their
/// erase.
const LEFT: u32 = 3;

/// A block: the store's page in each page written, and how many of them are still valid.
#[derive(Default)]
struct Block {
    owners: Vec<usize>,
    valid: usize,
}

/// Why a page is written. Users' pages and copies go to separate blocks.
#[derive(Clone, Copy)]
enum Kind {
    User,
    Copy,
}

pub(super) struct FunctionStore {
    pub(super) function: Arc<Function>,
    queue: Queue<Arc<Function>>,
    pages_per_block: usize,
    page_size: usize,
    /// Blocks that are free or waiting for their erase, by channel.
    left: Vec<u32>,
    /// LUNs of a channel.
    luns: u32,
    map: Vec<Option<Address>>,
    blocks: BTreeMap<Address, Block>,
    /// Open blocks by kind: one per LUN, on the channels round robin.
    open: [Vec<Option<Address>>; 2],
    turn: [usize; 2],
    /// Commands in flight, by LUN.
    busy: Vec<u32>,
    pub(super) copies: u64,
}

impl FunctionStore {
    pub(super) fn new(function: Function, pages: usize) -> Self {
        let shape = function.geometry();
        let open = vec![None; shape.luns as usize];
        let function = Arc::new(function);
        Self {
            queue: Queue::new(Arc::clone(&function), QUEUE_LENGTH),
            function,
            pages_per_block: shape.pages_per_block as usize,
            page_size: shape.page_size as usize,
            left: vec![u32::MAX; shape.channels.len()],
            luns: shape.luns / shape.channels.len() as u32,
            map: vec![None; pages],
            blocks: BTreeMap::new(),
            open: [open.clone(), open],
            turn: [0; 2],
            busy: vec![0; shape.luns as usize],
            copies: 0,
        }
    }

    fn lun_of(&self, at: Address) -> usize {
        (at.channel * self.luns + at.lun) as usize
    }

    fn open_at(&self, kind: Kind, slot: usize) -> Option<Address> {
        self.open[kind as usize][slot]
            .filter(|at| self.blocks[at].owners.len() < self.pages_per_block)
    }

    /// An open block on a LUN that has few commands in flight, or a new one if it is full. The open
    /// blocks take turns.
    fn open_block(&mut self, kind: Kind) -> Result<Address> {
        let (slots, turn) = (self.open[0].len(), self.turn[kind as usize]);
        let load = |slot| Some(self.busy[self.lun_of(self.open_at(kind, slot)?)]);
        let least = (0..slots).filter_map(load).min().unwrap_or(0);
        let mut all = (turn..turn + slots).map(|slot| slot % slots);
        let slot = all.find(|&slot| load(slot).is_none_or(|load| load <= least + AHEAD));
        let slot = slot.expect("the least busy one");
        self.turn[kind as usize] = slot + 1;
        if let Some(at) = self.open_at(kind, slot) {
            return Ok(at);
        }
        let channel = slot % self.left.len();
        let new = self.function.address_mapper(Channel::Number(channel as u32), Unit::Block)?;
        self.left[channel] = new.free_left + new.erasing;
        self.blocks.insert(new.at, Block::default());
        self.open[kind as usize][slot] = Some(new.at);
        Ok(new.at)
    }

    fn write_at(&mut self, at: Address, data: Vec<u8>, tag: u64) {
        let lun = self.lun_of(at);
        self.busy[lun] += 1;
        let submitted = self.queue.submit_write(at, data, (lun as u64) << 32 | tag);
        submitted.expect("the queue is long");
    }

    /// Maps `page` to the next free page.
    fn place(&mut self, page: usize, kind: Kind) -> Result<Address> {
        let at = self.open_block(kind)?;
        let block = self.blocks.get_mut(&at).expect("a block that is mapped");
        let place = at.with_page(block.owners.len() as u32);
        block.owners.push(page);
        block.valid += 1;
        if let Some(old) = self.map[page].replace(place) {
            self.blocks.get_mut(&old.with_page(0)).expect("a block that is mapped").valid -= 1;
        }
        Ok(place)
    }

    fn clean(&mut self, channel: usize) -> Result<()> {
        let of_channel = self.blocks.iter().filter(|(at, _)| at.channel as usize == channel);
        let full = of_channel.filter(|(_, block)| block.owners.len() == self.pages_per_block);
        let victim = full.min_by_key(|(at, block)| (block.valid, at.block)).map(|(&at, _)| at);
        let victim = victim.expect("most blocks are full");
        for open in self.open.iter_mut().flatten() {
            *open = open.filter(|&at| at != victim);
        }
        let owners = std::mem::take(&mut self.blocks.get_mut(&victim).expect("found").owners);
        for (page, from) in owners.into_iter().zip((0..).map(|page| victim.with_page(page))) {
            if self.map[page] == Some(from) {
                let mut data = vec![0; self.page_size];
                self.function.read(from, &mut data)?;
                let at = self.place(page, Kind::Copy)?;
                self.write_at(at, data, OWN);
                self.copies += 1;
            }
        }
        self.blocks.remove(&victim);
        self.left[channel] += 1;
        self.function.trim(victim, Unit::Block)
    }
}

impl Store for FunctionStore {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        while let Some(low) = self.left.iter().position(|&left| left < LEFT * self.luns) {
            self.clean(low)?;
        }
        let at = self.place(page, Kind::User)?;
        self.write_at(at, data, tag);
        Ok(())
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let at = self.map[page].expect("only what was written is read");
        self.queue.submit_read(at, data, READ | tag).expect("the queue is long");
        Ok(())
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        while let Some(done) = self.queue.complete() {
            done.result?;
            let tag = done.tag & OWN;
            if tag == OWN || tag & READ == 0 {
                self.busy[(done.tag >> 32) as usize] -= 1;
            }
            if tag != OWN {
                let (tag, data) = (tag & !READ, done.data.into_vec());
                return Ok(Some(Done { tag, end: done.end, data }));
            }
        }
        Ok(None)
    }

    fn flush(&mut self) -> Result<()> {
        assert!(self.complete()?.is_none(), "the user has taken every completion");
        self.function.sync()
    }
}
