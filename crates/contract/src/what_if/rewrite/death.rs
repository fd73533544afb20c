//! Placement by death time: data that dies at about the same time is stored together. This
//! needs knowledge of the future.
//!
//! A written unit dies when it is next written, zeroed or discarded, possibly in the next
//! pass. Time is measured in units written, because writes are what fills blocks. Units that
//! are written together and have similar lifetimes die together, so each class is a range of
//! lifetimes.
//!
//! A class with lifetimes from `a` to `b` keeps dead space: the last unit of a block dies up
//! to `b - a` after the first one, and the class fills blocks at a rate equal to its share of
//! all writes. The ranges are chosen to minimise the sum of share x `(b - a)`. The minimum is
//! exact for lifetimes rounded down to quarters of an octave.

use prism_base::Zeroed;
use prism_trace::{Op, Record, Source};

use super::Rewrite;
use super::future::{UNITS_MAX, twice};
use super::units::Units;
use crate::what_if::WhatIfError;

/// Buckets of lifetimes per octave.
const STEPS: u32 = 4;
/// Buckets up to the longest lifetime that 32 bits can count.
const BUCKETS: usize = 33 * STEPS as usize;

/// Gives each written unit the placement handle of its lifetime.
pub(in crate::what_if) struct DeathTime {
    units: Units,
    /// The lifetime bucket of each unit written in a pass, in the order of writing.
    lives: Vec<u8>,
    class_of: [u16; BUCKETS],
    next: usize,
}

impl DeathTime {
    /// Reads `source` twice to learn the lifetimes.
    pub(in crate::what_if) fn new(
        source: &mut dyn Source,
        units: Units,
        handles: u16,
    ) -> Result<Self, WhatIfError> {
        let lives = lives(source, units)?;
        let mut counts = [0u64; BUCKETS];
        for &life in &lives {
            counts[usize::from(life)] += 1;
        }
        Ok(Self { units, lives, class_of: classes(&counts, handles), next: 0 })
    }
}

impl Rewrite for DeathTime {
    fn restart(&mut self) {
        self.next = 0;
    }

    fn push(&mut self, record: &Record, out: &mut Vec<Record>) {
        if record.op != Op::Write {
            return out.push(*record);
        }
        let begun = self.units.touched(record);
        let (lives, class_of, next) = (&self.lives, &self.class_of, self.next);
        let class = |unit: usize| class_of[usize::from(lives[next + unit - begun.start])];
        self.units.divide(record, class, out);
        self.next += begun.len();
    }
}

/// The lifetime bucket of each unit written in a pass, in the order of writing.
fn lives(source: &mut dyn Source, units: Units) -> Result<Vec<u8>, WhatIfError> {
    let mut lives = Vec::new();
    // For each unit, the index in `lives` of its last write plus one; 0 if it holds no data.
    let mut last: Zeroed<u32> = Zeroed::new(units.count());
    let mut written = 0u64;
    twice(source, |record, pass| {
        let dies = match record.op {
            Op::Write => units.touched(record),
            Op::Discard | Op::WriteZeroes => units.whole(record),
            Op::Read | Op::Flush => return,
        };
        for unit in dies {
            if let Some(place) = std::mem::take(&mut last[unit]).checked_sub(1) {
                lives[place as usize] = bucket(written - u64::from(place));
            }
            if record.op == Op::Write {
                if pass == 0 && lives.len() < UNITS_MAX {
                    lives.push(0);
                    last[unit] = lives.len() as u32;
                }
                written += 1;
            }
        }
    })?;
    if lives.len() < UNITS_MAX { Ok(lives) } else { Err(WhatIfError::TooLong) }
}

/// The bucket of a lifetime: a quarter of an octave, rounded down. A lifetime of 0 counts
/// as 1.
fn bucket(life: u64) -> u8 {
    let life = life.max(1);
    let octave = life.ilog2();
    let within = if octave >= 2 { (life >> (octave - 2)) & 3 } else { (life << (2 - octave)) & 3 };
    (octave * STEPS + within as u32).min(BUCKETS as u32 - 1) as u8
}

/// The shortest lifetime in a bucket.
fn shortest(bucket: usize) -> f64 {
    let (octave, within) = (bucket / STEPS as usize, bucket % STEPS as usize);
    (1u64 << octave) as f64 * (1.0 + within as f64 / f64::from(STEPS))
}

