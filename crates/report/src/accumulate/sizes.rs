//! Request sizes: how many are exactly a power of two, and how many are between two powers.

use crate::chart::{Axis, BarLayout, Bars, Series};
use crate::unit::Unit;
use prism_base::Bytes;

/// One class for each power of two that fits into 64 bits.
const POWERS: usize = 64;

/// Counts of sizes by power of two. Sizes that are a power of two are counted apart from those
/// between two powers: most requests are a power of two, and a histogram that puts 4 KiB and
/// 7.5 KiB together would hide it.
///
/// Memory: 1 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeHistogram {
    zero: u64,
    /// At `k`: sizes of exactly 2^k.
    exact: [u64; POWERS],
    /// At `k`: sizes above 2^k and below 2^(k+1).
    between: [u64; POWERS],
}

/// A class of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeClass {
    /// No bytes at all.
    Zero,
    /// Exactly two to this power.
    Exactly(u32),
    /// More than two to this power, less than two to the next.
    Above(u32),
}

impl Default for SizeHistogram {
    fn default() -> Self {
        Self { zero: 0, exact: [0; POWERS], between: [0; POWERS] }
    }
}

impl SizeClass {
    /// The class of `size`.
    #[must_use]
    pub fn of(size: Bytes) -> Self {
        match size.0 {
            0 => Self::Zero,
            size if size.is_power_of_two() => Self::Exactly(size.ilog2()),
            size => Self::Above(size.ilog2()),
        }
    }

    /// `4 KiB`, or `> 4 KiB` for what lies between that and the next power.
    #[must_use]
    pub fn label(self) -> String {
        match self {
            Self::Zero => "0".into(),
            Self::Exactly(power) => Bytes(1 << power).to_string(),
            Self::Above(power) => format!("> {}", Bytes(1 << power)),
        }
    }
}

impl SizeHistogram {
    /// Counts a request of `size` bytes.
    pub fn record(&mut self, size: Bytes) {
        match SizeClass::of(size) {
            SizeClass::Zero => self.zero += 1,
            SizeClass::Exactly(power) => self.exact[power as usize] += 1,
            SizeClass::Above(power) => self.between[power as usize] += 1,
        }
    }

    /// How many sizes of `class` were counted.
    #[must_use]
    pub fn count(&self, class: SizeClass) -> u64 {
        match class {
            SizeClass::Zero => self.zero,
            SizeClass::Exactly(power) => self.exact.get(power as usize).copied().unwrap_or(0),
            SizeClass::Above(power) => self.between.get(power as usize).copied().unwrap_or(0),
        }
    }

    /// The classes that were seen, with their counts, from small to large.
    pub fn classes(&self) -> impl Iterator<Item = (SizeClass, u64)> {
        let powers = (0..POWERS as u32).flat_map(|k| [SizeClass::Exactly(k), SizeClass::Above(k)]);
        std::iter::once(SizeClass::Zero)
            .chain(powers)
            .map(|class| (class, self.count(class)))
            .filter(|&(_, count)| count > 0)
    }

    /// Several histograms as one chart over the classes that any of them saw.
    #[must_use]
    pub fn chart(
        histograms: &[(&str, &Self)],
        title: impl Into<String>,
        caption: impl Into<String>,
    ) -> Bars {
        let mut classes: Vec<SizeClass> =
            histograms.iter().flat_map(|(_, h)| h.classes().map(|(class, _)| class)).collect();
        // Zero, then each power before what lies above it.
        classes.sort_by_key(|class| match class {
            SizeClass::Zero => 0,
            SizeClass::Exactly(power) => 2 * power + 1,
            SizeClass::Above(power) => 2 * power + 2,
        });
        classes.dedup();
        let series = histograms.iter().map(|(name, histogram)| {
            let counts = classes.iter().map(|&class| Some(histogram.count(class) as f64));
            Series::new(*name, counts.collect())
        });
        Bars {
            title: title.into(),
            caption: caption.into(),
            layout: BarLayout::Columns,
            label_name: "request size".into(),
            y: Axis::linear("requests", Unit::Count),
            series: series.collect(),
            labels: classes.iter().map(|class| class.label()).collect(),
        }
    }
}
