//! A cap of the rate at which flash is programmed: some insertions are not kept.
//!
//! A token bucket holds what may be programmed. Each insertion takes the bytes of its record out of
//! it, and each [`WINDOW`] what flash has really programmed is settled, copies of cleaning and of
//! the library included. An insertion that finds the bucket empty is not kept. So over any time the
//! bytes programmed are at most the rate times that time, [`BURST`] and one window.
//!
//! A bucket alone would keep the first items of each window and nothing afterwards.
//! Items are therefore kept at random, with the probability at which the rate would be reached
//! (CacheLib's DynamicRandom; differs: the bucket is a bound, CacheLib has none).

use prism_base::{Bytes, Nanos, Rng};

use super::Cache;
use prism_segments::Store;

/// The time after which what was programmed is settled.
const WINDOW: Nanos = Nanos(1_000_000_000);
/// Seconds of the rate that the bucket holds at most.
const BURST: f64 = 4.0;
/// The share of what the bucket holds that is planned for one window.
const SPEND: f64 = 0.25;
/// The smallest probability: with 0, nothing would be learned.
const LEAST: f64 = 1e-4;

/// Decides which insertions are kept.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    /// Bytes a second.
    rate: f64,
    /// Bytes that may be programmed now; negative if too many were.
    tokens: f64,
    probability: f64,
    rng: Rng,
    /// When the window began, and bytes programmed until then.
    begun: Option<(Nanos, u64)>,
    /// Bytes of insertions in this window: offered, and taken from the bucket.
    offered: f64,
    taken: f64,
    /// Bytes programmed for a byte that was kept.
    amplification: f64,
}

impl Admission {
    fn new(rate: Bytes, seed: u64) -> Self {
        let rate = rate.0 as f64;
        Self {
            rate,
            tokens: rate * BURST,
            probability: 1.0,
            rng: Rng::stream(seed, "cache.admission"),
            begun: None,
            offered: 0.0,
            taken: 0.0,
            amplification: 1.0,
        }
    }

    /// Whether an item of this length is kept.
    fn admits(&mut self, bytes: u32) -> bool {
        let bytes = f64::from(bytes);
        self.offered += bytes;
        let admitted = self.tokens > 0.0 && self.rng.chance(self.probability);
        if admitted {
            self.tokens -= bytes;
            self.taken += bytes;
        }
        admitted
    }

    /// Whether the window is over.
    fn is_due(&self, now: Nanos) -> bool {
        self.begun.is_none_or(|(begun, _)| now.0.saturating_sub(begun.0) >= WINDOW.0)
    }

    /// Ends a window; until `now`, `programmed` bytes were programmed since the cache was opened.
    fn settle(&mut self, now: Nanos, programmed: u64) {
        let Some((begun, before)) = self.begun.replace((now, programmed)) else { return };
        let seconds = now.0.saturating_sub(begun.0) as f64 / 1e9;
        let bytes = programmed.saturating_sub(before) as f64;
        self.tokens += self.rate * seconds + self.taken - bytes;
        self.tokens = self.tokens.min(self.rate * BURST);
        if self.taken > 0.0 {
            // Slabs are written as wholes, so one window alone says little.
            let now = (bytes / self.taken).clamp(0.5, 10.0);
            self.amplification += 0.2 * (now - self.amplification);
        }
        let offered = self.offered / seconds * self.amplification;
        let planned = (self.rate + self.tokens * SPEND).max(0.0);
        self.probability = (planned / offered.max(1.0)).clamp(LEAST, 1.0);
        (self.offered, self.taken) = (0.0, 0.0);
    }
}

impl<S: Store> Cache<S> {
    /// The cache, which programs at most so many bytes of flash a second, measured over some
    /// seconds. Insertions beyond that succeed, but the item is not kept, and a previous version of
    /// it is removed.
    #[must_use]
    pub fn with_write_limit(mut self, bytes_per_second: Bytes) -> Self {
        self.admission = Some(Admission::new(bytes_per_second, self.seed));
        self
    }

    /// Passes the time to the limit of writes. [`Cache::progress`] does so; a simulation calls this
    /// alone.
    pub fn settle_writes(&mut self, now: Nanos) {
        let Some(admission) = &mut self.admission else { return };
        if admission.is_due(now) {
            let flash = self.store.counts();
            let pages = flash.programs + flash.copies;
            admission.settle(now, pages * u64::from(self.shape.page_bytes));
        }
    }

    /// Whether an item whose record has this length is kept; counts those that are not.
    pub(super) fn admits(&mut self, bytes: u32) -> bool {
        let admitted = self.admission.as_mut().is_none_or(|admission| admission.admits(bytes));
        self.counts.not_admitted += u64::from(!admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Offers a load of `offered` bytes a second for a minute, each kept byte programmed
    /// `amplification` times; returns bytes programmed a second, and the largest share of a tenth
    /// of a window's kept items.
    fn run(rate: u64, offered: u64, amplification: f64) -> (f64, f64) {
        let mut admission = Admission::new(Bytes(rate), 5);
        let (mut programmed, mut worst) = (0.0, 0.0_f64);
        let item = 4096;
        for second in 0..60_u64 {
            let mut kept = [0_u32; 10];
            let items = offered / u64::from(item);
            admission.settle(Nanos(second * WINDOW.0), programmed as u64);
            for number in 0..items {
                if admission.admits(item) {
                    programmed += f64::from(item) * amplification;
                    kept[(number * 10 / items) as usize] += 1;
                }
            }
            let sum = f64::from(kept.iter().sum::<u32>());
            if second > 20 && sum > 0.0 {
                worst = worst.max(f64::from(*kept.iter().max().unwrap()) / sum);
            }
            let bound = rate as f64 * (second as f64 + 1.0 + BURST) * amplification.max(1.0);
            assert!(programmed <= bound + f64::from(item) * amplification, "second {second}");
        }
        (programmed / 60.0, worst)
    }

    #[test]
    fn the_rate_is_kept_and_used() {
        for (offered, amplification) in [(80, 1.0), (80, 1.5), (400, 1.2), (21, 1.0)] {
            let (rate, worst) = run(20 * MIB, offered * MIB, amplification);
            let share = rate / (20 * MIB) as f64;
            // The bucket was full at the beginning.
            let most = 1.0 + BURST / 60.0 + 0.05;
            assert!((0.95..most).contains(&share), "{offered} x {amplification}: {share}");
            assert!(worst < 0.2, "{offered} x {amplification}: kept in bursts, {worst}");
        }
    }

    #[test]
    fn what_is_below_the_rate_is_kept() {
        let (rate, _) = run(20 * MIB, 10 * MIB, 1.25);
        assert_eq!(rate, (10 * MIB) as f64 * 1.25);
    }
}
