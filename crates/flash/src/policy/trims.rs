//! The journal of the policy level: which units were trimmed, so that recovery does not bring
//! them back.

use prism_base::SimTime;
use prism_base::codec::{load_whole, save};
use prism_ftl::PendingTrims;
use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::journal::{Journal, JournalError, Pages};
use crate::medium::PageState;
use crate::monitor::{Share, ShareGeometry};

/// Blocks of a level's journal.
pub(crate) const JOURNAL_BLOCKS: u32 = 4;
/// Trims of one record.
const TRIMS_MAX: usize = 32;
/// Bytes of a trim in a record.
const TRIM_BYTES: u64 = 16;

/// Blocks of a share as the pages of a journal.
pub(crate) struct ShareRing<'a> {
    share: &'a Share,
    geometry: &'a ShareGeometry,
    blocks: &'a [u32],
    pub(crate) now: SimTime,
}

impl<'a> ShareRing<'a> {
    pub(crate) fn new(share: &'a Share, geometry: &'a ShareGeometry, blocks: &'a [u32]) -> Self {
        Self { share, geometry, blocks, now: SimTime::ZERO }
    }
}

impl Pages for ShareRing<'_> {
    type Error = FlashError;

    fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    fn pages_per_block(&self) -> u32 {
        self.geometry.pages_per_block
    }

    fn page_size(&self) -> usize {
        self.geometry.page_size as usize
    }

    fn read(&mut self, block: u32, page: u32, into: &mut [u8]) -> Result<PageState> {
        let access = self.share.access(self.blocks[block as usize], page, Cause::Map, self.now);
        let (state, end) = self.share.read(access, 0, into, &mut [])?;
        self.now = self.now.max(end);
        Ok(state)
    }

    fn program(&mut self, block: u32, page: u32, bytes: &[u8]) -> Result<()> {
        let block = self.blocks[block as usize];
        let access = self.share.access(block, page, Cause::Map, self.now);
        self.now = self.now.max(self.share.program(access, bytes, &[])?.end);
        Ok(())
    }

    fn erase(&mut self, block: u32) -> Result<()> {
        let access = self.share.access(self.blocks[block as usize], 0, Cause::Map, self.now);
        self.now = self.now.max(self.share.erase(access)?);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.share.sync()
    }
}

/// The error of the journal, as reported to the owner of the share.
pub(crate) fn journal_error(error: JournalError<FlashError>) -> FlashError {
    match error {
        JournalError::Pages(error) => error,
        other => FlashError::Tables { what: other.to_string() },
    }
}

/// Opens the journal on `blocks`; returns its records.
pub(crate) fn open_journal(
    share: &Share,
    geometry: &ShareGeometry,
    blocks: &[u32],
) -> Result<(Journal, Vec<Vec<u8>>)> {
    for &block in blocks {
        share.finish_if_open(block)?;
    }
    let mut ring = ShareRing::new(share, geometry, blocks);
    Journal::open(&mut ring).map_err(journal_error)
}

/// Makes all data in the share and all appended records of the journal durable. Returns the time at
/// which the records are.
pub(crate) fn sync_journal(
    journal: &mut Journal,
    share: &Share,
    geometry: &ShareGeometry,
    blocks: &[u32],
    snapshot: impl FnOnce() -> Vec<Vec<u8>>,
) -> Result<SimTime> {
    let mut ring = ShareRing::new(share, geometry, blocks);
    ring.now = share.now_if_timed()?;
    journal.sync(&mut ring, snapshot).map_err(journal_error)?;
    Ok(ring.now)
}

/// The limit of ranges of trims, so that a checkpoint fits the journal with ease.
pub(crate) fn trims_max(geometry: &ShareGeometry) -> usize {
    (geometry.block_bytes() / TRIM_BYTES / 4) as usize
}

/// Records of the trims of range `id`.
pub(crate) fn encode_trims(
    id: u32,
    trims: impl Iterator<Item = (u32, u32, u64)>,
    out: &mut Vec<Vec<u8>>,
) {
    let trims: Vec<_> = trims.collect();
    for part in trims.chunks(TRIMS_MAX) {
        let mut record = Vec::new();
        save(&(id, part), &mut record);
        out.push(record);
    }
}

/// The trims of range `id`, out of the records of all.
pub(crate) fn decode_trims(id: u32, records: &[Vec<u8>]) -> Result<PendingTrims> {
    let mut trims = PendingTrims::default();
    for bytes in records {
        let record: (u32, Vec<(u32, u32, u64)>) =
            load_whole(bytes).map_err(|error| FlashError::Tables { what: error.to_string() })?;
        for (start, end, version) in record.1 {
            if record.0 == id {
                trims.insert(start, end, version);
            }
        }
    }
    Ok(trims)
}

#[cfg(test)]
mod tests {
    use super::super::{Cleaning, Mapping, Policy, RangeConfig};
    use crate::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
    use prism_base::{Bytes, Nanos};
    use prism_nand::{PageTimes, Timing};

    /// A unit whose last program is always in flight when a flush is complete.
    #[test]
    fn units_in_flight_are_noted_once() {
        let geometry = DeviceGeometry {
            channels: 2,
            luns_per_channel: 1,
            blocks_per_lun: 24,
            pages_per_block: 8,
            page_size: 512,
            oob_size: 64,
            max_open_blocks: None,
        };
        let timing = Timing {
            t_read: PageTimes::uniform(Nanos(50_000)),
            t_program: PageTimes::uniform(Nanos(600_000)),
            t_erase: Nanos(3_000_000),
            t_command: Nanos(0),
            bus_bytes_per_second: None,
        };
        let memory = MemoryDevice::new(geometry, Cache::None).unwrap();
        let options = Options { timing: Some(timing), wear: None };
        let device = Device::format(memory, options).unwrap();
        let capacity = Bytes(2 * device.lun_capacity().0);
        let share = device.allocate("a", Allocation::new(capacity, 0)).unwrap();
        let policy = Policy::open(share).unwrap();
        let range = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, 60 * 512, range).unwrap();
        // A trim that stays.
        policy.write(512, &[1; 512]).unwrap();
        policy.trim(512, 512).unwrap();
        policy.flush().unwrap();
        let mut queue = policy.queue(2);
        for _ in 0..200 {
            policy.write(0, &[2; 512]).unwrap();
            queue.submit_flush(1).unwrap();
            let noted = policy.lock().ranges[0].programmed_units();
            assert!(noted <= 1, "{noted} units are noted");
            assert_eq!(queue.complete().unwrap().result, Ok(()));
        }
    }
}
