//! The index: where each item is, and what is kept in memory about it, in 16 bytes an item.
//!
//! The table has a fixed number of buckets of eight entries. An item has two buckets; it goes to
//! the emptier one; if both are full, one of their entries moves to its other bucket. So the table
//! is more than nine tenths full before that fails. Then the entry of the two buckets that was not
//! used for longest is dropped, and its item with it: the table is a hard bound of memory. Keys are
//! not stored. An entry has 20 bits of the key's hash besides its bucket, so a lookup of an absent
//! key meets a false entry in one of about 70,000 cases; the key on flash is compared before a
//! value is returned.

use std::fmt;

use bytemuck::{Pod, Zeroable};
use prism_base::Zeroed;

/// Entries of a bucket.
const WAYS: usize = 8;
/// Bits of an address: 2^36 units.
const ADDRESS_BITS: u32 = 36;
/// Bits of the hash in an entry.
const TAG_BITS: u32 = 20;
/// Bits of the time of the last access, in seconds since the index was made.
const ACCESS_BITS: u32 = 27;
/// The largest number of lookups that an entry counts.
pub const HITS_MAX: u8 = 3;

/// The hash of a key.
#[must_use]
pub fn hash(key: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, key)
}

/// An entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The item's address in units.
    pub address: u64,
    /// An upper bound of its length in units; at least 1.
    pub units: u32,
    /// When it expires; 0 for never.
    pub expires: u32,
    /// When it was last used, in seconds since the index was made.
    pub access: u32,
    /// Fetched since it was set.
    pub fetched: bool,
    /// Marked as stale.
    pub stale: bool,
    /// A client was asked to set it anew.
    pub win: bool,
    /// Lookups since cleaning last met it, at most [`HITS_MAX`].
    pub hits: u8,
}

/// An entry in 16 bytes; `where_is` is 0 in an empty one.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Packed {
    /// Address, tag, length.
    where_is: u64,
    /// Expiry, access, flags.
    what: u64,
}

/// A length in 8 bits: exact below 16 units, then with four binary digits, rounded up.
#[must_use]
pub fn length_code(units: u32) -> u8 {
    if units < 16 {
        return units.max(1) as u8;
    }
    let shift = 28 - units.leading_zeros();
    let digits = units.div_ceil(1 << shift);
    // 16 digits after rounding up are 8 of the next power.
    let (shift, digits) = if digits == 16 { (shift + 1, 8) } else { (shift, digits) };
    (16 + (shift - 1) * 8 + (digits - 8)) as u8
}

/// The length of a code.
#[must_use]
pub fn length_of(code: u8) -> u32 {
    if code < 16 {
        return u32::from(code);
    }
    let code = u32::from(code) - 16;
    (8 + code % 8) << (code / 8 + 1)
}

impl Packed {
    fn new(entry: &Entry, tag: u64) -> Self {
        debug_assert!(entry.address >> ADDRESS_BITS == 0 && entry.units > 0);
        let code = u64::from(length_code(entry.units));
        let where_is = entry.address | tag << ADDRESS_BITS | code << (ADDRESS_BITS + TAG_BITS);
        let access = u64::from(entry.access.min((1 << ACCESS_BITS) - 1));
        let bits = u64::from(entry.fetched)
            | u64::from(entry.stale) << 1
            | u64::from(entry.win) << 2
            | u64::from(entry.hits.min(HITS_MAX)) << 3;
        Self { where_is, what: u64::from(entry.expires) | access << 32 | bits << 59 }
    }

    fn is_empty(self) -> bool {
        self.where_is == 0
    }

    fn tag(self) -> u64 {
        self.where_is >> ADDRESS_BITS & ((1 << TAG_BITS) - 1)
    }

    fn entry(self) -> Entry {
        let bits = self.what >> 59;
        Entry {
            address: self.where_is & ((1 << ADDRESS_BITS) - 1),
            units: length_of((self.where_is >> (ADDRESS_BITS + TAG_BITS)) as u8),
            expires: self.what as u32,
            access: (self.what >> 32) as u32 & ((1 << ACCESS_BITS) - 1),
            fetched: bits & 1 != 0,
            stale: bits & 2 != 0,
            win: bits & 4 != 0,
            hits: (bits >> 3) as u8,
        }
    }
}

/// The entries of a bucket, in as few cache lines as possible.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C, align(128))]
struct Bucket([Packed; WAYS]);

