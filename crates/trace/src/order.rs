//! Sorts items by time within a bounded window.
//!
//! Tools merge the events of several CPUs only roughly, so an event may be printed a little
//! after later ones. A queue holds the items that arrived in order, and a heap the few that
//! arrived late.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use prism_base::Nanos;

use crate::error::TraceError;
use crate::sink::DISORDER_NS;

/// The most items that are held: tracers cannot record more than a million events within
/// one second, and at about 100 bytes each they take 100 MB. When more arrive, the oldest
/// leave early.
pub const HELD_MAX: usize = 1 << 20;

/// An item with a time of the source's clock.
pub trait Timed {
    /// The time in nanoseconds.
    fn time_ns(&self) -> i64;
}

/// Holds items until no earlier one can arrive. Equal times keep the order of arrival.
#[derive(Debug)]
pub struct Orderer<T> {
    window_ns: i64,
    in_order: VecDeque<T>,
    late: BinaryHeap<Late<T>>,
    arrivals: u64,
    /// Items that came later than [`DISORDER_NS`] allows.
    far: u64,
    newest_ns: i64,
    left_ns: i64,
}

#[derive(Debug)]
struct Late<T> {
    time_ns: i64,
    arrival: u64,
    item: T,
}

impl<T> Ord for Late<T> {
    /// Reversed, because the heap of the standard library gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time_ns, other.arrival).cmp(&(self.time_ns, self.arrival))
    }
}

impl<T> PartialOrd for Late<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Late<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Late<T> {}

impl<T: Timed> Orderer<T> {
    /// Corrects up to `window_ns` of disorder.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        Self {
            window_ns: i64::try_from(window_ns).unwrap_or(i64::MAX),
            in_order: VecDeque::new(),
            late: BinaryHeap::new(),
            arrivals: 0,
            far: 0,
            newest_ns: i64::MIN,
            left_ns: i64::MIN,
        }
    }

    /// Takes an item read at `line`.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if it is further back than the window, or before an
    /// item that has already left.
    pub fn push(&mut self, item: T, line: u64) -> Result<(), TraceError> {
        let time_ns = item.time_ns();
        if time_ns >= self.newest_ns {
            self.newest_ns = time_ns;
            self.in_order.push_back(item);
            return Ok(());
        }
        let back = self.newest_ns.abs_diff(time_ns);
        let window = self.window_ns.unsigned_abs();
        let is_full = back <= window;
        if !is_full || time_ns < self.left_ns {
            let held = if is_full { self.newest_ns.abs_diff(self.left_ns) } else { window };
            let (back, window) = (Nanos(back), Nanos(held));
            return Err(TraceError::TimeRunsBackwards { line, back, window, is_full });
        }
        self.arrivals += 1;
        self.far += u64::from(back > DISORDER_NS);
        self.late.push(Late { time_ns, arrival: self.arrivals, item });
        Ok(())
    }

    /// Removes the next item if no earlier one can arrive any more; any item if `at_end`.
    pub fn pop(&mut self, at_end: bool) -> Option<T> {
        let front = self.in_order.front().map(Timed::time_ns);
        let late = self.late.peek().map(|late| late.time_ns);
        // An item is late only relative to a later one in the queue, so at equal times the one
        // in the queue arrived first.
        let from_queue = match (front, late) {
            (None, None) => return None,
            (Some(front), Some(late)) => front <= late,
            (front, _) => front.is_some(),
        };
        let time_ns = if from_queue { front } else { late }?;
        let safe_ns = self.newest_ns.saturating_sub(self.window_ns);
        if !at_end && time_ns >= safe_ns && self.held() <= HELD_MAX {
            return None;
        }
        self.left_ns = time_ns;
        if from_queue { self.in_order.pop_front() } else { self.late.pop().map(|late| late.item) }
    }

    /// How many items came more than [`DISORDER_NS`] after later ones.
    #[must_use]
    pub fn far(&self) -> u64 {
        self.far
    }

    fn held(&self) -> usize {
        self.in_order.len() + self.late.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Clone, Copy)]
    struct At(i64, u32);

    impl Timed for At {
        fn time_ns(&self) -> i64 {
            self.0
        }
    }

    fn order(window: u64, times: &[i64]) -> Result<Vec<At>, TraceError> {
        let mut orderer = Orderer::new(window);
        let mut out = Vec::new();
        for (place, &time) in times.iter().enumerate() {
            orderer.push(At(time, place as u32), place as u64 + 1)?;
            while let Some(item) = orderer.pop(false) {
                out.push(item);
            }
        }
        while let Some(item) = orderer.pop(true) {
            out.push(item);
        }
        Ok(out)
    }

    #[test]
    fn sorts_stably_within_the_window() {
        let mut state = 7_u64;
        let times: Vec<i64> = (0..5_000)
            .map(|step| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                step * 10 + (state >> 60) as i64 * 5
            })
            .collect();
        let mut expected: Vec<At> =
            times.iter().enumerate().map(|(place, &time)| At(time, place as u32)).collect();
        expected.sort_by_key(|item| item.0);
        assert_eq!(order(100, &times), Ok(expected));
    }

    #[test]
    fn refuses_what_is_too_late() {
        let error = |line, back, window, is_full| {
            let (back, window) = (Nanos(back), Nanos(window));
            Err(TraceError::TimeRunsBackwards { line, back, window, is_full })
        };
        assert_eq!(order(100, &[0, 1_000, 899]), error(3, 101, 100, false));
        assert!(order(100, &[0, 1_000, 900]).is_ok());
        // More than can be held: the oldest has left, and nothing before it can be sorted in.
        let mut times: Vec<i64> = (0..HELD_MAX as i64 + 10).collect();
        times.push(0);
        let (line, back) = (times.len() as u64, HELD_MAX as u64 + 9);
        assert_eq!(order(u64::MAX, &times), error(line, back, HELD_MAX as u64, true));
    }
}
