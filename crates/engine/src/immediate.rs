//! Runs plans at once: moves state, knows no time. For filling and preconditioning a
//! drive, and for questions about write amplification alone.

use prism_ftl::{CopyPlan, HostPlace, Layer, RowRun, UnitWrite};
use prism_nand::{BlockId, Cause, LaneId, Nand, Pun, RowId};

use crate::content;
use crate::counts::FlashCounts;

/// A row that is being filled.
#[derive(Clone, Debug, Default)]
struct Row {
    units: Vec<UnitWrite>,
    /// Bytes of the units, if they have any.
    payloads: Vec<Box<[u8]>>,
    /// Places of units that were trimmed while they waited: they are programmed and take
    /// no effect.
    lost: Vec<usize>,
}

/// How many writes ahead the map is asked for, and what it then leads to: enough to hide
/// the way to memory, few enough to stay in the cache.
const LOOK_AHEAD: usize = 64;

/// An engine without time over the flash and the layer of somebody else.
#[derive(Debug)]
pub struct Immediate<'a> {
    nand: &'a mut Nand,
    ftl: &'a mut Layer,
    counts: FlashCounts,
    next_lane: u32,
    /// By stream.
    rows: Vec<Row>,
    plan: CopyPlan,
    /// Reused from block to block.
    scratch: Vec<u32>,
    runs: Vec<RowRun>,
}

