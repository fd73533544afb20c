//! Hybrid mapping: block-level mapping of logical blocks, with page-mapped log blocks.
//!
//! Source: the N/K mapping of SAST (Park, Cheon, Kang, Roh, Cho, Kim, ACM TECS 2008) as implemented
//! in WiscSim (He, Kannan, Arpaci-Dusseau, Arpaci-Dusseau, EuroSys'17). N logical blocks are a
//! *data group*, which has up to K log blocks. Host writes are appended to the group's open log
//! block; *merges* turn log blocks into data blocks. Differs: the limit of log blocks is one of the
//! device; the merge of a logical block takes effect as a whole when its last copy is programmed.
//! Design: docs/design/hybrid.md.
//!
//! A controller keeps a table of data blocks and, for each group, a map of its log blocks. Here one
//! array has the physical unit of each logical unit, so that a lookup is one access. The invariant
//! is that of the two tables: a unit is at its own offset of the data block of its logical block,
//! or anywhere in a log block of its group. Cost: 4 bytes per logical unit, 4 bytes and a bit per
//! physical unit, 53 bytes per block.

mod choice;
mod config;
mod destination;
mod host;
mod merge;
mod recover;
mod retire;
mod snapshot;

use std::collections::{BTreeMap, VecDeque};

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::{Divisor, FastMap, Zeroed, prefetch};
use prism_nand::{BlockId, DieGroupId, Geometry, Layout, ProgramUnitId, Pun};

use crate::config::ConfigError;
use crate::ftl::common_parts;
use crate::in_flight::InFlightUnits;
use crate::plan::UnitWrite;

pub use config::{HybridConfig, Logs};
pub use merge::MergeCounts;
pub(crate) use recover::BlockStatus;
use retire::Retirement;

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
enum Use {
    /// Erased.
    Free,
    /// A log block that is open or has program units in flight.
    Log,
    /// A full log block.
    Sealed,
    /// A log block whose merge is requested because a group needs its room.
    Wanted,
    /// A log block that is being merged.
    Merging,
    /// The target of a merge.
    Target,
    /// The data block of a logical block.
    Data,
    /// A log block without valid units. It counts as a log block until it is erased, because the
    /// units that superseded its own may not be durable before.
    Spent,
    /// Without valid units, and to be erased.
    Dead,
    /// Bad, and empty.
    Retired,
}

/// A data group.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Its log blocks, in the order in which they were opened.
    logs: Vec<u32>,
    /// The log block for host writes.
    open: Option<u32>,
    /// The log block whose merge it waits for.
    waits_for: Option<u32>,
    /// Its logical block that is being merged, one at a time.
    merging: Option<u32>,
    /// Its log block was opened for a program unit that is not yet written, so that no other group
    /// may take it: otherwise two groups could take it from each other forever without writing.
    awaits_program_unit: bool,
    /// Log blocks at recovery, which may be more than the configuration allows.
    found: u32,
}

/// The part of the state that belongs to one die group.
#[derive(Clone, Debug, Default)]
struct DieGroup {
    free: VecDeque<u32>,
    dead: VecDeque<u32>,
    /// Failed data blocks whose data has to be moved.
    failed: VecDeque<u32>,
    /// Log blocks whose merge is requested.
    wanted: VecDeque<u32>,
    /// Log blocks that need program units copied from the data block, up to this one.
    fills: VecDeque<(u32, u32)>,
    /// Full log blocks, in the order in which they were opened.
    sealed: BTreeMap<u64, u32>,
    /// The log block that is being merged, for all its logical blocks.
    victim: Option<u32>,
    /// Units were copied out of `victim`.
    copied: bool,
    step: Option<merge::Step>,
    /// By offset in the logical block: the source of the copy, plus one.
    sources: Vec<u32>,
}

