//! Which items on flash are no longer current, in memory that outlives the process.
//!
//! An overwrite or delete changes nothing on flash: the old record stays until its slab is cleaned.
//! If the process dies, the next one must not return it. So there is a bit for each unit of flash,
//! in a mapped file; the bit of a record's first unit is set when the record is replaced, removed
//! or dropped. After a crash of the process the bits are exact. After a loss of power those set
//! since the last sync of the file may be missing.
//!
//! Bits are in sectors of 512 bytes, which a disk writes as wholes: the number of the slab that
//! they belong to (8 bytes), then 4,032 bits. If the number is not that of the slab found on flash,
//! what happened to its items is not known, and they are dropped. So nothing has to be ordered
//! between this file and flash.
//!
//! | bytes | |
//! |---|---|
//! | 4,096 | header: magic, identity of the device, seed of hashes, shape, the next numbers |
//! | 512 each | sectors, those of a slab together |

use crate::memory::Memory;

const MAGIC: u64 = u64::from_le_bytes(*b"prismST1");
/// Bytes of the header.
const HEADER: usize = 4096;
/// Bytes of a sector.
const SECTOR: usize = 512;
/// Bits of a sector.
const BITS: u32 = (SECTOR as u32 - 8) * 8;

/// More than any number of a slab or an insertion.
const NUMBER_MAX: u64 = 1 << 54;

/// What a state file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The engine.
    pub engine: u64,
    /// Bytes of a slab.
    pub slab_bytes: u64,
    /// Slabs.
    pub slabs: u64,
}

/// The bits.
pub struct State {
    memory: Box<dyn Memory>,
    sectors: usize,
    /// Whether there is anything to sync, and the number of the last sync.
    changed: bool,
    last_sync: u64,
}

/// Sectors of a slab of `units` units.
fn sectors(units: u32) -> usize {
    units.div_ceil(BITS) as usize
}

/// Bytes of memory for `slabs` slabs of `units` units each.
#[must_use]
pub fn bytes(slabs: u32, units: u32) -> u64 {
    HEADER as u64 + u64::from(slabs) * (sectors(units) * SECTOR) as u64
}

