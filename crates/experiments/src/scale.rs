//! How much an experiment simulates.

/// How much flash is simulated, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As published, or large enough for chance to average out: the command line's default.
    Full,
    /// A quarter of that: tests.
    Quarter,
}

impl Scale {
    /// `full` at full scale, a quarter of it at the smaller one.
    pub(crate) fn of(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Quarter => full / 4,
        }
    }

    /// [`Scale::of`] for numbers of blocks.
    pub(crate) fn blocks(self, full: u32) -> u32 {
        self.of(full.into()) as u32
    }
}
