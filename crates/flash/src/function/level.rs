//! Wear levelling on request.

use std::cmp::Reverse;

use prism_base::SimTime;

use crate::error::Result;
use crate::function::WearLevel;
use crate::function::blocks::Use;
use crate::function::state::State;

impl State {
    /// Swaps up to `max_pairs` pairs whose erase counts differ by more than `min_gap`.
    pub(super) fn wear_level(&mut self, max_pairs: u32, min_gap: u32) -> Result<WearLevel> {
        self.drain()?;
        while self.share.scheduler().step(&self.share) {}
        let mut end = self.share.now_if_timed()?;
        let mut pairs = Vec::new();
        let mut wear = self.share.wear()?;
        while (pairs.len() as u32) < max_pairs {
            let Some((hot, cold)) = self.widest_gap(&wear, min_gap)? else { break };
            let Some(done) = self.swap(hot, cold)? else { break };
            end = end.max(done);
            pairs.push((self.address(hot, 0), self.address(cold, 0)));
            self.blocks.levelled(hot, cold);
            wear = self.share.wear()?;
        }
        self.blocks.reorder(&wear);
        self.share.reach_if_timed(end)?;
        let count = wear.len() as f64;
        let mean = wear.iter().map(|&n| f64::from(n)).sum::<f64>() / count;
        let square = |&n: &u32| (f64::from(n) - mean).powi(2);
        Ok(WearLevel {
            pairs,
            max: wear.iter().copied().max().unwrap_or(0),
            min: wear.iter().copied().min().unwrap_or(0),
            mean,
            variance: wear.iter().map(square).sum::<f64>() / count,
        })
    }

    fn swap(&mut self, hot: u32, cold: u32) -> Result<Option<SimTime>> {
        let lun = self.blocks.lun_of(hot);
        let ready = self.share.now_if_timed()?.max(self.share.scheduler().free(lun));
        let end = self.share.swap_wear(hot, cold, ready)?;
        end.inspect(|&end| self.share.scheduler().occupy(hot, end));
        Ok(end)
    }

    /// The most and the least worn block of the LUN in which they differ most. The least worn block
    /// is one that holds data; a worn block to which levelling moved cold data is not chosen as the
    /// most worn one until it is erased.
    fn widest_gap(&self, wear: &[u32], min_gap: u32) -> Result<Option<(u32, u32)>> {
        let mut widest = None;
        let per_lun = self.geometry.blocks_per_lun;
        // The share may have been made smaller since the level was opened.
        let luns = self.geometry.luns.min(wear.len() as u32 / per_lun);
        for lun in 0..luns {
            let blocks = || lun * per_lun..(lun + 1) * per_lun;
            let erases = |block: &u32| wear[*block as usize];
            let usable = |block: &u32| {
                matches!(self.blocks.state(*block), Use::Erased | Use::Allocated)
                    && !self.blocks.holds_cold(*block)
            };
            let Some(hot) = blocks().filter(usable).max_by_key(|b| (erases(b), Reverse(*b))) else {
                continue;
            };
            let mut cold: Option<u32> = None;
            for block in blocks().filter(|&b| self.blocks.state(b) == Use::Allocated) {
                let less = cold.is_none_or(|cold| erases(&block) < erases(&cold));
                if block != hot && less && self.share.write_pointer(block)? > 0 {
                    cold = Some(block);
                }
            }
            let Some(cold) = cold else { continue };
            let gap = erases(&hot).saturating_sub(erases(&cold));
            if gap > min_gap && widest.is_none_or(|(most, _)| gap > most) {
                widest = Some((gap, (hot, cold)));
            }
        }
        Ok(widest.map(|(_, pair)| pair))
    }
}
