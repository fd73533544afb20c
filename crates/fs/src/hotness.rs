//! Hotness: the groups into which blocks are sorted when they are written.
//!
//! Source: SFS, FAST'12 section 3.3 (iterative segment quantization); differs: the first groups are
//! evenly spaced ranks instead of random segments, so that a run repeats.

use crate::config::Distance;

/// Passes of the quantization at most.
const PASSES: usize = 3;

fn measure(hotness: f64, distance: Distance) -> f64 {
    match distance {
        Distance::Linear => hotness,
        Distance::Log => libm::log(hotness.max(1e-12)),
    }
}

/// The group nearest to a hotness.
#[must_use]
pub fn nearest(groups: &[f64], hotness: f64, distance: Distance) -> usize {
    let at = measure(hotness, distance);
    let from = |group: &f64| (measure(*group, distance) - at).abs();
    let numbered = groups.iter().enumerate();
    numbered.min_by(|a, b| from(a.1).total_cmp(&from(b.1))).map_or(0, |(number, _)| number)
}

/// Adapts the hotnesses of `count` groups to those of the segments.
pub fn quantize(groups: &mut Vec<f64>, segments: &mut [f64], count: usize, distance: Distance) {
    if segments.is_empty() {
        return;
    }
    if groups.len() != count || segments.len() <= count {
        segments.sort_by(f64::total_cmp);
        let rank = |group: usize| segments[(2 * group + 1) * segments.len() / (2 * count)];
        *groups = (0..count).map(rank).collect();
    }
    for _ in 0..PASSES {
        let mut sums = vec![(0.0, 0_u32); groups.len()];
        for &hotness in &*segments {
            let (sum, members) = &mut sums[nearest(groups, hotness, distance)];
            *sum += measure(hotness, distance);
            *members += 1;
        }
        let mut changed = false;
        for (group, (sum, members)) in groups.iter_mut().zip(sums).filter(|pair| pair.1.1 > 0) {
            let mean = sum / f64::from(members);
            let mean = if distance == Distance::Log { libm::exp(mean) } else { mean };
            changed |= (mean - *group).abs() > 1e-9 * mean.abs();
            *group = mean;
        }
        if !changed {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_find_clusters() {
        let mut segments = vec![1.0, 1.1, 0.9, 100.0, 110.0, 90.0, 0.01, 0.011];
        let mut groups = Vec::new();
        quantize(&mut groups, &mut segments, 3, Distance::Log);
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.02;
        assert!(near(groups[0], 0.0105) && near(groups[1], 1.0) && near(groups[2], 100.0));
        assert_eq!(nearest(&groups, 40.0, Distance::Log), 2);
        assert_eq!(nearest(&groups, 40.0, Distance::Linear), 1);
    }

    #[test]
    fn linear_distance_is_the_mean_of_members() {
        let mut groups = vec![0.0, 10.0];
        quantize(&mut groups, &mut [1.0, 2.0, 3.0, 12.0, 14.0], 2, Distance::Linear);
        assert_eq!(groups, [2.0, 13.0]);
        // Few segments: groups are segments.
        quantize(&mut groups, &mut [7.0], 2, Distance::Linear);
        assert_eq!(groups, [7.0, 7.0]);
    }
}
