//! Splits bytes that arrive in pieces into lines.

use crate::skips::SkipReason;

/// A line beyond the limit.
pub const OVERLONG: SkipReason = SkipReason("line longer than 64 KiB");
/// A line with a byte that no text has, as a crash or a damaged disk leaves them.
pub const NUL_BYTE: SkipReason = SkipReason("line with a NUL byte");

/// What some editors and spreadsheets write before UTF-8. It has no meaning; files that were
/// joined may have it before any line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The longest line that is kept. The lines of all known formats are shorter than 1 KiB; a
/// longer one is damaged or not text, and must not fill the memory.
pub const LINE_MAX: usize = 64 << 10;

/// The line splitter. It gives the same lines however the bytes are cut into pieces.
#[derive(Debug, Default)]
pub struct Lines {
    carry: Vec<u8>,
    overlong: bool,
    number: u64,
}

impl Lines {
    /// Lines so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.number
    }

    /// Calls `take` with each line that ends in `bytes`, without its line end and a byte order
    /// mark, and its number from 1; with the reason for a line that must be skipped.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Result<&[u8], SkipReason>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let piece = &bytes[start..end];
            start = end + 1;
            self.number += 1;
            if self.carry.is_empty() && !self.overlong {
                take(checked(piece), self.number)?;
            } else {
                self.keep(piece);
                let line = if self.overlong { Err(OVERLONG) } else { checked(&self.carry) };
                let taken = take(line, self.number);
                self.carry.clear();
                self.overlong = false;
                taken?;
            }
        }
        self.keep(&bytes[start..]);
        Ok(())
    }

    /// Passes on the last line, if the bytes did not end with a line end.
    ///
    /// # Errors
    /// The error of `take`.
    pub fn end<E>(
        &mut self,
        mut take: impl FnMut(Result<&[u8], SkipReason>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.carry.is_empty() && !self.overlong {
            return Ok(());
        }
        self.number += 1;
        let carry = std::mem::take(&mut self.carry);
        let is_overlong = std::mem::take(&mut self.overlong);
        let line = if is_overlong { Err(OVERLONG) } else { checked(&carry) };
        take(line, self.number)
    }

    fn keep(&mut self, piece: &[u8]) {
        // The line may have one byte more, a carriage return.
        if self.overlong || self.carry.len() + piece.len() > LINE_MAX + 1 {
            self.overlong = true;
            self.carry.clear();
        } else {
            self.carry.extend_from_slice(piece);
        }
    }
}

/// `line` without a byte order mark and a carriage return, if it can be one of a text.
#[inline]
fn checked(line: &[u8]) -> Result<&[u8], SkipReason> {
    let line = without_mark(line.strip_suffix(b"\r").unwrap_or(line));
    match line {
        _ if line.len() > LINE_MAX => Err(OVERLONG),
        _ if memchr::memchr(0, line).is_some() => Err(NUL_BYTE),
        _ => Ok(line),
    }
}

/// `text` without the byte order mark of UTF-8 at its start.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_testkit::cases;
    use proptest::prelude::*;

    fn split(text: &[u8], piece: usize) -> Vec<(Result<Vec<u8>, SkipReason>, u64)> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        let mut take = |line: Result<&[u8], SkipReason>, number| {
            out.push((line.map(<[u8]>::to_vec), number));
            Ok::<(), ()>(())
        };
        for bytes in text.chunks(piece) {
            lines.feed(bytes, &mut take).expect("take does not fail");
        }
        lines.end(&mut take).expect("take does not fail");
        out
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_is_whole() {
        for (len, kept) in [(LINE_MAX, true), (LINE_MAX + 1, false), (3 * LINE_MAX, false)] {
            let mut text = vec![b'x'; len];
            text.extend_from_slice(b"\r\nnext");
            for piece in [1000, LINE_MAX, text.len()] {
                let lines = split(&text, piece);
                assert_eq!(lines[0].0 != Err(OVERLONG), kept, "{len} bytes in pieces of {piece}");
                assert_eq!(lines[1], (Ok(b"next".to_vec()), 2));
            }
        }
    }

    #[test]
    fn byte_order_marks_are_left_out_and_nul_bytes_skip_their_line() {
        let text = b"\xef\xbb\xbfone\r\nt\0o\n\xef\xbb\xbf\n\0\0";
        let lines = [Ok(b"one".to_vec()), Err(NUL_BYTE), Ok(vec![]), Err(NUL_BYTE)];
        for piece in 1..text.len() {
            let expected: Vec<_> = lines.iter().cloned().zip(1..).collect();
            assert_eq!(split(text, piece), expected, "in pieces of {piece}");
        }
    }

    proptest! {
        #![proptest_config(cases(256))]
        #[test]
        fn random_pieces_do_not_matter(text in "[ab\r\n]{0,60}", piece in 1_usize..20) {
            prop_assert_eq!(split(text.as_bytes(), piece), split(text.as_bytes(), 1000));
        }
    }
}
