//! The steady state under uniform random writes, laid out without a write.
//!
//! How many valid units the blocks of a die group hold once a drive has long been overwritten
//! at random is known in closed form for most victim policies ([`spread`]). Which units
//! these are, and where in a block they stand, is chance: each as likely as any other.

use prism_base::{Rng, prefetch};
use prism_nand::{BlockId, Geometry, ProgramUnitId};

use super::spread::{SpreadError, spread};
use super::state::{BlockState, Kind, OpenBlock};
use super::{PageConfig, PageMap, Placement};
use crate::config::ConfigError;

/// Why there is no steady state to lay out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SteadyError {
    /// The FTL cannot work with these numbers at all.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The victim policy has no closed form.
    #[error(transparent)]
    Spread(#[from] SpreadError),
    /// Data of different segments stands in blocks of its own.
    #[error(
        "a segmented FTL has no steady state in closed form; use the state preconditioned, \
         which reaches it by writing"
    )]
    Segments,
    /// Data stands in blocks of two kinds.
    #[error(
        "a drive with SLC blocks ([slc]) has no steady state in closed form; use \
         the state preconditioned, which reaches it by writing"
    )]
    Slc,
    /// Data stands in logical blocks.
    #[error(
        "a mapping by block, or in ranges, has no steady state in closed form; use the state \
         preconditioned, which reaches it by writing"
    )]
    Blocks,
}

/// One die group while it is laid out.
struct Plan {
    /// Its blocks in the order in which they are used, drawn by lot.
    blocks: Vec<u32>,
    /// Data units that are still to be placed.
    left: u32,
    /// Erased blocks it is left with.
    free: u32,
}

impl PageMap {
    /// The FTL of a drive that was filled and then overwritten at random for a long
    /// time: every logical unit is mapped, die groups hold equal shares, and of each die group the
    /// valid units of its sealed blocks follow the victim policy's steady state. How far
    /// the open blocks are written differs from die group to die group, as it does after a long
    /// time, so that die groups do not clean in step. Blocks are sealed in the order of their
    /// valid units, fewest first. Translation pages, where there are any, have been
    /// written once. No block counts as erased before.
    ///
    /// [`PageMap::program_units_written`] says what the flash has to hold.
    ///
    /// # Errors
    /// [`SteadyError`] if no closed form is known, or the configuration makes no sense.
    pub fn steady(geometry: Geometry, config: PageConfig, seed: u64) -> Result<Self, SteadyError> {
        Self::steady_without(geometry, config, seed, std::iter::empty())
    }

    /// The same on flash of which `bad` blocks are not used.
    ///
    /// # Errors
    /// The same, and [`ConfigError::BadBlocks`].
    pub fn steady_without(
        geometry: Geometry,
        config: PageConfig,
        seed: u64,
        bad: impl Iterator<Item = BlockId>,
    ) -> Result<Self, SteadyError> {
        let mut map = Self::new(geometry, config, seed)?;
        map.set_aside(bad)?;
        if let Placement::Segments(_) = map.config.placement {
            return Err(SteadyError::Segments);
        }
        if map.config.slc.is_some() {
            return Err(SteadyError::Slc);
        }
        let mut rng = Rng::stream(seed, "ftl.steady");
        let mut units = Scramble::new(map.config.logical_units, &mut rng);
        let mut next_map_unit = map.config.logical_units;
        for die_group in 0..map.die_groups.len() as u32 {
            let die_groups = map.die_groups.len() as u32;
            let share = |units: u32| units / die_groups + u32::from(die_group < units % die_groups);
            let map_share = share(map.config.map_units);
            let mut plan = map.plan(die_group, share(map.config.logical_units), &mut rng);
            map.place_translation_pages(&mut plan, next_map_unit, map_share);
            next_map_unit += map_share;
            map.place_data(&mut plan, &mut units, &mut rng)?;
            map.die_groups[die_group as usize].part_mut(Kind::Main).free = plan.blocks.into();
        }
        Ok(map)
    }

    /// Program units of `block` that are programmed: what a flash below this FTL must hold.
    /// Nothing may be in flight.
    #[must_use]
    pub fn program_units_written(&self, block: BlockId) -> u32 {
        match self.blocks[block.0 as usize].state {
            BlockState::Free | BlockState::Failed | BlockState::Retired => 0,
            BlockState::Sealed | BlockState::Victim => self.layout.program_units_of(block),
            BlockState::Open => {
                let die_group = &self.die_groups[self.layout.die_group_of(block).0 as usize];
                let open = die_group.open.iter().flatten().find(|open| open.block == block);
                open.map_or(self.layout.program_units_of(block), |open| open.next)
            }
        }
    }