/// The class of each bucket, with at most `handles` classes, such that the dead space is
/// least. `counts` has the number of writes in each bucket.
fn classes(counts: &[u64; BUCKETS], handles: u16) -> [u16; BUCKETS] {
    let mut before = [0u64; BUCKETS + 1];
    for (i, count) in counts.iter().enumerate() {
        before[i + 1] = before[i] + count;
    }
    // The dead space of a class of the buckets `a..b`: its writes times the range from its
    // shortest lifetime to the end of its longest.
    let cost = |a: usize, b: usize| {
        let writes = before[b] - before[a];
        let low = (a..b).find(|&i| counts[i] > 0).unwrap_or(b);
        let high = (a..b).rev().find(|&i| counts[i] > 0).map_or(b, |i| i + 1);
        writes as f64 * (shortest(high) - shortest(low))
    };
    // least[b]: the least cost of the buckets below b with the classes so far.
    // from[k][b]: the first bucket of the last class, if k + 1 classes cover these buckets.
    let mut least: Vec<f64> = (0..=BUCKETS).map(|b| cost(0, b)).collect();
    let mut from = vec![vec![0usize; BUCKETS + 1]];
    for _ in 1..handles {
        let best = |b: usize| {
            let split = (0..b).map(|a| (least[a] + cost(a, b), a));
            // Of splits with equal cost, the first is taken; the last choice is to use no
            // further class.
            let whole = (least[b], b);
            split.chain([whole]).min_by(|x, y| x.0.total_cmp(&y.0)).expect("at least one choice")
        };
        let (next, begins) = (0..=BUCKETS).map(best).unzip();
        least = next;
        from.push(begins);
    }
    let mut class_of = [0u16; BUCKETS];
    let mut end = BUCKETS;
    for class in (0..from.len()).rev() {
        let begin = from[class][end];
        class_of[begin..end].fill(class as u16);
        end = begin;
    }
    class_of
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;
    use prism_trace::VecSource;

    use super::super::testing;
    use prism_testkit::seed;

    use super::*;

    const UNITS: u32 = 64;

    fn units() -> Units {
        Units::new(Bytes(4096), UNITS)
    }

    #[test]
    fn lifetimes_are_counted_in_units_written() {
        let check = |trace: &str, expected: &[u64]| {
            let mut source = VecSource::new(testing::records(trace));
            let expected: Vec<u8> = expected.iter().map(|&life| bucket(life)).collect();
            assert_eq!(lives(&mut source, units()).unwrap(), expected, "{trace}");
        };
        // Units a b a: the first a dies in this pass, b and the second a in the next one.
        check("0 w 0+4; 1 w 4+4; 2 w 0+4", &[2, 3, 1]);
        // A discard or a partial write ends a lifetime, a read does not.
        check("0 w 0+8; 1 d 0+4; 2 r 4+4; 3 w 8+4", &[2, 3, 3]);
        check("0 w 0+4; 1 w 1+1; 2 w 8+4", &[1, 2, 3]);
    }

    #[test]
    fn buckets_are_quarters_of_an_octave() {
        let lives = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1 << 31, (1 << 32) - 1, u64::MAX];
        let expected = [0, 0, 4, 6, 8, 9, 10, 11, 12, 12, 13, 124, 127, 131];
        assert_eq!(lives.map(bucket), expected);
        for b in 8..BUCKETS {
            assert_eq!(usize::from(bucket(shortest(b) as u64)), b);
        }
    }

    #[test]
    fn classes_minimise_dead_space() {
        let check = |counts: &[(usize, u64)], handles: u16, expected: &[u16]| {
            let mut all = [0; BUCKETS];
            counts.iter().for_each(|&(bucket, count)| all[bucket] = count);
            let class_of = classes(&all, handles);
            let found: Vec<u16> = counts.iter().map(|&(bucket, _)| class_of[bucket]).collect();
            assert_eq!(found, expected, "{counts:?}");
        };
        check(&[(20, 9), (40, 1)], 2, &[0, 1]);
        check(&[(20, 9), (21, 9), (60, 1)], 2, &[0, 0, 1]);
        // Two of three lifetimes share a class, those with the least writes times range: 2^5
        // and 2^6 cost less than 2^6 and 2^8, unless very few units live that long.
        check(&[(20, 5), (24, 5), (32, 5)], 2, &[0, 0, 1]);
        check(&[(20, 1000), (24, 1), (32, 1)], 2, &[0, 1, 1]);
        check(&[(20, 1)], 1, &[0]);
    }

    #[test]
    fn random_classes_equal_those_of_an_exhaustive_search() {
        let mut rng = prism_base::Rng::stream(seed(5), "test.classes");
        for _ in 0..20 {
            let mut counts = [0u64; BUCKETS];
            let places: Vec<usize> = (0..7).map(|i| 12 + i * 8 + rng.below(8) as usize).collect();
            places.iter().for_each(|&place| counts[place] = 1 + rng.below(100));
            let cost = |group: &[usize]| match group {
                [] => 0.0,
                [first, .., last] | [first @ last] => {
                    let writes: u64 = group.iter().map(|&place| counts[place]).sum();
                    writes as f64 * (shortest(last + 1) - shortest(*first))
                }
            };
            let parts = |ends: [usize; 2]| {
                cost(&places[..ends[0]])
                    + cost(&places[ends[0]..ends[1]])
                    + cost(&places[ends[1]..])
            };
            let every = (0..=7).flat_map(|a| (a..=7).map(move |b| [a, b]));
            let least = every.map(parts).min_by(f64::total_cmp).unwrap();
            let class_of = classes(&counts, 3);
            let groups = (0..3).map(|class| {
                let of_class = places.iter().copied().filter(|&place| class_of[place] == class);
                cost(&of_class.collect::<Vec<_>>())
            });
            let found: f64 = groups.sum();
            assert!((found - least).abs() < 1e-6 * least, "{counts:?}: {found} {least}");
        }
    }

    #[test]
    fn a_write_is_split_by_lifetime() {
        // The second unit is overwritten by the next write, the first only in the next pass.
        let trace = "0 w 0+8; 1 w 4+4; 2 w 8+4; 3 w 12+4; 4 w 16+4";
        let mut source = VecSource::new(testing::records(trace));
        let death = DeathTime::new(&mut source, units(), 2).unwrap();
        let expected = "0 w 0+4#1; 0 w 4+4; 1 w 4+4#1; 2 w 8+4#1; 3 w 12+4#1; 4 w 16+4#1";
        testing::check(death, trace, expected);
    }
}
