//! Divides the amounts of a heat map into shades, for the page and for the terminal.

use crate::unit::Unit;

/// The largest ratio between the amounts of a class and those of the class below it.
const CLASS_RATIO_MAX: f64 = 8.0;

/// The classes of amounts of one panel, equally wide on a log scale.
pub(crate) struct Shades {
    /// The least amount that is distinguished from less.
    low: f64,
    high: f64,
    count: usize,
}

impl Shades {
    /// `count` classes that cover the largest amount down to the smallest, but at most a fixed
    /// ratio: a single tiny amount must not put all others into the same shade.
    pub fn covering(cells: &[u64], count: usize) -> Self {
        let amounts = cells.iter().copied().filter(|&cell| cell > 0);
        let high = amounts.clone().max().unwrap_or(1) as f64;
        let low = amounts.min().unwrap_or(1) as f64;
        Self { low: low.max(high / CLASS_RATIO_MAX.powi(count as i32)), high, count }
    }

    /// The class of `amount`: 0 for zero, otherwise from 1 to the number of classes.
    pub fn class(&self, amount: u64) -> usize {
        if amount == 0 {
            return 0;
        }
        let span = (self.high / self.low).ln();
        let place = (amount as f64 / self.low).ln() / span.max(f64::MIN_POSITIVE);
        1 + ((place * self.count as f64) as usize).min(self.count - 1)
    }

    /// Where each class begins, and where the last one ends.
    pub fn edges(&self, unit: Unit) -> Vec<String> {
        let ratio = self.high / self.low;
        let edge = |class: usize| {
            let edge = self.low * ratio.powf(class as f64 / self.count as f64);
            unit.format(if unit == Unit::Count { edge.round() } else { edge })
        };
        (0..=self.count).map(edge).collect()
    }

    /// The range of each class, the lowest first. The first class holds smaller amounts too.
    pub fn labels(&self, unit: Unit) -> Vec<String> {
        let edges = self.edges(unit);
        let label = |class: usize| match class {
            0 => format!("up to {}", edges[1]),
            _ => format!("{} to {}", edges[class], edges[class + 1]),
        };
        (0..self.count).map(label).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_what_is_there() {
        let shades = Shades::covering(&[0, 4096 * 64, 4096], 6);
        assert_eq!(shades.class(0), 0);
        assert_eq!(shades.class(4096), 1);
        assert_eq!(shades.class(4096 * 3), 2);
        assert_eq!(shades.class(4096 * 64), 6);
        let labels = shades.labels(Unit::Bytes);
        assert_eq!(labels[0], "up to 8 KiB");
        assert_eq!(labels[5], "128 KiB to 256 KiB");
        assert_eq!(Shades::covering(&[7], 6).class(7), 1);
        assert_eq!(Shades::covering(&[], 6).class(0), 0);
        let wide = Shades::covering(&[1, 1 << 30], 6);
        assert_eq!(wide.class(1), 1, "amounts below the scale are in the first class");
        assert_eq!(wide.class(1 << 25), 5);
    }
}