    fn plan(&self, die_group: u32, left: u32, rng: &mut Rng) -> Plan {
        let per_die_group = self.layout.blocks_per_die_group();
        let all = die_group * per_die_group..(die_group + 1) * per_die_group;
        let is_free = |&block: &u32| self.blocks[block as usize].state == BlockState::Free;
        let mut blocks: Vec<u32> = all.filter(is_free).collect();
        for i in (1..blocks.len()).rev() {
            blocks.swap(i, rng.below(i as u64 + 1) as usize);
        }
        // Between the watermarks every number is as likely as any other.
        let (low, high) = (self.config.free_blocks_low, self.config.free_blocks_high);
        let free = low + rng.below(u64::from(high - low) + 1) as u32;
        Plan { blocks, left, free }
    }

    fn place_translation_pages(&mut self, plan: &mut Plan, first: u32, count: u32) {
        let Some(frontier) = self.config.map_frontier() else { return };
        let mut units = first..first + count;
        while !units.is_empty() {
            let block = self.open_planned(plan, frontier);
            let most = self.data_program_units * self.layout.units_per_program_unit();
            let now = (units.len() as u32).min(most);
            let program_units = now.div_ceil(self.layout.units_per_program_unit());
            let placed: Vec<_> = self.data_units(block, program_units).take(now as usize).collect();
            for at in placed {
                let lpn = units.next().expect("as many as were counted");
                self.place(block, at, lpn);
            }
            self.close_planned(block, frontier, program_units);
        }
    }

    /// Open blocks first, then the sealed ones; what is left of the plan's blocks is free.
    fn place_data(
        &mut self,
        plan: &mut Plan,
        units: &mut Scramble,
        rng: &mut Rng,
    ) -> Result<(), SteadyError> {
        let per_program_unit = self.layout.units_per_program_unit();
        let block_units = self.data_program_units * per_program_unit;
        let copies = self.config.frontier_of_copies(0);
        let opened = 1 + u32::from(copies != 0);
        let policy = self.config.victim;
        let sealed = |plan: &Plan, opened| plan.blocks.len() as u32 - plan.free - opened;
        // Where erased blocks above the low watermark would leave no room, there are none.
        if u64::from(plan.left) * 64 > u64::from(sealed(plan, opened) * block_units) * 63 {
            plan.free = self.config.free_blocks_low;
        }
        // Copies of the last victim came first where all goes to one frontier.
        let rough = spread(policy, sealed(plan, opened), plan.left, block_units)?;
        let copied = if copies == 0 { rough.victim_units / per_program_unit } else { 0 };
        let copied = copied.min(self.data_program_units - 1);
        for frontier in if copies == 0 { vec![0] } else { vec![0, copies] } {
            let program_units =
                copied + rng.below(u64::from(self.data_program_units - copied)) as u32;
            let program_units = program_units.min(plan.left / per_program_unit);
            if program_units == 0 {
                continue;
            }
            let block = self.open_planned(plan, frontier);
            self.place_drawn(block, program_units, program_units * per_program_unit, units, rng);
            plan.left -= program_units * per_program_unit;
            self.close_planned(block, frontier, program_units);
        }
        let spread = spread(policy, sealed(plan, 0), plan.left, block_units)?;
        for &valid in spread.valid.iter().rev() {
            let block = self.open_planned(plan, 0);
            self.place_drawn(block, self.data_program_units, valid, units, rng);
            self.close_planned(block, 0, self.data_program_units);
        }
        Ok(())
    }

    fn open_planned(&mut self, plan: &mut Plan, frontier: u32) -> BlockId {
        let block = plan.blocks.pop().expect("the configuration leaves room for all data");
        self.blocks[block as usize].state = BlockState::Open;
        self.blocks[block as usize].frontier = frontier as u16;
        BlockId(block)
    }

    /// `program_units` data program units of `block` are written, with the parity of whole stripes.
    fn close_planned(&mut self, block: BlockId, frontier: u32, program_units: u32) {
        if program_units == self.data_program_units {
            self.seal(block);
            return;
        }
        let stripes =
            if self.parity { program_units / (self.layout.dies_per_die_group() - 1) } else { 0 };
        let die_group = self.layout.die_group_of(block).0 as usize;
        let open = OpenBlock { block, next: program_units + stripes };
        self.die_groups[die_group].open[frontier as usize] = Some(open);
    }

