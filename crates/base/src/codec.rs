//! Binary encoding of numbers for files: little-endian, columns preceded by their length.

/// A decoding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {what}")]
pub struct DecodeError {
    /// Offset up to which the bytes were read.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// The encoding of `None`.
const NONE: u32 = u32::MAX;

/// Appends numbers to bytes.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// An empty encoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the encoded bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes encoded so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends one number.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends a number below 2^32 - 1, or `None`.
    pub fn option(&mut self, value: Option<u32>) {
        self.u32(value.unwrap_or(NONE));
    }

    /// Appends one number.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends the length of a column of bytes, and the bytes.
    pub fn column_u8(&mut self, values: &[u8]) {
        self.u32(values.len() as u32);
        self.raw(values);
    }

    /// Appends the length of a column, and its values.
    pub fn column_u16(&mut self, values: &[u16]) {
        self.u32(values.len() as u32);
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// Appends the length of a column, and its values.
    pub fn column_u32(&mut self, values: &[u32]) {
        self.u32(values.len() as u32);
        self.bytes.reserve(4 * values.len());
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    /// Appends the length of a column, and its values.
    pub fn column_u64(&mut self, values: &[u64]) {
        self.u32(values.len() as u32);
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

/// Decodes numbers in the order in which they were encoded.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The error that the value just read is invalid.
    #[must_use]
    pub fn wrong(&self, what: &'static str) -> DecodeError {
        DecodeError { at: self.at, what }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError`] if there are fewer.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or_else(|| self.wrong("the bytes end too early"))?;
        self.at += len;
        Ok(taken)
    }

    /// One number.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes end.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.raw(4)?.try_into().expect("four bytes")))
    }

    /// One number.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes end.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.raw(8)?.try_into().expect("eight bytes")))
    }

    /// A column of bytes of any length.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes end.
    pub fn column_u8(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.u32()? as usize;
        self.raw(len)
    }

    /// A column of `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError`] if it has another length, or the bytes end.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        self.values(len, 1)
    }

    /// A column of `len` numbers.
    ///
    /// # Errors
    /// [`DecodeError`] if it has another length, or the bytes end.
    pub fn column_u16(
        &mut self,
        len: usize,
    ) -> Result<impl Iterator<Item = u16> + 'a, DecodeError> {
        let values = self.values(len, 2)?;
        Ok(values.chunks_exact(2).map(|b| u16::from_le_bytes(b.try_into().expect("two bytes"))))
    }

    /// A column of `len` numbers.
    ///
    /// # Errors
    /// [`DecodeError`] if it has another length, or the bytes end.
    pub fn column_u32(
        &mut self,
        len: usize,
    ) -> Result<impl Iterator<Item = u32> + 'a, DecodeError> {
        let values = self.values(len, 4)?;
        Ok(values.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))))
    }

    /// A column of at most `most` numbers.
    ///
    /// # Errors
    /// [`DecodeError`] if it is longer, or the bytes end.
    pub fn list_u32(&mut self, most: usize) -> Result<Vec<u32>, DecodeError> {
        let len = self.clone().u32()? as usize;
        if len > most {
            return Err(self.wrong("a list is too long"));
        }
        Ok(self.column_u32(len)?.collect())
    }

    /// A column of `len` numbers.
    ///
    /// # Errors
    /// [`DecodeError`] if it has another length, or the bytes end.
    pub fn column_u64(
        &mut self,
        len: usize,
    ) -> Result<impl Iterator<Item = u64> + 'a, DecodeError> {
        let values = self.values(len, 8)?;
        Ok(values.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes"))))
    }

    fn values(&mut self, len: usize, width: usize) -> Result<&'a [u8], DecodeError> {
        if self.u32()? as usize != len {
            return Err(self.wrong("a column has the wrong length"));
        }
        self.raw(len * width)
    }

    /// A number or `None`, as [`Encoder::option`] wrote it.
    ///
    /// # Errors
    /// [`DecodeError`] if it is `end` or more, or the bytes end.
    pub fn option(&mut self, end: u32) -> Result<Option<u32>, DecodeError> {
        match self.u32()? {
            NONE => Ok(None),
            value if value < end => Ok(Some(value)),
            _ => Err(self.wrong("a number is too large")),
        }
    }

    /// A column of at most `most` numbers, each below `end`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is longer, a number is larger, or the bytes end.
    pub fn list_below(&mut self, most: usize, end: u32) -> Result<Vec<u32>, DecodeError> {
        let list = self.list_u32(most)?;
        if list.iter().any(|&value| value >= end) {
            return Err(self.wrong("a number in a list is too large"));
        }
        Ok(list)
    }

    /// Checks that no bytes are left.
    ///
    /// # Errors
    /// [`DecodeError`] if there are any.
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.wrong("more bytes follow")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let mut out = Encoder::new();
        out.u32(7);
        out.column_u8(b"abc");
        out.column_u16(&[1, 65_535]);
        out.column_u32(&[]);
        out.column_u32(&[3, 4]);
        out.column_u64(&[u64::MAX]);
        out.option(None);
        out.option(Some(5));
        out.column_u8(&[8, 9]);
        out.column_u32(&[3, 4]);
        out.u64(9);
        let bytes = out.into_bytes();
        let mut from = Decoder::new(&bytes);
        assert_eq!((from.u32(), from.column_u8()), (Ok(7), Ok(&b"abc"[..])));
        assert!(from.column_u16(2).unwrap().eq([1, 65_535]));
        assert!(from.clone().column_u32(1).is_err());
        assert_eq!(from.column_u32(0).unwrap().count(), 0);
        assert_eq!(from.clone().list_u32(1).unwrap_err().what, "a list is too long");
        assert_eq!(from.list_u32(2), Ok(vec![3, 4]));
        assert!(from.column_u64(1).unwrap().eq([u64::MAX]));
        assert_eq!((from.option(6), from.clone().option(5).is_err()), (Ok(None), true));
        assert_eq!((from.option(6), from.clone().bytes(3).is_err()), (Ok(Some(5)), true));
        assert_eq!(from.bytes(2), Ok(&[8, 9][..]));
        assert_eq!(
            from.clone().list_below(2, 4).unwrap_err().what,
            "a number in a list is too large"
        );
        assert_eq!(from.list_below(2, 5), Ok(vec![3, 4]));
        assert!(from.end().is_err());
        assert_eq!((from.u64(), from.end()), (Ok(9), Ok(())));
        assert_eq!(from.u32().unwrap_err().what, "the bytes end too early");
    }
}
