//! Snapshots of the write buffer: units that wait for a program unit while the drive rests.

use std::io;

use prism_base::codec::{invalid, load, save};
use prism_ftl::UnitWrite;

use super::places::State;
use super::{Buffer, NO_WAITER};

impl Buffer {
    /// Whether every unit in it waits for the rest of its program unit, and no request waits for
    /// it. A trim that is to become durable does not rest.
    pub(crate) fn is_at_rest(&self) -> bool {
        let mut waiting = self.dirty.iter().flatten().map(|&place| &self.entries[place]);
        let all = self.used as usize == self.dirty_total && self.links.in_use() == 0;
        all && waiting.all(|unit| unit.waiters == NO_WAITER && unit.lpn != UnitWrite::TOMBSTONE)
    }

    /// Appends the units, stream by stream: logical unit, stream, version, and whether a part of
    /// it is lost; then streams with full program units, in the order in which they filled up.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        let waiting = self.dirty.iter().flatten().map(|&place| &self.entries[place]);
        let units = waiting.map(|unit| (unit.lpn, unit.stream, unit.version, unit.lost));
        save(&(units.collect::<Vec<_>>(), &self.full), out);
    }

    /// The units of `stream` that wait for a program unit, in their order.
    pub(crate) fn waiting_units(&self, stream: u32) -> impl Iterator<Item = u32> {
        self.dirty[stream as usize].iter().map(|&place| self.entries[place].lpn)
    }

    /// Puts what [`Buffer::save`] wrote into this buffer, which is empty. `units` are the logical
    /// units, translation pages among them; versions are below `versions`.
    ///
    /// # Errors
    /// If the bytes end too early or contradict themselves.
    pub(crate) fn load(&mut self, from: &mut &[u8], units: u32, versions: u64) -> io::Result<()> {
        let streams = self.dirty.len() as u32;
        for (lpn, stream, version, lost) in load::<Vec<(u32, u32, u64, bool)>>(from)? {
            if lpn >= units || stream >= streams || version >= versions {
                return Err(invalid("a buffered unit is none of the drive's"));
            }
            if self.is_full() || self.find(lpn).is_some() {
                return Err(invalid("a unit is buffered twice, or there are too many"));
            }
            let place = self.add(lpn, version, stream, State::Dirty);
            if lost {
                self.mark_lost(place);
            }
        }
        self.full = load(from)?;
        match self.full.iter().all(|&stream| stream < streams) {
            true => Ok(()),
            false => Err(invalid("a stream is full that there is not")),
        }
    }
}
