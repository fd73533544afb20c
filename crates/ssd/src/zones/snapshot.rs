//! Snapshots of zones as the host sees them: states, write pointers and the order of writes.

use prism_base::snapshot_fields;

use super::{Zone, ZoneState, Zones};

snapshot_fields!(Zone { values: state, pointer, written; });

snapshot_fields!(Zones { parts: zones; values: taken; });

impl Zones {
    /// Whether no command that writes or manages a zone is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.zones.iter().all(|zone| zone.writes == 0 && !zone.managed)
    }

    /// Where the next write of `zone` goes, in bytes from its start.
    pub(crate) fn pointer(&self, zone: u32) -> u64 {
        self.zones[zone as usize].pointer
    }

    /// Counts the resources of the zones that were loaded, and refuses contradictions.
    pub(crate) fn check(&mut self) -> Result<(), &'static str> {
        let shape = &self.shape;
        let fits = |zone: &Zone| match zone.state {
            ZoneState::Empty => zone.pointer == 0,
            ZoneState::Closed => zone.pointer > 0,
            _ => true,
        };
        let within =
            |pointer: u64| pointer <= shape.capacity && pointer.is_multiple_of(shape.block);
        if !self.zones.iter().all(|zone| fits(zone) && within(zone.pointer)) {
            return Err("the write pointer of a zone is not that of its state");
        }
        let count = |is: fn(ZoneState) -> bool| {
            self.zones.iter().filter(|zone| is(zone.state)).count() as u32
        };
        (self.open, self.active) = (count(ZoneState::is_open), count(ZoneState::is_active));
        let within = |count: u32, max: u32| max == 0 || count <= max;
        let late = self.zones.iter().any(|zone| zone.written > self.taken);
        if late || !within(self.open, shape.max_open) || !within(self.active, shape.max_active) {
            return Err("more zones are open, or more was written, than there may be");
        }
        Ok(())
    }
}
