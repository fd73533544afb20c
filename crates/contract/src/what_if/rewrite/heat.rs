//! Placement by how often a unit was written lately: hot and cold data apart, without any
//! knowledge of the future.

use prism_base::Zeroed;
use prism_trace::{Op, Record};

use super::Rewrite;
use super::units::Units;

/// The mean count at which all counts are halved, so that old heat fades.
const MEAN_MAX: usize = 8;

/// Counts writes of each unit. The class is how the count compares with the mean over the
/// units that were ever written: with four classes it is below half of it, below it, below
/// twice it, or above. What was learnt stays over passes, as it would in a drive that runs
/// on.
pub(in crate::what_if) struct HotCold {
    units: Units,
    classes: u16,
    /// Writes of each unit, halved now and then; 0 only if there was none.
    counts: Zeroed<u8>,
    /// Units that were written, in the order of their first write.
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

    /// Counts a write of `unit`, whose class is returned.
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
            self.fade();
        }
        class
    }

    fn fade(&mut self) {
        self.sum = 0;
        for &unit in &self.written {
            let count = &mut self.counts[unit as usize];
            *count = (*count / 2).max(1);
            self.sum += usize::from(*count);
        }
    }
}

impl Rewrite for HotCold {
    fn restart(&mut self) {}

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        if record.op != Op::Write {
            return out.push(*record);
        }
        let units = self.units;
        units.divide(record, |unit| self.class_of(unit), out);
    }

    fn finish(&mut self, _: &mut Vec<Record>) {}
}
