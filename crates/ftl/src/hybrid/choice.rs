//! The choice of the log block to be merged.

use super::{Hybrid, Use};
use crate::victim::{Benefit, VictimPolicy};

/// The victim policies that hybrid mapping supports.
pub(super) fn is_known(policy: VictimPolicy) -> bool {
    use VictimPolicy::{CostBenefit, Fifo, Greedy, Lru};
    matches!(policy, Fifo | Greedy | Lru | CostBenefit(Benefit::Kawaguchi))
}

impl Hybrid {
    /// The log block to be merged next, by policy; of equal ones the one opened first.
    pub(super) fn best(&self, logs: impl Iterator<Item = u32>) -> Option<u32> {
        let opened = |block: &u32| self.opened[*block as usize];
        let valid = |block: u32| self.valid[block as usize];
        match self.config.victim {
            VictimPolicy::Greedy => logs.min_by_key(|&block| (valid(block), opened(&block))),
            VictimPolicy::Lru => {
                logs.min_by_key(|&block| (self.changed[block as usize], opened(&block)))
            }
            VictimPolicy::CostBenefit(_) => logs.max_by(|a, b| {
                let by_gain = self.benefit(*a).total_cmp(&self.benefit(*b));
                by_gain.then_with(|| opened(b).cmp(&opened(a)))
            }),
            _ => logs.min_by_key(opened),
        }
    }

    /// Whether the open log block `block` was opened for a program unit that is not yet written.
    fn awaits_program_unit(&self, block: u32) -> bool {
        self.groups[self.group_of[block as usize] as usize].awaits_program_unit
    }

    /// (1 - u) age / 2u, with the age counted in changes of any log block since the last of this
    /// one.
    fn benefit(&self, block: u32) -> f64 {
        let (all, valid) = (self.block_units.get(), self.valid[block as usize]);
        let age = self.changes - self.changed[block as usize];
        f64::from(all - valid) * age as f64 / (2.0 * f64::from(valid.max(1)))
    }

    /// Records a change in `block`.
    pub(super) fn note_change(&mut self, block: u32) {
        self.changes += 1;
        self.changed[block as usize] = self.changes;
    }

    /// The full log block of `die_group` to be merged next, of those that `may`.
    pub(super) fn best_sealed(&self, die_group: usize, may: impl Fn(u32) -> bool) -> Option<u32> {
        let mut sealed =
            self.die_groups[die_group].sealed.values().copied().filter(|&block| may(block));
        if self.config.victim == VictimPolicy::Fifo {
            // The list is in the order in which they were opened.
            return sealed.next();
        }
        self.best(sealed)
    }

    /// The log block of `group` to be merged next.
    pub(super) fn best_of(&self, group: u32) -> Option<u32> {
        let logs = self.groups[group as usize].logs.iter().copied();
        let sequential = self.sequential;
        let may = |&log: &u32| self.uses[log as usize] != Use::Log && sequential != Some(log);
        self.best(logs.filter(may))
    }

    /// The log block of the device to be merged next. If none is full, the open one opened first,
    /// or, with LRU, written least recently.
    pub(super) fn best_of_all(&self) -> Option<u32> {
        let die_groups = (0..self.die_groups.len())
            .filter_map(|die_group| self.best_sealed(die_group, |_| true));
        self.best(die_groups).or_else(|| {
            let open = self.open_logs.values().copied();
            let mut idle =
                open.filter(|&block| self.is_idle(block) && !self.awaits_program_unit(block));
            match self.config.victim {
                VictimPolicy::Lru => idle.min_by_key(|&block| self.changed[block as usize]),
                _ => idle.next(),
            }
        })
    }
}
