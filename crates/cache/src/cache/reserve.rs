//! How many slabs are kept erased: the queueing model of DIDACache (Shen et al., FAST'17), as
//! Prism-SSD's cache uses it (ICDCS'19, section VI.A). Both papers give the idea, that slabs are
//! arrivals at a server that reclaims them; the formulas are ours.
//!
//! With arrivals at the rate `lambda` and reclaims at the rate `mu`, the load is `rho = lambda /
//! mu` and the probability of a backlog of at least n slabs is `rho^n` (M/M/1). The reserve is the
//! smallest n for which that is below [`SHORT`]: the mean backlog alone is exceeded in a third of
//! all cases. The lengths of reclaims are measured, so copies and waiting for flash are in them.

use std::collections::VecDeque;

use prism_base::Nanos;

/// The probability that the reserve is too small.
const SHORT: f64 = 1e-3;
/// Slabs opened over which the rate of arrivals is measured.
const OPENED: usize = 128;
/// The weight of the newest measurement of a reclaim.
const WEIGHT: f64 = 0.05;

/// The state of the model.
#[derive(Clone, Debug)]
pub(super) struct Reserve {
    /// Slabs kept erased beyond the lower limit before cleaning stops.
    span: u32,
    /// The most.
    most: u32,
    /// Reclaims that run at once.
    at_once: u32,
    /// When the last slabs were opened. Their mean distance is not that of the last two: a burst of
    /// slabs that waited for buffers says nothing about the rate.
    opened: VecDeque<Nanos>,
    /// The mean time of a reclaim in nanoseconds.
    reclaim: Option<f64>,
}

impl Reserve {
    /// A model for this many slabs on this many channels, of which `at_once` are reclaimed at once.
    pub(super) fn new(slabs: u32, channels: u32, at_once: u32) -> Self {
        let span = (2 * channels).min(slabs / 16).max(2);
        let most = (slabs / 4).max(3);
        Self { span, most, at_once, opened: VecDeque::new(), reclaim: None }
    }

    /// A slab was opened.
    pub(super) fn opened(&mut self, now: Nanos) {
        if self.opened.len() == OPENED {
            self.opened.pop_front();
        }
        self.opened.push_back(now);
    }

    /// A slab was reclaimed in this time.
    pub(super) fn reclaimed(&mut self, took: Nanos) {
        let took = took.0 as f64;
        self.reclaim = Some(self.reclaim.map_or(took, |mean| mean + WEIGHT * (took - mean)));
    }

    /// The load of cleaning: 1 if slabs are filled as fast as they are reclaimed.
    pub(super) fn load(&self) -> f64 {
        let (Some(first), Some(last)) = (self.opened.front(), self.opened.back()) else {
            return 0.0;
        };
        let distances = self.opened.len() as f64 - 1.0;
        let between = last.0.saturating_sub(first.0) as f64 / distances.max(1.0);
        match self.reclaim {
            Some(reclaim) if distances > 0.0 => {
                reclaim / f64::from(self.at_once) / between.max(1.0)
            }
            _ => 0.0,
        }
    }

    /// Slabs below which cleaning copies nothing.
    pub(super) fn low(&self) -> u32 {
        let load = self.load();
        if load >= 1.0 {
            return self.most - 1;
        }
        // For a load of 0 the logarithm is infinite, and the quotient 0.
        let slabs = (SHORT.ln() / load.ln()).ceil();
        (slabs as u32).clamp(2, self.most - 1)
    }

    /// Slabs kept erased beyond the lower limit.
    pub(super) fn span(&self) -> u32 {
        self.span
    }

    /// Slabs up to which cleaning frees.
    pub(super) fn high(&self) -> u32 {
        (self.low() + self.span).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the model: the reserve for a load, with a probability of 0.001.
    #[test]
    fn the_reserve_is_that_of_the_model() {
        for (load, slabs) in [(0.5, 10), (0.7, 20), (0.8, 31), (0.9, 66), (0.95, 135)] {
            let mut reserve = Reserve::new(1 << 20, 12, 1);
            reserve.opened(Nanos(0));
            reserve.opened(Nanos(1_000_000));
            reserve.reclaimed(Nanos((load * 1e6) as u64));
            assert_eq!(reserve.low(), slabs, "load {load}");
            assert_eq!(reserve.high(), slabs + 24);
        }
    }

    #[test]
    fn small_and_idle_caches_have_a_reserve() {
        let mut reserve = Reserve::new(16, 4, 1);
        assert_eq!((reserve.low(), reserve.high()), (2, 4));
        reserve.opened(Nanos(0));
        reserve.opened(Nanos(10));
        reserve.reclaimed(Nanos(1000));
        assert_eq!((reserve.low(), reserve.high()), (3, 4), "overloaded");
    }
}
