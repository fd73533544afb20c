//! The policy level: logical ranges, each with the mapping, the cleaning and the over-provisioning
//! that suit its data.
//!
//! Source: Prism-SSD (Shen et al., ICDCS'19), section IV.D. Each range is an FTL of the `ftl` crate
//! over blocks of the share, run by the controller of the simulated drive. Additions to the paper:
//! trims, durable flushes, over-provisioning per range, containers (named parts of a range by
//! lifetime), recovery. Where the paper has two names for one call (`Flash_Write` in the text,
//! `FTL_Write` in the table), it is `write` here.
//!
//! A completed [`Policy::flush`] survives a power failure: recovery finds data by the headers of
//! its program units, trims in a journal. Design: docs/design/flash.md.
//!
//! ```
//! use prism_base::Bytes;
//! use prism_flash::policy::{Cleaning, Lifetime, Mapping, Policy, RangeConfig};
//! use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
//!
//! # let geometry = DeviceGeometry {
//! #     channels: 2,
//! #     luns_per_channel: 2,
//! #     blocks_per_lun: 64,
//! #     pages_per_block: 16,
//! #     page_size: 4096,
//! #     oob_size: 64,
//! #     max_open_blocks: None,
//! # };
//! let memory = MemoryDevice::new(geometry, Cache::None)?;
//! let device = Device::format(memory, Options::default())?;
//! let policy = Policy::open(device.allocate("a", Allocation::new(Bytes(8 << 20), 25))?)?;
//!
//! // A log that is written in order, and a table that is written anywhere.
//! policy.configure(0, 1 << 20, RangeConfig::new(Mapping::Block, Cleaning::Fifo))?;
//! let by_page = RangeConfig { handles: 5, ..RangeConfig::new(Mapping::Page, Cleaning::Greedy) };
//! policy.configure(1 << 20, 4 << 20, by_page)?;
//! policy.write(0, b"begin")?;
//! policy.flush()?;
//! policy.trim(0, 4096)?;
//! let mut read = [1; 5];
//! policy.read(0, &mut read)?;
//! assert_eq!(read, [0; 5]);
//!
//! // Parts of a range by the lifetime of their data.
//! let rows = policy.create_container(1 << 20, "rows", 1 << 20, Lifetime::Long)?;
//! rows.write(4096, b"a row")?;
//! rows.read(4096, &mut read)?;
//! assert_eq!(&read, b"a row");
//! # Ok::<(), prism_flash::FlashError>(())
//! ```

mod block;
mod config;
mod container;
mod division;
mod flash;
mod program_units;
mod queue;
mod range;
mod reads;
pub(crate) mod trims;

use std::sync::{Mutex, MutexGuard};

use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::journal::Journal;
use crate::monitor::{Hold, Level, Share, ShareGeometry, Urgency};
use config::{RangeRecord, Tables};
use division::Division;
use program_units::ProgramUnitFormat;
use range::Range;
use reads::{Readers, join};
use trims::{JOURNAL_BLOCKS, decode_trims, encode_trims, open_journal, sync_journal, trims_max};

pub use crate::monitor::Completion;
pub use block::Block;
pub use config::{Cleaning, ContainerInfo, Lifetime, Mapping, OverProvisioning, RangeConfig};
pub use container::Container;
pub use queue::Queue;

/// Trims that are pending at most, before they are made durable without a flush.
const TRIMS_WAITING_MAX: u32 = 512;
/// The size of a mapping unit, the smallest that is written without a read-modify-write.
const UNIT: u32 = 4096;

/// A range, as listed by [`Policy::ranges`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeInfo {
    /// Its first address.
    pub begin: u64,
    /// The address after its last.
    pub end: u64,
    /// How it is managed.
    pub config: RangeConfig,
    /// Bytes of its mapped units.
    pub mapped: u64,
    /// Blocks of the share that it owns.
    pub blocks: u32,
    /// Blocks that are written in parallel for data of one kind: the number of the share's LUNs,
    /// unless blocks or open blocks are too few for that; 1 on a file, whose LUNs do not work in
    /// parallel.
    pub die_groups: u32,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) share: Share,
    pub(crate) level: Level,
    pub(crate) geometry: ShareGeometry,
    pub(crate) format: ProgramUnitFormat,
    pub(crate) tables: Tables,
    pub(crate) ranges: Vec<Range>,
    journal: Journal,
    trims_waiting: u32,
    _hold: Hold,
}

