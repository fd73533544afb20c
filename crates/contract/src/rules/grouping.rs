//! The rule of grouping by death time: what garbage lies among valid data.
//!
//! A drive that never cleans appends what is written to blocks; a unit that is written
//! again or discarded is garbage where it lies. If data that dies together was written
//! together, a block is all valid or all garbage, and cleaning would copy nothing. The
//! *zombie curve* of the paper shows the rest: the valid ratios of the blocks that hold
//! anything, from the largest on. Differs from the paper: its curve has the blocks of the
//! map in it, and open blocks whose erased pages count as garbage. Here blocks still open
//! are kept apart, and there is no map; the blocks of 16 channels that the paper fills at
//! once are one here.
//!
//! Memory: 4 bytes a block; of each unit the caller keeps its [`OptBlock`].

use prism_base::{Bytes, FastMap, prefetch};

/// In the count of a block: it is open.
const OPEN: u32 = 1 << 31;
/// Points of a curve over the bytes written.
const SAMPLES_MAX: usize = 256;

/// Where a unit lies in an [`AppendLog`]: the number of its block plus one; 0 is nowhere.
pub type OptBlock = u32;

/// Blocks that units are appended to: those of one stream, or of one for each segment of
/// the address space.
#[derive(Debug)]
pub struct AppendLog {
    /// Units of a block.
    units: u32,
    segment_units: u64,
    /// The number of each segment in `open`.
    index: FastMap<u64, u32>,
    /// The open block of each segment, and the units in it; none yet where these are 0.
    open: Vec<(u32, u32)>,
    last: Option<(u64, u32)>,
    /// Valid units of each block.
    valid: Vec<u32>,
    held: u64,
    valid_closed: u64,
    mapped: u64,
}

/// Blocks by what they hold at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zombies {
    /// Bytes of a block.
    pub block: Bytes,
    /// Closed blocks with so many valid units, at its index.
    pub closed: Vec<u64>,
    /// Blocks still open with so many valid units.
    pub open: Vec<u64>,
}

impl AppendLog {
    /// Blocks of `units` units; one open block for each segment of `segment_units`.
    #[must_use]
    pub fn new(units: u32, segment_units: u64) -> Self {
        assert!(units > 0 && units < OPEN && segment_units > 0, "a block holds something");
        Self {
            units,
            segment_units,
            index: FastMap::default(),
            open: Vec::new(),
            last: None,
            valid: Vec::new(),
            held: 0,
            valid_closed: 0,
            mapped: 0,
        }
    }

    /// Writes `unit`, which lies at `place`.
    #[inline]
    pub fn write(&mut self, place: &mut OptBlock, unit: u64) {
        self.discard(place);
        let segment = self.segment(unit);
        let (block, filled) = &mut self.open[segment];
        if *filled == 0 {
            *block = self.valid.len() as u32;
            self.valid.push(OPEN);
        }
        *filled += 1;
        let valid = &mut self.valid[*block as usize];
        *valid += 1;
        *place = *block + 1;
        self.mapped += 1;
        if *filled == self.units {
            *filled = 0;
            *valid &= !OPEN;
            self.held += u64::from(*valid > 0);
            self.valid_closed += u64::from(*valid);
        }
    }

    #[inline]
    fn segment(&mut self, unit: u64) -> usize {
        let segment = unit / self.segment_units;
        if let Some((last, number)) = self.last
            && last == segment
        {
            return number as usize;
        }
        let next = self.open.len() as u32;
        let number = *self.index.entry(segment).or_insert(next);
        if number == next {
            self.open.push((0, 0));
        }
        self.last = Some((segment, number));
        number as usize
    }

    /// Discards the unit at `place`, if it holds data.
    #[inline]
    pub fn discard(&mut self, place: &mut OptBlock) {
        let Some(block) = place.checked_sub(1) else { return };
        *place = 0;
        let valid = &mut self.valid[block as usize];
        *valid -= 1;
        self.mapped -= 1;
        if *valid & OPEN == 0 {
            self.valid_closed -= 1;
            self.held -= u64::from(*valid == 0);
        }
    }

