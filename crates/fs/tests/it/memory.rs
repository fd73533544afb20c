//! Segments in memory that record every operation, so that power can be cut after any of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use prism_base::{Nanos, Rng, SimTime};
use prism_flash::{Buffer, FlashError};
use prism_segments::{Done, FlashCounts, Reader, Shape, Store, Syncer};

const BLOCK: usize = 4096;

type Page = Arc<[u8]>;

/// What is on flash: pages of segments, `None` where nothing was written.
pub type Image = Vec<Vec<Option<Page>>>;

#[derive(Clone, Debug)]
pub enum Op {
    Write {
        segment: u32,
        page: usize,
        data: Vec<Page>,
    },
    Free {
        segment: u32,
    },
    /// A sync has ended; it covers the first `covered` operations.
    Sync {
        covered: usize,
    },
}

/// What becomes of a segment that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is erased.
    Flash,
    /// It keeps its content until it is overwritten, as on a conventional drive.
    Drive,
}

struct Device {
    image: Image,
    free: VecDeque<u32>,
    done: VecDeque<Done>,
    /// Writes whose completion was not taken: the tag, and the number of the operation.
    in_flight: Vec<(u64, usize)>,
    /// The first write that a reader met before its completion was taken.
    met: Option<usize>,
    /// Whether syncs by a syncer fail.
    fails: bool,
    ops: Vec<Op>,
    counts: FlashCounts,
}

/// A store; clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    device: Arc<Mutex<Device>>,
    kind: Kind,
    page_blocks: usize,
}

impl MemoryStore {
    pub fn new(segments: u32, blocks: u32, kind: Kind) -> Self {
        Self::of(vec![vec![None; blocks as usize]; segments as usize], kind, 1)
    }

    pub fn of(image: Image, kind: Kind, page_blocks: usize) -> Self {
        let (free, done, ops) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let (in_flight, met, counts) = (Vec::new(), None, FlashCounts::default());
        let device = Device { image, free, done, in_flight, met, fails: false, ops, counts };
        Self { device: Arc::new(Mutex::new(device)), kind, page_blocks }
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().expect("no panic before")
    }

    /// Operations so far.
    pub fn ops(&self) -> usize {
        self.device().ops.len()
    }

    /// Writes so far.
    pub fn writes(&self) -> usize {
        self.device().ops.iter().filter(|op| matches!(op, Op::Write { .. })).count()
    }

    /// The first write that a reader met since the last call while it was not complete: the number
    /// of the operation.
    pub fn take_met(&self) -> Option<usize> {
        self.device().met.take()
    }

    /// From now on syncs that any thread can run fail.
    pub fn fail_syncs(&self) {
        self.device().fails = true;
    }

    pub fn image(&self) -> Image {
        self.device().image.clone()
    }

    /// The operations since the store was made.
    pub fn take_ops(&self) -> Vec<Op> {
        std::mem::take(&mut self.device().ops)
    }

    /// Changes bytes of a page.
    pub fn damage(&self, segment: usize, page: usize, byte: usize) -> bool {
        let slot = &mut self.device().image[segment][page];
        let Some(old) = slot else { return false };
        let mut new = old.to_vec();
        new[byte] ^= 0x10;
        *slot = Some(new.into());
        true
    }
}

fn apply(image: &mut Image, op: &Op, kind: Kind) {
    match op {
        Op::Write { segment, page, data } => {
            for (at, new) in (*page..).zip(data) {
                image[*segment as usize][at] = Some(Arc::clone(new));
            }
        }
        Op::Free { segment } if kind == Kind::Flash => image[*segment as usize].fill(None),
        Op::Free { .. } | Op::Sync { .. } => {}
    }
}

/// A device over its operations: what is durable after some of them.
pub struct Replay<'a> {
    ops: &'a [Op],
    durable: Image,
    applied: usize,
    kind: Kind,
}

impl<'a> Replay<'a> {
    pub fn new(image: Image, ops: &'a [Op], kind: Kind) -> Self {
        Self { ops, durable: image, applied: 0, kind }
    }

