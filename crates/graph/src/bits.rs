//! Numbers of a fixed number of bits, one after another, little-endian.
//!
//! Neighbours of a segment are stored so: `bits` is what the largest difference to the smallest
//! neighbour of the segment needs. A value is found without those before it, and its decoding is a
//! load, a shift and a mask, which a core does while it waits for the vertex value of the one
//! before.

/// Bytes after the last value, so that each value can be loaded as a `u64`.
pub const PADDING: usize = 8;

/// Bits that `value` needs.
#[must_use]
pub fn width(value: u32) -> u32 {
    u32::BITS - value.leading_zeros()
}

/// Bytes of `count` values of `bits` bits, with the padding.
#[must_use]
pub fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8) + PADDING
}

/// Appends `values`, each less `base`, as numbers of `bits` bits.
pub fn pack(values: &[u32], base: u32, bits: u32, out: &mut Vec<u8>) {
    let (mut held, mut filled) = (0_u64, 0);
    for value in values {
        held |= u64::from(value - base) << filled;
        filled += bits;
        while filled >= 32 {
            out.extend_from_slice(&(held as u32).to_le_bytes());
            held >>= 32;
            filled -= 32;
        }
    }
    let rest = held.to_le_bytes();
    out.extend_from_slice(&rest[..filled.div_ceil(8) as usize]);
    out.extend_from_slice(&[0; PADDING]);
}

/// The `at`-th value.
///
/// # Panics
/// If `packed` is too short.
#[inline]
#[must_use]
pub fn get(packed: &[u8], at: usize, base: u32, bits: u32) -> u32 {
    let bit = at * bits as usize;
    let bytes = &packed[bit / 8..bit / 8 + 8];
    let word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let mask = (1_u64 << bits) - 1;
    base.wrapping_add(((word >> (bit % 8)) & mask) as u32)
}

/// Values that are unpacked together. They take a whole number of bytes.
pub const BLOCK: usize = 64;

/// The values of the block `block`, or of what there is of it before the `count`-th value; the rest
/// of `out` is not changed. With a constant width each step is a load, a shift and a mask by
/// constants.
///
/// # Panics
/// If `packed` is too short, or `bits` is more than 32.
#[inline]
pub fn unpack(
    packed: &[u8],
    (block, count): (usize, usize),
    base: u32,
    bits: u32,
    out: &mut [u32; BLOCK],
) {
    let first = block * BLOCK;
    if first + BLOCK > count {
        for (at, value) in (first..count).zip(out) {
            *value = get(packed, at, base, bits);
        }
        return;
    }
    let packed = &packed[first / 8 * bits as usize..];
    macro_rules! by_width {
        ($($width:literal)*) => {
            match bits {
                $($width => unpack_width::<$width>(packed, base, out),)*
                _ => panic!("a value has up to 32 bits"),
            }
        };
    }
    by_width!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
              31 32);
}

/// Unpacks a block of values of `WIDTH` bits.
fn unpack_width<const WIDTH: usize>(packed: &[u8], base: u32, out: &mut [u32; BLOCK]) {
    let mask = (1_u64 << WIDTH) - 1;
    let packed = &packed[..BLOCK / 8 * WIDTH + PADDING];
    // Eight values begin and end with a byte.
    for (at, out) in out.chunks_exact_mut(8).enumerate() {
        let packed = &packed[at * WIDTH..at * WIDTH + WIDTH + PADDING];
        for (at, value) in out.iter_mut().enumerate() {
            let bit = at * WIDTH;
            let bytes = packed[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
            let word = u64::from_le_bytes(bytes);
            *value = base.wrapping_add((word >> (bit % 8) & mask) as u32);
        }
    }
}

/// Appends a number as bytes of seven bits, the lowest first; the highest bit says that more
/// follow.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number at `*at`, which moves behind it; `None` if it does not end.
#[inline]
pub fn get_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

/// Bytes of a number as [`put_varint`] writes it.
#[must_use]
pub fn varint_bytes(value: u64) -> usize {
    (64 - value.leading_zeros()).div_ceil(7).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_is_read_as_written() {
        for bits in 0..=32_u32 {
            let top = ((1_u64 << bits) - 1) as u32;
            let values: Vec<u32> = (0..200_u32)
                .map(|i| 7_u32.wrapping_add(i.wrapping_mul(0x9e37_79b9) & top))
                .filter(|value| *value >= 7)
                .collect();
            let mut packed = Vec::new();
            pack(&values, 7, bits, &mut packed);
            assert_eq!(packed.len(), packed_bytes(values.len(), bits), "{bits}");
            for (at, value) in values.iter().enumerate() {
                assert_eq!(get(&packed, at, 7, bits), *value, "{bits} {at}");
            }
            for (block, values) in values.chunks(BLOCK).enumerate() {
                let mut unpacked = [0; BLOCK];
                unpack(&packed, (block, block * BLOCK + values.len()), 7, bits, &mut unpacked);
                assert_eq!(unpacked[..values.len()], *values, "{bits} {block}");
            }
        }
        assert_eq!([0, 1, 255, 256, u32::MAX].map(width), [0, 1, 8, 9, 32]);
    }

    #[test]
    fn varints_are_read_as_written() {
        let values = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        for value in values {
            let before = bytes.len();
            put_varint(value, &mut bytes);
            assert_eq!(bytes.len() - before, varint_bytes(value));
        }
        let mut at = 0;
        for value in values {
            assert_eq!(get_varint(&bytes, &mut at), Some(value));
        }
        assert_eq!(get_varint(&bytes, &mut at), None);
        assert_eq!(get_varint(&[0x80; 20], &mut 0), None);
    }
}
