//! Cleaning: the state machine of one die group.
//!
//! Cleaning starts when a die group falls below its low watermark and stops at the high one. It
//! proceeds by program units, so that host operations of the same dies are interleaved, and the
//! source stays readable until its copy is committed. Wear levelling moves blocks by the same
//! steps.

use std::collections::VecDeque;

use prism_base::{SimTime, snapshot_fields};
use prism_nand::{BlockId, Cause, DieGroupId, Status};

use super::Controller;
use crate::config::CleaningMode;
use crate::device::FlashDevice;

/// Copy steps per die of a die group that may be in flight at once: one being programmed, one being
/// read.
pub(crate) const COPIES_MAX: u32 = 2;

/// The state of cleaning on a die group.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Cleaner {
    /// Copy steps in flight.
    pub(super) copies: u32,
    /// Dies on which the erase of the victim has not ended, and whether it failed on a die.
    erasing: u32,
    erase_failed: bool,
    /// Between low and high watermark.
    active: bool,
    /// The host is idle: cleaning continues above the high watermark.
    idle: bool,
    /// Cleaning is needed but there is no victim; the engine counts such die groups.
    stuck: bool,
    /// Cleaning is needed but the host has priority; the engine counts such die groups.
    paused: bool,
    /// An erase has ended since wear levelling was last checked.
    check_wear: bool,
    /// The block being emptied, and the cause.
    victim: Option<(BlockId, Cause)>,
    /// Next unit of the victim to be examined.
    cursor: u32,
    /// Lost units of copies that take effect together.
    pub(super) lost_units: u64,
    /// Copy steps that are programmed and wait for the rest of their wordline.
    pub(super) held: u32,
    /// Copy steps whose program units are reserved but not queued yet, in the order of the program
    /// units.
    in_order: VecDeque<u32>,
}

impl Cleaner {
    /// Whether no block is being emptied.
    pub(super) fn is_at_rest(&self) -> bool {
        let steps = self.copies + self.held + self.erasing;
        self.victim.is_none() && steps == 0 && self.in_order.is_empty() && !self.paused
    }

    /// Whether copies or erases are in flight.
    pub(super) fn is_working(&self) -> bool {
        self.copies + self.erasing > 0
    }

    /// Whether it is time to clean and nothing would be gained.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck
    }
}

snapshot_fields!(Cleaner { values: active, idle, stuck, check_wear; });

impl<D: FlashDevice> Controller<D> {
    /// Continues the cleaning of `die_group`, or begins it if it is needed.
    #[inline]
    pub(super) fn clean(&mut self, die_group: DieGroupId, now: SimTime) {
        while self.takes_copies(die_group) && self.clean_further(die_group, now) {}
    }

    /// Whether another step of cleaning may be in flight on `die_group`.
    #[inline]
    fn takes_copies(&self, die_group: DieGroupId) -> bool {
        let cleaner = &self.die_groups[die_group.0 as usize].cleaner;
        cleaner.copies < self.copies_max && cleaner.erasing == 0
    }

    /// Makes one step of cleaning. Returns whether another may follow at once.
    #[inline(never)]
    fn clean_further(&mut self, die_group: DieGroupId, now: SimTime) -> bool {
        if self.faulty && self.ftl.is_read_only() {
            return false;
        }
        let cleaner = &mut self.die_groups[die_group.0 as usize].cleaner;
        if !cleaner.active {
            cleaner.active = self.ftl.below_low(die_group);
        }
        (cleaner.victim.is_some() || self.choose(die_group))
            && self.may_continue(die_group)
            && self.copy_step(die_group, now)
    }

