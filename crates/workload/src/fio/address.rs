//! Where the I/Os of a job go.
//!
//! A pass goes through the region once: to its end, or until its map of blocks is full.
//! I/Os drawn one by one have no passes.

use std::ops::Range;

use prism_base::Rng;
use prism_base::distribution::Scatter;

use super::job::{Job, Order};
use super::random::Draw;
use super::sizes::Sizes;
use super::zbd::Zbd;

/// Offsets and sizes of one job.
#[derive(Clone, Debug)]
pub struct Addresses {
    region: Range<u64>,
    sizes: [Sizes; 3],
    /// For jobs that go by zones.
    zbd: Option<Zbd>,
    place: Place,
    place_rng: Rng,
    size_rng: Rng,
}

#[derive(Clone, Debug)]
enum Place {
    /// The next byte of reads, writes and trims.
    Sequential([u64; 3]),
    Map(Map),
    /// For each direction: how slots are drawn, and how far they lie apart.
    Drawn(Vec<(Draw, u64)>),
}

/// Blocks in a random order of which each comes once.
#[derive(Clone, Debug)]
struct Map {
    block: u64,
    blocks: u64,
    order: Scatter,
    /// Place in the order.
    next: u64,
    /// A bit for each block that is done. Empty if every I/O is one block, for then the
    /// order alone never repeats one.
    done: Vec<u64>,
}

impl Addresses {
    /// Those of `job`, from the beginning.
    #[must_use]
    pub fn new(job: &Job) -> Self {
        let stream = |what| Rng::stream(job.seed, &format!("fio job {} {what}", job.number));
        let mut place_rng = stream("place");
        let len = job.region.end - job.region.start;
        let place = match &job.order {
            Order::Sequential => Place::Sequential([job.region.start; 3]),
            Order::Map => {
                let used = (0..3).filter(|&dir| job.uses(dir));
                let block = used.clone().map(|dir| job.sizes[dir].min()).min();
                let block = block.expect("every job has a direction");
                let single = used.clone().all(|dir| job.sizes[dir] == Sizes::One(block));
                let blocks = len / block;
                let bits = if single { 0 } else { blocks.div_ceil(64) as usize };
                let order = Scatter::new(blocks, &mut place_rng);
                Place::Map(Map { block, blocks, order, next: 0, done: vec![0; bits] })
            }
            Order::Drawn(distribution) => Place::Drawn(
                (0..3)
                    .map(|dir| {
                        let align = job.align[dir];
                        // A direction that is not used may have sizes beyond the region.
                        let slots = (len.saturating_sub(job.sizes[dir].min())) / align + 1;
                        (Draw::new(distribution, slots, align, &mut place_rng), align)
                    })
                    .collect(),
            ),
        };
        Self {
            region: job.region.clone(),
            sizes: job.sizes.clone(),
            zbd: job.zbd,
            place,
            place_rng,
            size_rng: stream("size"),
        }
    }

    /// First byte and bytes of the next I/O in direction `dir`; `None` if the pass is at
    /// its end.
    pub fn next(&mut self, dir: usize) -> Option<(u64, u64)> {
        let sizes = &self.sizes[dir];
        let end = self.region.end;
        match &mut self.place {
            Place::Sequential(next) => {
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
            Place::Map(map) => {
                let (first, run) = map.next(sizes, &mut self.size_rng)?;
                Some((self.region.start + first * map.block, run * map.block))
            }
            Place::Drawn(draws) => {
                let (draw, align) = &draws[dir];
                let offset = self.region.start + draw.next(&mut self.place_rng) * align;
                Some((offset, sizes.draw(end - offset, &mut self.size_rng)))
            }
        }
    }

    /// The last I/O in direction `dir` ended at `end` and not where it was to end: sequential
    /// ones go on from there.
    pub fn moved(&mut self, dir: usize, end: u64) {
        if let Place::Sequential(next) = &mut self.place {
            next[dir] = end;
        }
    }

    /// Begins the next pass.
    pub fn restart(&mut self) {
        match &mut self.place {
            Place::Sequential(next) => *next = [self.region.start; 3],
            Place::Map(map) => {
                map.order = Scatter::new(map.blocks, &mut self.place_rng);
                map.next = 0;
                map.done.fill(0);
            }
            Place::Drawn(_) => {}
        }
    }
}

/// The next place from `offset` on where `least` bytes fit into a zone, and the end of what can
/// be written there; `None` beyond `end`.
fn in_zone(zbd: &Zbd, offset: u64, least: u64, end: u64) -> Option<(u64, u64)> {
    let (size, capacity) = (zbd.size, zbd.capacity);
    let start = offset / size * size;
    let start = if offset - start + least > capacity { start + size } else { start };
    let offset = offset.max(start);
    (offset < end).then(|| (offset, (start + capacity).min(end)))
}

impl Map {
    /// First block and number of blocks of the next I/O: cut short where a done block
    /// follows, so that none comes twice.
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