impl<'a> Immediate<'a> {
    /// An engine that has done nothing yet.
    pub fn new(nand: &'a mut Nand, ftl: &'a mut Layer) -> Self {
        Self {
            rows: vec![Row::default(); ftl.streams() as usize],
            nand,
            ftl,
            counts: FlashCounts::default(),
            next_lane: 0,
            plan: CopyPlan::default(),
            scratch: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// Writes one logical unit; it reaches the flash with the rest of its row, which holds
    /// units of one stream. Versions of a unit must grow.
    pub fn write(&mut self, lpn: u32, version: u64) {
        let stream = self.ftl.stream_of(lpn, 0);
        let row = &mut self.rows[stream as usize];
        row.units.push(UnitWrite { lpn, source: None, version });
        if row.units.len() == self.nand.layout().units_per_row() as usize {
            self.program_host(stream);
        }
    }

    /// Writes `lpns` one after another, with versions from `version` on. The same as
    /// [`Immediate::write`] of each, and several times as fast on a large drive, because
    /// the map is looked up ahead of time.
    pub fn write_all(&mut self, lpns: &[u32], version: u64) {
        for (i, &lpn) in lpns.iter().enumerate() {
            if let Some(&ahead) = lpns.get(i + LOOK_AHEAD) {
                self.ftl.prefetch(ahead);
            }
            if let Some(&ahead) = lpns.get(i + LOOK_AHEAD / 2) {
                self.ftl.prefetch_old(ahead);
            }
            self.write(lpn, version + i as u64);
        }
    }

    /// As [`Immediate::write`], with the unit's bytes, which a device that keeps content
    /// then holds. Units with and without bytes may not share a row.
    ///
    /// # Panics
    /// If the row that is being filled has units without bytes.
    pub fn write_bytes(&mut self, lpn: u32, version: u64, bytes: Box<[u8]>) {
        let row = &mut self.rows[self.ftl.stream_of(lpn, 0) as usize];
        assert!(row.payloads.len() == row.units.len(), "a row with bytes for some units only");
        row.payloads.push(bytes);
        self.write(lpn, version);
    }

    /// The bytes of `lpn` as the flash holds them; `None` if it holds nothing, or what
    /// was written had no bytes. What still waits for its row is not there yet.
    ///
    /// # Panics
    /// If the map leads to a unit that cannot be read, which is a bug.
    #[must_use]
    pub fn read_bytes(&self, lpn: u32) -> Option<&[u8]> {
        let at = self.ftl.lookup(lpn)?;
        let unit = self.nand.read(at).expect("the map points to readable units only")?;
        unit.payload.as_deref()
    }

    /// Trims `start..end` at once, also what waits for its row.
    pub fn trim(&mut self, start: u32, end: u32, version: u64) {
        self.ftl.trim_now(start, end, version);
        for row in &mut self.rows {
            let trimmed = |&place: &usize| (start..end).contains(&row.units[place].lpn);
            let mut lost: Vec<_> = (0..row.units.len()).filter(trimmed).collect();
            lost.append(&mut row.lost);
            lost.sort_unstable();
            lost.dedup();
            row.lost = lost;
        }
    }

    /// Programs what waits for its row to fill up; the rest of the row is padding.
    pub fn flush(&mut self) {
        for stream in 0..self.rows.len() as u32 {
            if !self.rows[stream as usize].units.is_empty() {
                self.program_host(stream);
            }
        }
    }

    /// Merges every log block, and erases every block with nothing live in it, where the
    /// mapping has such blocks. Rows that wait for more units are programmed first.
    pub fn merge_all(&mut self) {
        self.flush();
        self.ftl.want_all();
        let mut at_rest = false;
        while !at_rest {
            at_rest = true;
            for lane in (0..self.nand.geometry().lanes()).map(LaneId) {
                if !self.ftl.reached_high(lane) {
                    self.clean(lane);
                    at_rest &= self.ftl.reached_high(lane);
                }
            }
        }
    }

    fn program_host(&mut self, stream: u32) {
        let mut row = std::mem::take(&mut self.rows[stream as usize]);
        let lane = self.choose_lane(stream);
        if row.lost.is_empty() && self.at_once() {
            let place = self.ftl.put_row(lane, stream, &row.units);
            self.nand.program_rows(place, 1).expect("a row that was put is the next of its block");
            self.count(Cause::Host, &row.units);
        } else {
            let place = self.ftl.reserve_host(lane, stream);
            self.program(place, Cause::Host, &row.units, &row.payloads, &row.lost);
        }
        row.units.clear();
        row.payloads.clear();
        row.lost.clear();
        self.rows[stream as usize] = row;
    }

    /// The lane that the layer names, or the next in turn that holds no more than its share.
    fn choose_lane(&mut self, stream: u32) -> LaneId {
        if self.ftl.places_host() {
            return self.named_lane(stream);
        }
        let lanes = self.nand.geometry().lanes();
        for _ in 0..lanes {
            let lane = LaneId(self.next_lane);
            self.next_lane = if self.next_lane + 1 == lanes { 0 } else { self.next_lane + 1 };
            if !self.ftl.balanced(lane) {
                continue;
            }
            if self.ftl.below_low(lane) {
                self.clean(lane);
            }
            if self.ftl.host_may_write(lane, stream) {
                return lane;
            }
        }
        panic!("no lane can take a row: over-provisioning is too small for this layer");
    }

    fn named_lane(&mut self, stream: u32) -> LaneId {
        // Each turn ends with an erase or with a log block less.
        for _ in 0..=2 * self.nand.geometry().blocks() {
            let lane = match self.ftl.host_place(stream) {
                HostPlace::Lane(lane) if !self.ftl.below_low(lane) => return lane,
                HostPlace::Lane(lane) => lane,
                HostPlace::Blocked => {
                    self.ftl.make_room(stream).expect("nothing is under way to wait for")
                }
                HostPlace::Any => unreachable!("a layer that names no lane"),
            };
            self.clean(lane);
            if let HostPlace::Lane(lane) = self.ftl.host_place(stream) {
                return lane;
            }
        }
        panic!("merges make no room: the layer promised that they do");
    }

    fn clean(&mut self, lane: LaneId) {
        let why = self.ftl.cause_of_cleaning();
        while !self.ftl.reached_high(lane) {
            let Some(victim) = self.ftl.pick_victim(lane) else { return };
            self.empty(lane, victim, why);
            if let Some(victim) = self.ftl.pick_for_wear(lane) {
                self.empty(lane, victim, Cause::Wear);
            }
        }
    }

    /// Whether rows and blocks may be moved as a whole.
    fn at_once(&self) -> bool {
        !self.nand.keeps_content() && self.ftl.takes_rows_at_once()
    }

    /// Moves what is valid out of `victim`, and erases what that leaves to erase.
    fn empty(&mut self, lane: LaneId, victim: BlockId, why: Cause) {
        let cause = self.ftl.cause_of_copies(victim, why);
        if self.at_once() {
            self.move_at_once(victim, cause);
        } else {
            self.move_by_rows(lane, victim, cause);
        }
        let Some(victim) = self.ftl.emptied(victim) else { return };
        for member in 0..self.nand.geometry().dies_per_superblock {
            self.nand.erase_begin(victim, member).expect("a victim is on the device");
            self.nand.erase_end(victim, member);
            self.counts.erases[why] += u64::from(self.nand.geometry().planes_ganged);
        }
        self.ftl.erased(victim);
        // Nobody keeps translation pages up to date here.
        while self.ftl.take_moved().is_some() {}
    }

    fn move_at_once(&mut self, victim: BlockId, cause: Cause) {
        let moved = self.ftl.move_all(victim, &mut self.scratch, &mut self.runs);
        self.counts.reads[cause] += moved.pages_read;
        let per_row = self.nand.layout().units_per_row();
        let mut left = moved.units;
        for run in &self.runs {
            self.nand.program_rows(run.first, run.rows).expect("copies go to the next rows");
            let full = run.rows.min(left / per_row);
            self.counts.count_full_rows(self.nand, cause, full);
            left -= full * per_row;
        }
        if left > 0 {
            let logical = self.ftl.logical_units();
            let unit = UnitWrite { lpn: 0, source: Some(Pun(0)), version: 0 };
            let units = vec![unit; left as usize];
            self.counts.count_program(self.nand, cause, logical, &units);
        }
    }

    fn move_by_rows(&mut self, lane: LaneId, victim: BlockId, cause: Cause) {
        let mut cursor = 0;
        let mut plan = std::mem::take(&mut self.plan);
        loop {
            self.ftl.gather(victim, &mut cursor, &mut plan);
            if plan.units.is_empty() {
                break;
            }
            for run in &plan.reads {
                self.counts.reads[cause] += u64::from(run.pages);
            }
            let row = self.ftl.reserve_copy(lane, victim);
            self.program(row, cause, &plan.units, &[], &[]);
        }
        self.plan = plan;
    }

    fn count(&mut self, cause: Cause, units: &[UnitWrite]) {
        let logical = self.ftl.logical_units();
        let full = units.len() == self.nand.layout().units_per_row() as usize;
        if full && units.iter().all(|unit| unit.lpn < logical) {
            self.counts.count_full_rows(self.nand, cause, 1);
        } else {
            self.counts.count_program(self.nand, cause, logical, units);
        }
    }

    /// Programs `row`; all units but the `lost` ones (their places, in order) take effect.
    fn program(
        &mut self,
        row: RowId,
        cause: Cause,
        units: &[UnitWrite],
        payloads: &[Box<[u8]>],
        lost: &[usize],
    ) {
        content::program_begin(self.nand, self.ftl, row, units, payloads)
            .expect("a reserved row is the next of its block");
        self.nand.program_end(row);
        self.count(cause, units);
        if cause == Cause::Host {
            for (place, write) in units.iter().enumerate() {
                if !lost.contains(&place) {
                    self.ftl.write_begin(write.lpn);
                }
            }
        }
        self.ftl.commit(row, units, lost);
        while let Some(parity) = self.ftl.take_parity() {
            self.program(parity, Cause::Parity, &[], &[], &[]);
        }
    }
}
