//! The store at the raw level: it maps pages, allocates blocks over LUNs and cleans.
//!
//! Pages go to the LUNs in turn, what users write apart from what cleaning copies. Cleaning is
//! Algorithm IV.1 of the Prism-SSD paper: of the channels in turn the block with the least
//! valid data, with the reads of a victim begun at once and its copies and erase queued.

use std::collections::{BTreeMap, VecDeque};

use prism_flash::Result;
use prism_flash::raw::{Address, Command, Queue, Raw};

use super::{Done, Store};

/// Commands under way: those of the user, and copies beside them.
const DEPTH: usize = 64;
/// The tag of the store's own commands.
const OWN: u64 = u64::MAX;

/// A block: the owner of each page written, and how many of them are still there.
#[derive(Default)]
struct Block {
    owners: Vec<usize>,
    valid: usize,
}

/// Where the next page goes: what users write, what cleaning copies.
#[derive(Clone, Copy)]
enum Kind {
    User,
    Copy,
}

pub(super) struct RawStore<'a> {
    pub(super) raw: &'a Raw,
    queue: Queue<'a>,
    map: Vec<Option<Address>>,
    blocks: BTreeMap<Address, Block>,
    /// LUNs in the order of their turns, channel after channel, each with its erased blocks.
    erased: Vec<(Address, VecDeque<Address>)>,
    open: [Vec<Option<Address>>; 2],
    turn: [usize; 2],
    channel: u32,
    done: VecDeque<Done>,
    pub(super) copies: u64,
}

impl<'a> RawStore<'a> {
    pub(super) fn new(raw: &'a Raw, pages: usize) -> Self {
        let luns = raw.blocks().filter(|at| at.block == 0);
        let blocks_of = |lun: Address| {
            let all = 0..raw.geometry().blocks_per_lun;
            (lun, all.map(|block| Address { block, ..lun }).collect())
        };
        let mut erased: Vec<_> = luns.map(blocks_of).collect();
        erased.sort_by_key(|(lun, _)| (lun.lun, lun.channel));
        let open = vec![None; erased.len()];
        Self {
            raw,
            queue: raw.queue(DEPTH),
            map: vec![None; pages],
            blocks: raw.blocks().map(|at| (at, Block::default())).collect(),
            erased,
            open: [open.clone(), open],
            turn: [0; 2],
            channel: 0,
            done: VecDeque::new(),
            copies: 0,
        }
    }

    fn is_full(&self, at: Address) -> bool {
        self.blocks[&at].owners.len() == self.raw.geometry().pages_per_block as usize
    }

    /// A block with room on the next LUN that has one.
    fn open_block(&mut self, kind: Kind) -> Address {
        let luns = self.erased.len();
        for _ in 0..luns {
            let lun = self.turn[kind as usize];
            self.turn[kind as usize] = (lun + 1) % luns;
            let open = self.open[kind as usize][lun].filter(|&at| !self.is_full(at));
            if let Some(at) = open.or_else(|| self.erased[lun].1.pop_front()) {
                self.open[kind as usize][lun] = Some(at);
                return at;
            }
        }
        unreachable!("cleaning keeps more blocks erased than there are LUNs");
    }

    /// Gives `page` a new place.
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
        let channel = self.channel;
        self.channel = (channel + 1) % self.raw.geometry().channels.len() as u32;
        let of_channel = self.blocks.keys().filter(|at| at.channel == channel);
        let full = of_channel.copied().filter(|&at| self.is_full(at));
        let Some(victim) = full.min_by_key(|at| self.blocks[at].valid) else { return Ok(()) };
        for open in self.open.iter_mut().flatten() {
            *open = open.filter(|&at| at != victim);
        }
        let owners = std::mem::take(&mut self.blocks.get_mut(&victim).expect("found").owners);
        let places = (0..).map(|page| victim.with_page(page));
        let valid: Vec<_> = owners
            .into_iter()
            .zip(places)
            .filter(|&(page, at)| self.map[page] == Some(at))
            .collect();
        let page_size = self.raw.geometry().page_size as usize;
        let from: Vec<_> = valid.iter().map(|&(_, at)| at).collect();
        let mut data = vec![0; valid.len() * page_size];
        self.raw.read_pages(&from, &mut data).map_err(|error| error.error)?;
        for ((page, _), data) in valid.into_iter().zip(data.chunks(page_size)) {
            let at = self.place(page, Kind::Copy);
            self.submit(Command::Write { at, data: data.to_vec() }, OWN)?;
            self.copies += 1;
        }
        self.submit(Command::Erase { at: victim }, OWN)?;
        let lun = Address { block: 0, ..victim };
        let of_lun = self.erased.iter_mut().find(|(known, _)| *known == lun);
        of_lun.expect("a LUN of the share").1.push_back(victim);
        Ok(())
    }

    fn submit(&mut self, mut command: Command, tag: u64) -> Result<()> {
        while let Err(refused) = self.queue.submit(command, tag) {
            command = refused;
            self.take_done()?;
        }
        Ok(())
    }

    /// Waits for the next command; whether there was one.
    fn take_done(&mut self) -> Result<bool> {
        let Some(done) = self.queue.complete() else { return Ok(false) };
        done.result?;
        if done.tag != OWN {
            self.done.push_back(Done { tag: done.tag, end: done.end, data: done.data });
        }
        Ok(true)
    }
}

impl Store for RawStore<'_> {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        while self.erased.iter().map(|(_, blocks)| blocks.len()).sum::<usize>()
            < 2 * self.erased.len()
        {
            self.clean()?;
        }
        let at = self.place(page, Kind::User);
        self.submit(Command::Write { at, data }, tag)
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let at = self.map[page].expect("only what was written is read");
        self.submit(Command::Read { at, data }, tag)
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
