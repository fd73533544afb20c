//! Placement by how often a unit was recently written: separates hot data from cold data
//! without knowledge of the future.

use prism_base::Zeroed;
use prism_trace::{Op, Record};

use super::Rewrite;
use super::units::Units;

/// The mean count at which all counts are halved, so that old writes lose weight.
const MEAN_MAX: usize = 8;

/// Counts the writes of each unit, and derives the class of a unit from its count and the
/// mean count over all units that were ever written. With four classes, the class is 0 below
/// half of the mean, 1 below the mean, 2 below twice the mean, and 3 from there on. Counts
/// are kept between passes, as in a drive that stays in use.
pub(in crate::what_if) struct HotCold {
    units: Units,
    classes: u16,
    /// Writes of each unit, halved from time to time; 0 only if the unit was never written.
    counts: Zeroed<u8>,
    /// Units that were ever written, in the order of their first write.
    written: Vec<u32>,
    /// The sum of all counts.
    sum: usize,
}

impl HotCold {
    /// `classes` is from 2 to 4.
    pub(in crate::what_if) fn new(units: Units, classes: u16) -> Self {
        let counts = Zeroed::new(units.count());
        Self { units, classes, counts, written: Vec::new(), sum: 0 }
    }

    /// Counts a write of `unit` and returns the unit's class.
    fn class_of(&mut self, unit: usize) -> u16 {
        let count = &mut self.counts[unit];
        if *count == 0 {
            self.written.push(unit as u32);
        }
        let more = count.saturating_add(1);
        self.sum += usize::from(more - *count);
        *count = more;
        // Class k begins at the mean times 2^(k - classes / 2).
        let below = self.classes / 2;
        let scaled = (usize::from(more) * self.written.len()) << below;
        let class = (1..self.classes).take_while(|k| scaled >= self.sum << k).count() as u16;
        if self.sum >= MEAN_MAX * self.written.len() {
            self.halve_counts();
        }
        class
    }

    /// Halves all counts, but not below 1.
    fn halve_counts(&mut self) {
        self.sum = 0;
        for &unit in &self.written {
            let count = &mut self.counts[unit as usize];
            *count = (*count / 2).max(1);
            self.sum += usize::from(*count);
        }
    }
}

impl Rewrite for HotCold {
    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        if record.op != Op::Write {
            return out.push(*record);
        }
        let units = self.units;
        units.divide(record, |unit| self.class_of(unit), out);
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;
    use prism_trace::VecSource;

    use super::super::{Rewritten, testing};
    use super::*;

    #[test]
    fn often_written_units_get_a_higher_class() {
        // Unit 0 is written seven times as often as each of units 1 to 7.
        let mut trace = String::new();
        for i in 0..70 {
            let (hot, cold) = (2 * i, 2 * i + 1);
            trace += &format!("{hot} w 0+4; {cold} w {}+4; ", 4 * (1 + i % 7));
        }
        let mut source = VecSource::new(testing::records(&trace));
        let heat = HotCold::new(Units::new(Bytes(4096), 64), 4);
        let mut rewritten = Rewritten::new(&mut source, Some(Box::new(heat)));
        testing::pass(&mut rewritten);
        let second_pass = testing::pass(&mut rewritten);
        for record in second_pass {
            // The mean is 140 / 8 = 17.5. Unit 0 has 70 writes, four times the mean. The
            // others have 10, just above half of the mean.
            let expected = if record.offset == 0 { 3 } else { 1 };
            assert_eq!(record.stream, expected, "{record:?}");
        }
    }

    #[test]
    fn classes_are_bounded_by_multiples_of_the_mean() {
        let mut heat = HotCold::new(Units::new(Bytes(4096), 64), 4);
        let check = |heat: &mut HotCold, unit, expected: u16| {
            assert_eq!(heat.class_of(unit), expected, "unit {unit}: {:?}", &heat.counts[..4]);
        };
        // The counts are 1, then 1 1, then 2 1, then 3 1; the means are 1, 1, 1.5 and 2.
        check(&mut heat, 0, 2);
        check(&mut heat, 1, 2);
        check(&mut heat, 0, 2);
        check(&mut heat, 0, 2);
        // Counts 4 1 with a mean of 2.5; then unit 2 of counts 4 1 1 with a mean of 2 is at
        // half of the mean.
        check(&mut heat, 0, 2);
        check(&mut heat, 2, 1);
        // Counts 5 1 1 with a mean of 7 / 3: unit 0 is above twice the mean.
        check(&mut heat, 0, 3);
        // With two classes, the upper one begins at the mean.
        let mut two = HotCold::new(Units::new(Bytes(4096), 64), 2);
        check(&mut two, 0, 1);
        check(&mut two, 0, 1);
        check(&mut two, 1, 0);
    }

    #[test]
    fn counts_are_halved_at_the_maximum_mean() {
        let mut heat = HotCold::new(Units::new(Bytes(4096), 64), 4);
        for _ in 0..MEAN_MAX {
            heat.class_of(3);
        }
        assert_eq!((heat.counts[3], heat.sum), (MEAN_MAX as u8 / 2, MEAN_MAX / 2));
    }
}
