//! The steady state under uniform random writes, constructed without writing.
//!
//! The number of valid units in the blocks of a die group, once a drive has been overwritten at
//! random for long, is known in closed form for most victim policies ([`spread`]). Which units
//! these are, and where in a block they are, is random with equal probabilities.

use prism_base::{Rng, prefetch};
use prism_nand::{BlockId, Geometry, ProgramUnitId};

use super::spread::{Spread, SpreadError, closed_form, spread, used_share};
use super::state::{BlockState, Kind, OpenBlock};
use super::{PageConfig, PageMap, Placement};
use crate::config::ConfigError;

/// Why a steady state cannot be constructed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SteadyError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The victim policy has no closed form.
    #[error(transparent)]
    Spread(#[from] SpreadError),
    /// Segments have separate blocks.
    #[error(
        "a segmented FTL has no steady state in closed form; use the state preconditioned, \
         which reaches it by writing"
    )]
    Segments,
    /// There are two kinds of blocks.
    #[error(
        "a drive with SLC blocks ([slc]) has no steady state in closed form; use \
         the state preconditioned, which reaches it by writing"
    )]
    Slc,
    /// The mapping is not page-level mapping of the whole drive.
    #[error(
        "block-level, hybrid and zone mapping and ranges have no steady state in closed form; \
         use the state preconditioned, which reaches it by writing"
    )]
    Blocks,
}

/// A die group under construction.
struct Plan {
    /// Its free blocks in random order.
    blocks: Vec<u32>,
    /// Data units that are not yet placed.
    left: u32,
    /// Erased blocks to be left over.
    free: u32,
}

impl PageMap {
    /// The FTL of a drive that was filled and then overwritten at random for a long time: every
    /// logical unit is mapped, die groups have shares by their good blocks, and the valid units of
    /// the sealed blocks of each die group follow the victim policy's steady state. Open blocks of
    /// die groups are written to different extents, as they are after a long time, so that die
    /// groups are not cleaned in lockstep. Blocks are sealed in the order of their valid units,
    /// fewest first. Translation pages, if there are any, have been written once. Erase counts are
    /// zero.
    ///
    /// [`PageMap::program_units_written`] has the program units that the flash must have. Blocks
    /// in `bad` are not used. With a `write_amplification` below that of uniform writes, only the
    /// first logical units have been overwritten, as many as give this write amplification, and the
    /// other blocks hold cold data and are full of it.
    ///
    /// `progress` is called with the units placed, translation pages included: before each die
    /// group, after about every 2^20 units, and once with all. It may return false to cancel; then
    /// `None` is returned.
    ///
    /// # Errors
    /// [`SteadyError`] if no closed form is known, or the configuration is invalid, and
    /// [`ConfigError::BadBlocks`].
    pub fn steady(
        geometry: Geometry,
        config: PageConfig,
        write_amplification: Option<f64>,
        seed: u64,
        bad: impl Iterator<Item = BlockId>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Self>, SteadyError> {
        let mut map = Self::new(geometry, config, seed)?;
        map.set_aside(bad)?;
        if let Placement::Segments(_) = map.config.placement {
            return Err(SteadyError::Segments);
        }
        if map.config.slc.is_some() {
            return Err(SteadyError::Slc);
        }
        // Far fewer blocks than will be sealed: a window is compared with their number later.
        let sealed = map.layout.blocks_per_die_group() / 2;
        closed_form(map.config.victim, sealed.saturating_sub(map.config.free_blocks_high))?;
        let mut rng = Rng::stream(seed, "ftl.steady");
        let block_units = map.data_program_units * map.layout.units_per_program_unit();
        let used = match write_amplification {
            Some(wanted) => Some(used_share(map.config.victim, wanted, block_units)?),
            None => None,
        };
        let cold = used.map_or(0, |used| map.cold_units(used));
        let mut units = Units::new(map.config.logical_units, cold, &mut rng);
        let mut next_map_unit = map.config.logical_units;
        let (data, maps) = (map.shares(map.config.logical_units), map.shares(map.config.map_units));
        for (die_group, (data, map_share)) in (0..).zip(data.into_iter().zip(maps)) {
            if !progress(map.mapped) {
                return Ok(None);
            }
            let mut plan = map.plan(die_group, data, &mut rng);
            map.place_translation_pages(&mut plan, next_map_unit, map_share);
            next_map_unit += map_share;
            if !map.place_data(&mut plan, used, &mut units, &mut rng, progress)? {
                return Ok(None);
            }
            map.die_groups[die_group as usize].part_mut(Kind::Main).free = plan.blocks.into();
        }
        Ok(progress(map.mapped).then_some(map))
    }

    /// The number of program units of `block` that are programmed, for the flash of this FTL. No
    /// operation may be in flight.
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

    /// The shares of the die groups in `units`, by their good blocks; the first ones get what is
    /// left.
    fn shares(&self, units: u32) -> Vec<u32> {
        let good = |die_group| self.free_of(die_group).count() as u64;
        let good: Vec<u64> = (0..self.die_groups.len() as u32).map(good).collect();
        let all: u64 = good.iter().sum();
        let share = |good: &u64| (u64::from(units) * good / all) as u32;
        let mut shares: Vec<u32> = good.iter().map(share).collect();
        let left = units - shares.iter().sum::<u32>();
        shares.iter_mut().take(left as usize).for_each(|share| *share += 1);
        shares
    }

    /// The free blocks of a die group.
    fn free_of(&self, die_group: u32) -> impl Iterator<Item = u32> {
        let per_die_group = self.layout.blocks_per_die_group();
        let all = die_group * per_die_group..(die_group + 1) * per_die_group;
        all.filter(|&block| self.blocks[block as usize].state == BlockState::Free)
    }

    /// About how many units are in blocks of cold data if the others take the share `used` of
    /// theirs.
    fn cold_units(&self, used: f64) -> u32 {
        let block_units = self.data_program_units * self.layout.units_per_program_unit();
        let die_groups = self.die_groups.len() as u32;
        let units = self.config.logical_units / die_groups;
        // Half a block is open on average.
        let sealed = self.layout.blocks_per_die_group()
            - self.config.free_blocks_low
            - self.config.main_frontier_count();
        let units = units.saturating_sub(block_units / 2);
        let cold = sealed.saturating_sub(blocks_overwritten(sealed, units, block_units, used));
        (cold * block_units * die_groups).min(self.config.logical_units - 1)
    }

    fn plan(&self, die_group: u32, left: u32, rng: &mut Rng) -> Plan {
        let mut blocks: Vec<u32> = self.free_of(die_group).collect();
        for i in (1..blocks.len()).rev() {
            blocks.swap(i, rng.below(i as u64 + 1) as usize);
        }
        // Every number between the watermarks is equally likely.
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
            for at in self.data_units(block, program_units).take(now as usize) {
                let lpn = units.next().expect("one for each unit placed");
                self.set_place(lpn, at);
            }
            self.count_placed(block, now);
            self.close_planned(block, frontier, program_units);
        }
    }