/// A share at the policy level. Threads may use it at once.
#[derive(Debug)]
pub struct Policy {
    inner: Mutex<Inner>,
    readers: Readers,
}

impl Policy {
    /// Opens `share`: with its ranges, if it was at the policy level before, else without any.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] if another level keeps its data there,
    /// [`FlashError::InUse`] if the level is open in it already,
    /// [`FlashError::NoSpace`] if the share is too small for the level's journal.
    pub fn open(share: Share) -> Result<Self> {
        let inner = Mutex::new(Inner::open(share, Level::Policy, 0)?);
        Ok(Self { inner, readers: Readers::default() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics while it holds the level")
    }

    /// The share, to let time pass or to read its counts.
    #[must_use]
    pub fn share(&self) -> Share {
        self.lock().share.clone()
    }

    /// Bytes of a mapping unit, the smallest that is written without a read-modify-write.
    #[must_use]
    pub fn unit(&self) -> u32 {
        self.lock().format.unit
    }

    /// Bytes of data in a block, which a range with block-level mapping replaces without copies.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        self.lock().format.block_bytes()
    }

    /// Makes a range of the addresses `begin..end` (`FTL_Ioctl` of the paper), which can be read
    /// and written from then on. Replaces an empty range of the same addresses.
    ///
    /// # Errors
    /// [`FlashError::Unaligned`] for an address that is not a multiple of a unit,
    /// [`FlashError::Busy`] if it overlaps a range or holds data, [`FlashError::NoSpace`] or
    /// [`FlashError::Mapping`] if the share has too few blocks. Nothing has changed then.
    pub fn configure(&self, begin: u64, end: u64, config: RangeConfig) -> Result<()> {
        self.lock().configure(begin, end, config)
    }

    /// Removes the empty range that begins at `begin`.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] if none begins there, [`FlashError::Busy`] if it holds data:
    /// trim it first.
    pub fn remove(&self, begin: u64) -> Result<()> {
        self.lock().remove(begin)
    }

    /// The ranges, by address.
    #[must_use]
    pub fn ranges(&self) -> Vec<RangeInfo> {
        let inner = self.lock();
        let info = |range: &Range| RangeInfo {
            begin: range.record.begin,
            end: range.record.end,
            config: range.record.config,
            mapped: range.mapped_bytes(),
            blocks: range.blocks().len() as u32,
            die_groups: range.record.die_groups,
        };
        inner.ranges.iter().map(info).collect()
    }

    /// Reads; bytes that were never written are zero. On a device without timing the lock of the
    /// level is not held while the device works, and what follows each other on flash is read
    /// together.
    ///
    /// # Errors
    /// [`FlashError::NoRange`], [`FlashError::PastEnd`] if not all bytes are in one range.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        self.read_all(&[address], &mut [into])
    }

    /// Checks that these bytes are in one range, before a caller allocates memory for them.
    ///
    /// # Errors
    /// [`FlashError::NoRange`], [`FlashError::PastEnd`].
    pub fn check(&self, address: u64, bytes: u64) -> Result<()> {
        self.lock().range_of(address, bytes).map(drop)
    }

    /// Reads several parts at once, each an address and the memory for its bytes. On a device
    /// without timing they are in flight together.
    ///
    /// # Errors
    /// As [`Policy::read`]; the content of all memory is unspecified then.
    pub fn read_vectored(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let addresses: Vec<u64> = parts.iter().map(|(address, _)| *address).collect();
        let mut into: Vec<&mut [u8]> = parts.iter_mut().map(|(_, into)| &mut **into).collect();
        self.read_all(&addresses, &mut into)
    }

