//! A device at rest as bytes, and back. The format: docs/spec/drive-state.md.

use prism_base::{DecodeError, Decoder, Encoder, SimTime};

use crate::array::{Nand, READS_ERASED, UNSTABLE};
use crate::geometry::BlockId;

impl Nand {
    /// Appends the state of a device that keeps no content and has no operation in flight: for
    /// each block of a die the program units programmed and the erases, which erases did not end,
    /// the totals, and, if it ages, what that has done to it. `now` is the time by the clock that
    /// tells ages.
    ///
    /// # Panics
    /// If the device keeps content.
    pub fn encode(&self, now: SimTime, out: &mut Encoder) {
        assert!(self.store.is_none(), "content is not part of a state at rest");
        out.column_u16(
            &self.cells.iter().map(|&[program_units, _]| program_units).collect::<Vec<_>>(),
        );
        out.column_u32(&self.erase_counts);
        out.column_u16(&self.left_out);
        for flag in [UNSTABLE, READS_ERASED] {
            let set = (0..).zip(self.cells.iter()).filter(|(_, [_, state])| state & flag != 0);
            out.column_u32(&set.map(|(index, _)| index).collect::<Vec<u32>>());
        }
        for total in [
            self.program_units_programmed_total,
            self.program_units_erased_total,
            self.erases_total,
        ] {
            out.u64(total);
        }
        if let Some(faults) = &self.faults {
            faults.encode(now, out);
        }
    }

    /// This device, which is new, in the state that [`Nand::encode`] wrote; the clock that
    /// tells ages begins anew. A device that ages gets its luck from the state as well.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of a device of this kind.
    ///
    /// # Panics
    /// If anything was programmed before, or the device keeps content.
    pub fn restored(mut self, from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        assert!(self.program_units_programmed_total == 0 && self.store.is_none(), "a new device");
        let blocks = self.cells.len();
        let saved = from.column_u16(blocks)?;
        self.cells
            .iter_mut()
            .zip(saved)
            .for_each(|([program_units, _], saved)| *program_units = saved);
        let dies = self.layout.dies_per_die_group();
        let most = |index: u32| self.layout.program_units_of(BlockId(index / dies)) / dies;
        if (0..)
            .zip(self.cells.iter())
            .any(|(i, &[program_units, _])| u32::from(program_units) > most(i))
        {
            return Err(from.wrong("a block has more program units programmed than it has"));
        }
        self.erase_counts = from.column_u32(blocks)?.collect();
        self.left_out = from.column_u16(self.left_out.len())?.collect();
        let program_units = self.cells.iter();
        if self
            .left_out
            .iter()
            .zip(program_units)
            .any(|(left_out, [program_units, _])| left_out > program_units)
        {
            return Err(from.wrong("more program units are left out than there are"));
        }
        for flag in [UNSTABLE, READS_ERASED] {
            for index in from.list_below(blocks, blocks as u32)? {
                self.cells[index as usize][1] |= flag;
            }
        }
        self.program_units_programmed_total = from.u64()?;
        self.program_units_erased_total = from.u64()?;
        self.erases_total = from.u64()?;
        let programmed: u64 =
            self.cells.iter().map(|&[program_units, _]| u64::from(program_units)).sum();
        let left_out: u64 =
            self.left_out.iter().map(|&program_units| u64::from(program_units)).sum();
        let standing = programmed - left_out;
        if self.program_units_erased_total.checked_add(standing)
            != Some(self.program_units_programmed_total)
        {
            return Err(from.wrong(
                "program units programmed are not program units erased plus program units standing",
            ));
        }
        let erases: u64 = self.erase_counts.iter().map(|&count| u64::from(count)).sum();
        if erases != self.erases_total {
            return Err(from.wrong("the erases of all blocks are not those of the device"));
        }
        let program_units = self.geometry().blocks() * self.layout.program_units_per_block();
        let units = self.geometry().units();
        if let Some(faults) = &mut self.faults {
            faults.restore(from, program_units, units)?;
        }
        Ok(self)
    }
}