    /// Places open blocks first, then the sealed ones; the other blocks stay free. Returns whether
    /// all data is placed, which it is not if `progress` returned false.
    fn place_data(
        &mut self,
        plan: &mut Plan,
        used: Option<f64>,
        units: &mut Units,
        rng: &mut Rng,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, SteadyError> {
        let per_program_unit = self.layout.units_per_program_unit();
        let block_units = self.data_program_units * per_program_unit;
        let copies = self.config.frontier_of_copies(0);
        let opened = 1 + u32::from(copies != 0);
        let sealed = |plan: &Plan, opened| plan.blocks.len() as u32 - plan.free - opened;
        // If erased blocks above the low watermark would leave no room, there are none.
        if u64::from(plan.left) * 64 > u64::from(sealed(plan, opened) * block_units) * 63 {
            plan.free = self.config.free_blocks_low;
        }
        // Cleaning ends with a victim whose copies fit into the open block of copies, which then
        // holds at least as many units. A shared frontier goes on behind them.
        let (rough, _) = self.spread_of(sealed(plan, opened), plan.left, used)?;
        let copied = (rough.victim_units / per_program_unit).min(self.data_program_units - 1);
        for frontier in if copies == 0 { vec![0] } else { vec![0, copies] } {
            let least = if frontier == copies { copied } else { 0 };
            let program_units =
                least + rng.below(u64::from(self.data_program_units - least)) as u32;
            let program_units = program_units.min(plan.left / per_program_unit);
            if program_units == 0 {
                continue;
            }
            let block = self.open_planned(plan, frontier);
            self.place_random(block, program_units, program_units * per_program_unit, units, rng);
            plan.left -= program_units * per_program_unit;
            self.close_planned(block, frontier, program_units);
        }
        let (spread, cold) = self.spread_of(sealed(plan, 0), plan.left, used)?;
        let overwritten = spread.valid.iter().rev().map(|&valid| (valid, false));
        let mut reported = self.mapped;
        for (valid, cold) in overwritten.chain((0..cold).map(|_| (block_units, true))) {
            let block = self.open_planned(plan, 0);
            units.cold = cold;
            self.place_random(block, self.data_program_units, valid, units, rng);
            self.close_planned(block, 0, self.data_program_units);
            if self.mapped - reported >= PROGRESS_STEP {
                reported = self.mapped;
                if !progress(reported) {
                    return Ok(false);
                }
            }
        }
        units.cold = false;
        Ok(true)
    }

    /// How `total` units are spread over the overwritten ones of `sealed` blocks, and how many
    /// blocks are full of cold data.
    fn spread_of(
        &self,
        sealed: u32,
        total: u32,
        used: Option<f64>,
    ) -> Result<(Spread, u32), SteadyError> {
        let block_units = self.data_program_units * self.layout.units_per_program_unit();
        let overwritten =
            used.map_or(sealed, |used| blocks_overwritten(sealed, total, block_units, used));
        let cold = sealed - overwritten;
        let spread =
            spread(self.config.victim, overwritten, total - cold * block_units, block_units)?;
        Ok((spread, cold))
    }

    fn open_planned(&mut self, plan: &mut Plan, frontier: u32) -> BlockId {
        let block = plan.blocks.pop().expect("the configuration leaves room for all data");
        self.blocks[block as usize].state = BlockState::Open;
        self.blocks[block as usize].frontier = frontier as u16;
        BlockId(block)
    }

    /// Seals `block` if all its data program units are placed, or leaves it open after
    /// `program_units` of them, with the parity of whole stripes.
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

    /// Places `valid` units at random positions in the first `program_units` data program units of
    /// `block`.
    fn place_random(
        &mut self,
        block: BlockId,
        program_units: u32,
        valid: u32,
        units: &mut Units,
        rng: &mut Rng,
    ) {
        let mut wanted = u64::from(valid);
        let mut left = u64::from(program_units * self.layout.units_per_program_unit());
        // The map entries of the last units, which are being prefetched.
        let mut pending = [(0, 0); LOOK_AHEAD];
        let mut chosen = 0;
        // Selection sampling: each set of positions is equally likely (Knuth, TAOCP volume 2,
        // algorithm S).
        for at in self.data_units(block, program_units) {
            if ((rng.next_u64() >> 32) * left) >> 32 < wanted {
                let lpn = units.next();
                prefetch(&self.l2p, lpn as usize);
                let (before, unit) =
                    std::mem::replace(&mut pending[chosen % LOOK_AHEAD], (lpn, at));
                if chosen >= LOOK_AHEAD {
                    self.set_place(before, unit);
                }
                chosen += 1;
                wanted -= 1;
            }
            left -= 1;
        }
        for &(lpn, at) in &pending[..chosen.min(LOOK_AHEAD)] {
            self.set_place(lpn, at);
        }
        self.count_placed(block, valid);
    }

    fn set_place(&mut self, lpn: u32, at: u32) {
        debug_assert!(self.l2p[lpn as usize] == 0, "every unit is placed once");
        self.l2p[lpn as usize] = at + 1;
        self.p2l[at as usize] = lpn + 1;
        self.live_bits[at as usize / 64] |= 1 << (at % 64);
    }

    /// Counts `units` units that have been placed in `block`.
    fn count_placed(&mut self, block: BlockId, units: u32) {
        self.blocks[block.0 as usize].valid += units;
        self.valid_total += u64::from(units);
        self.mapped += u64::from(units);
        self.count_valid(block, units);
    }
}

/// Units placed between two calls of the progress callback.
const PROGRESS_STEP: u64 = 1 << 20;

/// How many units ahead map entries are prefetched: as many as hide the memory latency.
const LOOK_AHEAD: usize = 64;

/// How many of `sealed` blocks, which hold `total` units, are overwritten if these take the share
/// `used` of them and the other blocks are full.
fn blocks_overwritten(sealed: u32, total: u32, block_units: u32, used: f64) -> u32 {
    let garbage = (u64::from(sealed) * u64::from(block_units)).saturating_sub(total.into());
    let blocks = garbage as f64 / (f64::from(block_units) * (1.0 - used).max(1e-9));
    let least = garbage.div_ceil(block_units.into()) as u32;
    (blocks.round().min(f64::from(sealed)) as u32).clamp(least.min(sealed), sealed)
}

/// The logical units in the order in which they are placed: two permutations, one of the first
/// units, which are overwritten, and one of the last, which are cold.
struct Units {
    /// Whether the next unit is to be a cold one.
    cold: bool,
    overwritten: Scramble,
    rest: Option<Scramble>,
    left: [u32; 2],
}

impl Units {
    fn new(logical: u32, cold: u32, rng: &mut Rng) -> Self {
        Self {
            cold: false,
            overwritten: Scramble::new(logical - cold, rng),
            rest: (cold > 0).then(|| Scramble::new(cold, rng)),
            left: [logical - cold, cold],
        }
    }

    /// The next unit of the wanted kind or, if none is left, of the other one.
    fn next(&mut self) -> u32 {
        let cold = if self.cold { self.left[1] > 0 } else { self.left[0] == 0 };
        self.left[usize::from(cold)] -= 1;
        match &mut self.rest {
            Some(rest) if cold => self.overwritten.bound + rest.next(),
            _ => self.overwritten.next(),
        }
    }
}

/// A pseudo-random permutation of the numbers below a bound, without a table: a bijection of the
/// next power of two, which skips numbers that are too large.
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

    /// The next number. Each number is returned once per cycle.
    fn next(&mut self) -> u32 {
        loop {
            // Adding, multiplying by an odd number, and folding the upper half into the lower one
            // are invertible within the mask.
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
    fn scramble_is_an_irregular_permutation() {
        for bound in [1, 2, 3, 17, 1000, 4096, 100_000] {
            let mut scramble = Scramble::new(bound, &mut Rng::stream(3, "scramble"));
            let drawn: Vec<_> = (0..bound).map(|_| scramble.next()).collect();
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..bound), "every number below {bound} once");
            if bound > 1000 {
                // In a random order half of all neighbours rise, and few steps are equal.
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
