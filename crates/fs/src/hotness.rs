//! Hotness: the groups into which blocks are sorted when they are written.
//!
//! Source: SFS, FAST'12 section 3.3 (iterative segment quantization, and the rivals with which it
//! is compared); differs: the first groups are evenly spaced ranks instead of random segments, so
//! that a run repeats.

use crate::config::{Config, Distance, Quantization};

/// Passes of the quantization at most.
const PASSES: usize = 3;

fn measure(hotness: f64, distance: Distance) -> f64 {
    match distance {
        Distance::Linear => hotness,
        Distance::Log => libm::log(hotness.max(1e-12)),
    }
}

/// The hotness of a measure.
fn unmeasure(measure: f64, distance: Distance) -> f64 {
    match distance {
        Distance::Linear => measure,
        Distance::Log => libm::exp(measure),
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
pub fn quantize(groups: &mut Vec<f64>, segments: &mut [f64], count: usize, config: &Config) {
    if segments.is_empty() {
        return;
    }
    let distance = config.distance;
    let few = segments.len() <= count;
    if few || groups.len() != count || config.quantization == Quantization::EqualCounts {
        segments.sort_by(f64::total_cmp);
    }
    if few || groups.len() != count {
        let rank = |group: usize| segments[(2 * group + 1) * segments.len() / (2 * count)];
        *groups = (0..count).map(rank).collect();
    }
    match config.quantization {
        Quantization::Iterative => iterate(groups, segments, distance),
        // Groups are segments.
        _ if few => {}
        Quantization::EqualRanges => divide_range(groups, segments, distance),
        Quantization::EqualCounts => {
            for (number, group) in groups.iter_mut().enumerate() {
                let [begin, end] =
                    [number, number + 1].map(|number| number * segments.len() / count);
                let members = &segments[begin..end];
                let sum: f64 = members.iter().map(|&hotness| measure(hotness, distance)).sum();
                *group = unmeasure(sum / members.len() as f64, distance);
            }
        }
    }
}

fn iterate(groups: &mut [f64], segments: &[f64], distance: Distance) {
    for _ in 0..PASSES {
        let mut sums = vec![(0.0, 0_u32); groups.len()];
        for &hotness in segments {
            let (sum, members) = &mut sums[nearest(groups, hotness, distance)];
            *sum += measure(hotness, distance);
            *members += 1;
        }
        let mut changed = false;
        for (group, (sum, members)) in groups.iter_mut().zip(sums).filter(|pair| pair.1.1 > 0) {
            let mean = unmeasure(sum / f64::from(members), distance);
            changed |= (mean - *group).abs() > 1e-9 * mean.abs();
            *group = mean;
        }
        if !changed {
            break;
        }
    }
}

/// Each group has an equal part of the range: it gets the mean of the segments there, or its middle
/// if there is none.
fn divide_range(groups: &mut [f64], segments: &[f64], distance: Distance) {
    let of = |&hotness: &f64| measure(hotness, distance);
    let low = segments.iter().map(of).fold(f64::INFINITY, f64::min);
    let high = segments.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    let width = (high - low) / groups.len() as f64;
    let mut sums = vec![(0.0, 0_u32); groups.len()];
    for at in segments.iter().map(of) {
        // The largest one is in the last part. If all are equal, 0 / 0 is no number, which becomes
        // the first part.
        let part = ((at - low) / width) as usize;
        let (sum, members) = &mut sums[part.min(groups.len() - 1)];
        *sum += at;
        *members += 1;
    }
    for (number, (group, (sum, members))) in groups.iter_mut().zip(sums).enumerate() {
        let middle = low + width * (number as f64 + 0.5);
        let mean = if members > 0 { sum / f64::from(members) } else { middle };
        *group = unmeasure(mean, distance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_find_clusters() {
        let mut segments = vec![1.0, 1.1, 0.9, 100.0, 110.0, 90.0, 0.01, 0.011];
        let mut groups = Vec::new();
        quantize(&mut groups, &mut segments, 3, &Config::NORMAL);
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.02;
        assert!(near(groups[0], 0.0105) && near(groups[1], 1.0) && near(groups[2], 100.0));
        assert_eq!(nearest(&groups, 40.0, Distance::Log), 2);
        assert_eq!(nearest(&groups, 40.0, Distance::Linear), 1);
    }

    #[test]
    fn linear_distance_is_the_mean_of_members() {
        let mut groups = vec![0.0, 10.0];
        quantize(&mut groups, &mut [1.0, 2.0, 3.0, 12.0, 14.0], 2, &Config::SFS);
        assert_eq!(groups, [2.0, 13.0]);
        // Few segments: groups are segments.
        quantize(&mut groups, &mut [7.0], 2, &Config::SFS);
        assert_eq!(groups, [7.0, 7.0]);
    }

    #[test]
    fn equal_parts_by_hand() {
        let check = |quantization, distance, segments: &[f64], expected: &[f64]| {
            let config = Config { quantization, distance, ..Config::SFS };
            let mut groups = Vec::new();
            // What the groups were before does not matter.
            for _ in 0..2 {
                quantize(&mut groups, &mut segments.to_vec(), expected.len(), &config);
                let near = |pair: (&f64, &f64)| (pair.0 / pair.1 - 1.0).abs() < 1e-9;
                assert!(groups.iter().zip(expected).all(near), "{quantization:?}: {groups:?}");
            }
        };
        let (ranges, counts) = (Quantization::EqualRanges, Quantization::EqualCounts);
        let segments = [9.0, 1.0, 2.0, 13.0, 3.0, 4.0];
        check(counts, Distance::Linear, &segments, &[1.5, 3.5, 11.0]);
        // 1 to 5, to 9 with no segment, and to 13 with that at its border.
        check(ranges, Distance::Linear, &segments, &[2.5, 7.0, 11.0]);
        check(ranges, Distance::Log, &[1.0, 10.0, 1000.0], &[10_f64.sqrt(), 1000.0]);
        check(counts, Distance::Log, &[1.0, 100.0, 1000.0, 1000.0], &[10.0, 1000.0]);
        check(ranges, Distance::Linear, &[5.0, 5.0, 5.0], &[5.0, 5.0]);
        // Few segments: groups are segments.
        check(ranges, Distance::Linear, &[3.0, 7.0], &[3.0, 7.0]);
    }
}
