//! The rule of grouping by death time: how much garbage shares blocks with valid data.
//!
//! The model is a drive that never cleans. It appends written units to blocks, and a unit
//! that is overwritten or discarded becomes garbage in its block. If data that dies together
//! was written together, each block is either all valid or all garbage, and cleaning would
//! copy nothing. The *zombie curve* of the paper shows how far a trace is from this: it
//! plots the valid ratios of all blocks that hold valid data, in descending order.
//!
//! Differs from the paper: its curve contains the blocks of the map, and open blocks, whose
//! erased pages count as garbage. Here open blocks are counted separately, and the model has
//! no map. The paper fills a block in each of 16 channels at once; here that is one block.
//!
//! Memory: 4 bytes per block. The caller stores an [`OptBlock`] for each unit.

use prism_base::{Bytes, FastMap, prefetch};

/// A flag in the count of valid units of a block: the block is open.
const OPEN: u32 = 1 << 31;
/// The most samples in a [`SpaceHistory`].
const SAMPLES_MAX: usize = 256;

/// The block of a unit in an [`AppendLog`]: its number plus one, or 0 if the unit holds no
/// data.
pub type OptBlock = u32;

/// Blocks to which written units are appended. Each segment of the address space has its own
/// open block.
#[derive(Debug)]
pub struct AppendLog {
    /// Units per block.
    units: u32,
    /// Units per segment.
    segment_units: u64,
    /// The index of each segment in `open`.
    index: FastMap<u64, u32>,
    /// The open block of each segment and the number of units in it. If that number is 0, the
    /// segment has no open block.
    open: Vec<(u32, u32)>,
    /// The segment that was written last, and its index.
    last: Option<(u64, u32)>,
    /// Valid units of each block, with the flag [`OPEN`].
    valid: Vec<u32>,
    /// Closed blocks that hold valid units.
    held: u64,
    /// Valid units in closed blocks.
    valid_closed: u64,
    /// Valid units in all blocks.
    mapped: u64,
}

/// The distribution of valid data over the blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zombies {
    /// Size of a block.
    pub block: Bytes,
    /// Number of closed blocks by their number of valid units, which is the index.
    pub closed: Vec<u64>,
    /// Number of open blocks by their number of valid units, which is the index.
    pub open: Vec<u64>,
}

impl AppendLog {
    /// An empty log with blocks of `units` units and segments of `segment_units` units.
    /// `u64::MAX` makes the whole address space one segment.
    ///
    /// # Panics
    /// If one of them is 0, or if `units` is at least 2^31.
    #[must_use]
    pub fn new(units: u32, segment_units: u64) -> Self {
        assert!(units > 0 && units < OPEN && segment_units > 0, "a block and a segment have units");
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

    /// Writes `unit`. `unit_block` is its previous block and becomes its new one.
    #[inline]
    pub fn write(&mut self, unit_block: &mut OptBlock, unit: u64) {
        self.discard(unit_block);
        let segment = self.segment(unit);
        let (block, filled) = &mut self.open[segment];
        if *filled == 0 {
            *block = self.valid.len() as u32;
            self.valid.push(OPEN);
        }
        *filled += 1;
        let valid = &mut self.valid[*block as usize];
        *valid += 1;
        *unit_block = *block + 1;
        self.mapped += 1;
        if *filled == self.units {
            *filled = 0;
            *valid &= !OPEN;
            self.held += u64::from(*valid > 0);
            self.valid_closed += u64::from(*valid);
        }
    }

    /// The index of the segment of `unit` in `open`.
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

    /// Discards the unit whose block is `unit_block`, if it holds data. `unit_block` becomes 0.
    #[inline]
    pub fn discard(&mut self, unit_block: &mut OptBlock) {
        let Some(block) = unit_block.checked_sub(1) else { return };
        *unit_block = 0;
        let valid = &mut self.valid[block as usize];
        *valid -= 1;
        self.mapped -= 1;
        if *valid & OPEN == 0 {
            self.valid_closed -= 1;
            self.held -= u64::from(*valid == 0);
        }
    }

    /// Prefetches the count of `block`, one of whose units will soon be overwritten.
    #[inline]
    pub fn prefetch(&self, block: OptBlock) {
        if let Some(block) = block.checked_sub(1) {
            prefetch(&self.valid, block as usize);
        }
    }

    /// Units that hold data.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        self.mapped
    }

    /// The units of all closed blocks that hold valid data, and the valid units among them.
    #[must_use]
    pub fn held(&self) -> (u64, u64) {
        (self.held * u64::from(self.units), self.valid_closed)
    }

    /// Valid units / all units of the closed blocks that hold valid data; `None` if there is
    /// no such block.
    #[must_use]
    pub fn density(&self) -> Option<f64> {
        let (held, valid) = self.held();
        (held > 0).then(|| valid as f64 / held as f64)
    }

    /// The garbage, in units, that a valid unit of `block` keeps from being erased: the
    /// garbage of the block divided by its number of valid units. 0 for an open block.
    #[must_use]
    pub fn garbage_share(&self, block: OptBlock) -> f64 {
        let Some(block) = block.checked_sub(1) else { return 0.0 };
        let valid = self.valid[block as usize];
        if valid & OPEN != 0 { 0.0 } else { f64::from(self.units - valid) / f64::from(valid) }
    }

