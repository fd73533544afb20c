//! Which block is cleaned next. Every policy is a pure function over two columns.

use prism_base::Rng;

use crate::column::Column;

/// How a victim is chosen among the sealed blocks of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimPolicy {
    /// Fewest valid units: cheapest now. Best for uniform writes; with skewed writes it
    /// lets cold blocks with a little garbage wait for long.
    Greedy,
    /// Least recently written: every block in turn. Exactly solvable (Menon; Desnoyers),
    /// wears evenly, and never better than greedy under uniform writes.
    Fifo,
    /// Any sealed block. A lower bound for the rest: write amplification 1/(1 - U/T).
    Random,
}

impl VictimPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Greedy, Self::Fifo, Self::Random];

    /// The name in device files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::Fifo => "fifo",
            Self::Random => "random",
        }
    }

    /// The policy called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The index of the victim; `None` if no block is sealed, or (greedy) if cleaning
    /// any would gain nothing.
    ///
    /// `valid[i]` is the number of valid units of sealed block `i`, [`NOT_SEALED`] for
    /// others; `sealed_at[i]` grows with the time of sealing, [`NEVER_SEALED`] for others;
    /// greedy takes no block with more than `most` valid units. Ties go to the lowest index.
    pub fn pick(
        self,
        valid: &Column<u32>,
        sealed_at: &Column<u64>,
        most: u32,
        rng: &mut Rng,
    ) -> Option<usize> {
        match self {
            Self::Greedy => {
                let (first, least) = valid.min();
                (least <= most).then_some(first)
            }
            Self::Fifo => {
                let (first, oldest) = sealed_at.min();
                (oldest != NEVER_SEALED).then_some(first)
            }
            Self::Random => {
                let valid = valid.values();
                // Nearly all blocks are sealed in steady state, so drawing again is
                // cheaper than a list; a bounded number of draws, then the exact way.
                for _ in 0..32 {
                    let i = rng.below(valid.len() as u64) as usize;
                    if valid[i] != NOT_SEALED {
                        return Some(i);
                    }
                }
                let sealed: Vec<_> = (0..valid.len()).filter(|&i| valid[i] != NOT_SEALED).collect();
                if sealed.is_empty() {
                    return None;
                }
                Some(sealed[rng.below(sealed.len() as u64) as usize])
            }
        }
    }
}

/// Marks a block that is no candidate: free, open, or being cleaned already.
pub const NOT_SEALED: u32 = u32::MAX;
/// The same in the column of sealing times.
pub const NEVER_SEALED: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: VictimPolicy, valid: &[u32], sealed_at: &[u64], expected: Option<usize>) {
        let mut rng = Rng::stream(1, "victim");
        let mut valid_column = Column::new(valid.len(), NOT_SEALED);
        let mut sealed_column = Column::new(valid.len(), NEVER_SEALED);
        for (i, (&v, &at)) in valid.iter().zip(sealed_at).enumerate() {
            valid_column.set(i, v);
            sealed_column.set(i, at);
        }
        assert_eq!(policy.pick(&valid_column, &sealed_column, 7, &mut rng), expected);
    }

    #[test]
    fn policies_on_hand_made_columns() {
        use VictimPolicy::{Fifo, Greedy, Random};
        let (no, never) = (NOT_SEALED, NEVER_SEALED);
        check(Greedy, &[5, 3, no, 3], &[4, 3, 2, 1], Some(1));
        check(Greedy, &[8, 8, no], &[1, 2, 3], None);
        check(Greedy, &[no, no], &[1, 2], None);
        check(Fifo, &[5, 3, no, 8], &[4, 3, never, 1], Some(3));
        check(Fifo, &[no], &[never], None);
        check(Random, &[no, no, 7], &[0, 0, 0], Some(2));
        check(Random, &[no, no], &[0, 0], None);
    }
}
