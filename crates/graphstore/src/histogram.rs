//! How many vertices have which values.

use std::collections::{BTreeMap, HashMap};

use prism_graph::algorithms::Value;
use serde::Serialize;

/// Whole numbers below this are counted one by one, if there are no larger ones.
const EACH: u64 = 64;

/// Counts of values.
#[derive(Debug, Serialize)]
pub struct Histogram {
    /// What is counted: `vertices`, or the `groups` with the same label.
    pub of: &'static str,
    /// From small to large values, those that occur.
    pub rows: Vec<Row>,
    /// Vertices that were not reached.
    pub unreached: u64,
}

/// Values of a range.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The least value.
    pub from: f64,
    /// The values are below; `None` if they are `from` exactly.
    pub below: Option<f64>,
    /// How many there are.
    pub count: u64,
}

/// Counts values as they come.
#[derive(Debug)]
pub struct Counting {
    each: Option<[u64; EACH as usize]>,
    zeros: u64,
    /// Of values from 2^k to below 2^(k + 1), by k, and of the negatives of such values.
    powers: BTreeMap<(bool, i32), u64>,
    unreached: u64,
    labels: Option<HashMap<u64, u64>>,
}

impl Counting {
    /// Before the first value; `labels` if equal values are a group.
    pub fn new(labels: bool) -> Self {
        Self {
            each: Some([0; EACH as usize]),
            zeros: 0,
            powers: BTreeMap::new(),
            unreached: 0,
            labels: labels.then(HashMap::new),
        }
    }

    /// Counts a value.
    pub fn add(&mut self, value: Value) {
        match (&mut self.labels, value) {
            (Some(labels), Value::Whole(label)) => *labels.entry(label).or_insert(0) += 1,
            _ => self.count(value),
        }
    }

    fn count(&mut self, value: Value) {
        let real = match value {
            Value::Whole(value) if value == i64::MAX as u64 => f64::INFINITY,
            Value::Whole(value) => value as f64,
            Value::Real(value) => value,
        };
        if real.is_infinite() {
            self.unreached += 1;
            return;
        }
        match (value, &mut self.each) {
            (Value::Whole(value), Some(each)) if value < EACH => each[value as usize] += 1,
            _ => self.each = None,
        }
        if real == 0.0 {
            self.zeros += 1;
        } else {
            *self.powers.entry((real > 0.0, exponent(real))).or_insert(0) += 1;
        }
    }

    /// The labels of all groups with their sizes, in no order; none if values are no labels.
    pub fn groups(&self) -> impl Iterator<Item = (u64, u64)> {
        self.labels.iter().flatten().map(|(label, size)| (*label, *size))
    }

    /// After the last value.
    pub fn end(mut self) -> Histogram {
        let of = if self.labels.is_some() { "groups" } else { "vertices" };
        for size in self.labels.take().into_iter().flat_map(HashMap::into_values) {
            self.count(Value::Whole(size));
        }
        let rows = match self.each {
            Some(each) => {
                let counts = each.iter().enumerate().filter(|(_, count)| **count > 0);
                let row = |(value, &count)| Row { from: value as f64, below: None, count };
                counts.map(row).collect()
            }
            None => self.by_powers(),
        };
        Histogram { of, rows, unreached: self.unreached }
    }

    fn by_powers(&self) -> Vec<Row> {
        let power = |k: i32| 2_f64.powi(k);
        let row = |(&(positive, k), &count): (&(bool, i32), &u64)| match positive {
            true => Row { from: power(k), below: Some(power(k + 1)), count },
            // The least is not included here; a histogram of lengths is not the worse for it.
            false => Row { from: -power(k + 1), below: Some(-power(k)), count },
        };
        let mut rows: Vec<Row> = self.powers.iter().map(row).collect();
        if self.zeros > 0 {
            rows.push(Row { from: 0.0, below: None, count: self.zeros });
        }
        rows.sort_by(|a, b| a.from.total_cmp(&b.from));
        rows
    }
}

/// The largest k with 2^k at most the value without its sign; of subnormal values, of the least
/// normal one.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52 & 0x7ff) as i32).max(1) - 1023
}

impl Histogram {
    /// A line for each row.
    pub fn text(&self) -> String {
        let name = |row: &Row| match row.below {
            Some(below) => format!("{} to {}", short(row.from), short(below)),
            None => short(row.from),
        };
        let mut lines: Vec<(String, u64)> =
            self.rows.iter().map(|row| (name(row), row.count)).collect();
        if self.unreached > 0 {
            lines.push(("not reached".into(), self.unreached));
        }
        let heading = if self.of == "groups" { "groups by size" } else { "vertices by value" };
        let name = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let count = lines.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
        let most = self.rows.iter().map(|row| row.count).max().unwrap_or(0).max(self.unreached);
        let mut text = format!("  {heading}:\n");
        for (range, number) in lines {
            let bar = "#".repeat((number as f64 / most as f64 * 40.0).ceil() as usize);
            text.push_str(&format!("    {range:name$}  {number:>count$}  {bar}\n"));
        }
        text
    }
}

/// A number in few digits.
fn short(value: f64) -> String {
    if value != 0.0 && (value.abs() < 1e-3 || value.abs() >= 1e7) {
        format!("{value:.2e}")
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(labels: bool, values: &[Value]) -> Vec<(f64, Option<f64>, u64)> {
        let mut counting = Counting::new(labels);
        values.iter().for_each(|value| counting.add(*value));
        counting.end().rows.iter().map(|row| (row.from, row.below, row.count)).collect()
    }

    #[test]
    fn small_whole_numbers_are_counted_one_by_one() {
        let values = [3, 1, 3, i64::MAX as u64].map(Value::Whole);
        assert_eq!(rows(false, &values), [(1.0, None, 1), (3.0, None, 2)]);
    }

    #[test]
    fn other_numbers_are_counted_by_powers_of_two() {
        let values = [64, 0, 3, 2].map(Value::Whole);
        let expected = [(0.0, None, 1), (2.0, Some(4.0), 2), (64.0, Some(128.0), 1)];
        assert_eq!(rows(false, &values), expected);
        let values = [0.3, -1.0, 0.25, f64::INFINITY].map(Value::Real);
        assert_eq!(rows(false, &values), [(-2.0, Some(-1.0), 1), (0.25, Some(0.5), 2)]);
    }

    #[test]
    fn of_labels_the_sizes_of_groups_are_counted() {
        let values = [7, 9, 7, 8].map(Value::Whole);
        assert_eq!(rows(true, &values), [(1.0, None, 2), (2.0, None, 1)]);
    }
}
