//! The queue of one die.

use std::collections::VecDeque;

use super::die::Op;

/// How many operations in a row may pass others, so that a continuous stream of reads cannot starve
/// programs.
const PASSED_MAX: u32 = 64;

/// Queued operations in two classes, each first come, first served: those that pass others, and the
/// rest.
///
/// Host program units and copies of a die group are limited, so the rest is mostly three operations
/// or fewer: four are stored here, in the cache line after the counts, and more in a separate list.
/// Fields are read with the width with which they were written: a wider load waits for the store
/// (docs/design/event-core.md).
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Waiting {
    /// Number of operations of the rest.
    rest: u32,
    /// The index of the first one in `near`, the flag [`Waiting::PASSING`], and above that how many
    /// operations in a row have passed the rest.
    state: u32,
    /// A ring buffer, and an entry through which others are moved to `far`.
    near: [Op; Self::NEAR + 1],
    far: VecDeque<Op>,
    passing: VecDeque<Op>,
}

const _: () = assert!(std::mem::offset_of!(Waiting, near) == Waiting::COUNTS);

impl Waiting {
    const NEAR: usize = 4;
    const HEAD: u32 = Self::NEAR as u32 - 1;
    /// Flag: `passing` is not empty.
    const PASSING: u32 = 1 << 8;
    const PASSED: u32 = 1 << 16;
    /// Offset of the queued operations, in bytes.
    pub(super) const COUNTS: usize = 8;

    /// An empty queue.
    pub(super) fn new() -> Self {
        let near = [Op::Program { job: 0 }; Self::NEAR + 1];
        Self { rest: 0, state: 0, near, far: VecDeque::new(), passing: VecDeque::new() }
    }

    /// Whether the queue is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest == 0 && !self.has_passing()
    }

    /// Whether an operation passes the rest.
    #[inline]
    pub(super) fn has_passing(&self) -> bool {
        self.state & Self::PASSING != 0
    }

    /// Appends `op` to the rest.
    #[inline(always)]
    pub(super) fn push(&mut self, op: Op) {
        let near = self.rest < Self::NEAR as u32;
        let place = if near { (self.state + self.rest) & Self::HEAD } else { Self::NEAR as u32 };
        self.near[place as usize] = op;
        self.rest += 1;
        if !near {
            self.go_far();
        }
    }

    #[inline(never)]
    fn go_far(&mut self) {
        self.far.push_back(self.near[Self::NEAR]);
    }

    /// Appends `op` to the operations that pass the rest.
    pub(super) fn push_passing(&mut self, op: Op) {
        self.passing.push_back(op);
        self.state |= Self::PASSING;
    }

    /// The first of the rest.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Op> {
        (self.rest > 0).then(|| &self.near[(self.state & Self::HEAD) as usize])
    }

    /// Removes the first of the rest, which is not empty.
    #[inline(always)]
    pub(super) fn leave(&mut self) {
        self.state = (self.state + 1) & Self::HEAD | self.state & Self::PASSING;
        self.rest -= 1;
        if self.rest >= Self::NEAR as u32 {
            self.come_near();
        }
    }

    /// Moves an operation from `far` to the free entry of `near`.
    #[inline(never)]
    fn come_near(&mut self) {
        let op = self.far.pop_front().expect("the rest is longer than near");
        self.near[(self.state.wrapping_sub(1) & Self::HEAD) as usize] = op;
    }

    /// An operation of the rest has begun without being queued.
    #[inline]
    pub(super) fn none_passed(&mut self) {
        self.state %= Self::PASSED;
    }

    /// The next operation, and whether it passes the rest. The rest is skipped if a `stopped`
    /// (suspended) operation is to be resumed before it.
    pub(super) fn next(&self, stopped: bool) -> Option<(Op, bool)> {
        let rest = self.first().copied();
        let Some(&passing) = self.passing.front() else {
            return rest.filter(|_| !stopped).map(|op| (op, false));
        };
        match rest {
            Some(op) if !stopped && self.state / Self::PASSED >= PASSED_MAX => Some((op, false)),
            _ => Some((passing, true)),
        }
    }

    /// Removes the operation that [`Waiting::next`] has returned.
    pub(super) fn take(&mut self, passes: bool) {
        if passes {
            if self.rest > 0 && self.state / Self::PASSED < PASSED_MAX {
                self.state += Self::PASSED;
            }
            self.passing.pop_front();
            if self.passing.is_empty() {
                self.state &= !Self::PASSING;
            }
        } else {
            self.leave();
        }
    }

    /// Removes all operations.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use prism_testkit::seed;

    use super::*;

    fn job(op: Op) -> u32 {
        let Op::Program { job } = op else { panic!("only programs were added") };
        job
    }

    #[test]
    fn random_commands_equal_two_lists() {
        let mut rng = Rng::stream(seed(6), "waiting");
        let mut waiting = Waiting::new();
        let (mut rest, mut passing, mut passed) = (VecDeque::new(), VecDeque::new(), 0);
        for turn in 0..200_000 {
            let op = Op::Program { job: turn };
            // Phases of growth alternate with phases of decrease.
            let growing = turn / 500 % 2 == 0;
            match rng.below(if growing { 3 } else { 6 }) {
                0 => {
                    waiting.push(op);
                    rest.push_back(turn);
                }
                1 if rng.chance(0.7) => {
                    waiting.push_passing(op);
                    passing.push_back(turn);
                }
                _ => {
                    let stopped = rng.chance(0.1);
                    let turn_of_rest = passing.is_empty() || passed >= 64 && !stopped;
                    let passes = !(turn_of_rest && !rest.is_empty() && !stopped);
                    let from = if passes { &passing } else { &rest };
                    let next = waiting.next(stopped);
                    assert_eq!(next.map(|(op, _)| job(op)), from.front().copied());
                    if let Some((_, is_passing)) = next {
                        assert_eq!(is_passing, passes);
                        waiting.take(passes);
                        passed = if passes { passed + u32::from(!rest.is_empty()) } else { 0 };
                        if passes { &mut passing } else { &mut rest }.pop_front();
                    }
                }
            }
            assert_eq!(waiting.is_empty(), rest.is_empty() && passing.is_empty());
            assert_eq!(waiting.has_passing(), !passing.is_empty());
        }
    }
}
