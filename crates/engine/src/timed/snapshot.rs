//! What an engine at rest remembers, as bytes, and back: whose turn it is, and where the
//! cleaning of each lane stands. Flash and FTL are saved by themselves, counts and clock are
//! no part of a state.

use prism_base::{DecodeError, Decoder, Encoder};
use prism_ftl::Ftl;
use prism_nand::Nand;

use super::clean::Cleaner;
use super::{Engine, Lane};
use crate::config::EngineConfig;

impl Engine {
    /// Whether nothing is under way, and nothing that has begun waits for something else.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let jobs = self.jobs.in_use()
            + self.units_to_relocate.len()
            + self.jobs_without_program_unit.len();
        let lanes = &mut self.lanes.iter();
        self.is_idle() && jobs == 0 && lanes.all(|lane| lane.cleaner.is_at_rest())
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
        let lanes = self.lanes.iter().map(|lane| bits(&lane.cleaner.flags()));
        out.column_u8(&lanes.collect::<Vec<u8>>());
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
        let lanes = engine.lanes.len();
        let ready = from.list_below(lanes, lanes as u32)?;
        let flags = from.bytes(lanes)?;
        let of_engine = from.u32()?;
        if of_engine > 3 || flags.iter().any(|&flags| flags > 15) {
            return Err(from.wrong("a lane stands where no lane can"));
        }
        let bit = |bits: u8, place: u32| bits >> place & 1 == 1;
        for (lane, &bits) in engine.lanes.iter_mut().zip(flags) {
            let cleaner = Cleaner::with_flags([0, 1, 2, 3].map(|place| bit(bits, place)));
            *lane = Lane { cleaner, ..Lane::default() };
            engine.stuck += u32::from(bit(bits, 2));
        }
        for &lane in &ready {
            if std::mem::replace(&mut engine.lanes[lane as usize].listed, true) {
                return Err(from.wrong("a lane is ready twice"));
            }
        }
        engine.ready = ready.into();
        engine.freed = of_engine & 1 == 1;
        engine.idle_cleaning = of_engine & 2 == 2;
        Ok(engine)
    }
}
