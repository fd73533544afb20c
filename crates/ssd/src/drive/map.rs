//! A map on flash, of which a part is cached (mapping `dftl`).
//!
//! Translation pages are logical units that follow those of the host, and are buffered, programmed,
//! cleaned and recovered like these. A command first loads the entries it needs, with one flash
//! read for each missing translation page; commands that miss the same page share the read. When a
//! changed entry is evicted, or cleaning has moved a unit, its translation page is rewritten in the
//! background: the old content is read, and the new content goes through the write buffer in a
//! stream of its own.

use std::collections::VecDeque;

use prism_base::{FastMap, FastSet, snapshot_fields};
use prism_ftl::{Evicted, MapCache, MapCounts, ReadRecovery, ReadRun};
use prism_nand::Cause;

use super::{Drive, FILL, MAP};
use crate::buffer::State;
use crate::spec::{DriveSpec, MapLoad, Mapping};
use prism_engine::block::{Completion, HostOp, Request};

/// Pages that may wait to be rewritten before commands have to wait: without a limit the cache
/// could evict changed entries faster than flash stores them. A command waits for as many rewrites
/// at most: rewrites call for cleaning, which moves units, so that on a full drive each rewrite may
/// cause another one, and the number of waiting pages never falls.
const REWRITES_MAX: usize = 64;

/// The cache of a map on flash, with its reads and rewrites.
#[derive(Debug)]
pub(crate) struct MapState {
    cache: MapCache,
    whole_pages: bool,
    counts: MapCounts,
    /// Commands that wait for a translation page to be read.
    loading: FastMap<u32, Vec<u32>>,
    /// Translation pages to be rewritten, oldest first, and the same pages as a set.
    rewrites: VecDeque<u32>,
    queued: FastSet<u32>,
    /// Rewrites begun since the drive was switched on.
    begun: u64,
    /// Commands that wait because too many rewrites are pending, each with the number of begun
    /// rewrites after which it goes on in any case.
    held: VecDeque<(u32, u64)>,
    /// A rewrite has taken the only place of the buffer, for which a write waits: the write takes
    /// the place next. Never set while no write waits.
    host_is_next: bool,
}

snapshot_fields!(MapState { parts: cache; values: rewrites; });

impl MapState {
    /// The state for `device`; `None` if its map is in memory.
    pub(crate) fn new(device: &DriveSpec) -> Option<Box<Self>> {
        if device.ftl.mapping != Mapping::Dftl {
            return None;
        }
        let bytes = device.ftl.map_cache.map_or(0, |cache| cache.0);
        let entries = usize::try_from(bytes / DriveSpec::MAP_ENTRY).unwrap_or(usize::MAX);
        Some(Box::new(Self {
            cache: MapCache::new(entries, device.entries_per_translation_page()),
            whole_pages: device.ftl.map_load == MapLoad::Page,
            counts: MapCounts::default(),
            loading: FastMap::default(),
            rewrites: VecDeque::new(),
            queued: FastSet::default(),
            begun: 0,
            held: VecDeque::new(),
            host_is_next: false,
        }))
    }

    /// Cancels all rewrites. Returns the commands that waited for them.
    pub(crate) fn cancel_rewrites(&mut self) -> Vec<u32> {
        self.rewrites.clear();
        self.queued.clear();
        self.held.drain(..).map(|(slot, _)| slot).collect()
    }

    /// The host has had its turn: units of it are in the buffer, or it had none to write.
    pub(crate) fn host_admitted(&mut self) {
        self.host_is_next = false;
    }