    fn read_all(&self, addresses: &[u64], into: &mut [&mut [u8]]) -> Result<()> {
        loop {
            let mut inner = self.lock();
            let share = inner.share.clone();
            let mut pieces = Vec::new();
            for (buffer, (&address, into)) in addresses.iter().zip(into.iter_mut()).enumerate() {
                let (range, offset) = inner.range_of(address, into.len() as u64)?;
                if share.is_timed() {
                    range.read(offset, into, Cause::Host, Urgency::Normal)?;
                } else {
                    range.plan_read(offset, (buffer, &mut **into), &mut pieces)?;
                }
            }
            let runs = join(&share, pieces)?;
            drop(inner);
            if self.readers.read(&share, runs, into)? {
                return Ok(());
            }
        }
    }

    /// A queue of commands with at most `depth` in flight.
    #[must_use]
    pub fn queue(&self, depth: usize) -> Queue<&Self> {
        Queue::new(self, depth)
    }

    /// Writes. The data is durable after the next [`Policy::flush`]; a part of a unit costs a
    /// read-modify-write.
    ///
    /// # Errors
    /// [`FlashError::NoRange`], [`FlashError::PastEnd`] if not all bytes are in one range;
    /// [`FlashError`] if the device fails, after which the share has to be opened again.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<()> {
        self.write_with_handle(address, data, 0)
    }

    /// As [`Policy::write`], as data of a placement handle; of the last handle if there are fewer.
    ///
    /// # Errors
    /// As [`Policy::write`].
    pub fn write_with_handle(&self, address: u64, data: &[u8], handle: u32) -> Result<()> {
        let mut inner = self.lock();
        let (range, offset) = inner.range_of(address, data.len() as u64)?;
        range.write(offset, data, handle, Urgency::Normal)
    }

    /// Writes several slices, one after the other from `address` on, as one write: no other write
    /// comes between them, and a unit of parts of several slices costs one write.
    ///
    /// # Errors
    /// As [`Policy::write`].
    pub fn write_vectored(&self, address: u64, parts: &[&[u8]]) -> Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let mut inner = self.lock();
        let (range, offset) = inner.range_of(address, bytes)?;
        range.write_vectored(offset, parts, 0, Urgency::Normal)
    }

    /// Trims these addresses: they read as zeros from now on.
    ///
    /// # Errors
    /// [`FlashError::Unaligned`], [`FlashError::NoRange`], [`FlashError::PastEnd`].
    pub fn trim(&self, address: u64, bytes: u64) -> Result<()> {
        self.lock().trim(address, bytes)
    }

    /// Makes everything written and trimmed so far durable. Unless ranges have trims, the lock of
    /// the level is not held during the sync.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails; data of earlier flushes stays durable.
    pub fn flush(&self) -> Result<()> {
        let mut inner = self.lock();
        if inner.share.is_timed() || inner.has_trims() {
            return inner.flush();
        }
        // Reads go on during the sync.
        inner.program_all()?;
        let share = inner.share.clone();
        drop(inner);
        share.sync()
    }

    /// Cleans in idle time, up to `program_units` program units of copies in each range. Returns
    /// whether there was anything to do.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn idle(&self, program_units: u32) -> Result<bool> {
        let mut any = false;
        for range in &mut self.lock().ranges {
            any |= range.idle(program_units)?;
        }
        Ok(any)
    }

    /// Checks the invariants of the level (for tests).
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn assert_consistent(&self) {
        self.lock().ranges.iter().for_each(Range::assert_consistent);
    }
}

