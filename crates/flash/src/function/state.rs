//! The state of the function level; on a device with timing it issues queued commands in the order
//! of virtual time.

use std::collections::BTreeMap;

use prism_base::{FastMap, Nanos, SimTime};
use prism_nand::Cause;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::function::blocks::{Blocks, Use};
use crate::function::schedule::{Choice, Class, Item, Queues};
use crate::function::{Command, Unit, check_oob};
use crate::medium::PageState;
use crate::monitor::{Share, ShareGeometry};
use crate::raw::{Address, Completion, block_number};

/// The latest time.
const MAX: SimTime = SimTime(u64::MAX);

#[derive(Debug)]
pub(super) struct State {
    pub(super) share: Share,
    pub(super) geometry: ShareGeometry,
    pub(super) blocks: Blocks,
    pub(super) queues: Queues,
    /// By LUN of the share: its channel and its number there.
    positions: Vec<(u32, u32)>,
    /// By channel: the block from which pages are allocated.
    pub(super) open: Vec<Option<u32>>,
    /// Blocks allocated page by page that may be partly written; used if the device limits those.
    pub(super) filling: Vec<u32>,
    /// Completions of queued commands by queue, in order.
    done: BTreeMap<(u64, SimTime, u64), Completion>,
    /// Queues that were opened.
    pub(super) opened: u64,
    /// Commands by queue whose completion was not taken.
    commands: FastMap<u64, usize>,
    /// On a device without timing: trimmed blocks whose erase waits for commands in progress.
    deferred: Vec<u32>,
    /// Erases in flight, by their end.
    pub(super) erasing: BTreeMap<(SimTime, u64), u32>,
    /// The completion of the blocking call.
    finished: Option<Completion>,
    /// The error of a background erase, not reported yet.
    pub(super) erase_error: Option<FlashError>,
    /// Latencies of the last page read and the last page written.
    pub(super) took: [Nanos; 2],
    submitted: u64,
    begun: u64,
    buffer: Vec<u8>,
}

impl State {
    pub(super) fn open(share: Share) -> Result<Self> {
        let geometry = share.geometry()?;
        let (luns, per_lun, pages) =
            (geometry.luns, geometry.blocks_per_lun, geometry.pages_per_block);
        let mut positions = vec![(0, 0); luns as usize];
        for (channel, luns) in (0u32..).zip(&geometry.channels) {
            for (lun, &number) in (0u32..).zip(luns) {
                positions[number as usize] = (channel, lun);
            }
        }
        let mut state = Self {
            share,
            blocks: Blocks::new(luns, per_lun, pages),
            queues: Queues::new(luns, luns * per_lun),
            positions,
            open: vec![None; geometry.channels.len()],
            filling: Vec::new(),
            done: BTreeMap::new(),
            opened: 0,
            commands: FastMap::default(),
            deferred: Vec::new(),
            erasing: BTreeMap::new(),
            finished: None,
            erase_error: None,
            took: [Nanos(0); 2],
            submitted: 0,
            begun: 0,
            buffer: Vec::new(),
            geometry,
        };
        state.blocks.reserve = state.geometry.ops_luns * per_lun;
        state.find()?;
        Ok(state)
    }

    /// Finds the state of each block; one whose erase was interrupted is erased again.
    fn find(&mut self) -> Result<()> {
        let now = self.share.now_if_timed()?;
        for block in 0..self.blocks.count() {
            if self.share.write_pointer(block)? > 0 {
                continue;
            }
            self.blocks.trim_block(block);
            match self.share.state_of(block)? {
                PageState::Torn => self.erase_later(block, now),
                _ => self.blocks.put_erased(block, self.share.erases(block)?),
            }
        }
        Ok(())
    }

    pub(super) fn address(&self, block: u32, page: u32) -> Address {
        let (channel, lun) = self.positions[self.blocks.lun_of(block) as usize];
        Address { channel, lun, block: block % self.geometry.blocks_per_lun, page }
    }

