//! How much an experiment simulates.

/// The size of an experiment: of its drives, of its work, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As published, or so large that chance averages out: the default of the command line.
    Full,
    /// About a quarter of that, for tests.
    Quarter,
}

impl Scale {
    /// `full`, or a quarter of it at the smaller scale.
    pub(crate) fn of(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Quarter => full / 4,
        }
    }

    /// As [`Scale::of`], for a number of blocks.
    pub(crate) fn blocks(self, full: u32) -> u32 {
        self.of(full.into()) as u32
    }
}

/// Scale and seed of an experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    pub(crate) seed: u64,
}
