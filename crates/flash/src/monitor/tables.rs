//! The monitor's tables on flash: a journal on blocks of its own, replayed when the device is
//! opened.

use std::collections::VecDeque;
use std::sync::Arc;

use prism_base::{Divisor, SimTime};
use prism_engine::timeline::Timeline;
use prism_nand::Timing;

use crate::error::{FlashError, Result};
use crate::journal::{Journal, JournalError};
use crate::medium::{DeviceGeometry, Medium, MediumError};
use crate::monitor::levelling::{Exchange, Levelling};
use crate::monitor::map::{BlockMap, ShareMap};
use crate::monitor::records::{Record, ShareRecord, WEAR_CHUNK};
use crate::monitor::ring::{Ring, RingBlocks};
use crate::monitor::state::{LunUse, Monitor, OpCounts, ShareState};

fn tables_error(error: JournalError<MediumError>) -> FlashError {
    match error {
        JournalError::Pages(
            error @ (MediumError::ProgramFailed { .. } | MediumError::EraseFailed { .. }),
        ) => {
            let what = format!("{error}, and so did the block that took over; replace the device");
            FlashError::Tables { what }
        }
        JournalError::Pages(error) => error.into(),
        other => FlashError::Tables { what: other.to_string() },
    }
}

/// The division of a device's blocks.
struct Division {
    reserved_per_lun: u32,
    ring: RingBlocks,
    virtual_blocks: Vec<u32>,
    spares: Vec<VecDeque<u32>>,
}

/// Blocks of the journal: a checkpoint of all tables takes less than half of them.
fn ring_blocks(geometry: &DeviceGeometry) -> u32 {
    /// Upper limit of bytes of the tables per block, and bytes for a few shares.
    const PER_BLOCK: u64 = 32;
    const SHARES: u64 = 4096;
    /// Bytes of a journal page that are not for records.
    const PAGE_HEADER: u32 = 64;
    let tables = u64::from(geometry.blocks()) * PER_BLOCK + SHARES;
    let page = u64::from(geometry.page_size - PAGE_HEADER);
    let checkpoint = tables.div_ceil(page * u64::from(geometry.pages_per_block));
    (2 * checkpoint as u32 + 2).max(4)
}

/// Divides a device: the journal's blocks and their alternates are spread over the LUNs, then each
/// LUN gets the same number of virtual blocks, and the rest are spare.
fn divide(medium: &dyn Medium) -> Result<Division> {
    /// One of this many blocks of a LUN is spare, and at least two are.
    const SPARE_SHARE: u32 = 50;
    let geometry = *medium.geometry();
    let (luns, per_lun) = (geometry.luns(), geometry.blocks_per_lun);
    let ring_len = ring_blocks(&geometry);
    let reserved_per_lun = (2 * ring_len).div_ceil(luns) + (per_lun / SPARE_SHARE).max(2);
    let usable = per_lun.saturating_sub(reserved_per_lun);
    let mut ring = vec![0; 2 * ring_len as usize];
    let (mut virtual_blocks, mut spares) = (Vec::new(), Vec::new());
    for lun in 0..luns {
        let good = |&block: &u32| !medium.is_factory_bad(block);
        let mut blocks = (lun * per_lun..(lun + 1) * per_lun).filter(good);
        for place in (lun..2 * ring_len).step_by(luns as usize) {
            ring[place as usize] = blocks.next().ok_or(FlashError::WornOut { lun })?;
        }
        let before = virtual_blocks.len();
        virtual_blocks.extend(blocks.by_ref().take(usable as usize));
        if usable == 0 || virtual_blocks.len() - before < usable as usize {
            return Err(FlashError::WornOut { lun });
        }
        spares.push(blocks.collect());
    }
    let alternate = ring.split_off(ring_len as usize);
    let ring = RingBlocks::find(medium, ring, alternate);
    Ok(Division { reserved_per_lun, ring, virtual_blocks, spares })
}