    /// Chooses the next victim. Returns whether there is one.
    #[inline(never)]
    fn choose(&mut self, die_group: DieGroupId) -> bool {
        let cleaner = &mut self.die_groups[die_group.0 as usize].cleaner;
        cleaner.active &= !self.ftl.reached_high(die_group);
        let idle_goal = self.cleaning.free_blocks_idle;
        cleaner.idle &=
            self.ftl.free_blocks(die_group) < idle_goal || self.ftl.folds_when_idle(die_group);
        cleaner.cursor = 0;
        self.device.order();
        if self.faulty {
            cleaner.victim = self.ftl.pick_failed(die_group).map(|block| (block, Cause::Retire));
            if cleaner.victim.is_some() {
                return true;
            }
        }
        // Wear levelling is checked first, because cleaning may never end under a busy host.
        if std::mem::take(&mut cleaner.check_wear) {
            cleaner.victim = self.ftl.pick_for_wear(die_group).map(|block| (block, Cause::Wear));
        }
        if cleaner.victim.is_none() && (cleaner.active || cleaner.idle) {
            let chosen = match cleaner.active {
                true => self.ftl.pick_victim(die_group),
                false => self.ftl.pick_in_idle(die_group),
            };
            cleaner.victim = chosen.map(|block| (block, self.ftl.cause_of_cleaning(block)));
            // Some merges only change the map, and make room at once.
            self.freed |= self.ftl.places_host();
        }
        let found = cleaner.victim.is_some();
        let stuck = cleaner.active && !found;
        self.stuck += u32::from(stuck);
        self.stuck -= u32::from(std::mem::replace(&mut cleaner.stuck, stuck));
        cleaner.idle &= found;
        found
    }

    /// Whether cleaning may make its next step, or has to wait for the host.
    fn may_continue(&mut self, die_group: DieGroupId) -> bool {
        let cleaning = self.cleaning;
        let waits = match cleaning.mode {
            CleaningMode::Foreground => return true,
            CleaningMode::Partial => {
                self.layout.dies_of(die_group).any(|die| self.device.load(die).host_ops > 0)
            }
            CleaningMode::PriorityAware => self.urgent,
        };
        let may = !waits || self.ftl.is_urgent(die_group, cleaning.free_blocks_critical);
        let cleaner = &mut self.die_groups[die_group.0 as usize].cleaner;
        self.paused += u32::from(!may);
        self.paused -= u32::from(std::mem::replace(&mut cleaner.paused, !may));
        may
    }

    /// Resumes the cleaning of `die_group` if it waited for the host and need not any more.
    pub(super) fn resume_cleaning(&mut self, die_group: DieGroupId, now: SimTime) {
        if self.die_groups[die_group.0 as usize].cleaner.paused {
            self.clean(die_group, now);
        }
    }

    /// Whether there is work for idle time: cleaning, or a write cache to be emptied.
    #[must_use]
    pub fn works_when_idle(&self) -> bool {
        let folds = |die_group| self.ftl.folds_when_idle(DieGroupId(die_group));
        self.cleaning.free_blocks_idle > 0
            || self.ftl.has_slc() && (0..self.die_groups.len() as u32).any(folds)
    }

    /// The host has been idle for a while: until it is back, die groups with fewer erased blocks
    /// than `free_blocks_idle` are cleaned, and write caches are emptied.
    pub fn clean_in_idle_time(&mut self, now: SimTime) {
        if !self.works_when_idle() {
            return;
        }
        self.idle_cleaning = true;
        for die_group in 0..self.die_groups.len() as u32 {
            self.die_groups[die_group as usize].cleaner.idle = true;
            self.clean(DieGroupId(die_group), now);
        }
    }

    /// Begins to clean die groups that are below their low watermark, as flash may be that was just
    /// recovered. Returns whether anything is in flight.
    pub fn begin_cleaning(&mut self, now: SimTime) -> bool {
        for die_group in (0..self.die_groups.len() as u32).map(DieGroupId) {
            self.clean(die_group, now);
        }
        !self.is_idle()
    }

