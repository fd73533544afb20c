//! A slab, which fills a flash block: records from its beginning on, and at its end a table of
//! contents, by which cleaning and recovery know its items without reading them.
//!
//! | bytes | |
//! |---|---|
//! | units of the records | records, one after the other |
//! | rest | zeros |
//! | 16 an item | table: hash (8), when it expires (4), units (4); the first item's entry is last |
//! | 40 | magic (8), number (8), items (4), units of records (4), checksums of table and end (16) |
//!
//! Number, table and end are kept up to date in the buffer as items are added, so that a buffer in
//! a mapped file can be read after a crash of the process. The checksums are computed when it is
//! sealed.

use crate::record::UNIT;

const MAGIC: u64 = u64::from_le_bytes(*b"prismSL1");
/// Bytes of the end.
const END: usize = 40;
/// Bytes of an entry of the table.
const ENTRY: usize = 16;

/// An item in the table of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The hash of its key.
    pub hash: u64,
    /// When it expires; 0 for never.
    pub expires: u32,
    /// Units before its record.
    pub unit: u32,
    /// Units of its record.
    pub units: u32,
}

/// How much of a slab is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Items.
    pub items: u32,
    /// Units of their records.
    pub units: u32,
}

impl Fill {
    /// Whether a record of `units` fits into a slab of `len` bytes.
    #[must_use]
    pub fn has_space(&self, units: u32, len: usize) -> bool {
        let records = (self.units + units) as usize * UNIT as usize;
        records + table_bytes(self.items + 1) <= len
    }
}

/// Bytes of the table of `items` items and of the end.
#[must_use]
pub fn table_bytes(items: u32) -> usize {
    items as usize * ENTRY + END
}

/// The most units of a record that a slab of `len` bytes can hold.
#[must_use]
pub fn longest(len: usize) -> u32 {
    ((len - table_bytes(1)) / UNIT as usize) as u32
}

fn put(slab: &mut [u8], at: usize, bytes: &[u8]) {
    slab[at..at + bytes.len()].copy_from_slice(bytes);
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Begins a slab with this number in `slab`.
pub fn begin(slab: &mut [u8], number: u64) {
    let end = slab.len() - END;
    put(slab, end, &[0; END]);
    put(slab, end + 8, &number.to_le_bytes());
    put(slab, end, &MAGIC.to_le_bytes());
}

/// Makes a buffer none that recovery finds.
pub fn forget(slab: &mut [u8]) {
    let end = slab.len() - END;
    put(slab, end, &[0; 8]);
}

/// Adds an item, whose record is already there.
pub fn add(slab: &mut [u8], fill: &mut Fill, hash: u64, expires: u32, units: u32) {
    let end = slab.len() - END;
    let entry = end - (fill.items as usize + 1) * ENTRY;
    put(slab, entry, &hash.to_le_bytes());
    put(slab, entry + 8, &expires.to_le_bytes());
    put(slab, entry + 12, &units.to_le_bytes());
    fill.items += 1;
    fill.units += units;
    refill(slab, *fill);
}

/// Sets what is in a slab's buffer.
pub fn refill(slab: &mut [u8], fill: Fill) {
    let end = slab.len() - END;
    put(slab, end + 16, &fill.items.to_le_bytes());
    put(slab, end + 20, &fill.units.to_le_bytes());
}

fn sum(bytes: &[u8], seed: u64) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Completes a slab: zeros between records and table, and the checksums.
pub fn seal(slab: &mut [u8], fill: Fill) {
    let end = slab.len() - END;
    let table = end - fill.items as usize * ENTRY;
    slab[(fill.units * UNIT) as usize..table].fill(0);
    let number = long(slab, end + 8);
    let of_table = sum(&slab[table..end], number);
    put(slab, end + 24, &of_table.to_le_bytes());
    let of_end = sum(&slab[end..end + 32], number);
    put(slab, end + 32, &of_end.to_le_bytes());
}

/// The number and fill of a slab that was sealed, from its last bytes.
#[must_use]
pub fn read_end(tail: &[u8]) -> Option<(u64, Fill)> {
    let end = tail.get(tail.len().checked_sub(END)?..)?;
    let number = long(end, 8);
    let whole = long(end, 0) == MAGIC && long(end, 32) == sum(&end[..32], number);
    whole.then(|| (number, Fill { items: word(end, 16), units: word(end, 20) }))
}

/// The number and fill of the slab in a buffer that may not be sealed, if they are possible.
#[must_use]
pub fn read_buffer(slab: &[u8]) -> Option<(u64, Fill)> {
    let end = slab.get(slab.len().checked_sub(END)?..)?;
    let fill = Fill { items: word(end, 16), units: word(end, 20) };
    let fits =
        u64::from(fill.units) * u64::from(UNIT) + u64::from(fill.items) * ENTRY as u64 + END as u64
            <= slab.len() as u64;
    (long(end, 0) == MAGIC && fits).then(|| (long(end, 8), fill))
}

/// The items of a slab, from its last bytes, which have the whole table; in the order in which they
/// were added.
pub fn contents(tail: &[u8], fill: Fill) -> impl Iterator<Item = Content> + '_ {
    let end = tail.len() - END;
    let mut unit = 0;
    (1..=fill.items as usize).map(move |item| {
        let entry = &tail[end - item * ENTRY..];
        let units = word(entry, 12);
        let content = Content { hash: long(entry, 0), expires: word(entry, 8), unit, units };
        // In a buffer after a loss of power it can be anything.
        unit = unit.saturating_add(units);
        content
    })
}

/// Whether the table of a sealed slab, in its last bytes, is what was written.
#[must_use]
pub fn table_is_whole(tail: &[u8], fill: Fill) -> bool {
    let Some((number, found)) = read_end(tail) else { return false };
    let Some(table) = tail.len().checked_sub(table_bytes(fill.items)) else { return false };
    let end = tail.len() - END;
    let units = contents(tail, fill).try_fold(0_u32, |sum, item| sum.checked_add(item.units));
    found == fill
        && long(tail, end + 24) == sum(&tail[table..end], number)
        && units == Some(fill.units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_slab_lists_its_items() {
        let mut slab = vec![7; 512];
        begin(&mut slab, 42);
        let mut fill = Fill::default();
        for item in 0..6 {
            assert!(fill.has_space(3, slab.len()), "{item}");
            add(&mut slab, &mut fill, 1000 + item, 5 * item as u32, 3);
        }
        assert!(!fill.has_space(6, slab.len()) && fill.has_space(4, slab.len()));
        assert_eq!(read_buffer(&slab), Some((42, fill)));
        assert_eq!(read_end(&slab), None);
        seal(&mut slab, fill);
        let tail = &slab[512 - table_bytes(6)..];
        assert_eq!(read_end(tail), Some((42, fill)));
        assert!(table_is_whole(tail, fill));
        let items: Vec<Content> = contents(tail, fill).collect();
        assert_eq!(items[4], Content { hash: 1004, expires: 20, unit: 12, units: 3 });
        assert!(slab[18 * 16..512 - table_bytes(6)].iter().all(|&byte| byte == 0));
        for place in 0..tail.len() {
            let mut damaged = tail.to_vec();
            damaged[place] ^= 1;
            assert!(!table_is_whole(&damaged, fill), "byte {place}");
        }
        forget(&mut slab);
        assert_eq!(read_buffer(&slab), None);
    }
}
