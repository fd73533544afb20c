//! Callers that wait for an fsync at the same time: one of them serves all, in batches, and the
//! threads of the others answer further requests meanwhile.

use std::mem;

/// Callers whose fsync has not begun, each with what answers it.
#[derive(Debug)]
pub struct Batches<R> {
    waiting: Vec<(Option<u32>, R)>,
    /// Whether a caller serves the others.
    is_served: bool,
}

impl<R> Default for Batches<R> {
    fn default() -> Self {
        Self { waiting: Vec::new(), is_served: false }
    }
}

impl<R> Batches<R> {
    /// Adds a caller that wants a file (or only metadata) to be durable; true if it has to serve
    /// itself and others, with [`Batches::next_batch`], until there is no batch.
    pub fn join(&mut self, file: Option<u32>, reply: R) -> bool {
        self.waiting.push((file, reply));
        !mem::replace(&mut self.is_served, true)
    }

    /// Takes all callers that wait: their files, and what answers them. If there are none, the next
    /// one to join serves.
    pub fn next_batch(&mut self) -> Option<(Vec<u32>, Vec<R>)> {
        if self.waiting.is_empty() {
            self.is_served = false;
            return None;
        }
        let (files, replies): (Vec<_>, Vec<R>) = mem::take(&mut self.waiting).into_iter().unzip();
        let mut files: Vec<u32> = files.into_iter().flatten().collect();
        files.sort_unstable();
        files.dedup();
        Some((files, replies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_serves_all_until_none_waits() {
        let mut batches = Batches::default();
        assert!(batches.join(Some(5), 'a'), "the first serves");
        assert!(
            !batches.join(Some(3), 'b') && !batches.join(None, 'c') && !batches.join(Some(3), 'd')
        );
        assert_eq!(batches.next_batch(), Some((vec![3, 5], vec!['a', 'b', 'c', 'd'])));
        assert!(!batches.join(Some(7), 'e'), "a later caller belongs to the next batch");
        assert_eq!(batches.next_batch(), Some((vec![7], vec!['e'])));
        assert_eq!(batches.next_batch(), None);
        assert!(batches.join(None, 'f'), "nothing is served any more");
    }
}