    /// Says that what lies at `place` will soon be written again.
    #[inline]
    pub fn prefetch(&self, place: OptBlock) {
        if let Some(block) = place.checked_sub(1) {
            prefetch(&self.valid, block as usize);
        }
    }

    /// Units that hold data.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// Units of closed blocks that hold data, and the data units in them.
    #[must_use]
    pub fn held(&self) -> (u64, u64) {
        (self.held * u64::from(self.units), self.valid_closed)
    }

    /// Valid units / units of the closed blocks that hold any; none if none does.
    #[must_use]
    pub fn density(&self) -> Option<f64> {
        let (held, valid) = self.held();
        (held > 0).then(|| valid as f64 / held as f64)
    }

    /// Garbage that the unit at `place` keeps from being erased: its block's garbage, shared
    /// by the block's valid units. 0 in an open block.
    #[must_use]
    pub fn garbage_share(&self, place: OptBlock) -> f64 {
        let Some(block) = place.checked_sub(1) else { return 0.0 };
        let valid = self.valid[block as usize];
        if valid & OPEN != 0 { 0.0 } else { f64::from(self.units - valid) / f64::from(valid) }
    }

    /// The blocks by what they hold, in units of `unit`.
    #[must_use]
    pub fn zombies(&self, unit: Bytes) -> Zombies {
        let classes = self.units as usize + 1;
        let (mut closed, mut open) = (vec![0; classes], vec![0; classes]);
        for &valid in &self.valid {
            let of = if valid & OPEN == 0 { &mut closed } else { &mut open };
            of[(valid & !OPEN) as usize] += 1;
        }
        Zombies { block: unit * u64::from(self.units), closed, open }
    }
}

impl Zombies {
    /// The zombie curve: (bytes of blocks up to here, valid ratio of the last of them),
    /// from the fullest blocks on; those without valid units are left out.
    #[must_use]
    pub fn curve(&self) -> Vec<(u64, f64)> {
        let full = (self.closed.len() - 1) as f64;
        let mut bytes = 0;
        let mut curve = Vec::new();
        for (valid, &blocks) in self.closed.iter().enumerate().skip(1).rev() {
            if blocks > 0 {
                bytes += blocks * self.block.0;
                curve.push((bytes, valid as f64 / full));
            }
        }
        curve
    }

    /// Closed blocks that hold something.
    #[must_use]
    pub fn held_blocks(&self) -> u64 {
        self.closed[1..].iter().sum()
    }

    /// Closed blocks that hold both data and garbage: the zombies.
    #[must_use]
    pub fn mixed_blocks(&self) -> u64 {
        self.closed[1..self.closed.len() - 1].iter().sum()
    }

    /// Blocks still open.
    #[must_use]
    pub fn open_blocks(&self) -> u64 {
        self.open.iter().sum()
    }
}

/// What holds data and what is data, as writing goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceSample {
    /// Bytes written so far.
    pub written: u64,
    /// Bytes mapped.
    pub mapped: u64,
    /// Bytes of the closed blocks that hold any data.
    pub held: u64,
}

/// Samples at growing distances, so that there are never more than 256.
#[derive(Debug)]
pub struct SpaceHistory {
    step: u64,
    next: u64,
    samples: Vec<SpaceSample>,
}

impl SpaceHistory {
    /// Begins with a sample every MiB.
    #[must_use]
    pub fn new() -> Self {
        Self { step: 1 << 20, next: 0, samples: Vec::new() }
    }

    /// Whether the next sample is due.
    #[must_use]
    #[inline]
    pub fn is_due(&self, written: u64) -> bool {
        written >= self.next
    }

    /// Takes a sample.
    pub fn take(&mut self, sample: SpaceSample) {
        self.samples.push(sample);
        if self.samples.len() == SAMPLES_MAX {
            let mut place = 0;
            self.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.step *= 2;
        }
        self.next = sample.written / self.step * self.step + self.step;
    }

    /// The samples and the last state.
    #[must_use]
    pub fn finish(mut self, last: SpaceSample) -> Vec<SpaceSample> {
        self.samples.push(last);
        self.samples
    }
}

impl Default for SpaceHistory {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Rng;
    use prism_testkit::seeds;

    const UNIT: Bytes = Bytes(4096);

