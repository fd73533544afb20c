//! The uniform data lifetime rule: how evenly writes are distributed over the units.

use std::collections::BTreeMap;

/// The number of points in the curve of writes by rank.
const POINTS: u64 = 1000;

/// The result of the rule: the distribution of writes over the units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LifetimeFindings {
    /// (number of writes, units with that number of writes), in ascending order of writes.
    pub counts: Vec<(u32, u64)>,
    /// Units that were written at least once.
    pub units: u64,
    /// Writes to all units.
    pub writes: u64,
}

impl LifetimeFindings {
    /// The distribution, given the number of writes to each unit. Units that were never
    /// written are ignored.
    #[must_use]
    pub fn of(writes: impl IntoIterator<Item = u32>) -> Self {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        // Most units are written only a few times; these are counted in an array.
        let mut few = [0u64; 256];
        for count in writes {
            match few.get_mut(count as usize) {
                Some(units) => *units += 1,
                None => *counts.entry(count).or_default() += 1,
            }
        }
        counts.extend((1..256).map(|n| (n, few[n as usize])).filter(|&(_, units)| units > 0));
        let counts: Vec<_> = counts.into_iter().collect();
        Self {
            units: counts.iter().map(|&(_, units)| units).sum(),
            writes: counts.iter().map(|&(count, units)| u64::from(count) * units).sum(),
            counts,
        }
    }

    /// The Gini coefficient of the number of writes: 0 if all units are written equally
    /// often, near 1 if a single unit gets all writes. `None` if no unit was written.
    #[must_use]
    pub fn gini(&self) -> Option<f64> {
        if self.units == 0 {
            return None;
        }
        // Twice the area under the Lorenz curve, in units x writes.
        let (mut before, mut area) = (0u64, 0f64);
        for &(count, units) in &self.counts {
            let sum = u64::from(count) * units;
            area += units as f64 * (2 * before + sum) as f64;
            before += sum;
        }
        Some(1.0 - area / (self.units as f64 * self.writes as f64))
    }

    /// 1 - the Gini coefficient.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.gini().map(|gini| 1.0 - gini)
    }

    /// Mean number of writes per unit that was written.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.units == 0 { 0.0 } else { self.writes as f64 / self.units as f64 }
    }

    /// The share of all writes that go to the most written units. `top` is the share of the
    /// units that is considered; it is at least one unit.
    #[must_use]
    pub fn share_of_top(&self, top: f64) -> Option<f64> {
        if self.writes == 0 {
            return None;
        }
        let mut left = ((top * self.units as f64).round() as u64).max(1);
        let mut sum = 0;
        for &(count, units) in self.counts.iter().rev() {
            let taken = units.min(left);
            sum += taken * u64::from(count);
            left -= taken;
        }
        Some(sum as f64 / self.writes as f64)
    }

    /// The number of writes by rank, in descending order: (rank / units, writes). At most
    /// 1001 points.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, u32)> {
        let mut curve = Vec::new();
        let (mut rank, mut point) = (0, 0);
        for &(count, units) in self.counts.iter().rev() {
            while point < POINTS && point * self.units / POINTS < rank + units {
                let at = point * self.units / POINTS;
                if curve.last().is_none_or(|&(x, _)| x < at as f64 / self.units as f64) {
                    curve.push((at as f64 / self.units as f64, count));
                }
                point += 1;
            }
            rank += units;
        }
        if let Some(&(least, _)) = self.counts.first() {
            curve.push((1.0, least));
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Rng;

    #[test]
    fn hand_computed_example() {
        let even = LifetimeFindings::of([0, 3, 3, 0, 3, 3]);
        assert_eq!((even.units, even.writes, even.gini()), (4, 12, Some(0.0)));
        // Four units with 1, 1, 1 and 7 writes: the Lorenz area is (1 + 3 + 5 + 13) / 40.
        let one = LifetimeFindings::of([1, 7, 1, 1]);
        assert!((one.gini().unwrap() - (1.0 - 22.0 / 40.0)).abs() < 1e-12);
        assert_eq!(one.share_of_top(0.25), Some(0.7));
        assert_eq!(one.share_of_top(0.5), Some(0.8));
        assert_eq!(one.share_of_top(0.01), Some(0.7), "at least one unit");
        assert_eq!(one.curve(), [(0.0, 7), (0.25, 1), (0.5, 1), (0.75, 1), (1.0, 1)]);
        // The 80/20 rule.
        let rule: Vec<u32> = (0..1000).map(|i| if i < 200 { 16 } else { 1 }).collect();
        assert!((LifetimeFindings::of(rule).gini().unwrap() - 0.6).abs() < 1e-12);
        assert_eq!(LifetimeFindings::of([0, 0]).score(), None);
    }

    #[test]
    fn gini_agrees_with_its_definition() {
        let mut rng = Rng::stream(3, "gini");
        let counts: Vec<u32> = (0..200).map(|_| 1 + rng.below(400) as u32).collect();
        let (mut differences, mut sum) = (0.0, 0.0);
        for &a in &counts {
            sum += f64::from(a);
            for &b in &counts {
                differences += f64::from(a.abs_diff(b));
            }
        }
        let n = counts.len() as f64;
        let expected = differences / (2.0 * n * sum);
        assert!((LifetimeFindings::of(counts).gini().unwrap() - expected).abs() < 1e-12);
    }
}
