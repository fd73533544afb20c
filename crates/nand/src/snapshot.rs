//! Snapshots of a device at rest. The format: docs/spec/drive-state.md.

use std::io;

use prism_base::codec::invalid;
use prism_base::{Nanos, SimTime, Snapshot, snapshot_fields};

use crate::array::{Nand, READS_ERASED, UNSTABLE};
use crate::geometry::BlockId;

snapshot_fields!(Nand {
    parts: cells, faults;
    columns: erase_counts, left_out;
    values: program_units_programmed_total, program_units_erased_total, erases_total;
});

impl Nand {
    /// How old the oldest data can be at `now`; 0 if the device does not age.
    #[must_use]
    pub fn oldest_age(&self, now: SimTime) -> Nanos {
        let age = self.faults.as_ref().map_or(0, |faults| faults.model.age.0.saturating_add(now.0));
        Nanos(age)
    }

    /// Loads the state of a device of the same kind, whose oldest data can be as old as `age`
    /// ([`Nand::oldest_age`]) at time 0. `self` is new.
    ///
    /// # Errors
    /// If the bytes end too early or contradict themselves.
    pub fn load(&mut self, age: Nanos, from: &mut &[u8]) -> io::Result<()> {
        self.load_fields(from)?;
        if let Some(faults) = &mut self.faults {
            faults.model.age = age;
        }
        self.check().map_err(invalid)
    }

    fn check(&self) -> Result<(), &'static str> {
        let dies = self.layout.dies_per_die_group();
        let most = |index: u32| self.layout.program_units_of(BlockId(index / dies)) / dies;
        let cells = || (0..).zip(self.cells.iter().copied());
        if cells().any(|(i, [programmed, state])| {
            u32::from(programmed) > most(i) || state > UNSTABLE | READS_ERASED
        }) {
            return Err("a block has more program units programmed than it has");
        }
        if self.left_out.iter().zip(cells()).any(|(left_out, (_, [all, _]))| *left_out > all) {
            return Err("more program units are left out than there are");
        }
        let sum = |values: &[u16]| values.iter().map(|&value| u64::from(value)).sum::<u64>();
        let held: u64 = cells().map(|(_, [programmed, _])| u64::from(programmed)).sum();
        let held = held - sum(&self.left_out);
        if self.program_units_erased_total.checked_add(held)
            != Some(self.program_units_programmed_total)
        {
            return Err("program units programmed are not those erased plus those that hold data");
        }
        if self.erase_counts.iter().map(|&count| u64::from(count)).sum::<u64>() != self.erases_total
        {
            return Err("the erases of all blocks are not those of the device");
        }
        let program_units = self.geometry().blocks() * self.layout.program_units_per_block();
        match &self.faults {
            Some(faults) => faults.check(program_units, self.geometry().units()),
            None => Ok(()),
        }
    }
}