/// The state of the hybrid mapping.
#[derive(Clone, Debug)]
pub struct Hybrid {
    geometry: Geometry,
    layout: Layout,
    config: HybridConfig,
    group_units: Divisor,
    block_units: Divisor,
    /// The most log blocks, T - D - 1 at most.
    logs_max: u32,
    /// 0 for none, otherwise unit + 1.
    l2p: Zeroed<u32>,
    /// 0 for none, otherwise logical unit + 1.
    p2l: Zeroed<u32>,
    live_bits: Zeroed<u64>,
    /// By block: use, valid units, erases, next program unit, program units in flight.
    uses: Vec<Use>,
    valid: Vec<u32>,
    erases: Vec<u32>,
    next: Vec<u32>,
    program_units_in_flight: Vec<u16>,
    /// By block: its group, its logical block if it has one, its position in the order of opening.
    group_of: Vec<u32>,
    logical: Vec<u32>,
    opened: Vec<u64>,
    /// By block: the value of `changes` at its last change.
    changed: Vec<u64>,
    changes: u64,
    /// By logical block: its data block plus one, 0 for none.
    data: Vec<u32>,
    groups: Vec<Group>,
    /// FAST: the log block of the sequential run, and whether it accepts program units.
    sequential: Option<u32>,
    sequential_open: bool,
    /// Program units of padding to be programmed, because a later program unit is needed.
    pads: VecDeque<ProgramUnitId>,
    die_groups: Vec<DieGroup>,
    /// Die groups that got a block to erase and were not yet returned.
    idle_die_groups: Vec<u32>,
    /// The group that waits for the merge of a log block.
    wanted_by: FastMap<u32, u32>,
    /// Open log blocks, by when they were opened.
    open_logs: BTreeMap<u64, u32>,
    opens: u64,
    log_total: u32,
    /// Log blocks without valid units, included in `log_total`.
    spent_total: u32,
    /// Log blocks at recovery.
    logs_found: u32,
    free_total: u32,
    /// The die group of the next block to be opened, if all have equally many erased ones.
    next_die_group: u32,
    in_flight: InFlightUnits,
    mapped: u64,
    valid_total: u64,
    merges: MergeCounts,
    /// Failed blocks.
    retirement: Retirement,
}

common_parts!(Hybrid, HybridConfig);

impl Hybrid {
    /// An empty map over erased flash.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash.
    pub fn new(geometry: Geometry, config: HybridConfig) -> Result<Self, ConfigError> {
        config.check(&geometry)?;
        let blocks = geometry.blocks() as usize;
        let block_units = geometry.data_units_per_block();
        let logical_blocks = config.logical_blocks(&geometry);
        let per_die_group = geometry.blocks_per_die_group();
        let die_group = |die_group: u32| DieGroup {
            free: (die_group * per_die_group..(die_group + 1) * per_die_group).collect(),
            sources: vec![0; block_units as usize],
            ..DieGroup::default()
        };
        Ok(Self {
            layout: Layout::new(&geometry),
            group_units: Divisor::new(config.group_blocks.saturating_mul(block_units)),
            block_units: Divisor::new(block_units),
            logs_max: config.log_blocks_max(&geometry),
            l2p: Zeroed::new((logical_blocks * block_units) as usize),
            p2l: Zeroed::new(geometry.units() as usize),
            live_bits: Zeroed::new(geometry.units().div_ceil(64) as usize),
            uses: vec![Use::Free; blocks],
            valid: vec![0; blocks],
            erases: vec![0; blocks],
            next: vec![0; blocks],
            program_units_in_flight: vec![0; blocks],
            group_of: vec![0; blocks],
            logical: vec![0; blocks],
            opened: vec![0; blocks],
            changed: vec![0; blocks],
            changes: 0,
            data: vec![0; logical_blocks as usize],
            groups: vec![Group::default(); config.groups(&geometry) as usize],
            sequential: None,
            sequential_open: false,
            pads: VecDeque::new(),
            die_groups: (0..geometry.die_groups()).map(die_group).collect(),
            idle_die_groups: Vec::new(),
            wanted_by: FastMap::default(),
            open_logs: BTreeMap::new(),
            opens: 0,
            log_total: 0,
            spent_total: 0,
            logs_found: 0,
            free_total: geometry.blocks(),
            next_die_group: 0,
            in_flight: InFlightUnits::default(),
            mapped: 0,
            valid_total: 0,
            merges: MergeCounts::default(),
            retirement: Retirement::new(geometry.blocks()),
            geometry,
            config,
        })
    }

