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
//! | 512 each | header, two copies: version, device, seed of hashes, shape, numbers, checksum |
//! | up to 4,096 | zeros |
//! | 512 each | sectors, those of a slab together |
//!
//! The header is there twice, because without its seed no item is found: one damaged copy, or one
//! whose change was interrupted, does no harm.

use crate::memory::Memory;

/// The beginning of the magic, before the version.
const MAGIC: &[u8; 7] = b"prismST";
/// The version of the format, a digit.
const VERSION: u8 = b'1';
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
const HEADER: usize = HEADER_BYTES;
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

/// What there is where a state is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFound {
    /// Nothing but zeros.
    Nothing,
    /// The state of this device.
    Own,
    /// A state whose header is damaged.
    Damaged,
}

/// Why something is not taken as the state of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It is something else.
    #[error("this is not the state of a cache")]
    Foreign,
    /// A later version of the program wrote it.
    #[error("its format has version {version}, and this program knows up to {known}")]
    Newer {
        /// Its version.
        version: char,
        /// The newest known version.
        known: char,
    },
    /// It belongs to another device, or another engine.
    #[error("this is the state of a cache on another device")]
    OtherDevice,
}

/// Words of a copy of the header: magic, identity (4), seed, numbers of insertions, first slab,
/// time of a flush, numbers of slabs, number of the change, checksum.
const WORDS: usize = 12;
const CHANGE: usize = 10;
const CHECKSUM: usize = 11;

type Header = [u64; WORDS];

/// A copy of the header; `None` if it is not whole.
fn read_copy(header: &[u8], copy: usize) -> Option<Header> {
    let bytes = header.get(copy * SECTOR..copy * SECTOR + WORDS * 8)?;
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    }
    let is_whole = words[0] == magic() && words[CHECKSUM] == checksum(&words);
    // Numbers that no life of a device reaches are damage.
    (is_whole && words[6..CHECKSUM].iter().all(|&word| word < NUMBER_MAX)).then_some(words)
}

fn magic() -> u64 {
    let [a, b, c, d, e, f, g] = *MAGIC;
    u64::from_le_bytes([a, b, c, d, e, f, g, VERSION])
}

fn checksum(words: &Header) -> u64 {
    let bytes: Vec<u8> = words[..CHECKSUM].iter().flat_map(|word| word.to_le_bytes()).collect();
    twox_hash::XxHash3_64::oneshot(&bytes)
}

/// What the first [`HEADER_BYTES`] bytes of a state are, or fewer if there are no more.
///
/// # Errors
/// [`StateError`] if they are not to be overwritten.
pub fn examine(header: &[u8], identity: &Identity) -> Result<StateFound, StateError> {
    if header.iter().all(|&byte| byte == 0) {
        return Ok(StateFound::Nothing);
    }
    // One whole copy is enough, whatever the other one is.
    if let Some(words) = newest(header) {
        let is_own = words[1..5] == identity.words();
        return if is_own { Ok(StateFound::Own) } else { Err(StateError::OtherDevice) };
    }
    let mut is_state = false;
    for copy in [0, SECTOR] {
        let begin = header.get(copy..copy + 8);
        let Some(version) = begin.and_then(|begin| begin.strip_prefix(MAGIC)) else { continue };
        if version[0].is_ascii_digit() && version[0] > VERSION {
            let (version, known) = (version[0].into(), VERSION.into());
            return Err(StateError::Newer { version, known });
        }
        is_state = true;
    }
    if is_state { Ok(StateFound::Damaged) } else { Err(StateError::Foreign) }
}

/// Of the whole copies of a header that which was changed last.
fn newest(header: &[u8]) -> Option<Header> {
    (0..2).filter_map(|copy| read_copy(header, copy)).max_by_key(|words| words[CHANGE])
}

impl Identity {
    fn words(&self) -> [u64; 4] {
        [self.device, self.engine, self.slab_bytes, self.slabs]
    }
}

/// The bit of the number of a slab whose use has ended.
const ENDED: u64 = 1 << 63;

