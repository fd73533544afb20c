//! Global wear levelling: a LUN that is written much and one that is written little change
//! places, block by block, while both are in use.
//!
//! Source: FlashBlox (Huang et al., FAST'17), and the flash monitor of Prism-SSD (Shen et al.,
//! ICDCS'19), which names the module and leaves it out. The most worn
//! LUN gives what it holds to the one that is written least (of those the least worn), as
//! soon as their mean erase counts differ by more than a gap. If all writes go to one of N
//! LUNs, after K rounds the most worn has at most (K + 1) / (K + 1/N) times the mean, so the
//! ratio stays below 1 + delta from K = (N - 1 - delta) / (N delta) on.
//!
//! A block moves by copy, record, and only then is the old one given up, so power may go at
//! any moment. Copies are bounded by a share of all erases, over the whole life of the device:
//! what they cost is in the journal before it is spent, and what has earned it follows from the
//! erase counts, so that neither is lost when a process or the power ends.

use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::Result;
use crate::monitor::records::Record;
use crate::monitor::state::Monitor;

/// When LUNs change places by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalWear {
    /// They do if the mean erase counts of two LUNs differ by more than this...
    pub min_gap: u32,
    /// ... and by more than this part of the device's mean.
    pub delta: f64,
    /// Erases for levelling, as a part of all erases, at most.
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
    /// Pairs of LUNs that have changed places since the device was formatted.
    pub exchanges: u64,
    /// Erases that levelling has cost since then, at most.
    pub erases: u64,
}

/// Two virtual LUNs that change places, and the LUNs of the device on which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) hot: u32,
    pub(crate) cold: u32,
    pub(crate) worn: u32,
    pub(crate) fresh: u32,
}

/// How far levelling has come, as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Erases that are not levelling's own, and those that are.
    pub(crate) all_erases: u64,
    pub(crate) erases: u64,
    pub(crate) exchanges: u64,
    /// Erases since it was last looked whether somebody has to move.
    pub(crate) since_check: u32,
    /// By virtual LUN: erases since it changed places.
    pub(crate) recent: Vec<u32>,
    /// By LUN of the device: erases of all its blocks when this was noted, modulo 2^32. What is
    /// found beyond them later came after it.
    pub(crate) noted_at: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Levelling {
    pub(crate) policy: Option<GlobalWear>,
    /// Who is changing places.
    pair: Option<Exchange>,
    /// The next block of them to look at.
    next: u32,
    progress: Progress,
}

/// Looking at every block takes time, so it is done once in so many erases.
const CHECK_EVERY: u32 = 32;

impl Levelling {
    pub(crate) fn new(luns: u32) -> Self {
        let recent = vec![0; luns as usize];
        let progress = Progress { recent, ..Progress::default() };
        Self { policy: None, pair: None, next: 0, progress }
    }

    /// Takes over what the journal says; `false` if it speaks of another number of LUNs.
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

    /// How far levelling has come, for the journal.
    pub(super) fn progress(&self) -> Record {
        let noted_at = self.lun_erases();
        Record::Levelling(Progress { noted_at, ..self.levelling.progress.clone() })
    }

    /// Counts what was erased after the journal was told of it. Where less is found than was
    /// noted, erases came undone, or the counts of the last ones are lost.
    pub(super) fn count_unnoted(&mut self) {
        let noted = std::mem::take(&mut self.levelling.progress.noted_at);
        let home = |lun: u32| self.lun_of(self.virtual_blocks[(lun * self.usable) as usize]);
        let homes: Vec<u32> = (0..self.luns.len() as u32).map(home).collect();
        let found = self.lun_erases();
        for (lun, home) in (0..).zip(homes) {
            if let Some(&noted) = noted.get(home as usize) {
                let more = found[home as usize].wrapping_sub(noted) as i32;
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

    /// After an erase: moves a block if somebody has to move and the budget allows it.
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

    /// Levels now: moves up to `blocks` blocks or one more, whatever the budget. Returns whether
    /// more would have to move.
    pub(crate) fn level(&mut self, policy: GlobalWear, blocks: u32, now: SimTime) -> Result<bool> {
        if self.levelling.pair.is_none() {
            self.begin_exchange(policy)?;
        }
        self.exchange_blocks(blocks, now)?;
        Ok(self.levelling.pair.is_some())
    }

    /// Chooses two LUNs that have to change places, if there are such.
    fn begin_exchange(&mut self, policy: GlobalWear) -> Result<()> {
        let wear = self.lun_wear();
        let mean = wear.iter().sum::<f64>() / wear.len() as f64;
        let home =
            |lun: u32| self.lun_of(self.virtual_blocks[(lun * self.usable) as usize]) as usize;
        let luns = 0..self.luns.len() as u32;
        let by_wear = |a: &u32, b: &u32| wear[home(*a)].total_cmp(&wear[home(*b)]);
        let Some(hot) = luns.clone().max_by(by_wear) else { return Ok(()) };
        let rate = |lun: u32| self.levelling.progress.recent[lun as usize];
        let coldest = |a: &u32, b: &u32| rate(*a).cmp(&rate(*b)).then_with(|| by_wear(a, b));
        let Some(cold) = luns.filter(|&lun| lun != hot).min_by(coldest) else { return Ok(()) };
        let gap = wear[home(hot)] - wear[home(cold)];
        if gap <= f64::from(policy.min_gap).max(policy.delta * mean) || rate(hot) <= rate(cold) {
            return Ok(());
        }
        let (worn, fresh) = (home(hot) as u32, home(cold) as u32);
        let pair = Some(Exchange { hot, cold, worn, fresh });
        self.commit(&[Record::Exchange { pair }])?;
        self.levelling.set_pair(pair);
        Ok(())
    }

    /// Goes on with an exchange by some blocks.
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

    /// Moves the blocks at one place of both LUNs; returns how many had to.
    fn exchange_place(&mut self, pair: Exchange, place: u32, now: SimTime) -> Result<u32> {
        let Exchange { hot, cold, worn, fresh } = pair;
        let (a, b) = (hot * self.usable + place, cold * self.usable + place);
        // What has moved before power went stays.
        let stays = |&(virtual_block, from, _): &(u32, u32, u32)| {
            self.lun_of(self.virtual_blocks[virtual_block as usize]) != from
        };
        let mut moves = vec![(a, worn, fresh), (b, fresh, worn)];
        moves.retain(|to_move| !stays(to_move));
        if moves.is_empty() {
            return Ok(0);
        }
        // Paid before it is bought: what power interrupts was not for nothing.
        self.levelling.progress.erases += moves.len() as u64;
        let noted = self.progress_before(&moves);
        self.commit(&[noted])?;
        let mut moved = 0;
        for (virtual_block, _, to) in moves {
            let Some(spare) = self.take_spare(to, Cause::Wear)? else {
                // What finds no spare block stays too.
                self.levelling.progress.erases -= 1;
                continue;
            };
            let block = self.virtual_blocks[virtual_block as usize];
            let pages = self.medium()?.write_pointer(block);
            self.rehome(virtual_block, spare, pages, Cause::Wear, now)?;
            moved += 1;
        }
        Ok(moved)
    }

    /// How far levelling has come when one block of each of these LUNs is erased for it, so
    /// that these erases do not count among those of others later.
    fn progress_before(&self, moves: &[(u32, u32, u32)]) -> Record {
        let mut noted_at = self.lun_erases();
        for &(_, _, to) in moves {
            noted_at[to as usize] = noted_at[to as usize].wrapping_add(1);
        }
        Record::Levelling(Progress { noted_at, ..self.levelling.progress.clone() })
    }
}