    /// Applies what is durable after `count` operations.
    fn sync(&mut self, count: usize) {
        let covered = self.ops[..count].iter().filter_map(|op| match op {
            Op::Sync { covered } => Some(*covered),
            _ => None,
        });
        let synced = covered.max().unwrap_or(0).max(self.applied);
        for op in &self.ops[self.applied..synced] {
            apply(&mut self.durable, op, self.kind);
        }
        self.applied = synced;
    }

    /// What losses of power in the last of `count` operations leave if it is a write, and all that
    /// precedes it is kept: each number of its pages, with the next one torn or not.
    pub fn cuts_in_write(&mut self, count: usize, rng: &mut Rng) -> Vec<Image> {
        self.sync(count);
        let Some(Op::Write { segment, page, data }) = self.ops[..count].last() else {
            return Vec::new();
        };
        let mut image = self.durable.clone();
        self.ops[self.applied..count - 1].iter().for_each(|op| apply(&mut image, op, self.kind));
        let mut images = Vec::new();
        for at in 0..data.len() {
            let begin = rng.below(BLOCK as u64) as usize;
            let mut torn = data[at].to_vec();
            torn[begin..].fill(0xa5);
            let slot = |image: &mut Image, data: Page| {
                image[*segment as usize][page + at] = Some(data);
            };
            images.push(image.clone());
            slot(images.last_mut().expect("just added"), torn.into());
            if at > 0 {
                images.push(image.clone());
            }
            slot(&mut image, Arc::clone(&data[at]));
        }
        images.push(image);
        images
    }

    /// What a loss of power after `count` operations leaves; counts do not decrease. Of the
    /// operations since the last sync, each segment keeps some first ones, and the next write may
    /// be torn.
    pub fn cut(&mut self, count: usize, rng: &mut Rng) -> Image {
        self.sync(count);
        let mut image = self.durable.clone();
        let mut of_segment: Vec<Vec<&Op>> = vec![Vec::new(); image.len()];
        for op in &self.ops[self.applied..count] {
            match op {
                Op::Write { segment, .. } | Op::Free { segment } => {
                    of_segment[*segment as usize].push(op);
                }
                Op::Sync { .. } => {}
            }
        }
        for ops in of_segment.into_iter().filter(|ops| !ops.is_empty()) {
            // Everything, nothing, or a part.
            let kept = match rng.below(3) {
                0 => ops.len(),
                1 => 0,
                _ => rng.below(ops.len() as u64 + 1) as usize,
            };
            ops[..kept].iter().for_each(|op| apply(&mut image, op, self.kind));
            if let Some(Op::Write { segment, page, data }) = ops.get(kept) {
                let whole = rng.below(data.len() as u64 + 1) as usize;
                let part =
                    Op::Write { segment: *segment, page: *page, data: data[..whole].to_vec() };
                apply(&mut image, &part, self.kind);
                if let (Some(torn), true) = (data.get(whole), rng.chance(0.5)) {
                    let mut torn = torn.to_vec();
                    let begin = rng.below(BLOCK as u64) as usize;
                    torn[begin..].fill(0xa5);
                    image[*segment as usize][page + whole] = Some(torn.into());
                }
            }
        }
        image
    }
}

impl Store for MemoryStore {
    fn shape(&self) -> Shape {
        let device = self.device();
        Shape {
            segments: device.image.len() as u32,
            segment_bytes: (device.image[0].len() * BLOCK) as u32,
            page_bytes: (self.page_blocks * BLOCK) as u32,
            channels: 1,
            dynamic_reserve: true,
        }
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        let mut device = self.device();
        let all = 0..device.image.len() as u32;
        let is_used = |segment: &u32| {
            self.kind == Kind::Drive
                || device.image[*segment as usize].iter().any(|page| page.is_some())
        };
        let (used, free): (Vec<u32>, Vec<u32>) = all.partition(is_used);
        device.free = free.into();
        Ok(used)
    }