/// The bits.
pub struct State {
    memory: Box<dyn Memory>,
    header: Header,
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
    /// The state in `memory`, which has [`bytes`] bytes, and what was there. If that is not the
    /// state of `identity`, it is made anew, with this seed of hashes.
    ///
    /// # Errors
    /// [`StateError`] if the memory has something else, which is not overwritten.
    pub fn open(
        memory: Box<dyn Memory>,
        units: u32,
        identity: &Identity,
        seed: u64,
    ) -> Result<(Self, StateFound), StateError> {
        let found = examine(&memory.bytes()[..HEADER], identity)?;
        let header = newest(&memory.bytes()[..HEADER]).unwrap_or_default();
        let sectors = sectors(units);
        let mut state = Self { memory, header, sectors, changed: true, last_sync: 0 };
        if found != StateFound::Own {
            state.memory.bytes_mut().fill(0);
            state.header[0] = magic();
            state.header[1..5].copy_from_slice(&identity.words());
            state.header[5] = seed;
        }
        // A damaged copy is repaired.
        state.write_header();
        if found != StateFound::Own {
            // Without its header a file with anything else is taken for that of another program.
            let number = state.begin_sync();
            state.wait_sync(number);
        }
        Ok((state, found))
    }

    /// One copy after the other, so that one is whole at any time.
    fn write_header(&mut self) {
        self.header[CHANGE] += 1;
        self.header[CHECKSUM] = checksum(&self.header);
        for copy in 0..2 {
            let bytes = &mut self.memory.bytes_mut()[copy * SECTOR..];
            for (word, bytes) in self.header.iter().zip(bytes.chunks_exact_mut(8)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        self.changed = true;
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.memory.bytes()[at * 8..at * 8 + 8].try_into().expect("8 bytes"))
    }

    fn set(&mut self, at: usize, word: u64) {
        self.header[at] = word;
        self.write_header();
    }

    /// The seed of hashes of keys.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.header[5]
    }