impl Inner {
    /// Opens `share` for `level`, which keeps a journal of its own on `above` blocks.
    pub(crate) fn open(share: Share, level: Level, above: u32) -> Result<Self> {
        let hold = share.hold(Some(level))?;
        let geometry = share.geometry()?;
        let unit = (1..=UNIT.min(geometry.page_size)).rev();
        let unit = unit.into_iter().find(|unit| geometry.page_size.is_multiple_of(*unit));
        let format = ProgramUnitFormat::new(&geometry, unit.expect("1 divides everything"));
        let meta = share.meta()?;
        let tables = if meta.is_empty() {
            for block in 0..geometry.blocks() {
                if share.write_pointer(block)? > 0 {
                    let what = "the share holds data of another level; erase its blocks first";
                    return Err(FlashError::Busy { what: what.into() });
                }
            }
            let none = vec![false; geometry.blocks() as usize];
            let journal = division::take_any(&geometry, &none, JOURNAL_BLOCKS + above);
            let mut journal = journal.ok_or_else(|| FlashError::NoSpace {
                what: "the share has fewer blocks than the level's journal; grow it".into(),
            })?;
            for &block in &journal {
                share.erase_if_used(block)?;
            }
            share.sync()?;
            let above = journal.split_off(JOURNAL_BLOCKS as usize);
            let tables = Tables { journal, above, ..Tables::default() };
            share.set_meta(tables.encode(level))?;
            tables
        } else {
            Tables::decode(&meta).map_err(|error| FlashError::Tables { what: error.to_string() })?
        };
        let (journal, records) = open_journal(&share, &geometry, &tables.journal)?;
        let mut ranges = Vec::new();
        for record in &tables.ranges {
            let trims = decode_trims(record.id, &records)?;
            let open = open_of(&geometry, &record.config);
            ranges.push(Range::open(&share, record.clone(), format, open, Some(trims))?);
        }
        Ok(Self {
            share,
            level,
            geometry,
            format,
            tables,
            ranges,
            journal,
            trims_waiting: 0,
            _hold: hold,
        })
    }

    /// The blocks of the ranges and journals of `tables`.
    fn used(&self, tables: &Tables) -> Vec<bool> {
        let mut used = vec![false; self.geometry.blocks() as usize];
        let ranges = tables.ranges.iter().flat_map(|range| &range.blocks);
        let journals = tables.journal.iter().chain(&tables.above);
        for &block in journals.chain(ranges) {
            used[block as usize] = true;
        }
        used
    }

    /// Stores `tables` and, if that succeeds, uses them.
    pub(crate) fn save(&mut self, tables: Tables) -> Result<()> {
        self.share.set_meta(tables.encode(self.level))?;
        self.tables = tables;
        Ok(())
    }

    /// The blocks that a new range of `bytes` bytes would get alongside those of `tables`, and its
    /// open blocks.
    pub(crate) fn plan(
        &self,
        tables: &Tables,
        bytes: u64,
        config: RangeConfig,
    ) -> Result<(RangeConfig, Division)> {
        let left = self.open_left(tables);
        let open = match config.open_blocks {
            Some(open) if open <= left => open,
            Some(open) => {
                let what = format!("{open} open blocks were asked for and {left} are left");
                return Err(FlashError::NoSpace { what });
            }
            None if left == u32::MAX => left,
            None => left.div_ceil(2),
        };
        let config = RangeConfig { open_blocks: Some(open).filter(|&o| o < u32::MAX), ..config };
        let used = self.used(tables);
        let share = &self.geometry;
        let most = if self.share.luns_work_in_parallel() { share.luns } else { 1 };
        let division = division::divide(&config, share, &self.format, bytes, &used, open, most)?;
        Ok((config, division))
    }

    pub(crate) fn configure(&mut self, begin: u64, end: u64, config: RangeConfig) -> Result<()> {
        self.check_range(begin, end, &config)?;
        let same = |range: &RangeRecord| (range.begin, range.end) == (begin, end);
        // An empty range of the same addresses is replaced at once, or not at all.
        let old = self.tables.ranges.iter().position(same);
        let mut others = self.tables.clone();
        old.map(|place| others.ranges.remove(place));
        let (config, division) = self.plan(&others, end - begin, config)?;
        let open = open_of(&self.geometry, &config);
        let record = RangeRecord {
            id: self.tables.next_id,
            begin,
            end,
            config,
            die_groups: division.die_groups,
            blocks: division.blocks,
            containers: Vec::new(),
        };
        let range = Range::open(&self.share, record.clone(), self.format, open, None)?;
        if let Some(place) = old {
            self.ranges[place].settle()?;
            self.ranges[place].finish_open()?;
        }
        // Blocks of a removed range may still hold its data.
        range.erase_all()?;
        others.next_id += 1;
        let place = others.ranges.partition_point(|range| range.begin < begin);
        others.ranges.insert(place, record);
        self.save(others)?;
        old.map(|place| self.ranges.remove(place));
        self.ranges.insert(place, range);
        Ok(())
    }

