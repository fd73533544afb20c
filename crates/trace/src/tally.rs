//! Requests and bytes by device, process and phase, for the tables next to the totals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Op, Record};
use crate::symbols::{Symbol, Symbols};

/// Requests and bytes of one device, process or phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Its name; empty if the trace does not contain it.
    pub name: String,
    /// Reads, writes, discards and write-zeroes.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub discards: u64,
    /// Write-zeroes.
    pub write_zeroes: u64,
    /// Flushes, which are no requests.
    pub flushes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes discarded.
    pub bytes_discarded: u64,
    /// Bytes that write-zeroes set to zero, without a transfer of data.
    pub bytes_zeroed: u64,
}

impl Tally {
    fn add(&mut self, record: &Record) {
        match record.op {
            Op::Read => {
                self.reads += 1;
                self.bytes_read = self.bytes_read.saturating_add(record.len);
            }
            Op::Write => {
                self.writes += 1;
                self.bytes_written = self.bytes_written.saturating_add(record.len);
            }
            Op::Discard => {
                self.discards += 1;
                self.bytes_discarded = self.bytes_discarded.saturating_add(record.len);
            }
            Op::WriteZeroes => {
                self.write_zeroes += 1;
                self.bytes_zeroed = self.bytes_zeroed.saturating_add(record.len);
            }
            Op::Flush => {
                self.flushes += 1;
                return;
            }
        }
        self.requests += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.reads += other.reads;
        self.writes += other.writes;
        self.discards += other.discards;
        self.write_zeroes += other.write_zeroes;
        self.flushes += other.flushes;
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
        self.bytes_discarded = self.bytes_discarded.saturating_add(other.bytes_discarded);
        self.bytes_zeroed = self.bytes_zeroed.saturating_add(other.bytes_zeroed);
    }
}

/// Tallies by name. There are at most as many as the trace has symbols.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    by_symbol: BTreeMap<Symbol, Tally>,
}

impl Tallies {
    /// The maximum number of rows; further ones are summed up in one row `(other)`.
    pub const ROWS_MAX: usize = 64;

    /// Counts `record` for `symbol`.
    pub fn add(&mut self, symbol: Symbol, record: &Record) {
        self.by_symbol.entry(symbol).or_default().add(record);
    }

    /// The names, in the order of their first appearance, without the unknown one.
    #[must_use]
    pub fn names(&self, symbols: &Symbols) -> Vec<String> {
        let known = self.by_symbol.keys().filter(|&&symbol| symbol != Symbol::NONE);
        known.map(|&symbol| symbols.name(symbol).to_owned()).collect()
    }

    /// The rows in the order in which their names first appeared.
    #[must_use]
    pub fn rows(&self, symbols: &Symbols) -> Vec<Tally> {
        fold(self.named(symbols))
    }

    /// The rows, most bytes first, then by name.
    #[must_use]
    pub fn largest(&self, symbols: &Symbols) -> Vec<Tally> {
        let mut rows = self.named(symbols);
        rows.sort_by(|a, b| {
            let weight = |tally: &Tally| {
                std::cmp::Reverse((tally.bytes_read + tally.bytes_written, tally.requests))
            };
            weight(a).cmp(&weight(b)).then_with(|| a.name.cmp(&b.name))
        });
        fold(rows)
    }

    fn named(&self, symbols: &Symbols) -> Vec<Tally> {
        let rows = self.by_symbol.iter();
        rows.map(|(&symbol, tally)| Tally {
            name: symbols.name(symbol).to_owned(),
            ..tally.clone()
        })
        .collect()
    }
}

fn fold(mut rows: Vec<Tally>) -> Vec<Tally> {
    if rows.len() > Tallies::ROWS_MAX {
        let mut other = Tally { name: "(other)".into(), ..Tally::default() };
        for row in rows.drain(Tallies::ROWS_MAX - 1..) {
            other.merge(&row);
        }
        rows.push(other);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sums_and_the_rest_is_not_lost() {
        let mut symbols = Symbols::new();
        let mut tallies = Tallies::default();
        for i in 0..100u64 {
            let symbol = symbols.intern(&format!("p{i:03}"));
            tallies.add(symbol, &Record::new(Op::Write, 0, 0, (i + 1) * 512));
            tallies.add(symbol, &Record::new(Op::Flush, 0, 0, 0));
            tallies.add(symbol, &Record::new(Op::WriteZeroes, 0, 0, 4096));
        }
        let rows = tallies.largest(&symbols);
        assert_eq!(rows.len(), Tallies::ROWS_MAX);
        assert_eq!((rows[0].name.as_str(), rows[0].bytes_written), ("p099", 51_200));
        assert_eq!(rows[63].name, "(other)");
        let sum = |of: fn(&Tally) -> u64| rows.iter().map(of).sum::<u64>();
        assert_eq!(sum(|row| row.requests), 200);
        assert_eq!(sum(|row| row.write_zeroes), 100);
        assert_eq!(sum(|row| row.bytes_zeroed), 409_600);
        assert_eq!(sum(|row| row.flushes), 100);
        assert_eq!(sum(|row| row.bytes_written), 512 * 5050);
        assert_eq!(tallies.rows(&symbols)[0].name, "p000");
        assert_eq!(tallies.names(&symbols).len(), 100);
    }
}