    fn available(&mut self) -> u32 {
        self.device().free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.device().free.pop_front())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let mut device = self.device();
        assert!(!device.free.contains(&segment), "a free segment is written");
        let page = offset as usize / BLOCK;
        let pages: Vec<Page> = data.chunks(BLOCK).map(Into::into).collect();
        assert!(
            pages.len().is_multiple_of(self.page_blocks) && page.is_multiple_of(self.page_blocks)
        );
        if self.kind == Kind::Flash {
            let used = &device.image[segment as usize];
            let next = used.iter().rposition(|page| page.is_some()).map_or(0, |last| last + 1);
            assert_eq!(next, page, "segment {segment} is written in order");
        }
        let op = Op::Write { segment, page, data: pages };
        apply(&mut device.image, &op, self.kind);
        let number = device.ops.len();
        device.in_flight.push((tag, number));
        device.ops.push(op);
        device.counts.programs += (data.len() / BLOCK) as u64;
        device.done.push_back(Done { tag, end: SimTime::ZERO, result: Ok(()), data });
    }

    fn read(&mut self, segment: u32, offset: u32, mut data: Buffer, tag: u64) {
        let mut device = self.device();
        let mut result = Ok(());
        let first = offset as usize / BLOCK;
        for (to, page) in data.chunks_mut(BLOCK).zip(first..) {
            match &device.image[segment as usize][page] {
                Some(from) => to.copy_from_slice(from),
                None if self.kind == Kind::Drive => to.fill(0),
                None => result = Err(FlashError::Invalid { what: "nothing was written".into() }),
            }
        }
        device.done.push_back(Done { tag, end: SimTime::ZERO, result, data });
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        let mut device = self.device();
        assert!(!device.free.contains(&segment), "segment {segment} is freed twice");
        let op = Op::Free { segment };
        apply(&mut device.image, &op, self.kind);
        device.ops.push(op);
        device.free.push_back(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        let mut device = self.device();
        let covered = device.ops.len();
        device.ops.push(Op::Sync { covered });
        let data = Buffer::default();
        device.done.push_back(Done { tag, end: SimTime::ZERO, result: Ok(()), data });
    }

    /// It covers only what is complete when it is made: the least that it may.
    fn syncer(&self) -> Option<Syncer> {
        let store = self.clone();
        let device = self.device();
        let first = device.in_flight.iter().map(|&(_, number)| number).min();
        let covered = first.unwrap_or(device.ops.len());
        Some(Box::new(move || {
            let mut device = store.device();
            if device.fails {
                return Err(FlashError::Invalid { what: "the device fails".into() });
            }
            device.ops.push(Op::Sync { covered });
            Ok(())
        }))
    }

    fn reader(&self) -> Option<Reader> {
        let store = self.clone();
        Some(Arc::new(move |segment, offset, data: &mut [u8]| {
            let mut device = store.device();
            let first = offset as usize / BLOCK;
            let met = device.in_flight.iter().map(|&(_, number)| number).filter(|&number| {
                matches!(device.ops.get(number), Some(Op::Write { segment: to, page, data: pages })
                    if *to == segment && *page < first + data.len() / BLOCK
                        && first < page + pages.len())
            });
            if let Some(met) = met.min() {
                device.met = Some(device.met.map_or(met, |before| before.min(met)));
                data.fill(0xee);
                return Ok(());
            }
            let pages = &device.image[segment as usize][offset as usize / BLOCK..];
            for (to, page) in data.chunks_mut(BLOCK).zip(pages) {
                let Some(page) = page else {
                    return Err(FlashError::Invalid { what: "nothing was written".into() });
                };
                to.copy_from_slice(page);
            }
            Ok(())
        }))
    }

    fn syncs_writes_in_flight(&self) -> bool {
        true
    }

    fn poll(&mut self) -> Option<Done> {
        let mut device = self.device();
        let done = device.done.pop_front()?;
        device.in_flight.retain(|&(tag, _)| tag != done.tag);
        Some(done)
    }

    fn wait(&mut self, _timeout: Option<Nanos>) -> bool {
        let any = !self.device().done.is_empty();
        assert!(any, "a wait without anything in flight never ends");
        any
    }

    fn counts(&self) -> FlashCounts {
        self.device().counts
    }
}
