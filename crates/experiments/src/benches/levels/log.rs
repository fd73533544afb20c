//! The store at the raw and the function level: it maps pages, writes blocks in order, and cleans.
//! The commands of cleaning are in flight among those of the user.
//!
//! Cleaning is Algorithm IV.2 of the Prism-SSD paper with greedy victims: if a LUN has no free page
//! for the user, the valid pages of a block are copied, within the LUN, and the block is erased. So
//! a LUN that waits for free pages has copies to write meanwhile, and needs no erased block ahead.
//!
//! A page is mapped to its new place when that is on flash, and a victim is erased when nothing is
//! mapped to it. So a loss of power at any time leaves the last version that was on flash.

use std::collections::{BTreeMap, VecDeque};

use prism_base::{SimTime, Slab};
use prism_flash::raw::{Address, Completion};
use prism_flash::{Result, Share, ShareGeometry};

use super::buffer::WriteBuffer;
use super::{BUFFER_PAGES, Done, Store};

/// What the store needs of a level. A command completes with its tag.
pub(super) trait Flash {
    fn share(&self) -> Share;
    fn read(&mut self, at: Address, data: Vec<u8>, tag: u64);
    fn write(&mut self, at: Address, data: Vec<u8>, tag: u64);
    /// Gives back a block.
    fn erase(&mut self, at: Address, tag: u64);
    /// A command that [`Flash::erase`] began is complete.
    fn erased(&mut self, at: Address);
    /// An erased block, if there is one: of a LUN, or of another LUN of its channel.
    fn allocate(&mut self, lun: Address) -> Result<Option<Address>>;
    /// Waits for the next completion. `None` if no command is in flight, and no block is being
    /// erased any more.
    fn complete(&mut self) -> Result<Option<Completion>>;
    fn sync(&self) -> Result<()>;
}

/// A block that is written: the store's page in each page, how many are valid, and how many are not
/// on flash yet.
#[derive(Default)]
struct Block {
    owners: Vec<usize>,
    valid: usize,
    writing: usize,
}

/// The user's pages and copies go to separate blocks.
const USER: usize = 0;
const COPY: usize = 1;

#[derive(Default)]
struct Lun {
    /// The address of its first page.
    at: Address,
    /// Blocks that can be opened.
    erased: VecDeque<Address>,
    open: [Option<Address>; 2],
    is_writing: bool,
    /// The block that is being cleaned, with the number of its pages whose copy is not on flash.
    victim: Option<(Address, usize)>,
    /// Pages of the victim that were read: the store's page, where it is, its data.
    fetched: VecDeque<(usize, Address, Vec<u8>)>,
}

/// A command in flight.
#[derive(Clone, Copy, Default)]
enum InFlight {
    #[default]
    None,
    Erase(Address),
    /// Reads for the user, with the tag of the request.
    Read(u64),
    /// Reads a page of a victim: the store's page, and where it is.
    Fetch(usize, Address),
    /// Writes a page of the store; where it was, if it is a copy; where it goes.
    Write(usize, Option<Address>, Address),
}

pub(super) struct LogStore<F> {
    pub(super) flash: F,
    geometry: ShareGeometry,
    buffer: WriteBuffer,
    map: Vec<Option<Address>>,
    /// Blocks with data.
    blocks: BTreeMap<Address, Block>,
    luns: Vec<Lun>,
    /// The LUN that gets the next write if it is idle.
    turn: usize,
    in_flight: Slab<InFlight>,
    pub(super) copies: u64,
}

impl<F: Flash> LogStore<F> {
    pub(super) fn new(flash: F, pages: usize) -> Result<Self> {
        let geometry = flash.share().geometry()?;
        let mut luns = Vec::new();
        for (channel, all) in (0..).zip(&geometry.channels) {
            let at = (0..all.len() as u32).map(|lun| Address { channel, lun, block: 0, page: 0 });
            luns.extend(at.map(|at| Lun { at, ..Lun::default() }));
        }
        Ok(Self {
            flash,
            buffer: WriteBuffer::new(BUFFER_PAGES),
            map: vec![None; pages],
            blocks: BTreeMap::new(),
            luns,
            turn: 0,
            in_flight: Slab::new(),
            copies: 0,
            geometry,
        })
    }

