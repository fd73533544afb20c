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
            let values: Vec<u32> = (0..100_u32)
                .map(|i| 7_u32.wrapping_add(i.wrapping_mul(0x9e37_79b9) & top))
                .filter(|value| *value >= 7)
                .collect();
            let mut packed = Vec::new();
            pack(&values, 7, bits, &mut packed);
            assert_eq!(packed.len(), packed_bytes(values.len(), bits), "{bits}");
            for (at, value) in values.iter().enumerate() {
                assert_eq!(get(&packed, at, 7, bits), *value, "{bits} {at}");
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