    /// As [`Controller::begin_cleaning`], for die groups below their high watermark: for a caller
    /// with time to spare.
    pub fn clean_to_high(&mut self, now: SimTime) -> bool {
        for die_group in 0..self.die_groups.len() as u32 {
            let below = !self.ftl.reached_high(DieGroupId(die_group));
            self.die_groups[die_group as usize].cleaner.active |= below;
        }
        self.begin_cleaning(now)
    }

    /// The host is back: idle time begins no further victim.
    #[inline]
    pub(super) fn stop_idle_cleaning(&mut self) {
        if self.idle_cleaning {
            self.idle_cleaning = false;
            for die_group in &mut self.die_groups {
                die_group.cleaner.idle = false;
            }
        }
    }

    /// One step: reads and the program that waits for them, or, once the victim is empty, its
    /// erase. Returns whether another step may follow at once.
    #[inline(always)]
    fn copy_step(&mut self, die_group: DieGroupId, now: SimTime) -> bool {
        let cleaner = &mut self.die_groups[die_group.0 as usize].cleaner;
        let (victim, why) = cleaner.victim.expect("a victim was chosen");
        let place = self.jobs.take();
        let job = &mut self.jobs[place];
        self.ftl.gather(victim, &mut cleaner.cursor, &mut job.units, &mut self.copy_reads);
        if job.units.is_empty() {
            self.jobs.give(place);
            if cleaner.copies > 0 {
                return false;
            }
            if cleaner.held > 0 {
                // The victim is not erased while its copies are on an open wordline, where a loss
                // of power could destroy them.
                self.close_copies(die_group, now);
                return false;
            }
            return self.all_copied(die_group, victim, now);
        }
        let cause = self.ftl.cause_of_copies(victim, why);
        cleaner.copies += 1;
        job.reads_left = self.copy_reads.len() as u32;
        if !self.no_payload {
            job.payloads.clear();
            job.lost.clear();
        }
        job.die_group = die_group.0;
        job.victim = Some(victim);
        job.cause = Some(cause);
        job.copied_back = 0;
        if self.ftl.copies_in_order(victim) {
            job.program_unit = self.ftl.reserve_copy(die_group, victim).0;
            cleaner.in_order.push_back(place);
        }
        if self.faulty {
            self.sample_copy_read_errors(place, victim, now);
            self.rebuild_copies(place, now);
        }
        if self.device.copies_back() && self.copy_back(place, die_group, victim, now) {
            return true;
        }
        let mut next = 0;
        while let Some(run) = self.copy_reads.get(next) {
            next += 1;
            self.device.read_for_copy(&mut self.jobs, place, run, now);
        }
        if next == 0 && self.jobs[place].reads_left == 0 {
            self.queue_in_order(die_group, now);
        }
        true
    }

    /// Every copy out of `victim` is programmed: erases the block that is then to be erased.
    /// Returns whether there is none, so that another step may follow at once.
    #[inline(never)]
    fn all_copied(&mut self, die_group: DieGroupId, victim: BlockId, now: SimTime) -> bool {
        let lost = &mut self.die_groups[die_group.0 as usize].cleaner.lost_units;
        self.device.counts_mut().faults.lost_units += std::mem::take(lost);
        let Some(block) = self.ftl.emptied(victim) else {
            self.die_groups[die_group.0 as usize].cleaner.victim = None;
            self.freed = true;
            self.look_for_garbage(now);
            return true;
        };
        let cleaner = &self.die_groups[die_group.0 as usize].cleaner;
        let (_, cause) = cleaner.victim.expect("a victim is emptied");
        let members = self.device.erase(&mut self.jobs, block, cause, die_group.0, now);
        self.die_groups[die_group.0 as usize].cleaner.erasing = members;
        false
    }

