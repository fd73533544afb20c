//! Runs plans at once: moves state, knows no time. For filling and preconditioning a
//! drive, and for questions about write amplification alone.

use prism_ftl::{CopyPlan, PageMap, UnitWrite};
use prism_nand::{Cause, DieId, Nand, Pun, RowId};

use crate::content;
use crate::counts::FlashCounts;

/// An engine without time over the flash and the layer of somebody else.
#[derive(Debug)]
pub struct Immediate<'a> {
    nand: &'a mut Nand,
    ftl: &'a mut PageMap,
    counts: FlashCounts,
    next_die: u32,
    row: Vec<UnitWrite>,
    /// Bytes of the units in the row, if they have any.
    payloads: Vec<Box<[u8]>>,
    plan: CopyPlan,
}

impl<'a> Immediate<'a> {
    /// An engine that has done nothing yet.
    pub fn new(nand: &'a mut Nand, ftl: &'a mut PageMap) -> Self {
        Self {
            nand,
            ftl,
            counts: FlashCounts::default(),
            next_die: 0,
            row: Vec::new(),
            payloads: Vec::new(),
            plan: CopyPlan::default(),
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    /// Writes one logical unit; it reaches the flash with the rest of its row.
    pub fn write(&mut self, lpn: u32, version: u64) {
        self.ftl.write_begin(lpn);
        self.row.push(UnitWrite { lpn, source: None, version });
        if self.row.len() == self.nand.geometry().units_per_row() as usize {
            self.flush();
        }
    }

    /// As [`Immediate::write`], with the unit's bytes, which a device that keeps content
    /// then holds. Units with and without bytes may not share a row.
    ///
    /// # Panics
    /// If the row that is being filled has units without bytes.
    pub fn write_bytes(&mut self, lpn: u32, version: u64, bytes: Box<[u8]>) {
        assert!(self.payloads.len() == self.row.len(), "a row with bytes for some units only");
        self.payloads.push(bytes);
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

    /// Trims `start..end` at once.
    pub fn trim(&mut self, start: u32, end: u32, version: u64) {
        self.ftl.trim_now(start, end, version);
    }

    /// Programs what waits for its row to fill up; the rest of the row is padding.
    pub fn flush(&mut self) {
        if self.row.is_empty() {
            return;
        }
        let die = self.choose_die();
        let row = self.ftl.reserve_host(die);
        let units = std::mem::take(&mut self.row);
        let payloads = std::mem::take(&mut self.payloads);
        self.program(row, Cause::Host, &units, &payloads);
        self.row = units;
        self.row.clear();
        self.payloads = payloads;
        self.payloads.clear();
    }

    /// The next die in turn that holds no more than its share.
    fn choose_die(&mut self) -> DieId {
        let dies = self.nand.geometry().dies();
        for _ in 0..dies {
            let die = DieId(self.next_die);
            self.next_die = (self.next_die + 1) % dies;
            if !self.ftl.balanced(die) {
                continue;
            }
            if self.ftl.below_low(die) {
                self.clean(die);
            }
            if self.ftl.host_may_write(die) {
                return die;
            }
        }
        panic!("no die can take a row: over-provisioning is too small for this layer");
    }

    fn clean(&mut self, die: DieId) {
        while !self.ftl.reached_high(die) {
            let Some(victim) = self.ftl.pick_victim(die) else { return };
            let mut cursor = 0;
            let mut plan = std::mem::take(&mut self.plan);
            loop {
                self.ftl.gather(victim, &mut cursor, &mut plan);
                if plan.units.is_empty() {
                    break;
                }
                for run in &plan.reads {
                    self.counts.reads[Cause::Gc] += u64::from(run.pages);
                }
                let row = self.ftl.reserve_copy(die);
                self.program(row, Cause::Gc, &plan.units, &[]);
            }
            self.plan = plan;
            self.nand.erase_begin(victim).expect("a victim is on the device");
            self.nand.erase_end(victim);
            self.counts.erases[Cause::Gc] += u64::from(self.nand.geometry().planes_ganged);
            self.ftl.erased(victim);
        }
    }

    fn program(&mut self, row: RowId, cause: Cause, units: &[UnitWrite], payloads: &[Box<[u8]>]) {
        content::program_begin(self.nand, self.ftl, row, units, payloads)
            .expect("a reserved row is the next of its block");
        self.nand.program_end(row);
        self.counts.count_program(self.nand.geometry(), cause, units);
        let first = self.nand.geometry().first_unit(row).0;
        for (i, write) in units.iter().enumerate() {
            self.ftl.commit(write, Pun(first + i as u32));
        }
        self.ftl.row_done(row);
    }
}
