//! Decides when random overwrites have made write amplification steady.

/// Rounds of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rounds {
    /// Units written in each.
    pub(super) units: u64,
    /// The most rounds.
    pub(super) most: u32,
}

impl Rounds {
    /// Number of rounds that are compared: together they write the capacity once, in which time
    /// nearly every block is cleaned.
    const WINDOW: u64 = 4;
    /// With fewer writes in a round, the noise in write amplification, from only some hundreds of
    /// erases, exceeds the allowed difference.
    const UNITS_MIN: u64 = 65_536;
    /// The most units in a round from a steady state that was laid out: some thousand erases, a few
    /// seconds.
    const UNITS_MAX: u64 = 1 << 21;
    /// The most capacities written. Random writes settle within two; a drive that has not settled
    /// by then never does.
    const CAPACITIES_MAX: u64 = 10;
    /// Largest difference within the compared rounds, relative to their mean.
    const SPREAD_MAX: f64 = 0.02;

    /// The rounds for a drive of `logical` units.
    pub(super) fn of(logical: u64) -> Self {
        Self::with(logical.div_ceil(Self::WINDOW).max(Self::UNITS_MIN), logical)
    }

    /// The rounds for a drive that begins in steady state: if that is only nearly so, as on small
    /// drives, rounds are as long as from any other state.
    pub(super) fn from_steady(logical: u64) -> Self {
        Self::with(Self::of(logical).units.min(Self::UNITS_MAX), logical)
    }

    fn with(units: u64, logical: u64) -> Self {
        let most = (Self::CAPACITIES_MAX * logical).div_ceil(units).max(Self::CAPACITIES_MAX);
        Self { units, most: most as u32 }
    }

    /// Whether the last [`Rounds::WINDOW`] of `figures` are steady.
    pub(super) fn steady(self, figures: &[f64]) -> bool {
        let Some(start) = figures.len().checked_sub(Self::WINDOW as usize) else { return false };
        let window = &figures[start..];
        let mean = window.iter().sum::<f64>() / window.len() as f64;
        let max = window.iter().copied().fold(f64::MIN, f64::max);
        let min = window.iter().copied().fold(f64::MAX, f64::min);
        max - min <= Self::SPREAD_MAX * mean
    }
}
