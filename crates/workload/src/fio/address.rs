//! Offsets and sizes of the I/Os of a job.
//!
//! A pass goes through the region once: to its end, or until the map of used blocks is full.
//! Independent random I/Os have no passes.

use std::ops::Range;

use prism_base::Rng;
use prism_base::distribution::Scatter;

use super::job::{Job, Order};
use super::random::Draw;
use super::sizes::Sizes;
use super::zbd::Zbd;

/// Generator of the offsets and sizes of one job.
#[derive(Clone, Debug)]
pub struct Addresses {
    region: Range<u64>,
    sizes: [Sizes; 3],
    /// For jobs with `zonemode=zbd`.
    zbd: Option<Zbd>,
    pattern: Pattern,
    offset_rng: Rng,
    size_rng: Rng,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// The next offsets of reads, writes and trims.
    Sequential([u64; 3]),
    Map(Map),
    /// For each direction: how slots are chosen, and their distance in bytes.
    Drawn(Vec<(Draw, u64)>),
}

/// Blocks in a random order, each once.
#[derive(Clone, Debug)]
struct Map {
    block: u64,
    blocks: u64,
    order: Scatter,
    /// Position in the order.
    next: u64,
    /// Bitmap of used blocks. Empty if every I/O is one block, because then the order never repeats
    /// one.
    done: Vec<u64>,
}

impl Addresses {
    /// The generator for `job`, at its beginning.
    #[must_use]
    pub fn new(job: &Job) -> Self {
        let stream = |what| Rng::stream(job.seed, &format!("fio job {} {what}", job.number));
        let mut offset_rng = stream("place");
        let len = job.region.end - job.region.start;
        let pattern = match &job.order {
            Order::Sequential => Pattern::Sequential([job.region.start; 3]),
            Order::Map => {
                let used = (0..3).filter(|&dir| job.uses(dir));
                let block = used.clone().map(|dir| job.sizes[dir].min()).min();
                let block = block.expect("every job has a direction");
                let single = used.clone().all(|dir| job.sizes[dir] == Sizes::One(block));
                let blocks = len / block;
                let bits = if single { 0 } else { blocks.div_ceil(64) as usize };
                let order = Scatter::new(blocks, &mut offset_rng);
                Pattern::Map(Map { block, blocks, order, next: 0, done: vec![0; bits] })
            }
            Order::Drawn(distribution) => Pattern::Drawn(
                (0..3)
                    .map(|dir| {
                        let align = job.align[dir];
                        // A direction that is not used may have sizes beyond the region.
                        let slots = (len.saturating_sub(job.sizes[dir].min())) / align + 1;
                        (Draw::new(distribution, slots, align, &mut offset_rng), align)
                    })
                    .collect(),
            ),
        };
        Self {
            region: job.region.clone(),
            sizes: job.sizes.clone(),
            zbd: job.zbd,
            pattern,
            offset_rng,
            size_rng: stream("size"),
        }
    }

    /// First byte and length of the next I/O in direction `dir`; `None` at the end of the pass.
    #[inline(always)]
    pub fn next(&mut self, dir: usize) -> Option<(u64, u64)> {
        let sizes = &self.sizes[dir];
        let end = self.region.end;
        match &mut self.pattern {
            Pattern::Sequential(next) => {
                let (offset, end) = match &self.zbd {
                    None => (next[dir], end),
                    Some(zbd) => in_zone(zbd, next[dir], sizes.min(), end)?,
                };
                if end - offset < sizes.min() {
                    return None;
                }
                let len = sizes.draw(end - offset, &mut self.size_rng);
                next[dir] = offset + len;
                Some((offset, len))
            }
            Pattern::Map(map) => {
                let (first, run) = map.next(sizes, &mut self.size_rng)?;
                Some((self.region.start + first * map.block, run * map.block))
            }
            Pattern::Drawn(draws) => {
                let (draw, align) = &draws[dir];
                let offset = self.region.start + draw.next(&mut self.offset_rng) * align;
                Some((offset, sizes.draw(end - offset, &mut self.size_rng)))
            }
        }
    }

    /// The offsets of all next I/Os in direction `dir`, and their length, if these are independent,
    /// equally likely anywhere, and of one size.
    #[inline(always)]
    pub fn uniform(&mut self, dir: usize) -> Option<(impl Iterator<Item = u64>, u64)> {
        let (Pattern::Drawn(draws), &Sizes::One(len)) = (&self.pattern, &self.sizes[dir]) else {
            return None;
        };
        let (draw, align) = &draws[dir];
        let (slots, start, rng) = (draw.uniform_slots()?, self.region.start, &mut self.offset_rng);
        Some((std::iter::repeat_with(move || start + rng.below(slots) * align), len))
    }

    /// The last I/O in direction `dir` was moved and ended at `end`: sequential ones continue
    /// there.
    pub fn moved(&mut self, dir: usize, end: u64) {
        if let Pattern::Sequential(next) = &mut self.pattern {
            next[dir] = end;
        }
    }

    /// Begins the next pass.
    pub fn restart(&mut self) {
        match &mut self.pattern {
            Pattern::Sequential(next) => *next = [self.region.start; 3],
            Pattern::Map(map) => {
                map.order = Scatter::new(map.blocks, &mut self.offset_rng);
                map.next = 0;
                map.done.fill(0);
            }
            Pattern::Drawn(_) => {}
        }
    }
}

/// The next offset from `offset` on at which `least` bytes fit into a zone, and the end of that
/// zone's capacity; `None` beyond `end`.
fn in_zone(zbd: &Zbd, offset: u64, least: u64, end: u64) -> Option<(u64, u64)> {
    let (size, capacity) = (zbd.size, zbd.capacity);
    let start = offset / size * size;
    let start = if offset - start + least > capacity { start + size } else { start };
    let offset = offset.max(start);
    (offset < end).then(|| (offset, (start + capacity).min(end)))
}

impl Map {
    /// First block and number of blocks of the next I/O, cut short before a used block, so that no
    /// block is used twice.
    #[inline(never)]
    fn next(&mut self, sizes: &Sizes, rng: &mut Rng) -> Option<(u64, u64)> {
        loop {
            if self.next == self.blocks {
                return None;
            }
            let first = self.order.place(self.next);
            self.next += 1;
            if self.done.is_empty() {
                return Some((first, 1));
            }
            if self.is_done(first) {
                continue;
            }
            let wanted = sizes.draw(u64::MAX, rng) / self.block;
            let mut run = 0;
            while run < wanted && first + run < self.blocks && !self.is_done(first + run) {
                let block = first + run;
                self.done[(block / 64) as usize] |= 1 << (block % 64);
                run += 1;
            }
            return Some((first, run));
        }
    }

    fn is_done(&self, block: u64) -> bool {
        self.done[(block / 64) as usize] >> (block % 64) & 1 == 1
    }
}