    fn log(segment: u64, units: &[u64]) -> (AppendLog, [OptBlock; 16]) {
        let (mut log, mut places) = (AppendLog::new(4, segment), [0; 16]);
        units.iter().for_each(|&unit| log.write(&mut places[unit as usize], unit));
        (log, places)
    }

    #[test]
    fn worked_out_by_hand() {
        // Blocks [0 1 2 3] [0 1 8 9] [2 10]: the last one open.
        let (mut one, mut places) = log(u64::MAX, &[0, 1, 2, 3, 0, 1, 8, 9, 2, 10]);
        let zombies = one.zombies(UNIT);
        assert_eq!((zombies.closed.as_slice(), zombies.open_blocks()), (&[0, 1, 0, 0, 1][..], 1));
        assert_eq!(zombies.curve(), [(4 * 4096, 1.0), (8 * 4096, 0.25)]);
        assert_eq!((zombies.held_blocks(), zombies.mixed_blocks()), (2, 1));
        assert_eq!((one.density(), one.mapped()), (Some(5.0 / 8.0), 7));
        // Unit 3 alone keeps the first block's three garbage units; 0 keeps none.
        assert_eq!([3, 0, 10].map(|unit: usize| one.garbage_share(places[unit])), [3.0, 0.0, 0.0]);
        one.discard(&mut places[3]);
        assert_eq!((one.density(), one.mapped()), (Some(1.0), 6));
        // Segments of eight units: [0 1 2 3] [0 1 2 ..] and [8 9 10 ..].
        let (two, _) = log(8, &[0, 1, 2, 3, 0, 1, 8, 9, 2, 10]);
        let zombies = two.zombies(UNIT);
        assert_eq!(
            (zombies.closed.as_slice(), zombies.open.as_slice()),
            (&[0, 1, 0, 0, 0][..], &[0, 0, 0, 2, 0][..])
        );
        assert_eq!(log(8, &[]).0.density(), None);
    }

    #[test]
    fn random_writes_agree_with_blocks_in_full() {
        for seed in seeds(0..100) {
            let mut rng = Rng::stream(seed, "grouping");
            let segment = [u64::MAX, 16, 8][rng.below(3) as usize];
            let mut log = AppendLog::new(4, segment);
            let mut places = [0; 32];
            // (segment, units written, of each whether it is still valid)
            let mut blocks: Vec<(u64, Vec<(u64, bool)>)> = Vec::new();
            for _ in 0..rng.below(300) {
                let unit = rng.below(32);
                for (_, held) in &mut blocks {
                    held.iter_mut().filter(|u| u.0 == unit).for_each(|u| u.1 = false);
                }
                if rng.chance(0.2) {
                    log.discard(&mut places[unit as usize]);
                    continue;
                }
                let of = unit / segment;
                log.write(&mut places[unit as usize], unit);
                match blocks.iter_mut().find(|(s, held)| *s == of && held.len() < 4) {
                    Some((_, held)) => held.push((unit, true)),
                    None => blocks.push((of, vec![(unit, true)])),
                }
            }
            let (mut closed, mut open) = (vec![0; 5], vec![0; 5]);
            for (_, held) in &blocks {
                let valid = held.iter().filter(|u| u.1).count();
                if held.len() == 4 { closed[valid] += 1 } else { open[valid] += 1 }
            }
            let zombies = log.zombies(UNIT);
            assert_eq!((&zombies.closed, &zombies.open), (&closed, &open), "seed {seed}");
            let held: u64 = closed[1..].iter().sum();
            let valid: u64 = closed.iter().enumerate().map(|(v, n)| v as u64 * n).sum();
            assert_eq!(log.held(), (held * 4, valid));
        }
    }

    #[test]
    fn samples_stay_few() {
        let mut history = SpaceHistory::new();
        for written in (0..4000u64).map(|i| i << 20) {
            if history.is_due(written) {
                history.take(SpaceSample { written, mapped: 0, held: 0 });
            }
        }
        let samples = history.finish(SpaceSample { written: 1 << 40, mapped: 0, held: 0 });
        assert!((100..=256).contains(&samples.len()), "{}", samples.len());
        assert!(samples.windows(2).all(|w| w[0].written < w[1].written));
    }
}
