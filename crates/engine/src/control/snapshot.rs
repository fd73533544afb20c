//! Snapshots of an engine at rest: the order of the die groups, and what their cleaners keep. Flash
//! and FTL have snapshots of their own; counts and the clock are not stored.

use std::io;

use prism_base::codec::invalid;
use prism_base::{Snapshot, snapshot_fields};
use prism_ftl::Ftl;
use prism_nand::Nand;

use super::{DieGroup, Engine};
use crate::config::EngineConfig;
use crate::sim::SimDevice;

snapshot_fields!(DieGroup { parts: cleaner; });

snapshot_fields!(Engine { parts: die_groups; values: ready, freed, idle_cleaning; });

impl Engine {
    /// Whether nothing is in flight, and nothing that has begun waits for something else.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let jobs = self.jobs.in_use()
            + self.units_to_relocate.len()
            + self.jobs_without_program_unit.len();
        let die_groups = &mut self.die_groups.iter();
        self.is_idle() && jobs == 0 && die_groups.all(|die_group| die_group.cleaner.is_at_rest())
    }

    /// The engine over `nand` and `ftl`, which are at rest, with the state that was saved.
    ///
    /// # Errors
    /// If the bytes end too early or contradict themselves.
    pub fn load(nand: Nand, ftl: Ftl, config: EngineConfig, from: &mut &[u8]) -> io::Result<Self> {
        let mut engine =
            Self::at_rest(SimDevice::new(nand, config, ftl.logical_units()), ftl, config.cleaning);
        engine.load_fields(from)?;
        for die_group in &mut engine.die_groups {
            engine.stuck += u32::from(die_group.cleaner.is_stuck());
            die_group.listed = false;
        }
        for &ready in &engine.ready {
            match engine.die_groups.get_mut(ready as usize) {
                Some(die_group) if !die_group.listed => die_group.listed = true,
                _ => return Err(invalid("a die group is ready twice, or there is none")),
            }
        }
        Ok(engine)
    }
}
