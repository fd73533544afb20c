//! The store at the raw level: it maps pages, allocates blocks of the LUNs and cleans.
//!
//! A page goes to the LUN with the fewest commands in flight. Users' pages and copies go to
//! separate blocks. Cleaning is Algorithm IV.1 of the Prism-SSD paper with LUNs instead of
//! channels: the victim is the block with the least valid data on the LUN with the fewest erased
//! blocks. The store waits for the reads of a victim, which are issued together; its copies and
//! its erase are queued.

use std::collections::{BTreeMap, VecDeque};

use prism_flash::Result;
use prism_flash::raw::{Address, Command, Queue, Raw};

use super::{Done, Store};

/// Commands in flight: those of the user, and copies.
const DEPTH: usize = 64;
/// The tag of commands that the store issues for cleaning. In the queue, the upper half of a tag is
/// the LUN.
const OWN: u64 = u32::MAX as u64;

/// A block: the store's page in each page written, and how many of them are still valid.
#[derive(Default)]
struct Block {
    owners: Vec<usize>,
    valid: usize,
}

/// Why a page is written.
#[derive(Clone, Copy)]
enum Kind {
    User,
    Copy,
}

struct Lun {
    /// The address of its first page.
    at: Address,
    erased: VecDeque<Address>,
    /// Open blocks, by kind.
    open: [Option<Address>; 2],
    /// Commands in flight.
    busy: u32,
}

pub(super) struct RawStore<'a> {
    pub(super) raw: &'a Raw,
    queue: Queue<&'a Raw>,
    map: Vec<Option<Address>>,
    blocks: BTreeMap<Address, Block>,
    luns: Vec<Lun>,
    /// The LUN that comes first among those with equally few commands in flight.
    turn: usize,
    done: VecDeque<Done>,
    pub(super) copies: u64,
}

impl<'a> RawStore<'a> {
    pub(super) fn new(raw: &'a Raw, pages: usize) -> Self {
        let blocks = 0..raw.geometry().blocks_per_lun;
        let lun = |at: Address| Lun {
            at,
            erased: blocks.clone().map(|block| Address { block, ..at }).collect(),
            open: [None; 2],
            busy: 0,
        };
        Self {
            raw,
            queue: raw.queue(DEPTH),
            map: vec![None; pages],
            blocks: raw.blocks().map(|at| (at, Block::default())).collect(),
            luns: raw.blocks().filter(|at| at.block == 0).map(lun).collect(),
            turn: 0,
            done: VecDeque::new(),
            copies: 0,
        }
    }

    fn lun_of(&self, at: Address) -> usize {
        let is_of = |lun: &Lun| (lun.at.channel, lun.at.lun) == (at.channel, at.lun);
        self.luns.iter().position(is_of).expect("a LUN of the share")
    }

    fn is_full(&self, at: Address) -> bool {
        self.blocks[&at].owners.len() == self.raw.geometry().pages_per_block as usize
    }

    /// A block with free pages on the least busy LUN that has one.
    fn open_block(&mut self, kind: Kind) -> Address {
        let open = |lun: &Lun| lun.open[kind as usize].filter(|&at| !self.is_full(at));
        let block = |lun: &Lun| open(lun).or_else(|| lun.erased.front().copied());
        let luns = (self.turn..self.turn + self.luns.len()).map(|lun| lun % self.luns.len());
        let with_room = luns.filter_map(|lun| Some((lun, block(&self.luns[lun])?)));
        let (lun, at) = with_room
            .min_by_key(|&(lun, _)| self.luns[lun].busy)
            .expect("cleaning keeps more blocks erased than there are LUNs");
        self.turn = lun + 1;
        let lun = &mut self.luns[lun];
        if lun.erased.front() == Some(&at) {
            lun.erased.pop_front();
        }
        lun.open[kind as usize] = Some(at);
        at
    }

    /// Maps `page` to the next free page.
    fn place(&mut self, page: usize, kind: Kind) -> Address {
        let at = self.open_block(kind);
        let block = self.blocks.get_mut(&at).expect("a block of the share");
        let place = at.with_page(block.owners.len() as u32);
        block.owners.push(page);
        block.valid += 1;
        if let Some(old) = self.map[page].replace(place) {
            self.blocks.get_mut(&old.with_page(0)).expect("a block of the share").valid -= 1;
        }
        place
    }

    fn clean(&mut self) -> Result<()> {
        let lun = (0..self.luns.len()).min_by_key(|&lun| self.luns[lun].erased.len());
        let first = self.luns[lun.expect("a share has LUNs")].at;
        let last = Address { block: u32::MAX, ..first };
        let of_lun = self.blocks.range(first..last).map(|(&at, _)| at);
        let full = of_lun.filter(|&at| self.is_full(at));
        let Some(victim) = full.min_by_key(|at| self.blocks[at].valid) else { return Ok(()) };
        for open in self.luns.iter_mut().flat_map(|lun| &mut lun.open) {
            *open = open.filter(|&at| at != victim);
        }
        let owners = std::mem::take(&mut self.blocks.get_mut(&victim).expect("found").owners);
        let placed = owners.into_iter().zip((0..).map(|page| victim.with_page(page)));
        let valid: Vec<_> = placed.filter(|&(page, at)| self.map[page] == Some(at)).collect();
        let page_size = self.raw.geometry().page_size as usize;
        let from: Vec<_> = valid.iter().map(|&(_, at)| at).collect();
        let mut data = vec![0; valid.len() * page_size];
        self.raw.read_pages(&from, &mut data).map_err(|error| error.error)?;
        for ((page, _), data) in valid.into_iter().zip(data.chunks(page_size)) {
            let at = self.place(page, Kind::Copy);
            self.submit(at, Command::write(at, data.to_vec()), OWN)?;
            self.copies += 1;
        }
        self.submit(victim, Command::Erase { at: victim }, OWN)?;
        let lun = self.lun_of(victim);
        self.luns[lun].erased.push_back(victim);
        Ok(())
    }

    fn submit(&mut self, at: Address, mut command: Command, tag: u64) -> Result<()> {
        let lun = self.lun_of(at);
        self.luns[lun].busy += 1;
        while let Err(refused) = self.queue.submit(command, (lun as u64) << 32 | tag) {
            command = refused;
            self.take_done()?;
        }
        Ok(())
    }

    /// Waits for the next completion; `false` if no command is in flight.
    fn take_done(&mut self) -> Result<bool> {
        let Some(done) = self.queue.complete() else { return Ok(false) };
        done.result?;
        self.luns[(done.tag >> 32) as usize].busy -= 1;
        let tag = done.tag & OWN;
        if tag != OWN {
            self.done.push_back(Done { tag, end: done.end, data: done.data.into_vec() });
        }
        Ok(true)
    }
}

impl Store for RawStore<'_> {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        while self.luns.iter().map(|lun| lun.erased.len()).sum::<usize>() < 2 * self.luns.len() {
            self.clean()?;
        }
        let at = self.place(page, Kind::User);
        self.submit(at, Command::write(at, data), tag)
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let at = self.map[page].expect("only what was written is read");
        self.submit(at, Command::read(at, data), tag)
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        while self.done.is_empty() && self.take_done()? {}
        Ok(self.done.pop_front())
    }

    fn flush(&mut self) -> Result<()> {
        while self.take_done()? {}
        self.raw.sync()
    }
}
