//! Recovery of zones after a loss of power: from a saved table, or by a scan of the flash.

use prism_nand::{BlockId, ProgramUnitId, UnitTag};

use super::{Use, Zoned, ZonedConfig};
use crate::config::ConfigError;
use crate::scan::{FlashScan, Recovered};

/// Results of the scan of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Scanned {
    /// The zone of its data.
    zone: Option<u32>,
    /// The lowest sequence number of its programs.
    first: u64,
    /// Units from its start up to the first gap.
    units: u32,
}

impl Zoned {
    /// Resumes after a loss of power from the table saved by capacitors: program units that were
    /// not done are reserved again, and erases restart.
    ///
    /// Programs that had begun must have ended ([`Zoned::commit_program_unit`]), because a program
    /// unit has a fixed offset in its zone, and a torn one cannot be programmed again.
    #[must_use]
    pub fn after_power_loss(mut self) -> Self {
        self.program_units_in_flight.fill(0);
        self.idle_die_groups.clear();
        for die_group in &mut self.die_groups {
            die_group.dead.clear();
            die_group.writing = 0;
        }
        for block in 0..self.uses.len() as u32 {
            match self.uses[block as usize] {
                Use::Zone(_) if self.has_failed(BlockId(block)) => {}
                Use::Zone(_) => {
                    self.next[block as usize] = self.program_units_done(block);
                    let die_group = self.die_group_of(block);
                    self.die_groups[die_group].writing += 1;
                    self.skip_done(block);
                }
                Use::Dead(_) => self.mark_dead(block),
                Use::Free | Use::Relocation | Use::Retired => {}
            }
        }
        self.reopen_relocation_block();
        self
    }

    /// Recovers zones from a scan of the flash alone: the write pointer of each is its first gap.
    ///
    /// Of two blocks with data of one zone the one begun later is valid; the other was reset. A
    /// zone that was being written accepts no more program units, because the one at its gap may be
    /// torn: it can be read up to the gap and has to be reset before it is written again. Resets
    /// must have reached the flash as erases before they are acknowledged. A bad block, which
    /// cannot be erased, must therefore have no data: only the table knows the state of its zone.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash or its content.
    pub fn recover(
        flash: &mut impl FlashScan,
        config: ZonedConfig,
    ) -> Result<(Self, Recovered), ConfigError> {
        let mut zoned = Self::new(flash.geometry().clone(), config)?;
        let mut newest = Recovered::default();
        let blocks = zoned.geometry.blocks();
        let mut best = vec![(0u32, Scanned::default()); zoned.config.zones as usize];
        for die_group in &mut zoned.die_groups {
            die_group.free.clear();
        }
        for block in (0..blocks).map(BlockId) {
            let index = block.0 as usize;
            zoned.erases[index] = flash.erases(block);
            if flash.is_bad(block) {
                if !flash.is_erased(block) && !flash.is_unstable(block) {
                    let why = "it is bad and holds data, whose state only a saved table has";
                    return Err(ConfigError::Foreign { block: block.0, why });
                }
                zoned.retire(block.0);
                continue;
            }
            if flash.is_erased(block) {
                let die_group = zoned.die_group_of(block.0);
                zoned.die_groups[die_group].free.insert((zoned.erases[index], block.0));
                continue;
            }
            zoned.uses[index] = Use::Dead(None);
            if flash.is_unstable(block) {
                continue;
            }
            let found = zoned.scan_block(flash, block, &mut newest)?;
            let Some(zone) = found.zone else { continue };
            let known = &mut best[zone as usize];
            if known.0 == 0 || known.1.first < found.first {
                *known = (block.0 + 1, found);
            }
        }
        for (zone, (block, found)) in best.into_iter().enumerate().filter(|(_, b)| b.0 > 0) {
            zoned.take_over(zone as u32, block - 1, found);
        }
        for block in 0..blocks {
            if matches!(zoned.uses[block as usize], Use::Dead(_)) {
                zoned.mark_dead(block);
            }
        }
        zoned.idle_die_groups.clear();
        Ok((zoned, newest))
    }

    fn scan_block(
        &self,
        flash: &mut impl FlashScan,
        block: BlockId,
        newest: &mut Recovered,
    ) -> Result<Scanned, ConfigError> {
        let foreign = |why| Err(ConfigError::Foreign { block: block.0, why });
        let program_units = self.layout.program_units_per_block();
        let first_program_unit = self.layout.first_program_unit(block).0;
        let mut scanned = Scanned::default();
        let (mut found, mut gap) = (Vec::new(), false);
        for in_block in 0..program_units {
            found.clear();
            let sequence =
                flash.program_unit(ProgramUnitId(first_program_unit + in_block), &mut found);
            newest.newest_sequence = newest.newest_sequence.max(sequence);
            if scanned.first == 0 {
                scanned.first = sequence;
            }
            let mut units = 0;
            for unit in &found {
                match unit.tag {
                    UnitTag::Pad => {}
                    UnitTag::Tombstone => return foreign("zones have no tombstones"),
                    UnitTag::Data(lpn) => {
                        let (zone, offset) = self.zone_units.split(lpn);
                        let place = in_block * self.layout.units_per_program_unit() + unit.place;
                        let other = scanned.zone.is_some_and(|known| known != zone);
                        if offset != place || other || zone >= self.config.zones {
                            return foreign("a unit is not at its offset in a zone");
                        }
                        scanned.zone = Some(zone);
                        newest.newest_version = newest.newest_version.max(unit.version);
                        units += u32::from(unit.place == units);
                    }
                }
            }
            if !gap {
                scanned.units += units;
            }
            gap |= units < self.layout.units_per_program_unit();
        }
        Ok(scanned)
    }

    /// `block` holds `zone` up to the first gap.
    fn take_over(&mut self, zone: u32, block: u32, found: Scanned) {
        let (dies, program_unit) =
            (self.layout.dies_per_die_group(), self.layout.units_per_program_unit());
        self.uses[block as usize] = Use::Zone(zone);
        self.block_of[zone as usize] = block + 1;
        self.end[zone as usize] = found.units;
        self.next[block as usize] = self.layout.program_units_per_block();
        let program_units = found.units.div_ceil(program_unit);
        for member in 0..dies {
            let done = (program_units + dies - 1 - member) / dies;
            self.done[(block * dies + member) as usize] = done as u16;
        }
        self.mapped += u64::from(found.units);
    }
}
