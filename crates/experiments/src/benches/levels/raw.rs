//! The store at the raw level: it maps pages, allocates blocks of the LUNs and cleans.
//!
//! A page goes to the LUN with the fewest commands in flight. Users' pages and copies go to
//! separate blocks. Cleaning is Algorithm IV.1 of the Prism-SSD paper with LUNs instead of
//! channels: the victim is the block with the least valid data on the LUN with the fewest erased
//! blocks. Its reads, copies and erase are queued among the commands of the user.

use std::collections::{BTreeMap, VecDeque};

use prism_base::Slab;
use prism_flash::Result;
use prism_flash::raw::{Address, Command, Queue, Raw};

use super::{Done, Store};

/// Commands in flight: those of the user, and copies.
const DEPTH: usize = 64;
/// The tag of commands that the store issues for cleaning. In the queue, the upper half of a tag is
/// the LUN.
const OWN: u64 = u32::MAX as u64;
/// Tags with this bit are those of reads of victims; the bits below are a place in
/// [`RawStore::reads`].
const VICTIM: u64 = 1 << 31;

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
    /// Victims whose pages are being read.
    victims: usize,
}

impl Lun {
    /// Blocks that are erased, or will be when their pages are copied.
    fn left(&self) -> usize {
        self.erased.len() + self.victims
    }
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
    /// Pages of victims that are being read: the store's page, and where it is.
    reads: Slab<Option<(usize, Address)>>,
    /// Victims, with the number of their pages that are being read.
    victims: BTreeMap<Address, usize>,
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
            victims: 0,
        };
        Self {
            raw,
            queue: raw.queue(DEPTH),
            map: vec![None; pages],
            blocks: raw.blocks().map(|at| (at, Block::default())).collect(),
            luns: raw.blocks().filter(|at| at.block == 0).map(lun).collect(),
            turn: 0,
            done: VecDeque::new(),
            reads: Slab::new(),
            victims: BTreeMap::new(),
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

    /// Begins to clean a block: reads its valid pages. Returns false if no block is full.
    fn clean(&mut self) -> Result<bool> {
        let lun = (0..self.luns.len()).min_by_key(|&lun| self.luns[lun].left());
        let lun = lun.expect("a share has LUNs");
        let first = self.luns[lun].at;
        let last = Address { block: u32::MAX, ..first };
        let of_lun = self.blocks.range(first..last).map(|(&at, _)| at);
        let full = of_lun.filter(|&at| self.is_full(at) && !self.victims.contains_key(&at));
        let Some(victim) = full.min_by_key(|at| self.blocks[at].valid) else { return Ok(false) };
        for open in self.luns.iter_mut().flat_map(|lun| &mut lun.open) {
            *open = open.filter(|&at| at != victim);
        }
        let placed = self.blocks[&victim].owners.iter().copied().zip(0..);
        let placed = placed.map(|(page, number)| (page, victim.with_page(number)));
        let valid: Vec<_> = placed.filter(|&(page, at)| self.map[page] == Some(at)).collect();
        self.luns[lun].victims += 1;
        self.victims.insert(victim, valid.len());
        if valid.is_empty() {
            self.erase(victim)?;
        }
        for (page, at) in valid {
            let place = self.reads.take();
            self.reads[place] = Some((page, at));
            let data = vec![0; self.raw.geometry().page_size as usize];
            self.submit(at, Command::read(at, data), VICTIM | u64::from(place))?;
        }
        Ok(true)
    }

    /// A page of a victim was read: copies it, unless the user has written it meanwhile.
    fn copy(&mut self, place: u32, data: Vec<u8>) -> Result<()> {
        let (page, from) = self.reads[place].take().expect("a page that was read");
        self.reads.give(place);
        if self.map[page] == Some(from) {
            let at = self.place(page, Kind::Copy);
            self.submit(at, Command::write(at, data), OWN)?;
            self.copies += 1;
        }
        let victim = from.with_page(0);
        let left = self.victims.get_mut(&victim).expect("a block that is being cleaned");
        *left -= 1;
        if *left == 0 { self.erase(victim) } else { Ok(()) }
    }

    /// Erases a victim after its reads, which the queue orders.
    fn erase(&mut self, victim: Address) -> Result<()> {
        self.victims.remove(&victim);
        *self.blocks.get_mut(&victim).expect("a block of the share") = Block::default();
        self.submit(victim, Command::Erase { at: victim }, OWN)?;
        let lun = self.lun_of(victim);
        self.luns[lun].victims -= 1;
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
        if tag != OWN && tag & VICTIM != 0 {
            self.copy((tag & !VICTIM) as u32, done.data.into_vec())?;
        } else if tag != OWN {
            self.done.push_back(Done { tag, end: done.end, data: done.data.into_vec() });
        }
        Ok(true)
    }
}

impl Store for RawStore<'_> {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let all = |left: fn(&Lun) -> usize, luns: &[Lun]| luns.iter().map(left).sum::<usize>();
        while all(Lun::left, &self.luns) < self.luns.len() && self.clean()? {}
        // The last erased blocks are for copies.
        while all(|lun| lun.erased.len(), &self.luns) < self.luns.len() / 2 && self.take_done()? {}
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
