//! Puts records into the order of their issue times within a bounded window.

use std::collections::VecDeque;

use crate::error::TraceError;
use crate::record::{OptTime, Record};

/// Holds back records until none can arrive that belongs before them.
#[derive(Debug)]
pub struct Orderer {
    window_ns: u64,
    held: VecDeque<Record>,
    origin_ns: Option<i64>,
    newest_ns: i64,
    left_ns: i64,
}

impl Orderer {
    /// Records held at most; when more arrive within one window the oldest leaves early.
    pub const HELD_MAX: usize = 1 << 20;

    /// Puts right up to `window_ns` of disorder.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns,
            held: VecDeque::new(),
            origin_ns: None,
            newest_ns: i64::MIN,
            left_ns: i64::MIN,
        }
    }

    /// Takes a record read at `line`, in the source's own time.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] beyond the window.
    pub fn push(&mut self, record: Record, line: u64) -> Result<(), TraceError> {
        let time = record.issue_ns;
        let back = self.newest_ns.saturating_sub(time);
        if self.newest_ns != i64::MIN && back > self.window_ns as i64 || time < self.left_ns {
            return Err(TraceError::TimeRunsBackwards {
                line,
                back_ns: back as u64,
                window_ns: self.window_ns,
            });
        }
        self.newest_ns = self.newest_ns.max(time);
        let mut place = self.held.len();
        while place > 0 && self.held[place - 1].issue_ns > time {
            place -= 1;
        }
        self.held.insert(place, record);
        Ok(())
    }

    /// Moves out what cannot be overtaken any more; everything if `at_end`.
    pub fn drain(&mut self, at_end: bool, out: &mut Vec<Record>) {
        let safe = self.newest_ns.saturating_sub(self.window_ns as i64);
        while let Some(first) = self.held.front() {
            if !at_end && first.issue_ns >= safe && self.held.len() <= Self::HELD_MAX {
                break;
            }
            let mut record = self.held.pop_front().expect("front was there");
            self.left_ns = record.issue_ns;
            let origin = *self.origin_ns.get_or_insert(record.issue_ns);
            let shift = |time: OptTime| time.get().map_or(time, |t| OptTime::at(t - origin));
            record.issue_ns -= origin;
            record.queue = shift(record.queue);
            record.complete = shift(record.complete);
            out.push(record);
        }
    }
}