    /// The distribution of valid data over the blocks, with units of `unit` bytes.
    #[must_use]
    pub fn zombies(&self, unit: Bytes) -> Zombies {
        let classes = self.units as usize + 1;
        let (mut closed, mut open) = (vec![0; classes], vec![0; classes]);
        for &valid in &self.valid {
            let counts = if valid & OPEN == 0 { &mut closed } else { &mut open };
            counts[(valid & !OPEN) as usize] += 1;
        }
        Zombies { block: unit * u64::from(self.units), closed, open }
    }
}

impl Zombies {
    /// The zombie curve: the closed blocks in descending order of their valid ratio, as
    /// points (total size of the blocks up to this point, valid ratio of the last of them).
    /// Blocks without valid units are left out.
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

    /// Closed blocks that hold valid data.
    #[must_use]
    pub fn held_blocks(&self) -> u64 {
        self.closed[1..].iter().sum()
    }

    /// Closed blocks that hold both valid data and garbage: the zombies.
    #[must_use]
    pub fn mixed_blocks(&self) -> u64 {
        self.closed[1..self.closed.len() - 1].iter().sum()
    }

    /// Open blocks.
    #[must_use]
    pub fn open_blocks(&self) -> u64 {
        self.open.iter().sum()
    }
}

/// The mapped data, and the blocks that hold it, after some amount of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceSample {
    /// Bytes written so far.
    pub written: u64,
    /// Bytes mapped.
    pub mapped: u64,
    /// Size of the closed blocks that hold valid data.
    pub held: u64,
}

/// Samples of the space that data takes. The interval between samples is doubled when there
/// are 256 of them.
#[derive(Debug)]
pub struct SpaceHistory {
    step: u64,
    next: u64,
    samples: Vec<SpaceSample>,
}

impl SpaceHistory {
    /// An empty history. The interval is 1 MiB of writes at first.
    #[must_use]
    pub fn new() -> Self {
        Self { step: 1 << 20, next: 0, samples: Vec::new() }
    }

    /// Whether the next sample is due after `written` bytes.
    #[must_use]
    #[inline]
    pub fn is_due(&self, written: u64) -> bool {
        written >= self.next
    }

    /// Adds a sample.
    pub fn take(&mut self, sample: SpaceSample) {
        self.samples.push(sample);
        if self.samples.len() == SAMPLES_MAX {
            let mut number = 0;
            self.samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step *= 2;
        }
        self.next = sample.written / self.step * self.step + self.step;
    }

    /// Returns the samples, with `last` at the end.
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
        let (mut log, mut unit_blocks) = (AppendLog::new(4, segment), [0; 16]);
        units.iter().for_each(|&unit| log.write(&mut unit_blocks[unit as usize], unit));
        (log, unit_blocks)
    }

    #[test]
    fn hand_computed_example() {
        // Blocks [0 1 2 3] [0 1 8 9] [2 10]: the last one open.
        let (mut one, mut unit_blocks) = log(u64::MAX, &[0, 1, 2, 3, 0, 1, 8, 9, 2, 10]);
        let zombies = one.zombies(UNIT);
        assert_eq!((zombies.closed.as_slice(), zombies.open_blocks()), (&[0, 1, 0, 0, 1][..], 1));
        assert_eq!(zombies.curve(), [(4 * 4096, 1.0), (8 * 4096, 0.25)]);
        assert_eq!((zombies.held_blocks(), zombies.mixed_blocks()), (2, 1));
        assert_eq!((one.density(), one.mapped()), (Some(5.0 / 8.0), 7));
        // Unit 3 is the only valid unit of the first block, which has three garbage units.
        // Unit 0 is in a block without garbage, unit 10 in an open block.
        assert_eq!(
            [3, 0, 10].map(|unit: usize| one.garbage_share(unit_blocks[unit])),
            [3.0, 0.0, 0.0]
        );
        one.discard(&mut unit_blocks[3]);
        assert_eq!((one.density(), one.mapped()), (Some(1.0), 6));
        // With segments of eight units, the blocks are [0 1 2 3], [0 1 2 ..] and [8 9 10 ..].
        let (two, _) = log(8, &[0, 1, 2, 3, 0, 1, 8, 9, 2, 10]);
        let zombies = two.zombies(UNIT);
        assert_eq!(
            (zombies.closed.as_slice(), zombies.open.as_slice()),
            (&[0, 1, 0, 0, 0][..], &[0, 0, 0, 2, 0][..])
        );
        assert_eq!(log(8, &[]).0.density(), None);
    }

    #[test]
    fn random_writes_agree_with_a_model_of_blocks() {
        for seed in seeds(0..100) {
            let mut rng = Rng::stream(seed, "grouping");
            let segment = [u64::MAX, 16, 8][rng.below(3) as usize];
            let mut log = AppendLog::new(4, segment);
            let mut unit_blocks = [0; 32];
            // For each block: its segment, and its units, each with whether it is valid.
            let mut blocks: Vec<(u64, Vec<(u64, bool)>)> = Vec::new();
            for _ in 0..rng.below(300) {
                let unit = rng.below(32);
                for (_, held) in &mut blocks {
                    held.iter_mut().filter(|u| u.0 == unit).for_each(|u| u.1 = false);
                }
                if rng.chance(0.2) {
                    log.discard(&mut unit_blocks[unit as usize]);
                    continue;
                }
                let of = unit / segment;
                log.write(&mut unit_blocks[unit as usize], unit);
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
    fn the_number_of_samples_is_limited() {
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