    /// Issues all commands that could start before now, and frees blocks erased by now. Returns the
    /// share's clock.
    pub(super) fn settle(&mut self) -> Result<SimTime> {
        let now = self.share.now_if_timed()?;
        while let Some(choice) = self.queues.next().filter(|choice| choice.ready < now) {
            self.begin(choice);
        }
        self.take_erased(now)?;
        Ok(now)
    }

    pub(super) fn take_erased(&mut self, now: SimTime) -> Result<()> {
        while let Some(entry) = self.erasing.first_entry().filter(|entry| entry.key().0 <= now) {
            let block = entry.remove();
            self.blocks.put_erased(block, self.share.erases(block)?);
        }
        Ok(())
    }

    /// On a device without timing: erases trimmed blocks that no command in progress uses.
    pub(super) fn erase_idle(&mut self) -> Result<()> {
        for block in std::mem::take(&mut self.deferred) {
            if !self.blocks.table.is_idle(block) {
                self.deferred.push(block);
                continue;
            }
            match self.share.erase(self.share.access(block, 0, Cause::Host, SimTime::ZERO)) {
                Ok(_) => self.blocks.put_erased(block, self.share.erases(block)?),
                Err(error) => {
                    self.blocks.put_lost(block);
                    self.erase_error.get_or_insert(error);
                }
            }
        }
        Ok(())
    }

    /// Erases a trimmed block when its LUN has time, or when no command in progress uses it.
    fn erase_later(&mut self, block: u32, now: SimTime) {
        if self.share.is_timed() {
            self.push_erase(block, now);
        } else {
            self.deferred.push(block);
        }
    }