    fn check_range(&self, begin: u64, end: u64, config: &RangeConfig) -> Result<()> {
        let unit = u64::from(self.format.unit);
        for (what, value) in [("the begin of a range", begin), ("the end of a range", end)] {
            if value % unit != 0 {
                return Err(FlashError::Unaligned { what, value, unit });
            }
        }
        if end <= begin || (end - begin) / unit > u64::from(u32::MAX / 4) {
            let what =
                format!("the range {begin}..{end} is empty or too large; choose another end");
            return Err(FlashError::Invalid { what });
        }
        if config.handles > 1 && config.mapping != Mapping::Page {
            let what = "placement handles need page-level mapping; use Mapping::Page, or 1 handle";
            return Err(FlashError::Invalid { what: what.into() });
        }
        if config.handles > self.geometry.blocks() {
            let (handles, blocks) = (config.handles, self.geometry.blocks());
            let what = format!("{handles} handles on {blocks} blocks; each needs one, take fewer");
            return Err(FlashError::Invalid { what });
        }
        for range in &self.ranges {
            let (b, e) = (range.record.begin, range.record.end);
            let same = (b, e) == (begin, end);
            if begin < e && b < end && (!same || !range.is_empty()) {
                let what = if same {
                    format!("the range {b}..{e} holds data; trim it before it is configured again")
                } else {
                    format!("{begin}..{end} overlaps the range {b}..{e}; choose other addresses")
                };
                return Err(FlashError::Busy { what });
            }
        }
        Ok(())
    }

    /// Open blocks left for further ranges: all but those of the ranges of `tables` and of the
    /// journal, which needs a second one for each checkpoint.
    fn open_left(&self, tables: &Tables) -> u32 {
        let max = self.geometry.max_open_blocks;
        if max == u32::MAX {
            return max;
        }
        let ranges = tables.ranges.iter().filter_map(|range| range.config.open_blocks);
        max.saturating_sub(1 + ranges.sum::<u32>())
    }

    fn remove(&mut self, begin: u64) -> Result<()> {
        let place = self.ranges.iter().position(|range| range.record.begin == begin);
        let Some(place) = place else {
            let what = format!("no range begins at {begin}; list the ranges");
            return Err(FlashError::Invalid { what });
        };
        self.remove_at(place)
    }

    fn remove_at(&mut self, place: usize) -> Result<()> {
        let range = &self.ranges[place];
        if !range.is_empty() {
            let (b, e) = (range.record.begin, range.record.end);
            let what = format!("the range {b}..{e} holds data; trim it and flush first");
            return Err(FlashError::Busy { what });
        }
        // Its blocks hold no valid data, and must not count as partly written.
        self.ranges[place].settle()?;
        self.ranges[place].finish_open()?;
        let mut tables = self.tables.clone();
        tables.ranges.remove(place);
        self.save(tables)?;
        self.ranges.remove(place);
        Ok(())
    }

    pub(crate) fn range_of(&mut self, address: u64, bytes: u64) -> Result<(&mut Range, u64)> {
        let place = self.ranges.partition_point(|range| range.record.end <= address);
        match self.ranges.get_mut(place) {
            Some(range)
                if range.record.begin <= address
                    && address.checked_add(bytes).is_some_and(|end| end <= range.record.end) =>
            {
                let offset = address - range.record.begin;
                Ok((range, offset))
            }
            Some(range) if range.record.begin <= address => {
                let (end, limit) = (address.saturating_add(bytes), range.record.end);
                Err(FlashError::PastEnd { within: "range", end, limit })
            }
            _ => Err(FlashError::NoRange { address }),
        }
    }

    pub(crate) fn trim(&mut self, address: u64, bytes: u64) -> Result<()> {
        let end = self.begin_trim(address, bytes)?;
        self.share.reach_if_timed(end)
    }

    /// As [`Inner::trim`], without waiting for the flush of many trims, whose end it returns.
    fn begin_trim(&mut self, address: u64, bytes: u64) -> Result<SimTime> {
        let unit = u64::from(self.format.unit);
        let (range, offset) = self.range_of(address, bytes)?;
        for (what, value) in [("the address of a trim", address), ("its length", bytes)] {
            if value % unit != 0 {
                return Err(FlashError::Unaligned { what, value, unit });
            }
        }
        range.trim((offset / unit) as u32, ((offset + bytes) / unit) as u32)?;
        self.trims_waiting += 1;
        match self.trims_waiting {
            TRIMS_WAITING_MAX.. => self.begin_flush(),
            _ => self.share.now_if_timed(),
        }
    }