impl State {
    /// The state in `memory`, which has [`bytes`] bytes. Returns whether it is that of `identity`;
    /// if not it is made anew, with this seed of hashes.
    pub fn open(
        memory: Box<dyn Memory>,
        units: u32,
        identity: &Identity,
        seed: u64,
    ) -> (Self, bool) {
        let mut state = Self { memory, sectors: sectors(units), changed: true, last_sync: 0 };
        let words = [identity.device, identity.engine, identity.slab_bytes, identity.slabs];
        let is_it = state.word(0) == MAGIC && (0..4).all(|at| state.word(1 + at) == words[at]);
        // Numbers that no life of a device reaches are damage.
        let found = is_it && (6..10).all(|at| state.word(at) < NUMBER_MAX);
        if !found {
            state.memory.bytes_mut().fill(0);
            for (at, word) in words.into_iter().enumerate() {
                state.set_word(1 + at, word);
            }
            state.set_word(5, seed);
            state.set_word(0, MAGIC);
        }
        (state, found)
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.memory.bytes()[at * 8..at * 8 + 8].try_into().expect("8 bytes"))
    }

    fn set_word(&mut self, at: usize, word: u64) {
        self.memory.bytes_mut()[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        self.changed = true;
    }

    /// The seed of hashes of keys.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.word(5)
    }

    /// A number that no insertion of an earlier process reached.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.word(6)
    }

    /// Records that insertions have numbers below `number`.
    pub fn set_numbers(&mut self, number: u64) {
        self.set_word(6, number);
    }

    /// The number that a slab must have at least not to be forgotten by a flush of the cache.
    #[must_use]
    pub fn first_slab(&self) -> u64 {
        self.word(7)
    }

    /// Forgets all slabs with numbers below `number`.
    pub fn set_first_slab(&mut self, number: u64) {
        self.set_word(7, number);
    }

    /// A number that no slab of an earlier process reached.
    #[must_use]
    pub fn slab_numbers(&self) -> u64 {
        self.word(9)
    }

    /// Records that slabs have numbers below `number`.
    pub fn set_slab_numbers(&mut self, number: u64) {
        self.set_word(9, number);
    }

    /// When the cache is to forget all items; 0 for never.
    #[must_use]
    pub fn flush_at(&self) -> u32 {
        self.word(8) as u32
    }

    /// Sets when the cache is to forget all items.
    pub fn set_flush_at(&mut self, at: u32) {
        self.set_word(8, at.into());
    }

    fn sector(&self, slab: u32, unit: u32) -> usize {
        HEADER + (slab as usize * self.sectors + (unit / BITS) as usize) * SECTOR
    }

    /// Begins a new use of a slab, in which all items are current; number 0 for none.
    pub fn begin(&mut self, slab: u32, number: u64) {
        for sector in 0..self.sectors {
            let at = HEADER + (slab as usize * self.sectors + sector) * SECTOR;
            let bytes = &mut self.memory.bytes_mut()[at..at + SECTOR];
            // The number goes first and comes last, so that bits are never those of another use.
            bytes[..8].fill(0);
            bytes[8..].fill(0);
            bytes[..8].copy_from_slice(&number.to_le_bytes());
        }
        self.changed = true;
    }

    /// Records that the item at `unit` is not current.
    pub fn set_dead(&mut self, slab: u32, unit: u32) {
        let bit = unit % BITS;
        let at = self.sector(slab, unit) + 8 + bit as usize / 8;
        self.memory.bytes_mut()[at] |= 1 << (bit % 8);
        self.changed = true;
    }

    /// Whether the item at `unit` of the slab with this number may be current.
    #[must_use]
    pub fn is_current(&self, slab: u32, number: u64, unit: u32) -> bool {
        let at = self.sector(slab, unit);
        let bytes = &self.memory.bytes()[at..at + SECTOR];
        let bit = unit % BITS;
        bytes[..8] == number.to_le_bytes() && bytes[8 + bit as usize / 8] >> (bit % 8) & 1 == 0
    }

    /// The number of the use of a slab; 0 for none.
    #[must_use]
    pub fn number(&self, slab: u32) -> u64 {
        self.word((HEADER + slab as usize * self.sectors * SECTOR) / 8)
    }

    /// The slab whose current use has this number: one with all of its bits, if there is one.
    #[must_use]
    pub fn slab_of(&self, number: u64) -> Option<u32> {
        let slabs = (self.memory.bytes().len() - HEADER) / (self.sectors * SECTOR);
        let with_bits = |slab: u32| {
            let first = slab as usize * self.sectors;
            let has = |sector: usize| self.word((HEADER + sector * SECTOR) / 8) == number;
            (first..first + self.sectors).filter(|&sector| has(sector)).count()
        };
        let of_number = (0..slabs as u32).filter(|&slab| self.number(slab) == number);
        of_number.max_by_key(|&slab| (with_bits(slab), std::cmp::Reverse(slab)))
    }

    /// Gives the use of a slab to another one, bits included, and waits until that is durable: at
    /// any time one of the two has all bits.
    pub fn move_to(&mut self, from: u32, to: u32) {
        let len = self.sectors * SECTOR;
        let [begin, end] = [from, to].map(|slab| HEADER + slab as usize * len);
        self.memory.bytes_mut().copy_within(begin..begin + len, end);
        self.changed = true;
        let number = self.begin_sync();
        self.wait_sync(number);
        self.begin(from, 0);
        let number = self.begin_sync();
        self.wait_sync(number);
    }

    /// Begins to make everything durable that has changed. Returns the number of the sync for which
    /// that waits.
    pub fn begin_sync(&mut self) -> u64 {
        if std::mem::take(&mut self.changed) {
            self.last_sync = self.memory.begin_sync();
        }
        self.last_sync
    }

    /// The number of the last sync that is complete; `None` if one has failed.
    #[must_use]
    pub fn synced(&self) -> Option<u64> {
        self.memory.synced()
    }

    /// Waits until the sync with this number is complete or has failed.
    pub fn wait_sync(&mut self, number: u64) {
        self.memory.wait_sync(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity { device: 3, engine: 1, slab_bytes: 1 << 20, slabs: 3 };

    #[test]
    fn bits_belong_to_one_use_of_a_slab() {
        let units = 65_536;
        let memory = vec![9; bytes(3, units) as usize];
        let (mut state, found) = State::open(Box::new(memory), units, &IDENTITY, 77);
        assert!(!found && state.seed() == 77);
        state.begin(1, 10);
        state.begin(2, 11);
        for unit in [0, 4031, 4032, 65_535] {
            assert!(state.is_current(1, 10, unit) && !state.is_current(1, 9, unit));
            state.set_dead(1, unit);
            assert!(!state.is_current(1, 10, unit), "unit {unit}");
            assert!(state.is_current(2, 11, unit));
        }
        assert!(state.is_current(1, 10, 1));
        state.move_to(1, 0);
        assert!(!state.is_current(1, 10, 1) && state.is_current(0, 10, 1));
        assert!(!state.is_current(0, 10, 4032));
        assert_eq!(
            (state.slab_of(10), state.slab_of(11), state.slab_of(12)),
            (Some(0), Some(2), None)
        );
        // A loss of power can leave two uses with one number: the one with all bits counts.
        state.begin(0, 20);
        state.begin(1, 20);
        let second = HEADER + SECTOR;
        state.memory.bytes_mut()[second..second + 8].fill(0);
        assert_eq!(state.slab_of(20), Some(1));
        state.begin(0, 12);
        assert!(state.is_current(0, 12, 4032) && !state.is_current(0, 10, 4032));
    }
}
