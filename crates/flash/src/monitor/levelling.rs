//! Global wear levelling: exchanges a LUN that is written much with one that is written little,
//! block by block, while both are in use.
//!
//! Source: FlashBlox (Huang et al., FAST'17), and the flash monitor of Prism-SSD (Shen et al.,
//! ICDCS'19), which names the module without describing it. The most worn LUN is exchanged with the
//! one that is written least (among equals, the least worn), as soon as their mean erase counts
//! differ by more than a gap. If all writes go to one of N LUNs, after K rounds the most worn has
//! at most (K + 1) / (K + 1/N) times the mean, so the ratio stays below 1 + delta from K = (N - 1 -
//! delta) / (N delta) on.
//!
//! A block is copied, then a record written, and only then is the old block freed, so power may
//! fail at any moment. The erases for levelling are limited to a fraction of all erases over the
//! life of the device: they are recorded in the journal before they are made, and the other erases
//! follow from the erase counts, so neither number is lost when a process ends or power fails.

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::Result;
use crate::monitor::records::Record;
use crate::monitor::state::Monitor;

/// When LUNs are exchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalWear {
    /// LUNs are exchanged if their mean erase counts differ by more than this...
    pub min_gap: u32,
    /// ... and by more than this fraction of the device's mean.
    pub delta: f64,
    /// Upper limit of erases for levelling, as a fraction of all erases.
    pub budget: f64,
}

impl Default for GlobalWear {
    /// A gap of 64 erases and a tenth of the mean, for at most 1 % of all erases.
    fn default() -> Self {
        Self { min_gap: 64, delta: 0.1, budget: 0.01 }
    }
}

/// How evenly the LUNs are worn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WearReport {
    /// The highest mean erase count of a LUN.
    pub max: f64,
    /// The mean over the device.
    pub mean: f64,
    /// The lowest mean erase count of a LUN.
    pub min: f64,
    /// Pairs of LUNs exchanged since the device was formatted.
    pub exchanges: u64,
    /// Erases that levelling has cost since then, at most.
    pub erases: u64,
}

/// Two virtual LUNs that are exchanged, and the LUNs of the device on which they were before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) hot: u32,
    pub(crate) cold: u32,
    pub(crate) worn: u32,
    pub(crate) fresh: u32,
}

/// The progress of levelling, as stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Progress {
    /// Erases that are not for levelling, and those that are.
    pub(crate) all_erases: u64,
    pub(crate) erases: u64,
    pub(crate) exchanges: u64,
    /// Erases since the last check whether LUNs have to be exchanged.
    pub(crate) since_check: u32,
    /// By virtual LUN: erases since it was last exchanged.
    pub(crate) recent: Vec<u32>,
    /// By LUN of the device: erases of all its blocks when this was recorded, modulo 2^32. Any more
    /// found when the device is opened were made after the record.
    pub(crate) noted_at: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Levelling {
    pub(crate) policy: Option<GlobalWear>,
    /// The LUNs that are being exchanged.
    pair: Option<Exchange>,
    /// The next block of them to exchange.
    next: u32,
    progress: Progress,
}

/// A check looks at every block, so it is made once in this many erases.
const CHECK_EVERY: u32 = 32;

impl Levelling {
    pub(crate) fn new(luns: u32) -> Self {
        let recent = vec![0; luns as usize];
        let progress = Progress { recent, ..Progress::default() };
        Self { policy: None, pair: None, next: 0, progress }
    }

    /// Restores the progress from the journal; `false` if it is that of another number of LUNs.
    pub(crate) fn set_progress(&mut self, progress: Progress) -> bool {
        let fits = |of: &[u32]| of.len() == self.progress.recent.len();
        let fits = fits(&progress.recent) && fits(&progress.noted_at);
        if fits {
            self.progress = progress;
        }
        fits
    }

    pub(crate) fn pair(&self) -> Option<Exchange> {
        self.pair
    }

    pub(crate) fn set_pair(&mut self, pair: Option<Exchange>) {
        self.pair = pair;
        self.next = 0;
    }

    /// A block of virtual LUN `lun` was erased.
    pub(crate) fn erased(&mut self, lun: u32, cause: Cause) {
        if cause != Cause::Wear {
            self.count(lun, 1);
        }
    }

