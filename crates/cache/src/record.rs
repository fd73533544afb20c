//! An item on flash: a header of 24 bytes, the key, the value, up to a multiple of 16 bytes.
//!
//! | bytes | |
//! |---|---|
//! | 4 | checksum of everything below, seeded with the slab's number and the place in it |
//! | 4 | length of the value |
//! | 4 | the client's flags |
//! | 4 | when it expires; 0 for never |
//! | 8 | number of the insertion (55 bits), length of the key (8), whether a version follows (1) |
//! | 8 | the version, if the client gave one; else it is the number |
//!
//! Numbers are in little endian. The seed makes sure that what is read is of this use of the block:
//! an item of an earlier one does not fit its checksum.

use crate::items::NewItem;

/// Bytes of the unit in which items are placed.
pub const UNIT: u32 = 16;
/// Bytes of a header without a version.
const HEADER: usize = 24;
/// The longest value.
pub const VALUE_MAX: usize = 1 << 30;
/// Bits of a number.
const NUMBER_BITS: u32 = 55;
/// The longest key.
pub const KEY_MAX: usize = 250;

/// A record that was found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it expires.
    pub expires: u32,
    /// Its number in the order of insertions.
    pub number: u64,
    /// Its version.
    pub version: u64,
}

/// Bytes of an item's record, padding not included.
fn length(key: usize, value: usize, has_version: bool) -> usize {
    HEADER + if has_version { 8 } else { 0 } + key + value
}

/// Units of an item with a key and a value of these lengths at most, whatever its version.
#[must_use]
pub fn units_at_most(key: usize, value: usize) -> u32 {
    (length(key, value, true) as u32).div_ceil(UNIT)
}

/// Where a record is: the slab's number, and the units before it in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The number of the slab.
    pub slab: u64,
    /// Units before the record.
    pub unit: u32,
}

fn checksum(bytes: &[u8], at: At) -> u32 {
    let seed = at.slab.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(at.unit);
    twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes) as u32
}

/// Units of a new item.
#[must_use]
pub fn units(item: &NewItem<'_>, number: u64) -> u32 {
    let value = item.value[0].len() + item.value[1].len();
    (length(item.key.len(), value, item.version != number) as u32).div_ceil(UNIT)
}

/// Writes a record to the beginning of `into`, which has its units.
///
/// # Panics
/// If key or value are too long.
pub fn write(item: &NewItem<'_>, number: u64, at: At, into: &mut [u8]) {
    let value = item.value[0].len() + item.value[1].len();
    assert!(item.key.len() <= KEY_MAX && value <= VALUE_MAX, "checked by the caller");
    let has_version = item.version != number;
    into[4..8].copy_from_slice(&(value as u32).to_le_bytes());
    into[8..12].copy_from_slice(&item.flags.to_le_bytes());
    into[12..16].copy_from_slice(&item.meta.expires.to_le_bytes());
    let key_bits = (item.key.len() as u64) << NUMBER_BITS | u64::from(has_version) << 63;
    into[16..24].copy_from_slice(&(number & ((1 << NUMBER_BITS) - 1) | key_bits).to_le_bytes());
    let mut end = HEADER;
    let mut add = |bytes: &[u8]| {
        into[end..end + bytes.len()].copy_from_slice(bytes);
        end += bytes.len();
    };
    if has_version {
        add(&item.version.to_le_bytes());
    }
    add(item.key);
    add(item.value[0]);
    add(item.value[1]);
    into[end..].fill(0);
    let sum = checksum(&into[4..end], at);
    into[..4].copy_from_slice(&sum.to_le_bytes());
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Reads the record at the beginning of `bytes`; `None` if it is not one that was written there.
#[must_use]
pub fn read(bytes: &[u8], at: At) -> Option<Record<'_>> {
    let (record, len) = parse(bytes)?;
    (word(bytes, 0)? == checksum(&bytes[4..len], at)).then_some(record)
}

/// The record at the beginning of a buffer in memory, and its bytes, without a look at the
/// checksum; `None` if the buffer ends before it.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<(Record<'_>, usize)> {
    let (value, number) = (word(bytes, 4)? as usize, long(bytes, 16)?);
    let (key, has_version) = ((number >> NUMBER_BITS & 0xff) as usize, number >> 63 != 0);
    let number = number & ((1 << NUMBER_BITS) - 1);
    let end = length(key, value, has_version);
    let whole = bytes.get(..end)?;
    let version = if has_version { long(whole, HEADER)? } else { number };
    let (rest, value) = whole.split_at(end - value);
    let record = Record {
        key: &rest[rest.len() - key..],
        value,
        flags: word(whole, 8)?,
        expires: word(whole, 12)?,
        number,
        version,
    };
    Some((record, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::Meta;

    #[test]
    fn a_record_is_read_only_where_it_was_written() {
        for (version, key, parts) in [(9, "k", ["", ""]), (77, "a longer key", ["one", "two"])] {
            let value = parts.map(str::as_bytes);
            let meta = Meta { expires: 5, ..Meta::default() };
            let item = NewItem { key: key.as_bytes(), value, flags: 3, version, meta };
            let mut bytes = vec![1; (units(&item, 9) * UNIT) as usize];
            let at = At { slab: 4, unit: 8 };
            write(&item, 9, at, &mut bytes);
            let record = read(&bytes, at).expect("as written");
            assert_eq!(record.key, key.as_bytes());
            assert_eq!(record.value, parts.concat().as_bytes());
            let numbers = (record.flags, record.expires, record.number, record.version);
            assert_eq!(numbers, (3, 5, 9, version));
            assert_eq!(read(&bytes, At { slab: 5, ..at }), None);
            assert_eq!(read(&bytes, At { unit: 7, ..at }), None);
            for place in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[place] ^= 16;
                let padding = length(key.len(), parts.concat().len(), version != 9);
                assert_eq!(read(&damaged, at).is_none(), place < padding, "byte {place}");
            }
        }
    }
}
