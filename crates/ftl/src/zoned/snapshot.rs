//! Zones at rest as bytes, and back.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use prism_base::{DecodeError, Decoder, Encoder};
use prism_nand::{BlockId, Geometry, Pun};

use super::failed::Fate;
use super::{Use, Zoned, ZonedConfig};
use crate::ftl::snapshot::exactly;

/// What zones have become, by their number in a saved state.
const FATES: [Fate; 3] = [Fate::Sound, Fate::Broken, Fate::Gone];

impl Use {
    /// Its number in a saved state, and the zone that belongs to it.
    fn code(self) -> (u8, Option<u32>) {
        match self {
            Self::Free => (0, None),
            Self::Zone(zone) => (1, Some(zone)),
            Self::Dead(zone) => (2, zone),
            Self::Relocation => (3, None),
            Self::Retired => (4, None),
        }
    }

    fn of_code(code: u8, zone: Option<u32>) -> Option<Self> {
        Some(match (code, zone) {
            (0, None) => Self::Free,
            (1, Some(zone)) => Self::Zone(zone),
            (2, zone) => Self::Dead(zone),
            (3, None) => Self::Relocation,
            (4, None) => Self::Retired,
            _ => return None,
        })
    }
}

impl Zoned {
    /// Whether no program is in flight, and every failure has been told.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.program_units_in_flight.iter().all(|&program_units| program_units == 0)
            && self.failures.changed.is_empty()
    }

    /// Appends the state of the FTL.
    ///
    /// # Panics
    /// If it is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        assert!(self.is_at_rest(), "only an FTL at rest is a state");
        out.column_u32(&self.end);
        out.column_u8(&self.uses.iter().map(|used| used.code().0).collect::<Vec<_>>());
        self.uses.iter().for_each(|used| out.option(used.code().1));
        out.column_u32(&self.erases);
        out.column_u32(&self.next);
        out.column_u16(&self.done);
        for die_group in &self.die_groups {
            out.column_u32(&die_group.dead.iter().copied().collect::<Vec<_>>());
        }
        out.column_u32(&self.idle_die_groups);
        out.u32(self.next_die_group);
        let failures = &self.failures;
        out.column_u32(&failures.blocks.iter().copied().collect::<Vec<_>>());
        let code = |fate: &Fate| FATES.iter().position(|known| known == fate).expect("all of them");
        out.column_u8(&failures.fates.iter().map(|fate| code(fate) as u8).collect::<Vec<_>>());
        out.column_u32(&failures.units.keys().copied().collect::<Vec<_>>());
        out.column_u32(&failures.units.values().copied().collect::<Vec<_>>());
        out.option(failures.relocation_block);
        out.option(failures.reset);
    }

    /// The FTL that [`Zoned::encode`] wrote, over flash of the same shape and with the same
    /// configuration, which have been checked.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of such an FTL.
    pub fn decode(
        geometry: Geometry,
        config: ZonedConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        let mut map = Self::new(geometry, config)
            .map_err(|_| from.wrong("the configuration does not fit the flash"))?;
        map.end = from.column_u32(map.end.len())?.collect();
        if map.end.iter().any(|&end| end > map.capacity) {
            return Err(from.wrong("a zone ends behind its capacity"));
        }
        map.decode_blocks(from)?;
        for die_group in 0..map.die_groups.len() {
            map.decode_dead(die_group, from)?;
        }
        let die_groups = map.die_groups.len() as u32;
        map.idle_die_groups = from.list_below(die_groups as usize, die_groups)?;
        map.next_die_group = from.u32()?;
        if map.next_die_group > die_groups {
            return Err(from.wrong("a die group is next that there is not"));
        }
        map.decode_failures(from)?;
        map.derive(from)?;
        Ok(map)
    }

    fn decode_blocks(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let blocks = self.uses.len();
        let codes = from.bytes(blocks)?;
        for (block, &code) in codes.iter().enumerate() {
            let zone = from.option(self.config.zones)?;
            let used = Use::of_code(code, zone);
            self.uses[block] = used.ok_or_else(|| from.wrong("a block of no use"))?;
        }
        self.erases = from.column_u32(blocks)?.collect();
        self.next = from.column_u32(blocks)?.collect();
        self.done = from.column_u16(self.done.len())?.collect();
        let program_units = self.layout.program_units_per_block();
        let on_die = program_units / self.layout.dies_per_die_group();
        let too_many = self.done.iter().any(|&done| u32::from(done) > on_die);
        if too_many || self.next.iter().any(|&next| next > program_units) {
            return Err(from.wrong("a block has more program units than it has"));
        }
        Ok(())
    }

    fn decode_dead(&mut self, index: usize, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let blocks = self.uses.len();
        let dead = from.list_below(self.layout.blocks_per_die_group() as usize, blocks as u32)?;
        let fits = |&block: &u32| {
            self.die_group_of(block) == index && matches!(self.uses[block as usize], Use::Dead(_))
        };
        let mut once = dead.clone();
        once.sort_unstable();
        once.dedup();
        if once.len() != dead.len() || !dead.iter().all(fits) {
            return Err(from.wrong("a block is to be erased that is not, or twice"));
        }
        self.die_groups[index].dead = VecDeque::from(dead);
        Ok(())
    }

    fn decode_failures(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let (blocks, units) = (self.uses.len(), self.geometry.units());
        let failed = from.list_below(blocks, blocks as u32)?;
        let fates = from.bytes(self.config.zones as usize)?.iter();
        let fates = fates.map(|&code| FATES.get(usize::from(code)).copied());
        let fates: Option<Vec<Fate>> = fates.collect();
        let lpns = from.list_below(units as usize, self.config.logical_units())?;
        let places = from.column_u32(lpns.len())?;
        let failures = &mut self.failures;
        failures.blocks = failed.into_iter().collect();
        failures.fates = fates.ok_or_else(|| from.wrong("a zone has become nothing known"))?;
        let sound = failures.fates.iter().filter(|&&fate| fate == Fate::Sound);
        failures.sound = sound.count() as u32;
        for (lpn, at) in lpns.into_iter().zip(places) {
            let once = failures.units.insert(lpn, at).is_none();
            if at >= units || !once || failures.lpns.insert(at, lpn).is_some() {
                return Err(from.wrong("two units of a relocation block stand in one place"));
            }
        }
        failures.relocation_block = from.option(blocks as u32)?;
        failures.reset = from.option(self.config.zones)?;
        Ok(())
    }

    /// Works out what follows from the uses of blocks, and whether it can be.
    fn derive(&mut self, from: &Decoder<'_>) -> Result<(), DecodeError> {
        let program_units = self.layout.program_units_per_block();
        let mut good = 0;
        self.die_groups.iter_mut().for_each(|die_group| die_group.free.clear());
        for block in 0..self.uses.len() as u32 {
            let index = block as usize;
            let used = self.uses[index];
            let failed = self.failures.blocks.contains(&block);
            good += u32::from(!failed && !matches!(used, Use::Retired | Use::Relocation));
            let die_group = self.die_group_of(block);
            match used {
                Use::Free => {
                    self.die_groups[die_group].free.insert((self.erases[index], block));
                }
                Use::Zone(zone) => {
                    let gone = self.failures.fates[zone as usize] == Fate::Gone;
                    let known = std::mem::replace(&mut self.block_of[zone as usize], block + 1);
                    let writes = self.next[index] < program_units;
                    if gone || known != 0 || writes && (failed || self.is_broken(zone)) {
                        return Err(from.wrong("a zone that cannot have its block"));
                    }
                    self.die_groups[die_group].writing += u32::from(writes);
                    self.mapped += u64::from(self.units_of(zone, block));
                }
                Use::Dead(_) if !self.die_groups[die_group].dead.contains(&block) => {
                    return Err(from.wrong("a block that is to be erased never is"));
                }
                Use::Dead(_) | Use::Relocation | Use::Retired => {}
            }
        }
        self.failures.good = good;
        let relocated = |(&lpn, &at): (&u32, &u32)| {
            let block = self.layout.block_of_unit(Pun(at)).0 as usize;
            let broken = self.is_broken(self.zone_units.divide(lpn));
            broken
                && self.uses[block] == Use::Relocation
                && self.is_done(self.layout.program_unit_of(Pun(at)))
        };
        let open = |&block: &u32| {
            self.uses[block as usize] == Use::Relocation
                && self.next[block as usize] < program_units
        };
        if !self.failures.units.iter().all(relocated)
            || !self.failures.relocation_block.iter().all(open)
        {
            return Err(from.wrong("a relocation block holds what it cannot"));
        }
        self.mapped += self.failures.units.len() as u64;
        Ok(())
    }

    /// How many program units the flash may hold in `block`.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        let dies = self.layout.dies_per_die_group();
        let members = (block.0 * dies) as usize..((block.0 + 1) * dies) as usize;
        let done = self.done[members].iter().map(|&done| u32::from(done)).sum();
        match self.uses[block.0 as usize] {
            Use::Free => exactly(0),
            _ if self.is_writing(block) => exactly(done),
            // One that was torn by a loss of power may follow.
            _ => done..=self.layout.program_units_per_block(),
        }
    }
}