    /// Logical units that hold data.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Merges so far, by kind.
    #[must_use]
    pub fn merges(&self) -> &MergeCounts {
        &self.merges
    }

    /// The number of log blocks.
    #[must_use]
    pub fn log_blocks(&self) -> u32 {
        self.log_total
    }

    /// The number of data groups; each is a stream of the host.
    #[must_use]
    pub fn groups(&self) -> u32 {
        self.groups.len() as u32
    }

    /// The physical unit of `lpn`; `None` if it was never written, or was trimmed.
    #[must_use]
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Pun> {
        self.l2p[lpn as usize].checked_sub(1).map(Pun)
    }

    /// Prefetches the map entry of `lpn`, which will be read or changed soon.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.l2p, lpn as usize);
    }

    /// The logical unit whose map entry points to `at`, if any.
    #[must_use]
    pub fn live(&self, at: Pun) -> Option<u32> {
        let word = self.live_bits[at.0 as usize / 64];
        (word >> (at.0 % 64) & 1 == 1).then(|| self.p2l[at.0 as usize] - 1)
    }

    /// A host program of `lpn` is in flight.
    pub fn write_begin(&mut self, lpn: u32) {
        self.in_flight.begin(lpn);
    }

    /// One unit is programmed. Host data takes effect now, unless it is superseded already; copies
    /// take effect when the merge of their logical block is complete. Returns whether the unit is
    /// valid.
    ///
    /// # Panics
    /// If [`Hybrid::write_begin`] was not called for a host write.
    pub fn commit(&mut self, write: &UnitWrite, at: Pun) -> bool {
        if write.lpn == UnitWrite::PAD {
            return false;
        }
        self.p2l[at.0 as usize] = write.lpn + 1;
        if write.source.is_some() {
            return false;
        }
        let wins = self.in_flight.end(write.lpn, write.version);
        if wins {
            self.unmap(write.lpn);
            self.map(write.lpn, at);
        }
        wins
    }

    /// Every unit of `program_unit` is committed.
    pub fn program_unit_done(&mut self, program_unit: ProgramUnitId) {
        let block = self.layout.block_of(program_unit).0;
        let index = block as usize;
        self.program_units_in_flight[index] -= 1;
        if self.program_units_in_flight[index] > 0 {
            return;
        }
        match self.uses[index] {
            Use::Log if !self.is_open(block) => self.seal(block),
            _ if self.is_failed(block) => self.settle_failed(block),
            // Its last valid unit was trimmed or superseded in flight.
            Use::Data if self.valid[index] == 0 => self.drained(block),
            _ => {}
        }
    }

    /// Trims `start..end` at once; the map is protected against power loss.
    pub fn trim_now(&mut self, start: u32, end: u32, version: u64) {
        for lpn in start..end {
            self.unmap(lpn);
        }
        if self.config.logs == Logs::Replacement && start < end {
            // The program unit that the log block was opened for may have been trimmed.
            let (first, last) = (self.stream_of(start), self.stream_of(end - 1));
            for group in &mut self.groups[first as usize..=last as usize] {
                group.awaits_program_unit = false;
            }
        }
        if !self.in_flight.is_empty() {
            self.in_flight.raise_all(start, end, version);
        }
    }

    fn map(&mut self, lpn: u32, at: Pun) {
        self.l2p[lpn as usize] = at.0 + 1;
        self.live_bits[at.0 as usize / 64] |= 1 << (at.0 % 64);
        self.valid[self.layout.block_of_unit(at).0 as usize] += 1;
        self.mapped += 1;
        self.valid_total += 1;
    }

    fn unmap(&mut self, lpn: u32) {
        let Some(at) = self.lookup(lpn) else { return };
        self.l2p[lpn as usize] = 0;
        self.live_bits[at.0 as usize / 64] &= !(1 << (at.0 % 64));
        self.mapped -= 1;
        self.valid_total -= 1;
        let block = self.layout.block_of_unit(at).0;
        self.valid[block as usize] -= 1;
        self.note_change(block);
        if self.valid[block as usize] == 0 {
            self.drained(block);
        }
    }

    /// `block` has no more valid units. A merge may still read it, or write to it.
    fn drained(&mut self, block: u32) {
        match self.uses[block as usize] {
            Use::Sealed => {
                let die_group = self.die_group_of(block);
                self.die_groups[die_group].sealed.remove(&self.opened[block as usize]);
                self.mark_spent(block);
            }
            Use::Data => {
                let logical = self.logical[block as usize];
                let group = self.group_of[block as usize] as usize;
                if self.groups[group].merging != Some(logical) && self.is_idle(block) {
                    self.data[logical as usize] = 0;
                    self.mark_dead(block);
                }
            }
            Use::Free | Use::Log | Use::Wanted | Use::Merging => {}
            Use::Target | Use::Spent | Use::Dead | Use::Retired => {}
        }
    }

    /// Lists `block`, which has no valid units, to be erased, unless it is bad.
    fn mark_dead(&mut self, block: u32) {
        if self.is_failed(block) {
            return self.retire(block);
        }
        self.uses[block as usize] = Use::Dead;
        self.list_dead(block);
    }

    /// Lists log block `block`, which has no valid units, to be erased, unless it is bad.
    fn mark_spent(&mut self, block: u32) {
        if self.is_failed(block) {
            return self.retire(block);
        }
        self.uses[block as usize] = Use::Spent;
        self.spent_total += 1;
        self.list_dead(block);
    }

    fn list_dead(&mut self, block: u32) {
        let die_group = self.die_group_of(block);
        if self.die_groups[die_group].dead.is_empty() {
            self.note_idle(die_group);
        }
        self.die_groups[die_group].dead.push_back(block);
    }

    /// Notes that `die_group` has work to start. Each die group is listed once, because the
    /// immediate engine never takes it from the list.
    fn note_idle(&mut self, die_group: usize) {
        if !self.idle_die_groups.contains(&(die_group as u32)) {
            self.idle_die_groups.push(die_group as u32);
        }
    }

    /// A die group that has a block to erase and whose cleaning has to be started; each is returned
    /// once.
    pub fn take_idle_die_group(&mut self) -> Option<DieGroupId> {
        self.idle_die_groups.pop().map(DieGroupId)
    }

    fn die_group_of(&self, block: u32) -> usize {
        self.layout.die_group_of(BlockId(block)).0 as usize
    }

    fn is_log(&self, block: u32) -> bool {
        let uses = self.uses[block as usize];
        matches!(uses, Use::Log | Use::Sealed | Use::Wanted | Use::Merging | Use::Spent)
    }

    fn is_open(&self, block: u32) -> bool {
        if self.sequential == Some(block) {
            return self.sequential_open;
        }
        self.groups[self.group_of[block as usize] as usize].open == Some(block)
    }

    /// Takes an erased block from the die group with the most; equal die groups alternate.
    fn take_free(&mut self) -> Option<u32> {
        let die_group = self.freest_die_group()?;
        let block =
            self.die_groups[die_group].free.pop_front().expect("the die group has erased blocks");
        self.next_die_group = die_group as u32 + 1;
        self.free_total -= 1;
        self.next[block as usize] = 0;
        self.opened[block as usize] = self.opens;
        self.opens += 1;
        Some(block)
    }

    fn freest_die_group(&self) -> Option<usize> {
        if self.free_total == 0 {
            return None;
        }
        let die_groups = self.die_groups.len();
        let turn = |i: usize| (self.next_die_group as usize + i) % die_groups;
        // The first in rotation of those with the most.
        (0..die_groups)
            .rev()
            .map(turn)
            .max_by_key(|&die_group| self.die_groups[die_group].free.len())
    }

    /// Checks that the valid units equal the mapped logical units (law 2), by running sums, and the
    /// number of log blocks.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn assert_conserved(&self) {
        assert_eq!(self.valid_total, self.mapped, "valid units must be mapped units");
        let most = self.logs_max.max(self.logs_found);
        assert!(self.log_total <= most, "more log blocks than allowed");
    }

    /// As [`Hybrid::assert_conserved`], recounted over every logical unit and block.
    ///
    /// # Panics
    /// If a sum or an array disagrees with the map.
    pub fn assert_consistent(&self) {
        self.assert_conserved();
        let mut valid = vec![0u32; self.valid.len()];
        for (lpn, &entry) in self.l2p.iter().enumerate().filter(|(_, entry)| **entry != 0) {
            let at = Pun(entry - 1);
            let block = self.layout.block_of_unit(at).0 as usize;
            assert_eq!(self.live(at), Some(lpn as u32), "both maps must agree");
            valid[block] += 1;
            let (logical, offset) = self.block_units.split(lpn as u32);
            assert_eq!(self.group_of[block], logical / self.config.group_blocks, "its own group");
            match self.uses[block] {
                Use::Data => {
                    assert_eq!(self.data[logical as usize], block as u32 + 1, "its data block");
                    assert_eq!(self.block_units.split(at.0).1, offset, "its own offset");
                }
                Use::Log | Use::Sealed | Use::Wanted | Use::Merging => {}
                Use::Free | Use::Target | Use::Spent | Use::Dead | Use::Retired => {
                    panic!("unit {lpn} in a block without data")
                }
            }
        }
        assert_eq!(valid, self.valid, "valid counts must match the map");
        let live: u64 = self.live_bits.iter().map(|word| u64::from(word.count_ones())).sum();
        assert_eq!(live, self.valid_total, "one bit for each valid unit");
        self.assert_blocks();
    }

    fn assert_blocks(&self) {
        let count = |uses: &[Use]| self.uses.iter().filter(|use_| uses.contains(use_)).count();
        let listed = |list: fn(&DieGroup) -> usize| self.die_groups.iter().map(list).sum::<usize>();
        assert!(
            self.idle_die_groups.len() <= self.die_groups.len(),
            "each die group is noted once"
        );
        assert_eq!(count(&[Use::Free]), self.free_total as usize, "erased blocks");
        assert_eq!(
            count(&[Use::Free]),
            listed(|die_group| die_group.free.len()),
            "erased blocks by die group"
        );
        assert_eq!(
            count(&[Use::Sealed]),
            listed(|die_group| die_group.sealed.len()),
            "sealed log blocks"
        );
        assert_eq!(count(&[Use::Spent]), self.spent_total as usize, "spent log blocks");
        let logs = (0..self.uses.len() as u32).filter(|&block| self.is_log(block)).count();
        assert_eq!(logs, self.log_total as usize, "log blocks");
        assert_eq!(logs, self.groups.iter().map(|group| group.logs.len()).sum(), "of groups");
        for group in &self.groups {
            let most = self.config.group_log_blocks.max(group.found) as usize;
            assert!(group.logs.len() <= most, "at most K per group");
        }
        for (logical, &data) in self.data.iter().enumerate().filter(|(_, data)| **data > 0) {
            let block = data as usize - 1;
            assert_eq!((self.uses[block], self.logical[block] as usize), (Use::Data, logical));
        }
        let data = self.data.iter().filter(|data| **data > 0).count();
        assert_eq!(count(&[Use::Data]), data, "one data block per logical block");
        let left = count(&[Use::Free, Use::Target, Use::Dead]);
        assert!(left > 0 || self.has_bad(), "merges can always proceed");
    }
}
