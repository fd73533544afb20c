//! What an engine at rest remembers, as bytes, and back: whose turn it is, and where the
//! cleaning of each die group stands. Flash and FTL are saved by themselves, counts and clock are
//! no part of a state.

use prism_base::{DecodeError, Decoder, Encoder};
use prism_ftl::Ftl;
use prism_nand::Nand;

use super::clean::Cleaner;
use super::{DieGroup, Engine};
use crate::config::EngineConfig;

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

    /// Appends what the engine remembers.
    ///
    /// # Panics
    /// If it is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        assert!(self.is_at_rest(), "only an engine at rest has a state");
        out.column_u32(&self.ready.iter().copied().collect::<Vec<_>>());
        let bits = |flags: &[bool]| {
            let set = flags.iter().enumerate().filter(|(_, flag)| **flag);
            set.map(|(place, _)| 1 << place).sum::<u8>()
        };
        let die_groups = self.die_groups.iter().map(|die_group| bits(&die_group.cleaner.flags()));
        out.column_u8(&die_groups.collect::<Vec<u8>>());
        out.u32(u32::from(bits(&[self.freed, self.idle_cleaning])));
    }

    /// The engine that goes on over `nand` and `ftl`, which are at rest, with what
    /// [`Engine::encode`] wrote.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no such state.
    pub fn decode(
        nand: Nand,
        ftl: Ftl,
        config: EngineConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        let mut engine = Self::at_rest(nand, ftl, config);
        let die_groups = engine.die_groups.len();
        let ready = from.list_below(die_groups, die_groups as u32)?;
        let flags = from.bytes(die_groups)?;
        let of_engine = from.u32()?;
        if of_engine > 3 || flags.iter().any(|&flags| flags > 15) {
            return Err(from.wrong("a die group stands where no die group can"));
        }
        let bit = |bits: u8, place: u32| bits >> place & 1 == 1;
        for (die_group, &bits) in engine.die_groups.iter_mut().zip(flags) {
            let cleaner = Cleaner::with_flags([0, 1, 2, 3].map(|place| bit(bits, place)));
            *die_group = DieGroup { cleaner, ..DieGroup::default() };
            engine.stuck += u32::from(bit(bits, 2));
        }
        for &die_group in &ready {
            if std::mem::replace(&mut engine.die_groups[die_group as usize].listed, true) {
                return Err(from.wrong("a die group is ready twice"));
            }
        }
        engine.ready = ready.into();
        engine.freed = of_engine & 1 == 1;
        engine.idle_cleaning = of_engine & 2 == 2;
        Ok(engine)
    }
}