    /// Issues the next command; returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        let next = self.queues.next();
        next.inspect(|&choice| self.begin(choice)).is_some()
    }

    fn begin(&mut self, choice: Choice) {
        self.begun += 1;
        match choice.class {
            Class::Erase => self.begin_erase(choice),
            Class::Read | Class::Write => self.begin_page(choice),
        }
    }

    fn begin_erase(&mut self, choice: Choice) {
        let Item { block, .. } = self.queues.remove(choice);
        match self.share.erase(self.share.access(block, 0, Cause::Host, choice.ready)) {
            Ok(end) => {
                self.queues.occupy(choice.lun, end);
                self.erasing.insert((end, self.begun), block);
            }
            Err(error) => {
                self.blocks.put_lost(block);
                self.erase_error.get_or_insert(error);
            }
        }
    }

    fn begin_page(&mut self, choice: Choice) {
        let page_size = self.geometry.page_size as usize;
        let item = self.queues.chosen(choice);
        let (block, page, done) = (item.block, item.page, item.done);
        let access = self.share.access(block, page, Cause::Host, choice.ready);
        let data = &mut item.data[done..done + page_size];
        let result = match choice.class {
            Class::Read => self.share.read(access, 0, data, &mut []),
            _ => {
                self.blocks.table.note_begun(block);
                let oob = if done == 0 { &item.oob[..] } else { &[] };
                self.share.program(access, data, oob).map(|p| (PageState::Written, p.end))
            }
        };
        let at = self.address(block, page);
        let error = match result {
            Ok((PageState::Written, end)) => {
                self.queues.occupy(choice.lun, end);
                self.took[choice.class as usize] = end.since(choice.ready);
                self.queues.begun(choice, page_size);
                if self.queues.chosen(choice).left == 0 {
                    self.finish(choice, end, Ok(()));
                }
                return;
            }
            Ok((PageState::Erased, _)) => FlashError::Unwritten { at },
            Ok((PageState::Torn, _)) => FlashError::Torn { at },
            Err(FlashError::OutOfOrder { expected, .. }) if self.may_pad(block, expected, page) => {
                match self.pad(block, expected, choice) {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        self.finish(choice, choice.ready, Err(error));
    }

    /// Whether all pages from `first` to before `page` were trimmed before they were written.
    pub(super) fn may_pad(&self, block: u32, first: u32, page: u32) -> bool {
        first < page && (first..page).all(|page| self.blocks.was_trimmed(block, page))
    }

    /// Programs a page that was trimmed before it was written, so that later ones can be.
    fn pad(&mut self, block: u32, page: u32, choice: Choice) -> Result<()> {
        let zeros = vec![0; self.geometry.page_size as usize];
        let access = self.share.access(block, page, Cause::Pad, choice.ready);
        let end = self.share.program(access, &zeros, &[])?.end;
        self.queues.occupy(choice.lun, end);
        Ok(())
    }

    fn finish(&mut self, choice: Choice, end: SimTime, result: Result<()>) {
        let item = self.queues.remove(choice);
        self.put_done(item.tag, end, result, item.data);
    }

    fn put_done(
        &mut self,
        tag: Option<(u64, u64)>,
        end: SimTime,
        result: Result<()>,
        data: Buffer,
    ) {
        let (queue, number) = tag.unwrap_or_default();
        let completion = Completion { tag: number, end, result, data };
        self.begun += 1;
        match tag {
            Some(_) => {
                self.done.insert((queue, end, self.begun), completion);
            }
            None => self.finished = Some(completion),
        }
    }

    /// Commands of a queue whose completion was not taken yet.
    pub(super) fn commands(&self, queue: u64) -> usize {
        self.commands.get(&queue).copied().unwrap_or(0)
    }

    /// Queues a command; one that is refused completes at once.
    pub(super) fn submit(&mut self, command: Command, tag: (u64, u64)) {
        *self.commands.entry(tag.0).or_default() += 1;
        let (now, tag) = match self.settle() {
            Ok(now) => (now, Some(tag)),
            Err(error) => {
                let data = command.into_buffer();
                return self.put_done(Some(tag), SimTime::ZERO, Err(error), data);
            }
        };
        match command {
            Command::Read { at, data } => {
                self.push(Class::Read, tag, at, (data, Vec::new()), now);
            }
            Command::Write { at, data, oob } => {
                self.push(Class::Write, tag, at, (data, oob), now);
            }
            Command::Trim { at, unit } => {
                let result = self.trim(at, unit, now);
                self.put_done(tag, now, result, Buffer::default());
            }
            Command::Sync => {
                let result = self.share.sync();
                self.put_done(tag, now, result, Buffer::default());
            }
        }
    }

    fn push(
        &mut self,
        class: Class,
        tag: Option<(u64, u64)>,
        at: Address,
        (data, oob): (Buffer, Vec<u8>),
        now: SimTime,
    ) {
        self.submitted += 1;
        let oob_checked = check_oob(&self.geometry, oob.len());
        match oob_checked.and_then(|()| self.check(at, data.len())) {
            Ok((_, 0)) => self.put_done(tag, now, Ok(()), data),
            Ok((block, pages)) => {
                let place = (block, at.page, pages);
                let item = Item::new(self.submitted, tag, place, (data, oob), now);
                self.queues.push(self.blocks.lun_of(block), class, item);
            }
            Err(error) => self.put_done(tag, now, Err(error), data),
        }
    }

    /// The block and the number of its pages, which all have to be allocated.
    pub(super) fn check(&self, at: Address, len: usize) -> Result<(u32, u32)> {
        let block = block_number(&self.geometry, at)?;
        let (unit, pages) = (self.geometry.page_size, self.geometry.pages_per_block);
        if !len.is_multiple_of(unit as usize) {
            let (what, value) = ("a length of", len as u64);
            return Err(FlashError::Unaligned { what, value, unit: unit.into() });
        }
        let count = (len / unit as usize) as u64;
        let end = u64::from(at.page) + count;
        if end > pages.into() {
            let (what, value) = ("page", end - 1);
            return Err(FlashError::OutOfRange { what, value, count: pages.into() });
        }
        if self.blocks.state(block) != Use::Allocated {
            return Err(FlashError::NotAllocated { what: "block", number: at.block.into() });
        }
        match (at.page..end as u32).find(|&page| !self.blocks.is_allocated(block, page)) {
            Some(page) => Err(FlashError::NotAllocated { what: "page", number: page.into() }),
            None => Ok((block, count as u32)),
        }
    }

    /// Executes a read or a write in virtual time; returns the buffer too.
    pub(super) fn run(
        &mut self,
        class: Class,
        at: Address,
        data: Vec<u8>,
        oob: Vec<u8>,
    ) -> Result<(Result<()>, Vec<u8>)> {
        let now = self.settle()?;
        self.push(class, None, at, (data.into(), oob), now);
        while self.finished.is_none() {
            assert!(self.step(), "a queued command can be issued");
        }
        let done = self.finished.take().expect("just seen");
        self.share.reach_if_timed(done.end)?;
        Ok((done.result, done.data.into_vec()))
    }

    /// A buffer of `len` bytes, to be returned with [`State::put_buffer`].
    pub(super) fn take_buffer(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(len, 0);
        buffer
    }

    pub(super) fn put_buffer(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }

    /// The end of the next completion of a queue; issues the commands before it.
    pub(super) fn next_end(&mut self, queue: u64) -> Option<SimTime> {
        loop {
            let mut of_queue = self.done.range((queue, SimTime::ZERO, 0)..=(queue, MAX, u64::MAX));
            let first = of_queue.next().map(|(&(_, end, _), _)| end);
            if first.is_none() && self.commands(queue) == 0 {
                return None;
            }
            // A command that can start when another ends is chosen after that completion was taken.
            match self.queues.next() {
                Some(choice) if first.is_none_or(|end| choice.ready < end) => self.begin(choice),
                _ => return first,
            }
        }
    }

    /// The next completion of a queue.
    pub(super) fn complete(&mut self, queue: u64) -> Option<Completion> {
        let end = self.next_end(queue)?;
        let (&key, _) = self.done.range((queue, end, 0)..).next()?;
        let completion = self.done.remove(&key)?;
        *self.commands.entry(queue).or_default() -= 1;
        // A released share has no clock, and its commands have failed.
        let _ = self.share.reach_if_timed(completion.end);
        Some(completion)
    }

    /// Forgets a queue: its commands take effect, and their completions are dropped.
    pub(super) fn close(&mut self, queue: u64) {
        while self.next_end(queue).is_some() {
            let Some((&key, _)) = self.done.range((queue, SimTime::ZERO, 0)..).next() else {
                break;
            };
            self.done.remove(&key);
            *self.commands.entry(queue).or_default() -= 1;
        }
        self.commands.remove(&queue);
    }

    /// Trims a block or a page.
    pub(super) fn trim(&mut self, at: Address, unit: Unit, now: SimTime) -> Result<()> {
        let block = block_number(&self.geometry, at)?;
        if self.blocks.state(block) != Use::Allocated {
            return Err(FlashError::NotAllocated { what: "block", number: at.block.into() });
        }
        if unit == Unit::Page {
            if !self.blocks.is_allocated(block, at.page) {
                return Err(FlashError::NotAllocated { what: "page", number: at.page.into() });
            }
            if !self.blocks.trim_page(block, at.page) {
                return Ok(());
            }
        }
        self.blocks.trim_block(block);
        let open = &mut self.open[at.channel as usize];
        *open = open.filter(|&open| open != block);
        self.filling.retain(|&filling| filling != block);
        let idle = self.queues.is_idle(block) && self.blocks.table.is_idle(block);
        if idle && !self.blocks.table.is_begun(block) {
            // Nothing was written, so there is nothing to erase.
            self.blocks.put_erased(block, self.share.erases(block)?);
        } else {
            self.erase_later(block, now);
        }
        Ok(())
    }

    fn push_erase(&mut self, block: u32, now: SimTime) {
        self.submitted += 1;
        let none = (Buffer::default(), Vec::new());
        let item = Item::new(self.submitted, None, (block, 0, 0), none, now);
        self.queues.push(self.blocks.lun_of(block), Class::Erase, item);
    }

    /// Issues all erases, and the commands before them, and waits for the erases.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.settle()?;
        self.erase_idle()?;
        while self.queues.erases() > 0 && self.step() {}
        if let Some((&(end, _), _)) = self.erasing.last_key_value() {
            self.share.reach_if_timed(end)?;
            self.take_erased(end)?;
        }
        self.erase_error.take().map_or(Ok(()), Err)
    }
}
