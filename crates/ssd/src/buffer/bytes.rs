//! The bytes of buffered units, on drives whose flash keeps content: a column next to the entries,
//! which has no element on other drives.

use super::{Buffer, Entry};

/// What is saved of a buffered unit on loss of power.
#[derive(Clone, Debug)]
pub(crate) struct SavedUnit {
    pub(crate) lpn: u32,
    pub(crate) version: u64,
    pub(crate) lost: bool,
    /// Its bytes; empty if it has none.
    pub(crate) bytes: Box<[u8]>,
}

impl Buffer {
    /// The newest content of every buffered logical unit in order of place, to be saved on loss of
    /// power.
    pub(crate) fn newest(&self) -> Vec<SavedUnit> {
        let mut places: Vec<_> = self.index.values().copied().collect();
        places.sort_unstable();
        let saved = |&place: &u32| {
            let Entry { lpn, version, lost, .. } = self.entries[place];
            SavedUnit { lpn, version, lost, bytes: self.bytes(place).into() }
        };
        places.iter().map(saved).collect()
    }

    /// The bytes of the unit at `place`; empty if it has none.
    pub(crate) fn bytes(&self, place: u32) -> &[u8] {
        self.bytes.get(place as usize).map_or(&[], |bytes| bytes)
    }

    /// The bytes of the unit at `place`, to be set; empty if it had none.
    pub(crate) fn bytes_mut(&mut self, place: u32) -> &mut Box<[u8]> {
        let place = place as usize;
        if self.bytes.len() <= place {
            self.bytes.resize_with(place + 1, Box::default);
        }
        &mut self.bytes[place]
    }

    /// Drops the bytes of the unit at `place`, which leaves the buffer.
    pub(super) fn drop_bytes(&mut self, place: u32) {
        if let Some(bytes) = self.bytes.get_mut(place as usize) {
            *bytes = Box::default();
        }
    }
}