impl Monitor {
    /// A monitor over a divided medium, without shares.
    pub(super) fn blank(
        medium: Arc<dyn Medium>,
        timing: Option<Timing>,
    ) -> Result<(Self, Vec<Vec<u8>>)> {
        let geometry = *medium.geometry();
        geometry.check()?;
        let Division { reserved_per_lun, mut ring, virtual_blocks, spares } = divide(&*medium)?;
        let mut pages = Ring::new(&*medium, &mut ring);
        let opened = Journal::open(&mut pages);
        let (journal, records) = opened.map_err(|error| match error {
            JournalError::Pages(MediumError::Damaged { block, page }) => {
                FlashError::TablesDamaged { block, page }
            }
            JournalError::Pages(error) => error.into(),
            other => FlashError::NotFormatted { what: other.to_string() },
        })?;
        let usable = geometry.blocks_per_lun - reserved_per_lun;
        let (channels, luns) = (geometry.channels, geometry.luns());
        let counted = |block| medium.erase_count(block).unwrap_or(0);
        let erases = (0..geometry.blocks()).map(counted).collect();
        let monitor = Self {
            medium,
            geometry,
            usable,
            by_usable: Divisor::new(usable),
            timeline: timing.map(|timing| Timeline::new(channels, luns, timing)),
            wall: None,
            map: Arc::new(BlockMap::new(&virtual_blocks)),
            origin: virtual_blocks,
            erases,
            bad: vec![false; geometry.blocks() as usize],
            spares,
            luns: vec![LunUse::Free; luns as usize],
            shares: Vec::new(),
            next_id: 1,
            next_channel: 0,
            ring,
            journal: Some(journal),
            worn: Vec::new(),
            levelling: Levelling::new(luns),
            counts: OpCounts::default(),
            unsynced: false,
            programmed: false,
            closed_unsynced: false,
            floor: SimTime::ZERO,
            since_forgotten: 0,
            scratch: Vec::new(),
        };
        Ok((monitor, records))
    }

    pub(super) fn format_record(&self) -> Record {
        let reserved_per_lun = self.geometry.blocks_per_lun - self.usable;
        Record::Format { geometry: self.geometry, reserved_per_lun }
    }

    /// Appends records to the journal; they are durable when this returns.
    pub(crate) fn commit(&mut self, records: &[Record]) -> Result<()> {
        let records: Vec<_> = records.iter().map(Record::encode).collect();
        let mut journal = self.journal.take().expect("only this call takes it");
        let appended = records.iter().try_for_each(|record| journal.append(record));
        if let Err(error) = appended {
            self.journal = Some(journal);
            return Err(FlashError::Tables { what: error.to_string() });
        }
        if self.map.is_closed() {
            self.journal = Some(journal);
            return Err(FlashError::Released);
        }
        let medium = Arc::clone(&self.medium);
        let number = self.map.begin_sync();
        let mut ring = std::mem::take(&mut self.ring);
        let mut pages = Ring::new(&*medium, &mut ring);
        // Some callers have changed the tables before, some have not.
        let snapshot = || self.snapshot().into_iter().chain(records.iter().cloned()).collect();
        let done = journal.sync(&mut pages, snapshot);
        let (programs, erases) = (pages.programs, pages.erases);
        (self.ring, self.journal) = (ring, Some(journal));
        self.counts.programs[prism_nand::Cause::Map] += programs;
        self.counts.erases[prism_nand::Cause::Map] += erases;
        done.map_err(tables_error)?;
        self.map.end_sync(number);
        (self.unsynced, self.programmed, self.closed_unsynced) = (false, false, false);
        Ok(())
    }

