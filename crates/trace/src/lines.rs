//! Splits bytes that arrive in pieces into lines.

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

    /// Calls `take` with each line that ends in `bytes`, without its line end, and its
    /// number from 1; with `None` for a line longer than [`LINE_MAX`].
    ///
    /// # Errors
    /// The error of `take`.
    pub fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Option<&[u8]>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let piece = &bytes[start..end];
            start = end + 1;
            self.number += 1;
            if self.carry.is_empty() && !self.overlong {
                take(bounded(piece), self.number)?;
            } else {
                self.keep(piece);
                let line = if self.overlong { None } else { bounded(&self.carry) };
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
        mut take: impl FnMut(Option<&[u8]>, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.carry.is_empty() && !self.overlong {
            return Ok(());
        }
        self.number += 1;
        let carry = std::mem::take(&mut self.carry);
        let line = if std::mem::take(&mut self.overlong) { None } else { bounded(&carry) };
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

fn bounded(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    (line.len() <= LINE_MAX).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_testkit::cases;
    use proptest::prelude::*;

    fn split(text: &[u8], piece: usize) -> Vec<(Option<Vec<u8>>, u64)> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        let mut take = |line: Option<&[u8]>, number| {
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
    fn a_long_line_is_given_as_none_and_the_next_one_is_whole() {
        for (len, kept) in [(LINE_MAX, true), (LINE_MAX + 1, false), (3 * LINE_MAX, false)] {
            let mut text = vec![b'x'; len];
            text.extend_from_slice(b"\r\nnext");
            for piece in [1000, LINE_MAX, text.len()] {
                let lines = split(&text, piece);
                assert_eq!(lines[0].0.is_some(), kept, "{len} bytes in pieces of {piece}");
                assert_eq!(lines[1], (Some(b"next".to_vec()), 2));
            }
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
