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
//! any moment. Copies are bounded by a share of all erases.

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
    /// Pairs of LUNs that have changed places since the device was opened.
    pub exchanges: u64,
    /// Erases that levelling has cost since then.
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

#[derive(Debug)]
pub(crate) struct Levelling {
    pub(crate) policy: Option<GlobalWear>,
    /// Who is changing places.
    pair: Option<Exchange>,
    /// The next block of them to look at.
    next: u32,
    /// By virtual LUN: erases since it changed places.
    recent: Vec<u32>,
    all_erases: u64,
    erases: u64,
    exchanges: u64,
    /// Erases since it was last looked whether somebody has to move.
    since_check: u32,
}

impl Levelling {
    pub(crate) fn new(luns: u32) -> Self {
        Self {
            policy: None,
            pair: None,
            next: 0,
            recent: vec![0; luns as usize],
            all_erases: 0,
            erases: 0,
            exchanges: 0,
            since_check: 0,
        }
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
            self.recent[lun as usize] += 1;
            self.all_erases += 1;
            self.since_check += 1;
        }
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

    pub(crate) fn wear_report(&self) -> WearReport {
        let wear = self.lun_wear();
        WearReport {
            max: wear.iter().copied().fold(0.0, f64::max),
            min: wear.iter().copied().fold(f64::INFINITY, f64::min),
            mean: wear.iter().sum::<f64>() / wear.len() as f64,
            exchanges: self.levelling.exchanges,
            erases: self.levelling.erases,
        }
    }

    /// After an erase: moves a block if somebody has to move and the budget allows it.
    pub(crate) fn level_a_little(&mut self, now: SimTime) -> Result<()> {
        /// Looking at every block takes time, so it is done once in so many erases.
        const CHECK_EVERY: u32 = 32;
        let Some(policy) = self.levelling.policy else { return Ok(()) };
        let level = &mut self.levelling;
        if level.pair.is_none() {
            if level.since_check < CHECK_EVERY {
                return Ok(());
            }
            level.since_check = 0;
            self.begin_exchange(policy)?;
        }
        let level = &self.levelling;
        if level.pair.is_some() && level.erases as f64 <= level.all_erases as f64 * policy.budget {
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
        let home = |lun: u32| self.lun_of(self.slots[(lun * self.usable) as usize]) as usize;
        let luns = 0..self.luns.len() as u32;
        let by_wear = |a: &u32, b: &u32| wear[home(*a)].total_cmp(&wear[home(*b)]);
        let Some(hot) = luns.clone().max_by(by_wear) else { return Ok(()) };
        let rate = |lun: u32| self.levelling.recent[lun as usize];
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
        let Some(Exchange { hot, cold, worn, fresh }) = self.levelling.pair else {
            return Ok(());
        };
        let mut left = blocks;
        while left > 0 && self.levelling.next < self.usable {
            let place = self.levelling.next;
            let (a, b) = (hot * self.usable + place, cold * self.usable + place);
            for (slot, from, to) in [(a, worn, fresh), (b, fresh, worn)] {
                // What has moved before power went stays; so does what finds no spare block.
                if self.lun_of(self.slots[slot as usize]) == from {
                    let Some(spare) = self.take_spare(to, Cause::Wear)? else { continue };
                    self.levelling.erases += 1;
                    let block = self.slots[slot as usize];
                    let pages = self.medium()?.write_pointer(block);
                    self.rehome(slot, spare, pages, Cause::Wear, now)?;
                    left -= left.min(1);
                }
            }
            self.levelling.next += 1;
        }
        if self.levelling.next == self.usable {
            self.commit(&[Record::Exchange { pair: None }])?;
            self.levelling.set_pair(None);
            self.levelling.exchanges += 1;
            self.levelling.recent[hot as usize] = 0;
            self.levelling.recent[cold as usize] = 0;
        }
        Ok(())
    }
}