    /// Checks that the tables fit into a checkpoint with `new` as the state of that share, whatever
    /// other records are added later. Were they too large, failed blocks could not be replaced any
    /// more.
    ///
    /// # Errors
    /// [`FlashError::Tables`].
    pub(super) fn check_room(&self, new: &ShareRecord) -> Result<()> {
        /// Bytes of the record of a remapped virtual block; of a block in the records of erase
        /// counts and of bad blocks; of the record of one erase; and of all records that exist
        /// once.
        const VIRTUAL_BLOCK: usize = 16;
        const BLOCK: usize = 9;
        const ERASE: usize = 24;
        const ONCE: usize = 256;
        /// Bytes of the progress of levelling per LUN.
        const LEVELLING: usize = 8;
        let bytes = |share: &ShareRecord| Record::Share(share.clone()).encode().len() + 4;
        let shares = self.shares.iter().flatten().map(ShareState::record);
        let (old, others): (Vec<_>, Vec<_>) = shares.partition(|share| share.id == new.id);
        if old.first().is_some_and(|old| bytes(old) >= bytes(new)) {
            return Ok(());
        }
        let sizes = || others.iter().chain([new]).map(bytes);
        // A checkpoint has the record that caused it twice. Lists of LUNs may still grow.
        let per_lun = (12 + 2 * LEVELLING) * self.luns.len();
        let shares = sizes().sum::<usize>() + sizes().max().unwrap_or(0) + per_lun;
        let worn = self.worn_max() * ERASE;
        let rest =
            self.map.len() as usize * VIRTUAL_BLOCK + self.erases.len() * BLOCK + worn + ONCE;
        let most = self.journal.as_ref().map_or(0, Journal::record_most);
        if shares + rest <= most {
            return Ok(());
        }
        let what = format!(
            "names, ranges and containers of all shares would take {shares} bytes of {}: use \
             fewer or shorter ones, or release a share",
            most.saturating_sub(rest)
        );
        Err(FlashError::Tables { what })
    }

    /// The content of the tables, as records.
    fn snapshot(&self) -> Vec<Vec<u8>> {
        let mut records = vec![self.format_record().encode()];
        for share in self.shares.iter().flatten() {
            records.push(Record::Share(share.record()).encode());
        }
        records.push(self.dirty().encode());
        for (virtual_block, (block, &first)) in self.map.iter().zip(&self.origin).enumerate() {
            if block != first {
                records.push(
                    Record::VirtualBlock { virtual_block: virtual_block as u32, block }.encode(),
                );
            }
        }
        let bad = (0..self.bad.len() as u32).filter(|&block| self.bad[block as usize]);
        let bad: Vec<_> = bad.collect();
        for blocks in bad.chunks(WEAR_CHUNK) {
            records.push(Record::Bad { blocks: blocks.to_vec() }.encode());
        }
        for (chunk, counts) in self.erases.chunks(WEAR_CHUNK).enumerate() {
            if counts.iter().any(|&count| count > 0) {
                let first = (chunk * WEAR_CHUNK) as u32;
                records.push(Record::Wear { first, counts: counts.to_vec() }.encode());
            }
        }
        records.push(Record::Exchange { pair: self.levelling.pair() }.encode());
        records.push(self.progress().encode());
        records
    }

    /// The free LUNs that are not erased yet.
    pub(super) fn dirty(&self) -> Record {
        let dirty = |&lun: &u32| matches!(self.luns[lun as usize], LunUse::Dirty | LunUse::WornOut);
        Record::Dirty { luns: (0..self.luns.len() as u32).filter(dirty).collect() }
    }

    /// Restores the tables from the records of the journal.
    pub(super) fn replay(&mut self, records: &[Vec<u8>]) -> Result<()> {
        let wrong = |what: String| FlashError::NotFormatted { what };
        if records.is_empty() {
            return Err(wrong("its journal is empty".into()));
        }
        for bytes in records {
            let record = Record::decode(bytes).map_err(|error| wrong(error.to_string()))?;
            self.apply(record).map_err(|what| wrong(what.into()))?;
        }
        // Blocks of virtual blocks, and these together with those of the ring.
        let mut taken = vec![false; self.erases.len()];
        self.map.iter().for_each(|block| taken[block as usize] = true);
        let mut used = taken.clone();
        self.ring.all().for_each(|block| used[block as usize] = true);
        for lun in 0..self.luns.len() {
            let first = lun as u32 * self.geometry.blocks_per_lun;
            let blocks = first..first + self.geometry.blocks_per_lun;
            let medium = Arc::clone(&self.medium);
            for block in blocks.clone() {
                // The medium's count is exact, those in the journal are written in batches.
                let counted = medium.erase_count(block);
                self.erases[block as usize] = counted.unwrap_or(self.erases[block as usize]);
            }
            let free = |&block: &u32| {
                !used[block as usize] && !self.bad[block as usize] && !medium.is_factory_bad(block)
            };
            self.spares[lun] = blocks.clone().filter(free).collect();
            // Blocks that an interrupted move or the journal left partly written.
            for block in blocks.filter(|&block| !taken[block as usize]) {
                match self.finish_if_open(block) {
                    // A read-only device opens no further block.
                    Err(FlashError::Medium(MediumError::ReadOnly { .. })) => {}
                    done => done?,
                }
            }
        }
        self.count_unnoted();
        self.count_open()
    }

