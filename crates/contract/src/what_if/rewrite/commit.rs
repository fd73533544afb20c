//! Durability asked for less often: group commit.

use prism_base::Nanos;
use prism_trace::{Flags, Op, Record};

use super::{Rewrite, after, is_barrier, issued_at};

/// Takes flushes, FUA and preflushes out of the trace and puts one flush at the end of each
/// window in which there were any. A window opens with the first of them.
pub(in crate::what_if) struct GroupCommit {
    window: Nanos,
    /// The flush to come.
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
        // The trace is not made longer by a flush that nothing follows.
        out.extend(self.flush.take().map(|flush| issued_at(&flush, self.last_ns)));
    }
}
