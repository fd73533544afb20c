//! What a sweep found, in a few lines.

use std::collections::BTreeMap;

use prism_base::DataTable;
use prism_report::{Block, Document, Section, Table, Unit};
use serde::Serialize;

use crate::sweep::data_set::{DESIGN, ERROR};
use crate::sweep::study::Designs;

/// The results that are summed up, if designs have them.
const SHOWN: [(&str, &str, Unit); 9] = [
    ("write_amplification", "write amplification", Unit::Ratio),
    ("iops", "requests per second", Unit::PerSec),
    ("bytes_per_second", "data per second", Unit::BytesPerSec),
    ("read_p99_ns", "p99 of reads", Unit::Nanos),
    ("write_p99_ns", "p99 of writes", Unit::Nanos),
    ("latency_read_p99_ns", "p99 of reads in the drive", Unit::Nanos),
    ("latency_write_p99_ns", "p99 of writes in the drive", Unit::Nanos),
    ("wear_erases_mean", "erases of a block", Unit::Count),
    ("lifetime_days", "lifetime in days", Unit::Count),
];

/// Different errors that are listed.
const ERRORS_SHOWN: usize = 5;

/// The smallest, middle and largest value of a result.
#[derive(Clone, Debug, Serialize)]
struct Spread {
    result: &'static str,
    #[serde(skip)]
    label: &'static str,
    #[serde(skip)]
    unit: Unit,
    min: f64,
    min_design: u64,
    median: f64,
    max: f64,
    max_design: u64,
}

/// What a sweep found, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The number of designs, of which each has a row.
    designs: usize,
    /// Designs whose rows are from an earlier run.
    kept: usize,
    /// Designs that failed.
    failed: usize,
    /// Their errors, and how many designs have each.
    errors: BTreeMap<String, usize>,
    /// The settings that differ between designs.
    swept: Vec<String>,
    /// The hash of all inputs.
    hash: String,
    /// The columns of the data set: name and type.
    columns: Vec<(String, &'static str)>,
    results: Vec<Spread>,
}

impl Summary {
    /// The summary of the data set of `designs`, of which `kept` have rows from an earlier run.
    #[must_use]
    pub fn of(designs: &Designs, data: &DataTable, kept: usize) -> Self {
        let mut errors = BTreeMap::new();
        if let Some(column) = data.column(ERROR) {
            for error in (0..data.rows()).filter_map(|row| column.values.text(row)) {
                *errors.entry(error).or_insert(0) += 1;
            }
        }
        let columns = data.columns.iter();
        Self {
            designs: designs.designs.len(),
            kept,
            failed: errors.values().sum(),
            errors,
            swept: designs.swept.clone(),
            hash: designs.hash.clone(),
            columns: columns.map(|c| (c.name.clone(), c.values.type_name())).collect(),
            results: SHOWN.iter().filter_map(|shown| spread(data, shown)).collect(),
        }
    }

    /// The summary as text; `output` is the name of the data set.
    #[must_use]
    pub fn document(&self, output: &str) -> Document {
        let lead = format!(
            "{} designs, {} of them failed; {} columns in {output}.",
            self.designs,
            self.failed,
            self.columns.len()
        );
        let swept = match self.swept.as_slice() {
            [] => "one design".to_owned(),
            swept => swept.join(" x "),
        };
        let mut document = Document::new(format!("Sweep over {swept}"), lead);
        let mut notes = Vec::new();
        if self.kept > 0 {
            notes.push(format!("{} rows are from an earlier run, which was resumed.", self.kept));
        }
        for (error, count) in self.errors.iter().take(ERRORS_SHOWN) {
            notes.push(format!("{count} failed: {error}"));
        }
        if self.errors.len() > ERRORS_SHOWN {
            let more = self.errors.len() - ERRORS_SHOWN;
            notes.push(format!("{more} other errors are in the column {ERROR}."));
        }
        if !self.results.is_empty() {
            let lead = "Over all designs that did not fail; numbers of designs are those of the \
                        column design.";
            document = document.with(Section::new("Results", lead).with(self.table()));
        }
        if !notes.is_empty() {
            let section = Section::new("What to keep in mind", "");
            document = document.with(section.with(Block::Notes(notes)));
        }
        document
    }

    fn table(&self) -> Table {
        Table::listing(&self.results)
            .text("result", |of| of.label)
            .text("least", |of| of.unit.format(of.min))
            .number("least: design", Unit::Count, |of| of.min_design)
            .text("median", |of| of.unit.format(of.median))
            .text("most", |of| of.unit.format(of.max))
            .number("most: design", Unit::Count, |of| of.max_design)
            .table("Spread of results")
    }
}

/// The value in the middle; of two, their mean.
fn median(sorted: &[(f64, usize)]) -> f64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2].0, sorted[sorted.len() / 2].0);
    low + (high - low) / 2.0
}

fn spread(data: &DataTable, shown: &(&'static str, &'static str, Unit)) -> Option<Spread> {
    let &(result, label, unit) = shown;
    let (column, designs) = (data.column(result)?, data.column(DESIGN)?);
    let numbers = (0..data.rows()).filter_map(|row| Some((column.values.number(row)?, row)));
    let mut numbers: Vec<(f64, usize)> = numbers.collect();
    // Of equal values the first design is named, for the least and for the most.
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (&(min, min_row), &(max, _)) = (numbers.first()?, numbers.last()?);
    let max_row = numbers.iter().find(|(number, _)| *number == max)?.1;
    let number = |row: usize| designs.values.number(row).map_or(0, |number| number as u64);
    Some(Spread {
        result,
        label,
        unit,
        min,
        min_design: number(min_row),
        median: median(&numbers),
        max,
        max_design: number(max_row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::{Column, Values};

    #[test]
    fn the_first_of_equal_values_is_named() {
        let column = |name: &str, values| Column { name: name.into(), values };
        let ratios = vec![Some(2.0), Some(1.0), None, Some(4.0), Some(1.0), Some(4.0)];
        let data = DataTable {
            columns: vec![
                column(DESIGN, Values::Ints((0..6).map(Some).collect())),
                column("write_amplification", Values::Floats(ratios)),
                column("iops", Values::Floats(vec![None; 6])),
            ],
            facts: vec![],
        };
        let found = spread(&data, &SHOWN[0]).unwrap();
        assert_eq!((found.min, found.min_design), (1.0, 1));
        assert_eq!((found.max, found.max_design), (4.0, 3));
        assert_eq!(found.median, 2.0);
        assert_eq!(median(&[(1.0, 0), (2.0, 1)]), 1.5);
        assert!(spread(&data, &SHOWN[1]).is_none() && spread(&data, &SHOWN[3]).is_none());
    }
}
