//! Host programs in flight, and which of them are superseded before they end.

use prism_base::FastMap;

/// The programs of one logical unit in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    programs: u32,
    /// The highest version committed or trimmed meanwhile; programs with lower ones are superseded.
    floor: u64,
}

/// The logical units with programs in flight. An entry is removed with its last program.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlightUnits {
    units: FastMap<u32, InFlight>,
}

impl InFlightUnits {
    /// Whether no program is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether a program of `lpn` is in flight.
    pub(crate) fn contains(&self, lpn: u32) -> bool {
        self.units.contains_key(&lpn)
    }

    /// A program of `lpn` begins.
    pub(crate) fn begin(&mut self, lpn: u32) {
        let entry = self.units.entry(lpn).or_insert(InFlight { programs: 0, floor: 0 });
        entry.programs += 1;
    }

    /// The program of `lpn` with `version` has ended. Returns whether it is the newest.
    ///
    /// # Panics
    /// If none was begun.
    pub(crate) fn end(&mut self, lpn: u32, version: u64) -> bool {
        let entry = self.units.get_mut(&lpn).expect("a commit that was never begun");
        let wins = version > entry.floor;
        entry.floor = entry.floor.max(version);
        entry.programs -= 1;
        if entry.programs == 0 {
            self.units.remove(&lpn);
        }
        wins
    }

    /// Programs of `lpn` in flight are superseded by `version`. Returns whether there are any.
    pub(crate) fn raise(&mut self, lpn: u32, version: u64) -> bool {
        let entry = self.units.get_mut(&lpn);
        entry.map(|entry| entry.floor = entry.floor.max(version)).is_some()
    }

    /// As [`Self::raise`], for each unit of `start..end`.
    pub(crate) fn raise_all(&mut self, start: u32, end: u32, version: u64) {
        if (end - start) as usize <= self.units.len() {
            for lpn in start..end {
                self.raise(lpn, version);
            }
        } else {
            // The order of the hash table does not matter here: each entry is changed
            // independently.
            for (lpn, entry) in &mut self.units {
                if (start..end).contains(lpn) {
                    entry.floor = entry.floor.max(version);
                }
            }
        }
    }
}
