//! What waits for one die.

use std::collections::VecDeque;

use super::die::Op;

/// So often in a row may something that passes go first. Reads that come without end
/// would otherwise keep data in the buffer for ever.
const PASSED_MAX: u32 = 64;

/// Operations that wait: some pass the rest, of each the first come is the first served.
///
/// Program units of the host and copies of a die group are bounded, so the rest is mostly three
/// operations or fewer: four stand here, in the cache line behind the counts, and those beyond in
/// a list of their own. All numbers are read as they were written: a load of more than the last
/// store has written waits for it (docs/design/event-core.md).
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Waiting {
    /// How many the rest is.
    rest: u32,
    /// Where in `near` its first is, [`Waiting::PASSING`], and above that how often in a row
    /// something of the rest was passed.
    state: u32,
    /// A ring, and the place through which others go to `far`.
    near: [Op; Self::NEAR + 1],
    far: VecDeque<Op>,
    passing: VecDeque<Op>,
}

const _: () = assert!(std::mem::offset_of!(Waiting, near) == Waiting::COUNTS);

impl Waiting {
    const NEAR: usize = 4;
    const HEAD: u32 = Self::NEAR as u32 - 1;
    /// Something is in `passing`.
    const PASSING: u32 = 1 << 8;
    const PASSED: u32 = 1 << 16;
    /// From the beginning to what waits, in bytes.
    pub(super) const COUNTS: usize = 8;

    /// Nothing.
    pub(super) fn new() -> Self {
        let near = [Op::Program { job: 0 }; Self::NEAR + 1];
        Self { rest: 0, state: 0, near, far: VecDeque::new(), passing: VecDeque::new() }
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest == 0 && !self.has_passing()
    }

    /// Whether something passes the rest.
    #[inline]
    pub(super) fn has_passing(&self) -> bool {
        self.state & Self::PASSING != 0
    }

    /// Adds `op` behind the rest.
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

    /// Adds `op` behind what passes the rest.
    pub(super) fn push_passing(&mut self, op: Op) {
        self.passing.push_back(op);
        self.state |= Self::PASSING;
    }

    /// The first of the rest.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<&Op> {
        (self.rest > 0).then(|| &self.near[(self.state & Self::HEAD) as usize])
    }

    /// Takes out the first of the rest, of which there is some.
    #[inline(always)]
    pub(super) fn leave(&mut self) {
        self.state = (self.state + 1) & Self::HEAD | self.state & Self::PASSING;
        self.rest -= 1;
        if self.rest >= Self::NEAR as u32 {
            self.come_near();
        }
    }

    /// One of those in `far` gets the place that has become free.
    #[inline(never)]
    fn come_near(&mut self) {
        let op = self.far.pop_front().expect("more than are near");
        self.near[(self.state.wrapping_sub(1) & Self::HEAD) as usize] = op;
    }

    /// Something of the rest has begun without waiting, with nothing before it.
    #[inline]
    pub(super) fn none_passed(&mut self) {
        self.state %= Self::PASSED;
    }

    /// What is next, and whether it passes the rest; none of the rest is where something
    /// `stopped` goes on before it.
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

    /// Takes out what [`Waiting::next`] has told.
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

    /// Forgets all.
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
            // For a while more come than go, then fewer.
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