    fn count(&mut self, lun: u32, erases: u32) {
        let progress = &mut self.progress;
        let recent = &mut progress.recent[lun as usize];
        *recent = recent.saturating_add(erases);
        progress.all_erases += u64::from(erases);
        progress.since_check = progress.since_check.saturating_add(erases);
    }
}

impl Monitor {
    /// The mean erase count of each LUN of the device.
    fn lun_wear(&self) -> Vec<f64> {
        let per_lun = self.geometry.blocks_per_lun as usize;
        let mean = |counts: &[u32]| {
            counts.iter().map(|&count| f64::from(count)).sum::<f64>() / per_lun as f64
        };
        self.erases.chunks(per_lun).map(mean).collect()
    }

    /// By LUN of the device: erases of its blocks, those of the journal left out, modulo 2^32.
    fn lun_erases(&self) -> Vec<u32> {
        let add = |sum: u32, &count: &u32| sum.wrapping_add(count);
        let per_lun = self.geometry.blocks_per_lun as usize;
        let sum = |counts: &[u32]| counts.iter().fold(0, add);
        let mut sums: Vec<u32> = self.erases.chunks(per_lun).map(sum).collect();
        for block in self.ring.all() {
            let sum = &mut sums[self.lun_of(block) as usize];
            *sum = sum.wrapping_sub(self.erases[block as usize]);
        }
        sums
    }

    /// The progress of levelling, as a record.
    pub(super) fn progress(&self) -> Record {
        let noted_at = self.lun_erases();
        Record::Levelling(Progress { noted_at, ..self.levelling.progress.clone() })
    }

    /// Counts the erases made after the last record of the progress. If fewer are found than
    /// recorded, erases were undone, or their counts were lost.
    pub(super) fn count_unnoted(&mut self) {
        let noted = std::mem::take(&mut self.levelling.progress.noted_at);
        let physical_lun = |lun: u32| self.lun_of(self.map.block(lun * self.usable));
        let physical_luns: Vec<u32> = (0..self.luns.len() as u32).map(physical_lun).collect();
        let found = self.lun_erases();
        for (lun, physical_lun) in (0..).zip(physical_luns) {
            if let Some(&noted) = noted.get(physical_lun as usize) {
                let more = found[physical_lun as usize].wrapping_sub(noted) as i32;
                self.levelling.count(lun, more.max(0) as u32);
            }
        }
    }

    pub(crate) fn wear_report(&self) -> WearReport {
        let wear = self.lun_wear();
        WearReport {
            max: wear.iter().copied().fold(0.0, f64::max),
            min: wear.iter().copied().fold(f64::INFINITY, f64::min),
            mean: wear.iter().sum::<f64>() / wear.len() as f64,
            exchanges: self.levelling.progress.exchanges,
            erases: self.levelling.progress.erases,
        }
    }

    /// After an erase: moves a block if an exchange is due and the budget allows it.
    pub(crate) fn level_a_little(&mut self, now: SimTime) -> Result<()> {
        let Some(policy) = self.levelling.policy else { return Ok(()) };
        let level = &mut self.levelling;
        if level.pair.is_none() {
            if level.progress.since_check < CHECK_EVERY {
                return Ok(());
            }
            level.progress.since_check = 0;
            self.begin_exchange(policy)?;
        }
        let progress = &self.levelling.progress;
        let afforded = progress.all_erases as f64 * policy.budget;
        if self.levelling.pair.is_some() && progress.erases as f64 <= afforded {
            self.exchange_blocks(1, now)?;
        }
        Ok(())
    }

    /// Levels now: moves up to `blocks` + 1 blocks regardless of the budget. Returns whether more
    /// should move.
    pub(crate) fn level(&mut self, policy: GlobalWear, blocks: u32, now: SimTime) -> Result<bool> {
        if self.levelling.pair.is_none() {
            self.begin_exchange(policy)?;
        }
        self.exchange_blocks(blocks, now)?;
        Ok(self.levelling.pair.is_some())
    }

