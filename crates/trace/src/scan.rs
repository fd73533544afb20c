//! Reads numbers, words and expected characters from the bytes of a line.

/// The rest of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<'a> {
    pub rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    #[inline]
    pub fn spaces(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Consumes `byte` if it is next.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> Option<()> {
        let (&first, rest) = self.rest.split_first()?;
        if first != byte {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    /// Consumes spaces, then `word`.
    pub fn word_is(&mut self, word: &[u8]) -> Option<()> {
        self.spaces();
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    /// Consumes spaces, then everything up to the next space. Never empty.
    #[inline]
    pub fn word(&mut self) -> Option<&'a [u8]> {
        self.spaces();
        let end = self.rest.iter().position(|&byte| byte == b' ' || byte == b'\t');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Consumes decimal digits.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        let mut digits = 0;
        while let Some(&byte) = self.rest.get(digits) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            // Nineteen digits always fit; only more can overflow.
            value = if digits < 19 {
                value * 10 + u64::from(digit)
            } else {
                value.checked_mul(10)?.checked_add(u64::from(digit))?
            };
            digits += 1;
        }
        self.rest = &self.rest[digits..];
        (digits > 0).then_some(value)
    }

    /// Consumes spaces, then a number.
    #[inline]
    pub fn spaced_number(&mut self) -> Option<u64> {
        self.spaces();
        self.number()
    }

    /// Consumes `major,minor`.
    #[inline]
    pub fn device(&mut self) -> Option<(u32, u32)> {
        self.spaces();
        let major = u32::try_from(self.number()?).ok()?;
        self.eat(b',')?;
        Some((major, u32::try_from(self.number()?).ok()?))
    }

    /// Consumes `seconds.fraction`; returns the time in nanoseconds and the smallest step that
    /// the number of digits can show.
    #[inline]
    pub fn seconds(&mut self) -> Option<(i64, u64)> {
        let seconds = self.spaced_number()?;
        self.eat(b'.')?;
        let before = self.rest.len();
        let fraction = self.number()?;
        let digits = before - self.rest.len();
        let step = 10_u64.pow(9_u32.checked_sub(u32::try_from(digits).ok()?)?);
        nanoseconds(seconds, fraction * step).map(|time_ns| (time_ns, step))
    }
}

/// The time of seconds and a fraction of a second; `None` if it does not fit.
pub(crate) fn nanoseconds(seconds: u64, part_ns: u64) -> Option<i64> {
    i64::try_from(seconds.checked_mul(1_000_000_000)?.checked_add(part_ns)?).ok()
}

/// A whole word as a number.
pub(crate) fn whole(word: &[u8]) -> Option<u64> {
    let mut scan = Scan::new(word);
    let value = scan.number()?;
    scan.rest.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_up_to_the_greatest() {
        for (text, value) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("99999999999999999999", None),
            ("", None),
            ("7a", None),
        ] {
            assert_eq!(whole(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn seconds_have_their_step() {
        for (text, expected) in [
            ("745.096562:", Some((745_096_562_000, 1_000))),
            (" 0.000130510", Some((130_510, 1))),
            ("1.5", Some((1_500_000_000, 100_000_000))),
            ("7:", None),
            ("99999999999.0", None),
            ("1.0000000001", None),
        ] {
            assert_eq!(Scan::new(text.as_bytes()).seconds(), expected, "{text}");
        }
    }
}