    fn now(&self) -> SimTime {
        self.flash.share().now().expect("the share is not released")
    }

    fn lun(&mut self, at: Address) -> &mut Lun {
        let is_of = |lun: &&mut Lun| (lun.at.channel, lun.at.lun) == (at.channel, at.lun);
        self.luns.iter_mut().find(is_of).expect("a LUN of the share")
    }

    fn block(&mut self, at: Address) -> &mut Block {
        self.blocks.get_mut(&at.with_page(0)).expect("a block with data")
    }

    fn per_block(&self) -> usize {
        self.geometry.pages_per_block as usize
    }

    fn free_pages(&self, at: Option<Address>) -> usize {
        at.map_or(0, |at| self.per_block() - self.blocks[&at].owners.len())
    }

    /// The full block of a LUN with the fewest valid pages, and how many.
    fn least_valid(&self, lun: &Lun) -> Option<(usize, Address)> {
        let of_lun = self.blocks.range(lun.at..Address { block: u32::MAX, ..lun.at });
        let is_full = |block: &Block| block.owners.len() == self.per_block() && block.writing == 0;
        let full = of_lun.filter(|(_, block)| is_full(block));
        full.map(|(&at, block)| (block.valid, at)).min()
    }

    /// Whether the user has to wait for cleaning on a LUN: the erased blocks besides one for the
    /// user have to hold the copies of the next victim.
    fn waits(&self, lun: &Lun) -> bool {
        let needed = self.least_valid(lun).map_or(0, |(valid, _)| valid);
        let free = lun.erased.len() * self.per_block() + self.free_pages(lun.open[COPY]);
        lun.victim.is_some() || free < self.per_block() + needed
    }

    /// The next free page of a LUN.
    fn place(&mut self, lun: usize, kind: usize) -> Option<Address> {
        if self.free_pages(self.luns[lun].open[kind]) == 0 {
            if kind == USER && self.waits(&self.luns[lun]) {
                return None;
            }
            let erased = self.luns[lun].erased.pop_front()?;
            self.luns[lun].open[kind] = Some(erased);
            self.blocks.insert(erased, Block::default());
        }
        let at = self.luns[lun].open[kind]?;
        Some(at.with_page(self.blocks[&at].owners.len() as u32))
    }

    fn in_flight(&mut self, command: InFlight) -> u64 {
        let place = self.in_flight.take();
        self.in_flight[place] = command;
        place.into()
    }

    /// Begins all that can be begun on each LUN.
    fn work(&mut self) -> Result<()> {
        for lun in 0..self.luns.len() {
            self.allocate(lun)?;
        }
        for lun in (self.turn..).take(self.luns.len()) {
            let lun = lun % self.luns.len();
            let Lun { open, victim, .. } = &self.luns[lun];
            let is_full = self.free_pages(open[USER]) == 0;
            if victim.is_none() && is_full && self.waits(&self.luns[lun]) {
                self.clean(lun);
            }
            self.write_next(lun);
        }
        Ok(())
    }

    /// Allocates a block if the LUN has few of them, or if its victim may be erased by now.
    fn allocate(&mut self, lun: usize) -> Result<()> {
        let Lun { at, erased, victim, .. } = &self.luns[lun];
        let is_needed = erased.len() < 2 || victim.is_some_and(|(_, left)| left == 0);
        if is_needed && let Some(new) = self.flash.allocate(*at)? {
            let lun = self.lun(new);
            lun.victim = lun.victim.filter(|&(_, left)| left > 0);
            lun.erased.push_back(new);
        }
        Ok(())
    }

    /// Begins to read the valid pages of a victim.
    fn clean(&mut self, lun: usize) {
        let least = self.least_valid(&self.luns[lun]);
        let Some((count, victim)) = least.filter(|&(valid, _)| valid < self.per_block()) else {
            return;
        };
        let lun = &mut self.luns[lun];
        lun.victim = Some((victim, count));
        lun.open = lun.open.map(|open| open.filter(|&at| at != victim));
        let Block { owners, .. } = self.blocks.remove(&victim).expect("it was found");
        for (page, from) in owners.into_iter().zip((0..).map(|page| victim.with_page(page))) {
            if self.map[page] == Some(from) {
                let tag = self.in_flight(InFlight::Fetch(page, from));
                self.flash.read(from, vec![0; self.geometry.page_size as usize], tag);
            }
        }
        if count == 0 {
            self.erase(victim);
        }
    }

