//! Images of any size that contain a few fields and are zero elsewhere.

use std::collections::BTreeMap;

use prism_trace::FsLayout;
use prism_trace::fs_layout::ProbeError;

use super::Names;

/// The error of reading beyond the end.
pub const ENDS: &str = "ends too early";

/// A sparse image.
#[derive(Clone)]
pub struct Image {
    bytes: BTreeMap<u64, u8>,
    size: u64,
}

impl Image {
    /// An image of `size` zeros.
    pub fn new(size: u64) -> Self {
        Self { bytes: BTreeMap::new(), size }
    }

    /// Sets the bytes from `at` on.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes.extend((at..).zip(bytes.iter().copied()));
    }

    /// Sets `width` bytes at `base + at` for each (at, width, value), little-endian.
    pub fn le(&mut self, base: u64, fields: &[(u64, usize, u64)]) {
        for &(at, width, value) in fields {
            self.put(base + at, &value.to_le_bytes()[..width]);
        }
    }

    /// As [`Image::le`], big-endian.
    pub fn be(&mut self, base: u64, fields: &[(u64, usize, u64)]) {
        for &(at, width, value) in fields {
            self.put(base + at, &value.to_be_bytes()[8 - width..]);
        }
    }

    /// Where bytes are set.
    pub fn places(&self) -> Vec<u64> {
        self.bytes.keys().copied().collect()
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), &'static str> {
        let end =
            at.checked_add(buffer.len() as u64).filter(|&end| end <= self.size).ok_or(ENDS)?;
        buffer.fill(0);
        for (&place, &byte) in self.bytes.range(at..end) {
            buffer[(place - at) as usize] = byte;
        }
        Ok(())
    }

    /// What probing says.
    pub fn probe(&self) -> Result<FsLayout, ProbeError<&'static str>> {
        FsLayout::probe(&mut |at, buffer| self.read(at, buffer))
    }
}

/// Checks the labels of blocks of `block` bytes; each at its first and its last byte.
pub fn check(layout: &FsLayout, block: u64, expected: &[(u64, &str)]) {
    for &(number, label) in expected {
        let found = layout.label(number * block);
        assert_eq!(found, Some(label), "block {number}");
        assert_eq!(layout.label((number + 1) * block - 1), found, "end of block {number}");
    }
}
