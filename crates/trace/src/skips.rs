//! Counts lines and events that did not become requests, by reason.

/// Why a line or event did not become a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkipReason(pub &'static str);

/// How often each reason occurred, and where first. Lines are counted from 1; in a binary
/// format records are counted instead of lines.
#[derive(Clone, Debug, Default)]
pub struct Skips {
    rows: Vec<Skip>,
}

/// One row of [`Skips`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// Why.
    pub reason: SkipReason,
    /// How often.
    pub count: u64,
    /// Line of the first one, from 1.
    pub first_line: u64,
}

impl Skips {
    /// Counts one at `line`.
    pub fn add(&mut self, reason: SkipReason, line: u64) {
        self.add_many(reason, 1, line);
    }

    /// Counts `count` at `line`, for a line that reports several events.
    pub fn add_many(&mut self, reason: SkipReason, count: u64, line: u64) {
        match self.rows.iter_mut().find(|row| row.reason == reason) {
            Some(row) => {
                row.count = row.count.saturating_add(count);
                row.first_line = row.first_line.min(line);
            }
            None => self.rows.push(Skip { reason, count, first_line: line }),
        }
    }

    /// The rows, most frequent first, then by first line.
    #[must_use]
    pub fn rows(&self) -> Vec<Skip> {
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.count), row.first_line));
        rows
    }
}
