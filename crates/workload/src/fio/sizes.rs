//! Sizes of I/Os: one, a range, or a list with percentages.

use prism_base::Rng;

/// Sizes are whole sectors.
pub const SECTOR: u64 = 512;

/// The sizes of one direction, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// A single size (`bs`).
    One(u64),
    /// All multiples of the first up to the second, equally likely (`bsrange`).
    Range(u64, u64),
    /// Sizes with weights (`bssplit`); at least one, none of weight 0.
    Split(Vec<(u64, u64)>),
}

impl Sizes {
    /// The smallest size.
    #[must_use]
    pub fn min(&self) -> u64 {
        match self {
            Self::One(size) | Self::Range(size, _) => *size,
            Self::Split(list) => list.iter().map(|&(size, _)| size).min().unwrap_or(SECTOR),
        }
    }

    /// The largest size.
    #[must_use]
    pub fn max(&self) -> u64 {
        match self {
            Self::One(size) | Self::Range(_, size) => *size,
            Self::Split(list) => list.iter().map(|&(size, _)| size).max().unwrap_or(SECTOR),
        }
    }

    /// Whether all sizes are multiples of `granule`.
    #[must_use]
    pub fn are_multiples_of(&self, granule: u64) -> bool {
        match self {
            Self::One(size) | Self::Range(size, _) => size.is_multiple_of(granule),
            Self::Split(list) => list.iter().all(|&(size, _)| size.is_multiple_of(granule)),
        }
    }

    /// A random size of at most `most`, which is at least [`Sizes::min`].
    #[inline(always)]
    pub fn draw(&self, most: u64, rng: &mut Rng) -> u64 {
        if let Self::One(size) = self { *size } else { self.draw_of_several(most, rng) }
    }

    #[inline(never)]
    fn draw_of_several(&self, most: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::One(size) => *size,
            Self::Range(min, max) => {
                let steps = (*max).min(most) / min;
                min * (1 + rng.below(steps.max(1)))
            }
            Self::Split(list) => {
                let fits = |&&(size, _): &&(u64, u64)| size <= most;
                let total: u64 = list.iter().filter(fits).map(|&(_, weight)| weight).sum();
                let mut draw = rng.below(total.max(1));
                for &(size, weight) in list.iter().filter(fits) {
                    match draw.checked_sub(weight) {
                        Some(rest) => draw = rest,
                        None => return size,
                    }
                }
                self.min()
            }
        }
    }

    /// Reads one size.
    ///
    /// # Errors
    /// A description of what is expected.
    pub fn parse_one(text: &str, integer: Integer<'_>) -> Result<Self, String> {
        size(text, integer).map(Self::One)
    }

    /// Reads `4k-16k`.
    ///
    /// # Errors
    /// A description of what is expected.
    pub fn parse_range(text: &str, integer: Integer<'_>) -> Result<Self, String> {
        let parts = text.split_once(['-', ':']);
        let Some((low, high)) = parts else { return Err("a range as 4k-16k is expected".into()) };
        let (low, high) = (size(low, integer)?, size(high, integer)?);
        Ok(Self::Range(low.min(high), low.max(high)))
    }

    /// Reads `4k/60:64k/40`; sizes without a percentage share the rest equally.
    ///
    /// # Errors
    /// A description of what is expected.
    pub fn parse_split(text: &str, integer: Integer<'_>) -> Result<Self, String> {
        let mut list = Vec::new();
        for part in text.split(':') {
            let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
            let percent = match percent.trim().trim_end_matches('%') {
                "" => None,
                number => Some(number.parse::<u64>().map_err(|_| SPLIT.to_owned())?),
            };
            list.push((size(bytes, integer)?, percent));
        }
        let given: u64 = list
            .iter()
            .filter_map(|&(_, percent)| percent)
            .fold(0, |sum, percent| sum.saturating_add(percent));
        let blanks = list.iter().filter(|(_, percent)| percent.is_none()).count() as u64;
        if given > 100 || (blanks == 0 && given < 100) {
            return Err(SPLIT.into());
        }
        // Multiplied by the number of blanks, so that their share of the rest is an integer.
        let weight = |percent: Option<u64>| percent.map_or(100 - given, |p| p * blanks.max(1));
        let weighed = list.into_iter().map(|(bytes, percent)| (bytes, weight(percent)));
        Ok(Self::Split(weighed.filter(|&(_, weight)| weight > 0).collect()))
    }
}

/// The parser of integers, which depends on `kb_base`.
pub type Integer<'a> = &'a dyn Fn(&str) -> Result<u64, String>;

const SPLIT: &str = "sizes with percentages that add up to 100 are expected, as 4k/60:64k/40";

fn size(text: &str, integer: Integer<'_>) -> Result<u64, String> {
    let bytes = integer(text)?;
    if bytes == 0 || !bytes.is_multiple_of(SECTOR) || bytes > 1 << 30 {
        return Err(format!("a multiple of {SECTOR} bytes, at most 1g, is expected"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::value::{KbBase, integer};

    const INTEGER: Integer<'static> = &|text| integer(text, KbBase::Binary);

    #[test]
    fn lists_are_read_as_fio_does() {
        let split = |text| Sizes::parse_split(text, INTEGER);
        let list = |list: &[(u64, u64)]| Ok(Sizes::Split(list.to_vec()));
        assert_eq!(split("4k/10:64k/50:32k/40"), list(&[(4096, 10), (65536, 50), (32768, 40)]));
        assert_eq!(split("4k/50:1k/:32k/"), list(&[(4096, 100), (1024, 50), (32768, 50)]));
        assert_eq!(split("4k/100:8k/0"), list(&[(4096, 100)]));
        for text in ["4k/10", "4k/60:8k/60", "4k/x", "", "100/100", "4k/99999999999999999999"] {
            assert!(split(text).is_err(), "{text}");
        }
        assert_eq!(Sizes::parse_range("16k-4k", INTEGER), Ok(Sizes::Range(4096, 16384)));
        assert!(Sizes::parse_range("16k", INTEGER).is_err());
        assert!(Sizes::parse_one("0", INTEGER).is_err());
    }

    #[test]
    fn shares_are_as_asked_and_draws_fit() {
        let sizes = Sizes::parse_split("4k/10:64k/50:32k/40", INTEGER).unwrap();
        let mut rng = Rng::stream(1, "sizes");
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            match sizes.draw(65536, &mut rng) {
                4096 => counts[0] += 1,
                65536 => counts[1] += 1,
                _ => counts[2] += 1,
            }
        }
        for (count, percent) in counts.into_iter().zip([10, 50, 40]) {
            assert!(count.abs_diff(percent * 1000) < 700, "{counts:?}");
        }
        assert!((0..1000).all(|_| sizes.draw(40_000, &mut rng) <= 40_000));
        let range = Sizes::Range(4096, 16384);
        assert!((0..1000).all(|_| range.draw(9000, &mut rng) <= 8192));
        let drawn: std::collections::BTreeSet<_> =
            (0..1000).map(|_| range.draw(1 << 20, &mut rng)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [4096, 8192, 12288, 16384]);
    }
}
