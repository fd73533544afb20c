//! Group commit: replaces the flushes of a window with a single one.

use prism_base::Nanos;
use prism_trace::{Flags, Op, Record};

use super::{Rewrite, after, is_barrier, issued_at};

/// Removes flushes, FUA and preflushes from the trace. The first of them opens a window; one
/// flush is inserted at the end of the window and covers all that were removed in it.
pub(in crate::what_if) struct GroupCommit {
    window: Nanos,
    /// The flush at the end of the open window.
    flush: Option<Record>,
    last_ns: i64,
}

impl GroupCommit {
    pub(in crate::what_if) fn new(window: Nanos) -> Self {
        Self { window, flush: None, last_ns: i64::MIN }
    }
}

impl Rewrite for GroupCommit {
    fn restart(&mut self) {
        debug_assert!(self.flush.is_none());
        self.last_ns = i64::MIN;
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        self.last_ns = record.issue_ns;
        if let Some(flush) = self.flush.take_if(|flush| flush.issue_ns <= record.issue_ns) {
            out.push(flush);
        }
        if !is_barrier(record) {
            return out.push(*record);
        }
        let own = Flags(Flags::FUA.0 | Flags::PREFLUSH.0);
        let record = Record { flags: Flags(record.flags.0 & !own.0), ..*record };
        let window = self.window;
        self.flush.get_or_insert_with(|| {
            let flush = Record { op: Op::Flush, offset: 0, len: 0, ..record };
            issued_at(&flush, after(record.issue_ns, window))
        });
        if record.op != Op::Flush {
            out.push(record);
        }
    }

    fn finish(&mut self, out: &mut Vec<Record>) {
        // The last flush is issued with the last record, so that the trace gets no longer.
        out.extend(self.flush.take().map(|flush| issued_at(&flush, self.last_ns)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::super::{Chain, Merge, Shape};
    use super::*;
    use prism_base::Bytes;

    const WINDOW: Nanos = Nanos(10_000_000);

    #[test]
    fn one_flush_ends_each_window() {
        let commit = || GroupCommit::new(WINDOW);
        check(commit(), "0 w 0+4; 1 f; 2 w 4+4; 3 f; 50 r 0+4", "0 w 0+4; 2 w 4+4; 11 f; 50 r 0+4");
        check(commit(), "0 w! 0+4; 20 w^ 4+4; 30 f", "0 w 0+4; 10 f; 20 w 4+4; 30 f; 30 f");
        check(commit(), "0 w 0+4; 1 r 0+4", "0 w 0+4; 1 r 0+4");
        check(commit(), "0 f; 5 r 0+4", "5 r 0+4; 5 f");
    }

    #[test]
    fn writes_merge_across_removed_flushes() {
        let merge = Merge::new(Shape::UpTo(Bytes(1 << 20)), WINDOW, Bytes(1));
        check(
            Chain::new(GroupCommit::new(WINDOW), merge),
            "0 w 0+4; 1 f; 2 w 4+4; 3 f; 50 r 0+4",
            "10 w 0+8; 11 f; 50 r 0+4",
        );
    }
}