    fn erase(&mut self, victim: Address) {
        let tag = self.in_flight(InFlight::Erase(victim));
        self.flash.erase(victim, tag);
    }

    /// Writes a copy, or else a page of the buffer, if the LUN has no write in flight and a page
    /// for it.
    fn write_next(&mut self, number: usize) {
        let Lun { is_writing, fetched, .. } = &self.luns[number];
        let kind = if fetched.is_empty() { USER } else { COPY };
        if *is_writing || kind == USER && !self.buffer.has_next() {
            return;
        }
        let Some(to) = self.place(number, kind) else { return };
        let lun = &mut self.luns[number];
        let (page, from, data) = match lun.fetched.pop_front() {
            Some((page, from, data)) => (page, Some(from), data),
            None => {
                let (page, data) = self.buffer.next().expect("it has one");
                (page, None, data)
            }
        };
        lun.is_writing = true;
        self.turn = number + 1;
        self.copies += u64::from(from.is_some());
        let block = self.block(to);
        block.owners.push(page);
        block.writing += 1;
        let tag = self.in_flight(InFlight::Write(page, from, to));
        self.flash.write(to, data, tag);
    }

    /// A write is complete: maps the page, unless it is a copy and the user has written it
    /// meanwhile.
    fn written(&mut self, page: usize, from: Option<Address>, to: Address) {
        self.lun(to).is_writing = false;
        self.block(to).writing -= 1;
        if from.is_none() || self.map[page] == from {
            self.block(to).valid += 1;
            let old = self.map[page].replace(to).map(|old| old.with_page(0));
            // A victim counts no more.
            if let Some(old) = old.and_then(|old| self.blocks.get_mut(&old)) {
                old.valid -= 1;
            }
        }
        match from {
            Some(from) => self.moved(from),
            None => self.buffer.written(page, self.now()),
        }
    }

    /// Nothing is mapped to a page of a victim any more.
    fn moved(&mut self, from: Address) {
        let (victim, left) = self.lun(from).victim.as_mut().expect("it is being cleaned");
        *left -= 1;
        if *left == 0 {
            let victim = *victim;
            self.erase(victim);
        }
    }

    /// Waits for the next completion; `false` if no command is in flight.
    fn take_done(&mut self) -> Result<bool> {
        let Some(done) = self.flash.complete()? else {
            self.work()?;
            return Ok(self.in_flight.in_use() > 0);
        };
        done.result?;
        let place = done.tag as u32;
        self.in_flight.give(place);
        match std::mem::take(&mut self.in_flight[place]) {
            InFlight::None => unreachable!("the place was given to a command"),
            InFlight::Erase(at) => self.flash.erased(at),
            InFlight::Read(tag) => {
                let data = done.data.into_vec();
                self.buffer.done.push_back(Done { tag, end: done.end, data });
            }
            InFlight::Fetch(page, from) if self.map[page] == Some(from) => {
                self.lun(from).fetched.push_back((page, from, done.data.into_vec()));
            }
            InFlight::Fetch(_, from) => self.moved(from),
            InFlight::Write(page, from, to) => self.written(page, from, to),
        }
        self.work()?;
        Ok(true)
    }
}

impl<F: Flash> Store for LogStore<F> {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let end = self.now();
        self.buffer.write(page, Done { tag, end, data });
        self.work()
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let end = self.now();
        if let Some(Done { data, .. }) = self.buffer.read(page, Done { tag, end, data }) {
            let at = self.map[page].expect("only what was written is read");
            let tag = self.in_flight(InFlight::Read(tag));
            self.flash.read(at, data, tag);
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        while self.buffer.done.is_empty() && self.take_done()? {}
        Ok(self.buffer.done.pop_front())
    }

    fn flush(&mut self) -> Result<()> {
        while self.take_done()? {}
        assert!(self.buffer.is_empty(), "every page of the buffer finds a place");
        self.flash.sync()
    }
}