    /// A number that no insertion of an earlier process reached.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.header[6]
    }

    /// Records that insertions have numbers below `number`.
    pub fn set_numbers(&mut self, number: u64) {
        self.set(6, number);
    }

    /// The number that a slab must have at least not to be forgotten by a flush of the cache.
    #[must_use]
    pub fn first_slab(&self) -> u64 {
        self.header[7]
    }

    /// Forgets all slabs with numbers below `number`.
    pub fn set_first_slab(&mut self, number: u64) {
        self.set(7, number);
    }

    /// A number that no slab of an earlier process reached.
    #[must_use]
    pub fn slab_numbers(&self) -> u64 {
        self.header[9]
    }

    /// Records that slabs have numbers below `number`.
    pub fn set_slab_numbers(&mut self, number: u64) {
        self.set(9, number);
    }

    /// When the cache is to forget all items; 0 for never.
    #[must_use]
    pub fn flush_at(&self) -> u32 {
        self.header[8] as u32
    }

    /// Sets when the cache is to forget all items.
    pub fn set_flush_at(&mut self, at: u32) {
        self.set(8, at.into());
    }

    fn sector(&self, slab: u32, unit: u32) -> usize {
        HEADER + (slab as usize * self.sectors + (unit / BITS) as usize) * SECTOR
    }

    /// Begins a new use of a slab, in which all items are current.
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

    /// Ends the use of a slab with this number: none of its items is current.
    pub fn end(&mut self, slab: u32, number: u64) {
        self.begin(slab, number | ENDED);
    }

    /// Whether it is not known what happened to the slab that was found on flash with this number:
    /// it was filled after the last use of which there is a record.
    #[must_use]
    pub fn lacks(&self, slab: u32, number: u64) -> bool {
        self.word(self.first_word(slab)) & !ENDED < number
    }

    fn first_word(&self, slab: u32) -> usize {
        (HEADER + slab as usize * self.sectors * SECTOR) / 8
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

    /// The number of the current use of a slab; 0 for none.
    #[must_use]
    pub fn number(&self, slab: u32) -> u64 {
        let number = self.word(self.first_word(slab));
        if number & ENDED == 0 { number } else { 0 }
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
        let ended = self.word(self.first_word(from));
        self.end(from, ended);
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
        let memory = vec![0; bytes(3, units) as usize];
        let (mut state, found) = State::open(Box::new(memory), units, &IDENTITY, 77).unwrap();
        assert_eq!((found, state.seed()), (StateFound::Nothing, 77));
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

    /// The bytes of a state that was changed.
    fn used() -> Vec<u8> {
        let (mut state, _) = open(vec![0; bytes(3, 4032) as usize]).unwrap();
        state.set_numbers(7);
        state.begin(1, 10);
        state.memory.bytes().to_vec()
    }

    fn open(memory: Vec<u8>) -> Result<(State, StateFound), StateError> {
        State::open(Box::new(memory), 4032, &IDENTITY, 5)
    }

    #[test]
    fn one_damaged_copy_of_the_header_does_no_harm() {
        for at in (0..WORDS * 8).chain(SECTOR..SECTOR + WORDS * 8) {
            let mut memory = used();
            memory[at] ^= 0x10;
            let (state, found) = open(memory).unwrap();
            assert_eq!((found, state.seed(), state.numbers()), (StateFound::Own, 5, 7), "{at}");
            assert_eq!(state.number(1), 10);
            assert_eq!(
                state.memory.bytes()[..WORDS * 8],
                state.memory.bytes()[SECTOR..][..WORDS * 8]
            );
        }
        // A change that was interrupted between the copies: the newer one counts.
        let mut memory = used();
        let old = memory[SECTOR..2 * SECTOR].to_vec();
        let (mut state, _) = open(memory).unwrap();
        state.set_numbers(9);
        memory = state.memory.bytes().to_vec();
        for copy in 0..2 {
            let mut memory = memory.clone();
            memory[copy * SECTOR..(copy + 1) * SECTOR].copy_from_slice(&old);
            assert_eq!(open(memory).unwrap().0.numbers(), 9, "copy {copy}");
        }
    }

    #[test]
    fn what_is_no_state_is_recognised() {
        let check = |change: &dyn Fn(&mut Vec<u8>), expected: Result<StateFound, StateError>| {
            let mut memory = used();
            change(&mut memory);
            let before = memory.clone();
            let header = &memory[..HEADER_BYTES];
            assert_eq!(examine(header, &IDENTITY), expected);
            if expected == Ok(StateFound::Damaged) {
                let (state, _) = open(before).unwrap();
                assert_eq!((state.numbers(), state.number(1)), (0, 0), "it is made anew");
            }
        };
        check(&|_| (), Ok(StateFound::Own));
        check(&|memory| memory.fill(0), Ok(StateFound::Nothing));
        check(&|memory| (memory[20], memory[SECTOR + 20]) = (9, 9), Ok(StateFound::Damaged));
        check(&|memory| memory.fill(b'x'), Err(StateError::Foreign));
        check(&|memory| memory[..2 * SECTOR].fill(0xff), Err(StateError::Foreign));
        let newer = StateError::Newer { version: '2', known: '1' };
        check(&|memory| memory[7] = b'2', Ok(StateFound::Own));
        check(&|memory| (memory[7], memory[SECTOR + 7]) = (b'2', b'2'), Err(newer));
        let other = Identity { device: 4, ..IDENTITY };
        assert_eq!(examine(&used()[..HEADER_BYTES], &other), Err(StateError::OtherDevice));
        assert_eq!(examine(b"short", &IDENTITY), Err(StateError::Foreign));
        assert_eq!(examine(&[], &IDENTITY), Ok(StateFound::Nothing));
    }

    /// A slab that is found on flash was freed, was filled again, or nothing is known of it.
    #[test]
    fn a_use_that_has_ended_is_known() {
        let (mut state, _) = open(vec![0; bytes(3, 4032) as usize]).unwrap();
        assert!(state.lacks(0, 5));
        state.begin(0, 5);
        assert!(!state.lacks(0, 5) && state.lacks(0, 6) && !state.lacks(0, 4));
        state.end(0, 5);
        assert!(!state.lacks(0, 5) && state.number(0) == 0 && !state.is_current(0, 5, 0));
    }
}
