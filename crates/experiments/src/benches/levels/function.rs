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
const OWN: u64 = u64::MAX;

/// Commands in flight, copies for cleaning included.
const QUEUE_LENGTH: usize = 4096;

/// Blocks per LUN below which a channel is cleaned: free blocks, and blocks waiting for their
/// erase.
const LEFT: u32 = 4;

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
    left_min: u32,
    map: Vec<Option<Address>>,
    blocks: BTreeMap<Address, Block>,
    /// Open blocks by kind: one per LUN, on the channels round robin.
    open: [Vec<Option<Address>>; 2],
    turn: [usize; 2],
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
            left_min: LEFT * shape.luns / shape.channels.len() as u32,
            map: vec![None; pages],
            blocks: BTreeMap::new(),
            open: [open.clone(), open],
            turn: [0; 2],
            copies: 0,
        }
    }

    /// The next open block, or a new one if it is full.
    fn open_block(&mut self, kind: Kind) -> Result<Address> {
        let turn = self.turn[kind as usize];
        self.turn[kind as usize] = (turn + 1) % self.open[0].len();
        let open = self.open[kind as usize][turn];
        if let Some(at) = open.filter(|at| self.blocks[at].owners.len() < self.pages_per_block) {
            return Ok(at);
        }
        let channel = turn % self.left.len();
        let new = self.function.address_mapper(Channel::Number(channel as u32), Unit::Block)?;
        self.left[channel] = new.free_left + new.erasing;
        let at = new.at;
        self.blocks.insert(at, Block::default());
        self.open[kind as usize][turn] = Some(at);
        Ok(at)
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
                self.queue.submit_write(at, data, OWN).expect("the queue is long");
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
        while let Some(low) = self.left.iter().position(|&left| left < self.left_min) {
            self.clean(low)?;
        }
        let at = self.place(page, Kind::User)?;
        self.queue.submit_write(at, data, tag).expect("the queue is long");
        Ok(())
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let at = self.map[page].expect("only what was written is read");
        self.queue.submit_read(at, data, tag).expect("the queue is long");
        Ok(())
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        while let Some(done) = self.queue.complete() {
            done.result?;
            if done.tag != OWN {
                return Ok(Some(Done { tag: done.tag, end: done.end, data: done.data.into_vec() }));
            }
        }
        Ok(None)
    }

    fn flush(&mut self) -> Result<()> {
        assert!(self.complete()?.is_none(), "the user has taken every completion");
        self.function.sync()
    }
}
