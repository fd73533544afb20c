//! Units that wait for a program unit while the drive rests, as bytes, and back.

use prism_base::{DecodeError, Decoder, Encoder};
use prism_ftl::UnitWrite;

use super::places::State;
use super::{Buffer, NO_WAITER};

impl Buffer {
    /// Whether everything in it waits for the rest of its program unit, and nobody waits for it.
    /// A trim that is to become durable does not rest.
    pub(crate) fn is_at_rest(&self) -> bool {
        let mut waiting = self.dirty.iter().flatten().map(|&place| &self.entries[place]);
        let all = self.used as usize == self.dirty_total && self.links.in_use() == 0;
        all && waiting.all(|unit| unit.waiters == NO_WAITER && unit.lpn != UnitWrite::TOMBSTONE)
    }

    /// Appends the units, stream by stream, each with its version and whether a part of it is
    /// lost; then streams with full program units, in the order in which they filled up.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.u32(self.used);
        for &place in self.dirty.iter().flatten() {
            let unit = &self.entries[place];
            debug_assert!(unit.state == State::Dirty, "a unit at rest");
            out.u32(unit.lpn);
            out.u32(unit.stream);
            out.u64(unit.version);
            out.u32(u32::from(unit.lost));
        }
        out.column_u32(&self.full.iter().copied().collect::<Vec<_>>());
    }

    /// The units of `stream` that wait for a program unit, in their order.
    pub(crate) fn waiting_units(&self, stream: u32) -> impl Iterator<Item = u32> {
        self.dirty[stream as usize].iter().map(|&place| self.entries[place].lpn)
    }

    /// Puts what [`Buffer::encode`] wrote into this buffer, which is empty. `units` are the
    /// logical units, translation pages among them, and `versions` those that were given.
    pub(crate) fn restore(
        &mut self,
        from: &mut Decoder<'_>,
        units: u32,
        versions: u64,
    ) -> Result<(), DecodeError> {
        let streams = self.dirty.len() as u32;
        for _ in 0..from.u32()? {
            let (lpn, stream, version) = (from.u32()?, from.u32()?, from.u64()?);
            let lost = from.u32()?;
            if lpn >= units || stream >= streams || version >= versions || lost > 1 {
                return Err(from.wrong("a buffered unit is none of the drive's"));
            }
            if self.is_full() || self.find(lpn).is_some() {
                return Err(from.wrong("a unit is buffered twice, or there are too many"));
            }
            let place = self.add(lpn, version, stream, State::Dirty);
            if lost == 1 {
                self.mark_lost(place);
            }
        }
        self.full = from.list_below(usize::MAX, streams)?.into();
        Ok(())
    }
}