    /// Whether no command waits for the map. Pages may be waiting to be rewritten, which happens
    /// only while requests are in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.loading.is_empty() && self.held.is_empty()
    }

    /// That what was loaded names units of the host, below `units`, and each translation page,
    /// below `map_units`, once.
    pub(crate) fn check(&mut self, units: u32, map_units: u32) -> Result<(), &'static str> {
        self.queued = self.rewrites.iter().copied().filter(|&page| page < map_units).collect();
        match self.cache.is_below(units) && self.queued.len() == self.rewrites.len() {
            true => Ok(()),
            false => Err("the map on flash has other pages or entries"),
        }
    }

    fn queue_rewrite(&mut self, page: u32) {
        self.counts.writebacks += 1;
        if self.queued.insert(page) {
            self.rewrites.push_back(page);
        }
    }

    /// The oldest page to be rewritten; its rewrite begins.
    fn next_rewrite(&mut self) -> Option<u32> {
        let page = self.rewrites.pop_front()?;
        self.queued.remove(&page);
        self.cache.clean_page(page);
        self.begun += 1;
        Some(page)
    }

    /// A command that waits for rewrites and may go on.
    fn release(&mut self) -> Option<u32> {
        let &(slot, latest) = self.held.front()?;
        let may_go_on = self.rewrites.len() < REWRITES_MAX || self.begun >= latest;
        may_go_on.then(|| {
            self.held.pop_front();
            slot
        })
    }

    /// Caches an entry. Pages of changed entries that are evicted for it have to be rewritten.
    fn insert(&mut self, lpn: u32, change: bool) {
        while self.cache.is_over(1) {
            if let Some(Evicted::Dirty(page)) = self.cache.evict() {
                self.queue_rewrite(page);
            }
        }
        self.cache.insert(lpn, true, change);
    }

    /// Caches the rest of a translation page, as far as it fits, as the first entries to be
    /// evicted.
    fn insert_rest(&mut self, first: u32, end: u32) {
        let room = (end - first) as usize;
        while self.cache.is_over(room) {
            match self.cache.evict() {
                Some(Evicted::Dirty(page)) => self.queue_rewrite(page),
                Some(Evicted::Clean) => {}
                None => break,
            }
        }
        for lpn in first..end {
            if !self.cache.is_over(1) {
                self.cache.insert(lpn, false, false);
            }
        }
    }
}

impl Drive {
    /// Hits, misses, loads and write-backs of the map cache; `None` if the map is in memory.
    #[must_use]
    pub fn map_counts(&self) -> Option<&MapCounts> {
        self.map.as_ref().map(|map| &map.counts)
    }

    /// Loads the map entries that `slot` needs. Returns false if it has to wait for them; it is
    /// performed when the last one has arrived.
    pub(super) fn load_map(&mut self, slot: u32) -> bool {
        if self.read_only.is_some() {
            // The map no longer changes, so no lookup has to be simulated.
            return true;
        }
        let Some(map) = &mut self.map else { return true };
        let uses_map = match self.slots[slot].request.op {
            HostOp::Flush => false,
            HostOp::Discard => self.device.drive.discards,
            _ => true,
        };
        if uses_map && map.rewrites.len() >= REWRITES_MAX {
            map.held.push_back((slot, map.begun + REWRITES_MAX as u64));
            return false;
        }
        !uses_map || self.use_map(slot)
    }

    /// As [`Drive::load_map`], for a command that uses the map and waits for no rewrites.
    pub(super) fn use_map(&mut self, slot: u32) -> bool {
        let Some(mut map) = self.map.take() else { return true };
        let request = self.slots[slot].request;
        let ready = match request.op {
            HostOp::Discard | HostOp::WriteZeroes => {
                self.drop_entries(&mut map, &request);
                true
            }
            HostOp::Read | HostOp::Write => self.load_entries(&mut map, slot),
            _ => unreachable!("a drive with a cached map has no zones"),
        };
        self.map = Some(map);
        ready
    }

    /// Whether commands wait for rewrites of translation pages.
    pub(super) fn is_held(&self) -> bool {
        self.map.as_ref().is_some_and(|map| !map.held.is_empty())
    }

    /// Units that a request touches: the first, and the one after the last.
    fn units_of(&self, request: &Request) -> (u32, u32) {
        let last = self.unit_of(request.offset + request.len - 1);
        (self.unit_of(request.offset), last + 1)
    }

    fn load_entries(&mut self, map: &mut MapState, slot: u32) -> bool {
        let request = self.slots[slot].request;
        let change = request.op == HostOp::Write;
        let (first, end) = self.units_of(&request);
        let mut missing = None;
        let mut loads = 0;
        for lpn in first..end {
            if map.cache.touch(lpn, change) {
                map.counts.hits += 1;
                continue;
            }
            map.counts.misses += 1;
            let page = map.cache.page_of(lpn);
            if missing == Some(page) {
                continue;
            }
            match self.load(map, page) {
                Some(read) => {
                    map.loading.get_mut(&page).expect("it is being read").push(slot);
                    missing = Some(page);
                    loads += 1;
                    self.slots[slot].cost.map_reads += u32::from(read);
                }
                None => map.insert(lpn, change),
            }
        }
        self.slots[slot].reads_left = loads;
        loads == 0
    }