    /// Chooses two LUNs to exchange, if any have to be.
    fn begin_exchange(&mut self, policy: GlobalWear) -> Result<()> {
        let wear = self.lun_wear();
        let mean = wear.iter().sum::<f64>() / wear.len() as f64;
        let physical_lun = |lun: u32| self.lun_of(self.map.block(lun * self.usable)) as usize;
        let luns = 0..self.luns.len() as u32;
        let by_wear = |a: &u32, b: &u32| wear[physical_lun(*a)].total_cmp(&wear[physical_lun(*b)]);
        let Some(hot) = luns.clone().max_by(by_wear) else { return Ok(()) };
        let rate = |lun: u32| self.levelling.progress.recent[lun as usize];
        let coldest = |a: &u32, b: &u32| rate(*a).cmp(&rate(*b)).then_with(|| by_wear(a, b));
        let Some(cold) = luns.filter(|&lun| lun != hot).min_by(coldest) else { return Ok(()) };
        let gap = wear[physical_lun(hot)] - wear[physical_lun(cold)];
        if gap <= f64::from(policy.min_gap).max(policy.delta * mean) || rate(hot) <= rate(cold) {
            return Ok(());
        }
        let (worn, fresh) = (physical_lun(hot) as u32, physical_lun(cold) as u32);
        let pair = Some(Exchange { hot, cold, worn, fresh });
        self.commit(&[Record::Exchange { pair }])?;
        self.levelling.set_pair(pair);
        Ok(())
    }

    /// Continues the exchange with up to `blocks` + 1 blocks.
    fn exchange_blocks(&mut self, blocks: u32, now: SimTime) -> Result<()> {
        let Some(pair) = self.levelling.pair else { return Ok(()) };
        let mut left = blocks;
        while left > 0 && self.levelling.next < self.usable {
            let moved = self.exchange_place(pair, self.levelling.next, now)?;
            left -= left.min(moved);
            self.levelling.next += 1;
        }
        if self.levelling.next == self.usable {
            let Exchange { hot, cold, .. } = pair;
            self.levelling.set_pair(None);
            let progress = &mut self.levelling.progress;
            progress.exchanges += 1;
            progress.recent[hot as usize] = 0;
            progress.recent[cold as usize] = 0;
            let noted = self.progress();
            self.commit(&[Record::Exchange { pair: None }, noted])?;
        }
        Ok(())
    }

    /// Exchanges the blocks at one index of both LUNs; returns how many were moved.
    fn exchange_place(&mut self, pair: Exchange, place: u32, now: SimTime) -> Result<u32> {
        let Exchange { hot, cold, worn, fresh } = pair;
        let (a, b) = (hot * self.usable + place, cold * self.usable + place);
        // A block that was moved before a power failure stays, and so does one with programs in
        // progress.
        let stays = |&(virtual_block, from, _): &(u32, u32, u32)| {
            self.lun_of(self.map.block(virtual_block)) != from
                || self.map.is_programmed(virtual_block)
        };
        let mut moves = vec![(a, worn, fresh), (b, fresh, worn)];
        moves.retain(|to_move| !stays(to_move));
        if moves.is_empty() {
            return Ok(0);
        }
        // Charged before the erases are made, so that interrupted ones count too.
        self.levelling.progress.erases += moves.len() as u64;
        let noted = self.progress_before(&moves);
        self.commit(&[noted])?;
        let mut moved = 0;
        for (virtual_block, _, to) in moves {
            let Some(spare) = self.take_spare(to, Cause::Wear)? else {
                // Without a spare block, the virtual block stays.
                self.levelling.progress.erases -= 1;
                continue;
            };
            let block = self.map.block(virtual_block);
            let pages = self.medium()?.write_pointer(block);
            self.remap(virtual_block, spare, pages, Cause::Wear, now)?;
            moved += 1;
        }
        Ok(moved)
    }

    /// The progress after one block of each target LUN is erased for levelling, so that these
    /// erases are not counted as those of the shares later.
    fn progress_before(&self, moves: &[(u32, u32, u32)]) -> Record {
        let mut noted_at = self.lun_erases();
        for &(_, _, to) in moves {
            noted_at[to as usize] = noted_at[to as usize].wrapping_add(1);
        }
        Record::Levelling(Progress { noted_at, ..self.levelling.progress.clone() })
    }
}