    /// How many blocks of each share are partly written.
    fn count_open(&mut self) -> Result<()> {
        let medium = Arc::clone(&self.medium);
        for share in self.shares.iter_mut().flatten() {
            let virtual_blocks = share.luns.iter().flat_map(|&lun| {
                let first = lun * self.usable;
                first..first + self.usable
            });
            let open = |&virtual_block: &u32| medium.is_open(self.map.block(virtual_block));
            share.open = virtual_blocks.filter(open).count() as u32;
        }
        Ok(())
    }

    fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        let (luns, blocks) = (self.luns.len() as u32, self.erases.len() as u32);
        match record {
            Record::Format { .. } if record == self.format_record() => {}
            Record::Format { .. } => return Err("it was formatted with another geometry"),
            Record::Share(share) => {
                if share.luns.iter().any(|&lun| lun >= luns) {
                    return Err("a share has a LUN that the device has not");
                }
                self.put_share(share);
            }
            Record::Released { id } => {
                for share in &mut self.shares {
                    if share.as_ref().is_some_and(|share| share.id == id) {
                        let gone = share.take().expect("just seen");
                        self.next_id = self.next_id.max(id + 1);
                        gone.luns.iter().for_each(|&lun| self.luns[lun as usize] = LunUse::Dirty);
                    }
                }
            }
            Record::Dirty { luns: dirty } => {
                for state in self.luns.iter_mut().filter(|state| **state == LunUse::Dirty) {
                    *state = LunUse::Free;
                }
                for lun in dirty {
                    let state = self.luns.get_mut(lun as usize).ok_or("no such LUN")?;
                    *state = LunUse::Dirty;
                }
            }
            Record::VirtualBlock { virtual_block, block } if block < blocks => {
                if virtual_block >= self.map.len() {
                    return Err("no such virtual block");
                }
                self.map.set(virtual_block, block);
            }
            Record::VirtualBlock { .. } => return Err("a virtual block is on no block"),
            Record::Bad { blocks } => {
                for block in blocks {
                    *self.bad.get_mut(block as usize).ok_or("no such block")? = true;
                }
            }
            Record::Wear { first, counts } => {
                for (block, count) in (first as usize..).zip(counts) {
                    *self.erases.get_mut(block).ok_or("no such block")? = count;
                }
            }
            Record::Exchange { pair } => {
                let wrong = |p: Exchange| p.hot.max(p.cold).max(p.worn).max(p.fresh) >= luns;
                if pair.is_some_and(wrong) {
                    return Err("an exchange of LUNs that do not exist");
                }
                self.levelling.set_pair(pair);
            }
            Record::Levelling(progress) => {
                if !self.levelling.set_progress(progress) {
                    return Err("wear levelling of another number of LUNs");
                }
            }
        }
        Ok(())
    }

    /// Adds a share, or replaces its state.
    pub(super) fn put_share(&mut self, record: ShareRecord) {
        let known = |share: &Option<ShareState>| share.as_ref().is_some_and(|s| s.id == record.id);
        let place = self.shares.iter().position(known);
        if let Some(place) = place {
            let old = &self.shares[place].as_ref().expect("just found").luns;
            old.iter().for_each(|&lun| self.luns[lun as usize] = LunUse::Dirty);
        }
        record.luns.iter().for_each(|&lun| self.luns[lun as usize] = LunUse::Owned);
        self.next_id = self.next_id.max(record.id + 1);
        let share = ShareState::new(record, self.luns.len() as u32);
        match place.or_else(|| self.shares.iter().position(Option::is_none)) {
            Some(place) => self.shares[place] = Some(share),
            None => self.shares.push(Some(share)),
        }
    }
}