    /// Reads translation page `page` if it is only on flash. Returns whether that took a new read,
    /// or `None` if the page is in the buffer or was never written.
    fn load(&mut self, map: &mut MapState, page: u32) -> Option<bool> {
        if map.loading.contains_key(&page) {
            return Some(false);
        }
        let lpn = self.device.logical_units() + page;
        if self.buffer.find(lpn).is_some() {
            return None;
        }
        let at = self.engine.ftl().lookup(lpn)?;
        let layout = self.engine.nand().layout();
        let (level, pages) = layout.pages_of(at);
        let (program_unit, pages) = (layout.program_unit_of(at), pages.count_ones() as u16);
        map.loading.insert(page, Vec::new());
        map.counts.loads += 1;
        let mut recovery = ReadRecovery::default();
        if self.engine.has_faults() {
            // A page that cannot be read is rebuilt from out-of-band data.
            self.engine.sample_read_errors(at, self.now, &mut recovery);
        }
        let run = ReadRun::of_unit(program_unit, level as u8, pages, recovery);
        self.engine.read(&run, Cause::Map, MAP | page, false, self.now);
        Some(true)
    }

    /// A translation page has been read: caches the entries that commands wait for.
    pub(super) fn map_arrived(&mut self, page: u32, out: &mut Vec<Completion>) {
        let Some(mut map) = self.map.take() else { return };
        let waiting = map.loading.remove(&page).expect("a page being read");
        let per_page = self.device.entries_per_translation_page();
        let (page_first, page_end) = (page * per_page, (page + 1) * per_page);
        if map.whole_pages {
            map.insert_rest(page_first, page_end.min(self.device.logical_units()));
        }
        for &slot in &waiting {
            let request = self.slots[slot].request;
            let change = request.op == HostOp::Write;
            let (first, end) = self.units_of(&request);
            for lpn in first.max(page_first)..end.min(page_end) {
                if !map.cache.touch(lpn, change) {
                    map.insert(lpn, change);
                }
            }
        }
        self.map = Some(map);
        for slot in waiting {
            self.slots[slot].reads_left -= 1;
            if self.slots[slot].reads_left == 0 {
                self.perform(slot, out);
            }
        }
        self.pump(out);
    }

    /// The entries of discarded units change without being read: cached ones are dropped, and their
    /// translation pages are rewritten.
    fn drop_entries(&mut self, map: &mut MapState, request: &Request) {
        let first = request.offset.div_ceil(self.unit) as u32;
        let end = self.unit_of(request.offset + request.len);
        if first >= end {
            return;
        }
        let (first_page, last_page) = (map.cache.page_of(first), map.cache.page_of(end - 1));
        for page in first_page..=last_page {
            map.queue_rewrite(page);
        }
        if (end - first) as usize <= map.cache.len() {
            for lpn in first..end {
                map.cache.forget(lpn);
            }
        } else {
            map.cache.forget_range(first, end);
        }
    }

    /// Updates the entries of units that cleaning has moved, in the cache or by rewriting their
    /// page. Returns whether a page has to be rewritten.
    pub(super) fn follow_moves(&mut self) -> bool {
        if self.read_only.is_some() {
            return false;
        }
        let Some(map) = &mut self.map else { return false };
        let mut any = false;
        while let Some(lpn) = self.engine.ftl_mut().take_moved() {
            if !map.cache.change(lpn) {
                let page = map.cache.page_of(lpn);
                map.queue_rewrite(page);
                any = true;
            }
        }
        any
    }

    /// Moves translation pages to be rewritten into the buffer, but leaves half of it to the host,
    /// or every other turn if it has one place. Returns a command that waited for rewrites and may
    /// go on.
    pub(super) fn rewrite_pages(&mut self) -> Option<u32> {
        if self.in_flight() == 0 {
            // Cleaning moves units, which rewrites pages, which may cause cleaning: without
            // requests this must not continue.
            return None;
        }
        let mut map = self.map.take()?;
        while self.buffer.is_half_empty() && !map.host_is_next {
            let Some(page) = map.next_rewrite() else { break };
            map.host_is_next = self.buffer.has_one_place() && !self.waiting_for_buffer.is_empty();
            self.rewrite(page);
        }
        let slot = map.release();
        self.map = Some(map);
        slot
    }

    #[inline(never)]
    fn rewrite(&mut self, page: u32) {
        let lpn = self.device.logical_units() + page;
        let version = self.version();
        let found = self.buffer.find(lpn);
        if let Some(place) = found.filter(|&place| self.buffer.entry(place).state.may_change()) {
            self.buffer.replace(place, version, u64::MAX);
            return;
        }
        let stream = self.engine.ftl().stream_of(lpn, 0);
        // The old content of a page in flight to flash is still in the buffer.
        let old = if found.is_some() { None } else { self.engine.ftl().lookup(lpn) };
        let state = if old.is_some() { State::Filling } else { State::Dirty };
        let place = self.buffer.add(lpn, version, stream, state);
        if let Some(at) = old {
            self.read_rest(at, place, Cause::Map, false);
        }
    }
}

/// Whether a flash read with this tag loads a translation page.
pub(super) const fn is_map_read(tag: u32) -> bool {
    tag & FILL == 0 && tag & MAP != 0
}
