//! Runs designs on the cores of this machine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::env::{Outside, Step};
use crate::error::PresentError;
use crate::sweep::design::{Design, Row, SweepEnv};

/// One of several equal parts of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: u64,
    /// The number of parts.
    pub of: u64,
}

impl Part {
    /// All designs.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Reads `3/8`.
    ///
    /// # Errors
    /// What is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            Some(Self { number: number.parse().ok()?, of: of.parse().ok()? })
        });
        let valid = numbers.filter(|part| (1..=part.of).contains(&part.number));
        valid.ok_or_else(|| format!("{text:?} is no part; write for example 1/8 to 8/8"))
    }

    /// Whether the design of this number belongs to the part. Neighbours, which take about as long
    /// as each other, are in different parts; so are those that are as far from each other as
    /// there are parts, which in a grid often have a value in common.
    #[must_use]
    pub fn has(self, number: u64) -> bool {
        (number + number / self.of) % self.of == self.number - 1
    }
}

/// Reads a row that [`Row`] wrote as JSON.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_row(text: &str) -> Result<Row, PresentError> {
    serde_json::from_str(text)
        .map_err(|error| PresentError::refused(format!("this is no row of a sweep: {error}")))
}

/// Runs those of `designs` in `part` that have no row in `kept`, `threads` at once. Each new row is
/// passed to `keep` as soon as it is there. Returns all rows, kept ones too.
///
/// # Errors
/// [`PresentError`] of `keep`, or of a file that cannot be read; designs that have begun are
/// finished first.
pub fn execute(
    designs: &[Design],
    part: Part,
    kept: Vec<Row>,
    threads: usize,
    env: &impl SweepEnv,
    keep: impl Fn(&Row) -> Result<(), Outside> + Sync,
) -> Result<Vec<Row>, PresentError> {
    let mut rows: BTreeMap<u64, Row> = kept.into_iter().map(|row| (row.number, row)).collect();
    let of_part = designs.iter().filter(|design| part.has(design.number));
    // The caller keeps rows of these inputs only.
    let (done, mut to_do): (Vec<&Design>, Vec<&Design>) =
        of_part.partition(|design| rows.contains_key(&design.number));
    // Few traces are held at once.
    to_do.sort_by_cached_key(|design| design.trace());
    let (done, total) = (done.len() as u64, Some((done.len() + to_do.len()) as u64));
    env.show(Step::Begin { label: "simulating:", things: "designs", total });
    env.show(Step::Reached(done));
    let failed = AtomicBool::new(false);
    let one = |design: &Design| -> Result<Option<Row>, PresentError> {
        // After a failure of the system the other designs would be lost, too. If the caller stops,
        // the display below unwinds.
        if failed.load(Ordering::Relaxed) || !env.keeps_going() {
            return Ok(None);
        }
        let row = design.run(env).and_then(|row| {
            keep(&row).map_err(PresentError::Outside)?;
            Ok(row)
        });
        failed.fetch_or(row.is_err(), Ordering::Relaxed);
        row.map(Some)
    };
    let one = &one;
    let work: Vec<_> = to_do.into_iter().map(|design| move || one(design)).collect();
    let finished = |more: usize| env.show(Step::Reached(done + more as u64));
    let results = env.run_on(threads, work, finished);
    env.show(Step::End);
    for row in results {
        if let Some(row) = row? {
            rows.insert(row.number, row);
        }
    }
    Ok(rows.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_in_one_part() {
        for text in ["", "1", "0/8", "9/8", "1/0", "a/b", "-1/2"] {
            assert!(Part::parse(text).is_err(), "{text}");
        }
        let parts: Vec<Part> = (1..=3).map(|n| Part::parse(&format!("{n}/3")).unwrap()).collect();
        for number in 0..20 {
            assert_eq!(parts.iter().filter(|part| part.has(number)).count(), 1);
            assert!(Part::WHOLE.has(number));
        }
        let first: Vec<u64> = (0..12).filter(|&number| parts[0].has(number)).collect();
        assert_eq!(first, [0, 5, 7, 9], "not each third one, which may have the same value");
    }
}