impl Bucket {
    /// A free place.
    fn free(&self) -> Option<usize> {
        self.0.iter().position(|packed| packed.is_empty())
    }

    fn free_ways(&self) -> usize {
        self.0.iter().filter(|packed| packed.is_empty()).count()
    }
}

/// The position of an entry, until the next change of the index: its bucket, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32, u8);

/// The table.
pub struct Index {
    buckets: Zeroed<Bucket>,
    len: u64,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items in {} buckets", self.len, self.buckets.len())
    }
}

impl Index {
    /// The largest address + 1, in units.
    pub const ADDRESSES: u64 = 1 << ADDRESS_BITS;

    /// An empty index of at most `bytes` of memory, and of 64 buckets at least.
    ///
    /// # Panics
    /// With the payload [`prism_base::OutOfMemory`] if there is not enough address space.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let buckets = (bytes / size_of::<Bucket>() as u64).clamp(64, 1 << 32);
        Self { buckets: Zeroed::new(buckets as usize), len: 0 }
    }

    /// Items.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Items that there is space for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        (self.buckets.len() * WAYS) as u64
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.buckets.len() * size_of::<Bucket>()) as u64
    }

    fn tag(hash: u64) -> u64 {
        hash >> (64 - TAG_BITS)
    }

    /// The two buckets of a hash.
    fn buckets(&self, hash: u64) -> [u32; 2] {
        let first = ((hash & u64::from(u32::MAX)) * self.buckets.len() as u64) >> 32;
        [first as u32, self.other(Self::tag(hash), first as u32)]
    }

    /// The other bucket of an entry: it follows from the tag, the same way from either of the two.
    fn other(&self, tag: u64, bucket: u32) -> u32 {
        let (all, bucket) = (self.buckets.len() as u64, u64::from(bucket));
        // A product in place of a remainder, which is slow.
        let sum = ((tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * all) >> 32;
        (if sum >= bucket { sum - bucket } else { sum + all - bucket }) as u32
    }

    /// Reads the buckets of these hashes, so that they are in the processor's caches. The reads do
    /// not depend on each other, so the processor waits for many at the same time. Prefetches take
    /// less time than that in an index of up to some 300 MiB, and more in one of 800 MiB.
    pub fn touch(&self, hashes: impl Iterator<Item = u64>) {
        let mut sum = 0;
        for bucket in hashes.flat_map(|hash| self.buckets(hash)) {
            let entries = &self.buckets[bucket as usize].0;
            sum ^= entries[0].where_is ^ entries[WAYS / 2].where_is;
        }
        std::hint::black_box(sum);
    }

    fn at(&self, Slot(bucket, way): Slot) -> Packed {
        self.buckets[bucket as usize].0[usize::from(way)]
    }

    fn at_mut(&mut self, Slot(bucket, way): Slot) -> &mut Packed {
        &mut self.buckets[bucket as usize].0[usize::from(way)]
    }

    /// A free place in a bucket.
    fn free_in(&self, bucket: u32) -> Option<Slot> {
        self.buckets[bucket as usize].free().map(|way| Slot(bucket, way as u8))
    }

    /// Frees a place in one of two full buckets: moves an entry to its other bucket.
    fn displace(&mut self, buckets: [u32; 2]) -> Option<Slot> {
        for slot in Self::slots(buckets) {
            let packed = self.at(slot);
            if let Some(free) = self.free_in(self.other(packed.tag(), slot.0)) {
                *self.at_mut(free) = packed;
                return Some(slot);
            }
        }
        None
    }

    fn slots(buckets: [u32; 2]) -> impl Iterator<Item = Slot> {
        buckets.into_iter().flat_map(|bucket| (0..WAYS as u8).map(move |way| Slot(bucket, way)))
    }

    /// The first entry with this hash for which `is_it` holds. Two keys can have the same hash.
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(&Entry) -> bool) -> Option<(Slot, Entry)> {
        let tag = Self::tag(hash);
        for bucket in self.buckets(hash) {
            for (packed, way) in self.buckets[bucket as usize].0.iter().zip(0..) {
                if packed.tag() == tag && !packed.is_empty() {
                    let entry = packed.entry();
                    if is_it(&entry) {
                        return Some((Slot(bucket, way), entry));
                    }
                }
            }
        }
        None
    }

    /// Changes an entry.
    pub fn set(&mut self, slot: Slot, entry: &Entry) {
        let packed = self.at_mut(slot);
        *packed = Packed::new(entry, packed.tag());
    }

    /// Removes an entry.
    pub fn remove(&mut self, slot: Slot) {
        debug_assert!(!self.at(slot).is_empty());
        *self.at_mut(slot) = Packed::default();
        self.len -= 1;
    }

    /// Adds an entry. Returns the one that had to go, if both buckets were full: one that is
    /// expired at `now`, or else the one with the fewest lookups and the oldest access.
    pub fn insert(&mut self, hash: u64, entry: &Entry, now: u32) -> Option<Entry> {
        let packed = Packed::new(entry, Self::tag(hash));
        let [first, second] = self.buckets(hash);
        let free = |bucket: u32| self.buckets[bucket as usize].free_ways();
        let emptier = if free(second) > free(first) { second } else { first };
        let place = self.free_in(emptier).or_else(|| self.displace([first, second]));
        if let Some(place) = place {
            *self.at_mut(place) = packed;
            self.len += 1;
            return None;
        }
        let worth = |&slot: &Slot| {
            let entry = self.at(slot).entry();
            let expired = entry.expires != 0 && entry.expires <= now;
            (!expired, entry.hits, entry.access)
        };
        let victim = Self::slots([first, second]).min_by_key(worth).expect("buckets have entries");
        let evicted = self.at(victim).entry();
        *self.at_mut(victim) = packed;
        Some(evicted)
    }

    /// Removes the entries for which `keep` does not hold; returns their number.
    pub fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) -> u64 {
        let before = self.len;
        for packed in self.buckets.iter_mut().flat_map(|bucket| &mut bucket.0) {
            if !packed.is_empty() && !keep(&packed.entry()) {
                *packed = Packed::default();
                self.len -= 1;
            }
        }
        before - self.len
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.buckets = Zeroed::new(self.buckets.len());
        self.len = 0;
    }

    /// Every entry, in no order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let all = self.buckets.iter().flat_map(|bucket| &bucket.0);
        all.filter(|packed| !packed.is_empty()).map(|packed| packed.entry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_up_by_less_than_an_eighth() {
        for units in 1..2_000_000 {
            let length = length_of(length_code(units));
            assert!(length >= units && length - units <= units / 8, "{units} became {length}");
        }
    }

    #[test]
    fn entries_survive_packing() {
        let entry = Entry {
            address: (1 << 36) - 5,
            units: 15,
            expires: u32::MAX,
            access: (1 << 27) - 1,
            fetched: true,
            stale: false,
            win: true,
            hits: 3,
        };
        let packed = Packed::new(&entry, 0xabcde);
        assert_eq!((packed.entry(), packed.tag()), (entry, 0xabcde));
    }

    #[test]
    fn a_table_is_nearly_full_before_an_entry_goes() {
        let mut index = Index::new(16 << 20);
        let mut n = 0;
        loop {
            let entry = Entry { address: n, units: 1, ..Entry::default() };
            if index.insert(hash(&n.to_le_bytes(), 7), &entry, 0).is_some() {
                break;
            }
            n += 1;
        }
        assert!(n > index.capacity() * 9 / 10, "{n} of {}", index.capacity());
        let found = (0..n).filter(|n| {
            index.find(hash(&n.to_le_bytes(), 7), |entry| entry.address == *n).is_some()
        });
        assert!(found.count() as u64 >= n - 1);
        assert_eq!(index.entries().count() as u64, index.len());
    }

    #[test]
    fn the_expired_and_then_the_oldest_entry_goes_first() {
        let mut index = Index::new(0);
        let mut gone = Vec::new();
        for address in 0..1_000_u32 {
            let access = address * 7919 % 5000;
            let expires = if address % 100 == 7 { 50 } else { 0 };
            let address = u64::from(address);
            let entry = Entry { address, units: 1, expires, access, ..Entry::default() };
            gone.extend(index.insert(hash(&address.to_le_bytes(), 1), &entry, 60));
        }
        // Of those that had to go, the expired ones are the first of their buckets.
        let left: Vec<Entry> = index.entries().collect();
        assert!(left.len() as u64 == index.len() && index.len() > 480, "{}", index.len());
        let expired = left.iter().filter(|entry| entry.expires == 50).count();
        assert!(expired < 5, "{expired} expired ones are left");
        let mean = |entries: &[Entry]| {
            entries.iter().map(|entry| u64::from(entry.access)).sum::<u64>() / entries.len() as u64
        };
        assert!(mean(&left) > 2 * mean(&gone), "{} and {}", mean(&left), mean(&gone));
    }
}
