//! Zones as the host sees them, as bytes, and back.

use prism_base::{DecodeError, Decoder, Encoder};

use super::{Zone, ZoneShape, ZoneState, Zones};

/// States by their number in a saved state.
const STATES: [ZoneState; 7] = [
    ZoneState::Empty,
    ZoneState::ImplicitlyOpen,
    ZoneState::ExplicitlyOpen,
    ZoneState::Closed,
    ZoneState::Full,
    ZoneState::ReadOnly,
    ZoneState::Offline,
];

impl Zones {
    /// Whether no command that writes or manages a zone is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.zones.iter().all(|zone| zone.writes == 0 && !zone.managed)
    }

    /// Where the next write of `zone` goes, in bytes from its start.
    pub(crate) fn pointer(&self, zone: u32) -> u64 {
        self.zones[zone as usize].pointer
    }

    /// Appends states, write pointers and the order of writes.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        let code = |zone: &Zone| STATES.iter().position(|&state| state == zone.state);
        let codes = self.zones.iter().map(|zone| code(zone).expect("all states are there") as u8);
        out.column_u8(&codes.collect::<Vec<_>>());
        for zone in &self.zones {
            out.u64(zone.pointer);
            out.u64(zone.written);
        }
        out.u64(self.taken);
    }

    /// The zones that [`Zones::encode`] wrote, of this shape.
    pub(crate) fn decode(shape: ZoneShape, from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut zones = Self::new(shape, |_| Some(0));
        let codes = from.bytes(shape.count as usize)?;
        for (zone, &code) in (0..).zip(codes) {
            let Some(&state) = STATES.get(usize::from(code)) else {
                return Err(from.wrong("a zone is in no known state"));
            };
            let (pointer, written) = (from.u64()?, from.u64()?);
            let fits = match state {
                ZoneState::Empty => pointer == 0,
                ZoneState::Closed => pointer > 0,
                _ => true,
            };
            if !fits || pointer > shape.capacity || !pointer.is_multiple_of(shape.block) {
                return Err(from.wrong("the write pointer of a zone is not that of its state"));
            }
            zones.set(zone, state);
            zones.zones[zone as usize].pointer = pointer;
            zones.zones[zone as usize].written = written;
        }
        zones.taken = from.u64()?;
        let within = |count: u32, max: u32| max == 0 || count <= max;
        let late = zones.zones.iter().any(|zone| zone.written > zones.taken);
        if late || !within(zones.open, shape.max_open) || !within(zones.active, shape.max_active) {
            return Err(from.wrong("more zones are open, or more was written, than there may be"));
        }
        Ok(zones)
    }
}