impl ShareState {
    fn new(record: ShareRecord, device_luns: u32) -> Self {
        Self {
            map: Arc::new(ShareMap::new(device_luns, &record.luns)),
            open_max: record.open_max,
            id: record.id,
            name: record.name,
            ops_luns: record.ops_luns,
            luns: record.luns,
            meta: record.meta,
            attached: false,
            held: false,
            open: 0,
            bandwidth: Some(record.bandwidth).filter(|&rate| rate > 0),
            next_transfer: SimTime::ZERO,
            now: SimTime::ZERO,
            counts: OpCounts::default(),
        }
    }

    pub(super) fn record(&self) -> ShareRecord {
        ShareRecord {
            id: self.id,
            name: self.name.clone(),
            ops_luns: self.ops_luns,
            open_max: self.open_max,
            bandwidth: self.bandwidth.unwrap_or(0),
            luns: self.luns.clone(),
            meta: self.meta.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;

    use super::*;
    use crate::memory::{Cache, MemoryDevice};
    use crate::monitor::{Allocation, Device, GlobalWear, Options};
    use crate::raw::{Address, Raw};

    /// Tables of version 1, which lacks the progress of levelling.
    fn former(share: &str) -> Arc<dyn Medium> {
        let geometry = DeviceGeometry {
            channels: 2,
            luns_per_channel: 1,
            blocks_per_lun: 16,
            pages_per_block: 8,
            page_size: 2048,
            oob_size: 0,
            max_open_blocks: None,
        };
        let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
        let (monitor, _) = Monitor::blank(Arc::new(memory), None).unwrap();
        let (open_max, luns, id) = (u32::MAX, vec![0], 5);
        let share = ShareRecord { id, name: share.into(), open_max, luns, ..Default::default() };
        let pair = Some(Exchange { hot: 0, cold: 1, worn: 0, fresh: 1 });
        let all = [
            monitor.format_record(),
            Record::Share(share),
            Record::Wear { first: 4, counts: vec![9, 8] },
            Record::Exchange { pair },
        ];
        let mut bytes = all.map(|record| record.encode());
        bytes[0][4..8].copy_from_slice(&1u32.to_le_bytes());
        let Monitor { medium, mut ring, journal, .. } = monitor;
        let mut journal = journal.unwrap();
        let mut pages = Ring::new(&*medium, &mut ring);
        bytes.iter().for_each(|record| journal.append(record).unwrap());
        journal.sync(&mut pages, || bytes.to_vec()).unwrap();
        medium
    }

    #[test]
    fn tables_of_the_former_version_are_read_and_written_anew() {
        let wear = GlobalWear { min_gap: 1, delta: 0.0, budget: 1.0 };
        let options = Options { timing: None, wear: Some(wear) };
        let device = Device::open(former("a"), options).unwrap();
        assert_eq!(device.erase_counts()[4..6], [9, 8]);
        assert_eq!((device.wear().erases, device.wear().exchanges), (0, 0));
        let raw = Raw::open(device.attach("a").unwrap()).unwrap();
        raw.write_page(Address::default(), &[7; 2048]).unwrap();
        // The exchange continues.
        while device.level_wear(wear, 4).unwrap() {}
        let spent = device.wear();
        assert!(spent.exchanges == 1 && spent.erases > 10, "{spent:?}");
        drop((raw, device.allocate("b", Allocation::new(Bytes(1), 0)).unwrap()));
        let device = Device::open(device.into_medium().unwrap(), options).unwrap();
        let found = device.wear();
        assert_eq!((found.erases, found.exchanges), (spent.erases, 1));
        let raw = Raw::open(device.attach("a").unwrap()).unwrap();
        let mut page = [0; 2048];
        raw.read_page(Address::default(), &mut page).unwrap();
        assert_eq!(page, [7; 2048]);
    }
}
