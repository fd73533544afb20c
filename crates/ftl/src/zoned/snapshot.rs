//! Snapshots of zones at rest. The block of a zone, erased blocks and all sums are worked out again
//! from what the blocks are used for.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use prism_base::snapshot_fields;
use prism_nand::{BlockId, Pun};

use super::failed::Fate;
use super::{DieGroup, Use, Zoned};
use crate::ftl::snapshot::exactly;

snapshot_fields!(DieGroup { values: dead; });

snapshot_fields!(Zoned {
    parts: die_groups;
    columns: end, uses, erases, next, done, failures.fates;
    values: idle_die_groups, next_die_group, failures.blocks, failures.units,
        failures.relocation_block, failures.reset;
});

impl Zoned {
    /// Whether no program is in flight, and every failure was passed to the caller.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.program_units_in_flight.iter().all(|&program_units| program_units == 0)
            && self.failures.changed.is_empty()
    }

    /// Works out what follows from the fields that were loaded, and refuses contradictions.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        self.check_numbers()?;
        self.check_dead()?;
        let failures = &mut self.failures;
        let sound = failures.fates.iter().filter(|&&fate| fate == Fate::Sound);
        failures.sound = sound.count() as u32;
        failures.lpns = failures.units.iter().map(|(&lpn, &at)| (at, lpn)).collect();
        failures.good = 0;
        self.die_groups.iter_mut().for_each(|die_group| die_group.free.clear());
        (0..self.uses.len() as u32).try_for_each(|block| self.check_block(block))?;
        self.check_relocated()
    }

    /// That numbers of blocks, zones and units are in range.
    fn check_numbers(&self) -> Result<(), &'static str> {
        let (blocks, zones) = (self.uses.len() as u32, self.config.zones);
        let program_units = self.layout.program_units_per_block();
        let on_die = program_units / self.layout.dies_per_die_group();
        let die_groups = self.die_groups.len() as u32;
        let (idle, failures) = (&self.idle_die_groups, &self.failures);
        let zone_of = |used: &Use| match *used {
            Use::Zone(zone) => Some(zone),
            Use::Dead(zone) => zone,
            Use::Free | Use::Relocation | Use::Retired => None,
        };
        if self.end.iter().any(|&end| end > self.capacity)
            || self.uses.iter().filter_map(zone_of).chain(failures.reset).any(|zone| zone >= zones)
            || self.next.iter().any(|&next| next > program_units)
            || self.done.iter().any(|&done| u32::from(done) > on_die)
            || failures
                .blocks
                .iter()
                .chain(&failures.relocation_block)
                .any(|&block| block >= blocks)
            || failures.units.keys().any(|&lpn| lpn >= self.config.logical_units())
            || failures.units.values().any(|&at| at >= self.geometry.units())
            || self.next_die_group > die_groups
            || idle.len() > self.die_groups.len()
            || idle.iter().any(|&die_group| die_group >= die_groups)
        {
            return Err("a zone, a block or a unit is beyond those there are");
        }
        Ok(())
    }

    /// That each block to be erased is in the list of its die group.
    fn check_dead(&self) -> Result<(), &'static str> {
        let mut listed = BTreeSet::new();
        let is_dead = |&block: &u32| matches!(self.uses[block as usize], Use::Dead(_));
        for (index, die_group) in self.die_groups.iter().enumerate() {
            let own = |block: u32| self.die_group_of(block) == index;
            if !die_group.dead.iter().all(|b| own(*b) && is_dead(b) && listed.insert(*b)) {
                return Err("a block is to be erased that is not, or twice");
            }
        }
        match (0..self.uses.len() as u32).filter(is_dead).count() == listed.len() {
            true => Ok(()),
            false => Err("a block that is to be erased never is"),
        }
    }

    /// Works out what follows from the use of `block`.
    fn check_block(&mut self, block: u32) -> Result<(), &'static str> {
        let (index, die_group) = (block as usize, self.die_group_of(block));
        let used = self.uses[index];
        let failed = self.failures.blocks.contains(&block);
        let is_good = !failed && !matches!(used, Use::Retired | Use::Relocation);
        self.failures.good += u32::from(is_good);
        match used {
            Use::Free => {
                self.die_groups[die_group].free.insert((self.erases[index], block));
            }
            Use::Zone(zone) => {
                let gone = self.failures.fates[zone as usize] == Fate::Gone;
                let known = std::mem::replace(&mut self.block_of[zone as usize], block + 1);
                let writes = self.next[index] < self.layout.program_units_per_block();
                if gone || known != 0 || writes && (failed || self.is_broken(zone)) {
                    return Err("a zone that cannot have its block");
                }
                self.die_groups[die_group].writing += u32::from(writes);
                self.mapped += u64::from(self.units_of(zone, block));
            }
            Use::Dead(_) | Use::Relocation | Use::Retired => {}
        }
        Ok(())
    }

    /// That relocation blocks hold what they say, of zones that are broken.
    fn check_relocated(&mut self) -> Result<(), &'static str> {
        let failures = &self.failures;
        let is_relocation = |block: u32| self.uses[block as usize] == Use::Relocation;
        let relocated = |(&lpn, &at): (&u32, &u32)| {
            self.is_broken(self.zone_units.divide(lpn))
                && is_relocation(self.layout.block_of_unit(Pun(at)).0)
                && self.is_done(self.layout.program_unit_of(Pun(at)))
        };
        let open = |&block: &u32| is_relocation(block) && self.is_writing(BlockId(block));
        if !failures.units.iter().all(relocated)
            || !failures.relocation_block.iter().all(open)
            || failures.lpns.len() != failures.units.len()
        {
            return Err("a relocation block holds what it cannot");
        }
        self.mapped += self.relocated_units();
        Ok(())
    }

    /// How many program units the flash may hold in `block`.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        let dies = self.layout.dies_per_die_group();
        let members = (block.0 * dies) as usize..((block.0 + 1) * dies) as usize;
        let done = self.done[members].iter().map(|&done| u32::from(done)).sum();
        match self.uses[block.0 as usize] {
            // Nothing, and the FTL must know that.
            Use::Free => done..=0,
            _ if self.is_writing(block) => exactly(done),
            // One that was torn by a loss of power may follow.
            _ => done..=self.layout.program_units_per_block(),
        }
    }
}
