//! Steady-state test of write amplification.
//!
//! After the SNIA Solid State Storage Performance Test Specification: over a window of five rounds,
//! the spread is at most 20 % of the mean and the best-fit line rises or falls by at most 10 % of
//! it. In the specification a round has a fixed duration and the figure is throughput; here a round
//! is the number of whole passes that write a quarter of the drive's spare space, and the figure is
//! write amplification. Rounds count only once cleaning has begun on every die: before, write
//! amplification is constant and meaningless.
//!
//! The figures of a steady state are means over the window of rounds that passed the test, which is
//! extended until its two halves agree.

/// Rounds in the window.
pub const WINDOW: usize = 5;
/// Largest spread (maximum minus minimum) within the window, relative to the mean.
const SPREAD_MAX: f64 = 0.20;
/// Largest change along the fitted line over the window, relative to the mean.
const DRIFT_MAX: f64 = 0.10;

/// The most by which the means of both halves of the measured window differ, relative to the mean
/// of all.
const HALVES_MAX: f64 = 0.02;
/// The most rounds in the measured window.
const ROUNDS_MAX: usize = 40;

/// Whether enough rounds were measured since write amplification became steady. A figure that
/// oscillates more slowly than a few rounds passes [`is_steady`]; here the earlier half of the
/// window has to agree with the later one.
#[must_use]
pub fn is_mean_settled(window: &[f64]) -> bool {
    let half = window.len() / 2;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (early, late) = (&window[..half], &window[window.len() - half..]);
    window.len() >= ROUNDS_MAX
        || half > 0 && (mean(early) - mean(late)).abs() <= HALVES_MAX * mean(window)
}

/// Whether the last [`WINDOW`] of `rounds` are steady.
#[must_use]
pub fn is_steady(rounds: &[f64]) -> bool {
    let Some(start) = rounds.len().checked_sub(WINDOW) else { return false };
    let window = &rounds[start..];
    let n = WINDOW as f64;
    let mean = window.iter().sum::<f64>() / n;
    let max = window.iter().copied().fold(f64::MIN, f64::max);
    let min = window.iter().copied().fold(f64::MAX, f64::min);
    // Least squares over x = -2..2, whose squares sum to 10.
    let middle = (n - 1.0) / 2.0;
    let slope = window.iter().enumerate().map(|(i, y)| (i as f64 - middle) * y).sum::<f64>()
        / (0..WINDOW).map(|i| (i as f64 - middle).powi(2)).sum::<f64>();
    max - min <= SPREAD_MAX * mean && (slope * (n - 1.0)).abs() <= DRIFT_MAX * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_drift_decide() {
        assert!(!is_steady(&[2.0; 4]));
        assert!(is_steady(&[9.0, 2.0, 2.0, 2.0, 2.0, 2.0]));
        assert!(is_steady(&[2.0, 2.19, 1.9, 2.1, 2.0]));
        assert!(!is_steady(&[2.0, 2.3, 1.85, 2.1, 2.0]), "spread of 22 %");
        assert!(!is_steady(&[2.0, 2.07, 2.14, 2.21, 2.28]), "drift of 13 %");
        assert!(!is_mean_settled(&[2.0, 2.0, 2.1, 2.1]) && !is_mean_settled(&[2.0]));
        assert!(is_mean_settled(&[2.0, 2.1, 1.0, 2.1, 2.0]));
        assert!(is_mean_settled(&[(0..40).map(f64::from).collect::<Vec<_>>()].concat()));
    }
}