    /// Makes these addresses read as zeros: whole units are trimmed, parts of units written.
    /// Returns the time at which that is done.
    fn begin_write_zeroes(&mut self, address: u64, bytes: u64) -> Result<SimTime> {
        let unit = u64::from(self.format.unit);
        let (range, offset) = self.range_of(address, bytes)?;
        let end = offset + bytes;
        let (first, last) = (offset.next_multiple_of(unit), end / unit * unit);
        let parts = match first <= last {
            true => [(offset, first - offset), (last, end - last)],
            false => [(offset, bytes), (end, 0)],
        };
        let mut done = SimTime::ZERO;
        for (at, len) in parts.into_iter().filter(|&(_, len)| len > 0) {
            done = done.max(range.begin_write(at, &vec![0; len as usize], 0, Urgency::Normal)?);
        }
        match last.saturating_sub(first) {
            0 => Ok(done),
            whole => Ok(done.max(self.begin_trim(address - offset + first, whole)?)),
        }
    }

    /// When an operation ends for which program units of queued writes may wait.
    fn next_dispatch(&self) -> Option<SimTime> {
        self.ranges.iter().filter_map(Range::next_dispatch).min()
    }

    /// Ends operations by `time` in the ranges in which program units wait, and begins these.
    fn dispatch(&mut self, time: SimTime) {
        for range in self.ranges.iter_mut().filter(|range| range.next_dispatch().is_some()) {
            // A failure is reported by the writes that wait, and by every later call.
            let _ = range.follow(time);
        }
    }

    /// Begins the program units of all queued writes, ahead of the share's clock.
    fn program_waiting(&mut self) {
        for range in &mut self.ranges {
            // As above.
            let _ = range.program_waiting();
        }
    }

    /// Whether a flush has to write trims.
    fn has_trims(&self) -> bool {
        self.ranges.iter().any(Range::has_trims)
    }

    /// Programs everything written; if there are no trims, a sync makes it durable.
    fn program_all(&mut self) -> Result<()> {
        for range in &mut self.ranges {
            range.program_all()?;
            range.forget_programmed();
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let end = self.begin_flush()?;
        self.share.reach_if_timed(end)
    }

    /// As [`Inner::flush`], without waiting for the time at which everything is durable, which it
    /// returns.
    fn begin_flush(&mut self) -> Result<SimTime> {
        let most = trims_max(&self.geometry) / self.ranges.len().max(1);
        // On a device with timing the ends of programs are known when they begin, and later
        // commands do not wait for them.
        let timed = self.share.is_timed();
        for range in &mut self.ranges {
            range.limit_trims(most)?;
            if timed { range.begin_program_all()? } else { range.program_all()? }
        }
        let mut records = Vec::new();
        for range in &self.ranges {
            encode_trims(range.record.id, range.new_trims(), &mut records);
        }
        let mut end = self.share.now_if_timed()?;
        if records.is_empty() {
            self.share.sync()?;
        } else {
            for record in &records {
                let appended = self.journal.append(record);
                appended.map_err(|error| FlashError::Tables { what: error.to_string() })?;
            }
            let ranges = &self.ranges;
            let snapshot = || {
                let mut all = Vec::new();
                for range in ranges {
                    encode_trims(range.record.id, range.all_trims(), &mut all);
                }
                all
            };
            let (journal, blocks) = (&mut self.journal, &self.tables.journal);
            end = sync_journal(journal, &self.share, &self.geometry, blocks, snapshot)?;
        }
        self.trims_waiting = 0;
        let ends = self.ranges.iter_mut().map(Range::flushed);
        Ok(ends.fold(end, SimTime::max))
    }
}

/// Blocks that a range may have partly written.
fn open_of(geometry: &ShareGeometry, config: &RangeConfig) -> u32 {
    config.open_blocks.unwrap_or(geometry.max_open_blocks)
}
