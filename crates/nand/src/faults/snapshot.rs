//! What a device that ages remembers, as bytes, and back.

use prism_base::{DecodeError, Decoder, Encoder, Nanos, SimTime};

use super::{Bad, Faults};

impl Bad {
    fn code(bad: Option<Self>) -> u8 {
        match bad {
            None => 0,
            Some(Self::Factory) => 1,
            Some(Self::Program) => 2,
            Some(Self::Erase) => 3,
        }
    }

    fn of_code(code: u8) -> Option<Option<Self>> {
        Some(match code {
            0 => None,
            1 => Some(Self::Factory),
            2 => Some(Self::Program),
            3 => Some(Self::Erase),
            _ => return None,
        })
    }
}

impl Faults {
    /// Appends what is remembered at `now`: the seed of all draws, how old the oldest data can
    /// be, bad blocks, when data was programmed, and what cannot be read.
    pub(crate) fn encode(&self, now: SimTime, out: &mut Encoder) {
        out.u64(self.seed);
        out.u64(self.model.age.0.saturating_add(now.0));
        out.column_u8(&self.bad.iter().map(|&bad| Bad::code(bad)).collect::<Vec<_>>());
        out.column_u64(&self.programmed_at);
        for set in [&self.unreadable_program_units, &self.lost] {
            let mut places: Vec<u32> = set.iter().copied().collect();
            places.sort_unstable();
            out.column_u32(&places);
        }
    }

    /// Remembers what [`Faults::encode`] wrote, on a device of `program_units` program units and
    /// `units` units. The clock begins anew.
    pub(crate) fn restore(
        &mut self,
        from: &mut Decoder<'_>,
        program_units: u32,
        units: u32,
    ) -> Result<(), DecodeError> {
        self.seed = from.u64()?;
        self.model.age = Nanos(from.u64()?);
        let bad: Option<Vec<_>> =
            from.bytes(self.bad.len())?.iter().map(|&code| Bad::of_code(code)).collect();
        self.bad = bad.ok_or_else(|| from.wrong("a block is bad for no known reason"))?;
        self.programmed_at = from.column_u64(self.programmed_at.len())?.collect();
        self.unreadable_program_units =
            from.list_below(program_units as usize, program_units)?.into_iter().collect();
        self.lost = from.list_below(units as usize, units)?.into_iter().collect();
        Ok(())
    }
}