    /// The units of the first `program_units` data program units of `block`.
    fn data_units(&self, block: BlockId, program_units: u32) -> impl Iterator<Item = u32> + use<> {
        let layout = self.layout;
        let first = layout.first_program_unit(block).0;
        (first..first + layout.program_units_per_block())
            .map(ProgramUnitId)
            .filter(move |&program_unit| !layout.is_parity(program_unit))
            .take(program_units as usize)
            .flat_map(move |program_unit| {
                let at = layout.first_unit(program_unit).0;
                at..at + layout.units_per_program_unit()
            })
    }

    /// Places `valid` units anywhere in the first `program_units` data program units of `block`.
    fn place_drawn(
        &mut self,
        block: BlockId,
        program_units: u32,
        valid: u32,
        units: &mut Scramble,
        rng: &mut Rng,
    ) {
        let mut wanted = u64::from(valid);
        let mut left = u64::from(program_units * self.layout.units_per_program_unit());
        let mut chosen = Vec::with_capacity(valid as usize);
        // Selection sampling: each set of places is as likely as any other (Knuth, TAOCP
        // volume 2, algorithm S).
        for at in self.data_units(block, program_units) {
            if ((rng.next_u64() >> 32) * left) >> 32 < wanted {
                let lpn = units.next();
                prefetch(&self.l2p, lpn as usize);
                chosen.push((at, lpn));
                wanted -= 1;
            }
            left -= 1;
        }
        for (at, lpn) in chosen {
            self.place(block, at, lpn);
        }
    }

    fn place(&mut self, block: BlockId, at: u32, lpn: u32) {
        debug_assert!(self.l2p[lpn as usize] == 0, "every unit has one place");
        self.l2p[lpn as usize] = at + 1;
        self.p2l[at as usize] = lpn + 1;
        self.live_bits[at as usize / 64] |= 1 << (at % 64);
        self.blocks[block.0 as usize].valid += 1;
        self.valid_total += 1;
        self.mapped += 1;
        self.count_valid(block, 1);
    }
}

/// The numbers below a bound in an order that looks random, without a table: a bijection
/// of the next power of two, walked past numbers that are too large.
struct Scramble {
    bound: u32,
    mask: u32,
    shift: u32,
    /// Odd factors and addends of the rounds.
    rounds: [(u32, u32); 4],
    next: u32,
}

impl Scramble {
    fn new(bound: u32, rng: &mut Rng) -> Self {
        let bits = (32 - (bound - 1).leading_zeros()).max(2);
        let word = |rng: &mut Rng| (rng.next_u64() >> 32) as u32;
        Self {
            bound,
            mask: u32::MAX >> (32 - bits),
            shift: bits / 2,
            rounds: std::array::from_fn(|_| (word(rng) | 1, word(rng))),
            next: 0,
        }
    }

    /// The next number. Each comes once before any comes again.
    fn next(&mut self) -> u32 {
        loop {
            // Adding, multiplying by an odd number, and folding the upper half into the
            // lower one can each be undone within the mask.
            let mut x = self.next;
            for (factor, addend) in self.rounds {
                x = x.wrapping_add(addend).wrapping_mul(factor) & self.mask;
                x ^= x >> self.shift;
            }
            self.next = self.next.wrapping_add(1) & self.mask;
            if x < self.bound {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scramble_is_a_permutation_and_no_lattice() {
        for bound in [1, 2, 3, 17, 1000, 4096, 100_000] {
            let mut scramble = Scramble::new(bound, &mut Rng::stream(3, "scramble"));
            let drawn: Vec<_> = (0..bound).map(|_| scramble.next()).collect();
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..bound), "every number below {bound} once");
            if bound > 1000 {
                // Of a random order half of all neighbours rise, and few steps are equal.
                let rising = drawn.windows(2).filter(|pair| pair[0] < pair[1]).count();
                assert!(rising.abs_diff(bound as usize / 2) < bound as usize / 40);
                let step = |pair: &[u32]| pair[1].wrapping_sub(pair[0]);
                let mut steps: Vec<_> = drawn.windows(2).map(step).collect();
                steps.sort_unstable();
                steps.dedup();
                assert!(steps.len() > bound as usize / 3, "{} different steps", steps.len());
            }
        }
    }
}