    /// Queues the programs of copies with reserved program units whose reads are done, up to the
    /// first whose reads are not.
    #[inline(never)]
    fn queue_in_order(&mut self, die_group: DieGroupId, now: SimTime) {
        while let Some(&place) = self.die_groups[die_group.0 as usize].cleaner.in_order.front() {
            if self.jobs[place].reads_left > 0 {
                return;
            }
            self.die_groups[die_group.0 as usize].cleaner.in_order.pop_front();
            self.submit_program(place, now);
        }
    }

    /// Makes a copy within a plane without the channel, as one operation for read and program.
    /// Returns false if the copy would leave its plane.
    #[inline(never)]
    fn copy_back(
        &mut self,
        place: u32,
        die_group: DieGroupId,
        victim: BlockId,
        now: SimTime,
    ) -> bool {
        let job = &mut self.jobs[place];
        let Some(to) = self.ftl.next_copy_program_unit(die_group, victim) else { return false };
        if !job.lost.is_empty() || !self.device.copy_back(job, to, &self.copy_reads) {
            return false;
        }
        let taken = self.ftl.reserve_copy(die_group, victim);
        debug_assert!(to == taken, "the copy is reserved at the program unit that was checked");
        job.program_unit = to.0;
        self.submit_program(place, now);
        self.program_parity(die_group, now);
        true
    }

    #[inline(always)]
    pub(super) fn copy_read_done(&mut self, place: u32, now: SimTime) {
        let job = &mut self.jobs[place];
        job.reads_left -= 1;
        if job.reads_left > 0 {
            return;
        }
        let die_group = DieGroupId(job.die_group);
        let victim = job.victim.expect("a copy empties a block");
        if self.ftl.copies_in_order(victim) {
            self.queue_in_order(die_group, now);
            return;
        }
        self.place_copy(place, now);
    }

    pub(super) fn erase_done(
        &mut self,
        block: BlockId,
        die_group: DieGroupId,
        status: Status,
        now: SimTime,
    ) {
        let cleaner = &mut self.die_groups[die_group.0 as usize].cleaner;
        let (_, cause) = cleaner.victim.expect("what is erased was a victim");
        if status == Status::Passed {
            self.device.counts_mut().erases[cause] +=
                u64::from(self.device.geometry().planes_ganged);
        } else {
            self.device.counts_mut().faults.erase_failures += 1;
            cleaner.erase_failed = true;
        }
        cleaner.erasing -= 1;
        if cleaner.erasing > 0 {
            return;
        }
        cleaner.victim = None;
        // Moves of wear levelling gain no room: while room is needed, a cleaning comes between two.
        cleaner.check_wear = cause != Cause::Wear || !cleaner.active;
        if std::mem::take(&mut cleaner.erase_failed) {
            self.ftl.erase_failed(block);
        } else {
            self.ftl.erased(block);
        }
        self.freed = true;
        self.list(die_group);
        self.replace_program_units(now);
        self.clean(die_group, now);
        if self.ftl.places_host() {
            // Die groups share the erased blocks: another may have waited for this one.
            self.look_for_garbage(now);
        }
    }

    /// Garbage has been created: die groups that needed cleaning but had no victim try again, and
    /// die groups with a new block to erase begin.
    pub fn look_for_garbage(&mut self, now: SimTime) {
        self.retry_cleaning(now);
        self.replace_program_units(now);
    }

    #[inline]
    fn retry_cleaning(&mut self, now: SimTime) {
        if self.ftl.has_idle_die_groups() {
            self.clean_idle_die_groups(now);
        }
        if self.stuck > 0 {
            self.unstick(now);
        }
    }

    #[inline(never)]
    fn clean_idle_die_groups(&mut self, now: SimTime) {
        while let Some(die_group) = self.ftl.take_idle_die_group() {
            self.clean(die_group, now);
        }
    }

    #[inline(never)]
    fn unstick(&mut self, now: SimTime) {
        for die_group in 0..self.die_groups.len() as u32 {
            if self.die_groups[die_group as usize].cleaner.stuck {
                self.clean(DieGroupId(die_group), now);
            }
        }
    }
}
