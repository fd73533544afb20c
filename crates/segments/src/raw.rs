//! Segments at the raw level: the program allocates blocks and erases them. The number of a segment
//! is the place of its block, so the index has physical addresses.
//!
//! A segment is opened on the LUN with the fewest commands in flight, among those the one with the
//! most erased blocks.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::{Nanos, SimTime, Slab as Places};
use prism_flash::raw::{Command, Completion, Queue, Raw};
use prism_flash::{Buffer, FlashError};

use crate::{DEPTH, Done, FlashCounts, Numbering, Shape, Store, counts_of, now_of, pass_rest};

/// A command in flight: the segment, and what it is a part of.
#[derive(Clone, Copy, Debug)]
struct Part {
    segment: u32,
    of: Of,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    /// A page of the transfer at this place, and its first byte in it.
    Transfer(u32, usize),
    Erase,
    /// The tag of a sync.
    Sync(u64),
}

/// A read or write of some pages, of which each is a command.
#[derive(Debug)]
struct Transfer {
    tag: u64,
    pages_left: u32,
    is_read: bool,
    data: Buffer,
    result: Result<(), FlashError>,
}

/// A LUN.
#[derive(Debug, Default)]
struct Lun {
    erased: VecDeque<u32>,
    in_flight: u32,
}

/// A store on blocks that the program allocates.
pub struct RawStore {
    raw: Arc<Raw>,
    queue: Queue<Arc<Raw>>,
    numbering: Numbering,
    luns: Vec<Lun>,
    identity: u64,
    shape: Shape,
    /// Commands in flight; the tag of the queue is the place.
    parts: Places<Option<Part>>,
    transfers: Places<Option<Transfer>>,
    erasing: u32,
}

impl RawStore {
    /// A store on this level of a share; `identity` is that of its device.
    #[must_use]
    pub fn new(raw: Raw, identity: u64) -> Self {
        let geometry = raw.geometry().clone();
        let numbering = Numbering::new(&geometry);
        let shape = Shape {
            segments: numbering.segments(),
            segment_bytes: geometry.block_bytes() as u32,
            page_bytes: geometry.page_size,
            channels: geometry.channels.len() as u32,
            dynamic_reserve: true,
        };
        let raw = Arc::new(raw);
        let queue = Queue::new(Arc::clone(&raw), DEPTH);
        let luns = (0..geometry.luns).map(|_| Lun::default()).collect();
        let (parts, transfers) = (Places::new(), Places::new());
        Self { raw, queue, numbering, luns, identity, shape, parts, transfers, erasing: 0 }
    }

    fn lun_of(&self, segment: u32) -> usize {
        (segment / self.raw.geometry().blocks_per_lun) as usize
    }

    fn submit(&mut self, segment: u32, command: Command, of: Of) {
        let lun = self.lun_of(segment);
        self.luns[lun].in_flight += 1;
        let place = self.parts.take();
        self.parts[place] = Some(Part { segment, of });
        self.queue.submit(command, place.into()).expect("the queue is long");
    }

    /// Reads or writes pages, each by a command.
    fn transfer(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64, is_read: bool) {
        let page = self.shape.page_bytes as usize;
        let pages = data.len() / page;
        let place = self.transfers.take();
        let first = self.numbering.address(segment).with_page(offset / self.shape.page_bytes);
        for number in 0..pages {
            let at = first.with_page(first.page + number as u32);
            let begin = number * page;
            let command = match is_read {
                true => Command::read(at, vec![0; page]),
                false => Command::write(at, data[begin..begin + page].to_vec()),
            };
            self.submit(segment, command, Of::Transfer(place, begin));
        }
        let (pages_left, result) = (pages as u32, Ok(()));
        self.transfers[place] = Some(Transfer { tag, pages_left, is_read, data, result });
    }

    /// A page of a transfer is complete; returns the transfer if it was the last one.
    fn page_done(&mut self, place: u32, begin: usize, done: Completion) -> Option<Done> {
        let transfer = self.transfers[place].as_mut().expect("in flight");
        match done.result {
            Ok(()) if transfer.is_read => {
                transfer.data[begin..begin + done.data.len()].copy_from_slice(&done.data);
            }
            Ok(()) => {}
            // Those that follow a page that failed fail because of it.
            Err(error) => {
                transfer.result = std::mem::replace(&mut transfer.result, Ok(())).and(Err(error))
            }
        }
        transfer.pages_left -= 1;
        if transfer.pages_left > 0 {
            return None;
        }
        let Transfer { tag, data, result, .. } = self.transfers[place].take().expect("as above");
        self.transfers.give(place);
        Some(Done { tag, end: done.end, result, data })
    }
}

impl Store for RawStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        self.identity
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        let mut used = Vec::new();
        for segment in 0..self.shape.segments {
            let at = self.numbering.address(segment);
            // A block whose erase was interrupted has no pages, and still has to be erased.
            let is_used = self.raw.write_pointer(at)? > 0
                || matches!(self.raw.read_at(at, 0, &mut []), Err(FlashError::Torn { .. }));
            if is_used {
                used.push(segment);
            } else {
                let lun = self.lun_of(segment);
                self.luns[lun].erased.push_back(segment);
            }
        }
        Ok(used)
    }

    fn available(&mut self) -> u32 {
        self.luns.iter().map(|lun| lun.erased.len() as u32).sum()
    }

    fn erasing(&mut self) -> u32 {
        self.erasing
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        let with_blocks = self.luns.iter_mut().filter(|lun| !lun.erased.is_empty());
        let lun = with_blocks.min_by_key(|lun| (lun.in_flight, usize::MAX - lun.erased.len()));
        Ok(lun.and_then(|lun| lun.erased.pop_front()))
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.transfer(segment, offset, data, tag, false);
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.transfer(segment, offset, data, tag, true);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        let at = self.numbering.address(segment);
        self.erasing += 1;
        self.submit(segment, Command::Erase { at }, Of::Erase);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.submit(0, Command::Sync, Of::Sync(tag));
    }

    fn buffer(&self, len: usize) -> Buffer {
        self.raw.device().buffer(len)
    }

    fn poll(&mut self) -> Option<Done> {
        loop {
            let done = self.queue.poll()?;
            let place = done.tag as u32;
            let Part { segment, of } = self.parts[place].take().expect("in flight");
            self.parts.give(place);
            let lun = self.lun_of(segment);
            self.luns[lun].in_flight -= 1;
            match of {
                Of::Erase => {
                    self.erasing -= 1;
                    // A block that cannot be erased is lost. If the device itself has failed, the
                    // next write fails with its error, which the caller then learns.
                    let is_there = matches!(done.result, Ok(()) | Err(FlashError::Medium(_)));
                    self.luns[lun].erased.extend(is_there.then_some(segment));
                }
                Of::Sync(tag) => {
                    let Completion { end, result, data, .. } = done;
                    return Some(Done { tag, end, result, data });
                }
                Of::Transfer(place, begin) => {
                    if let Some(done) = self.page_done(place, begin, done) {
                        return Some(done);
                    }
                }
            }
        }
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let begun = self.now();
        self.queue.wait(timeout) || pass_rest(self.raw.share(), begun, timeout)
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.event_fd()
    }

    fn counts(&self) -> FlashCounts {
        counts_of(self.raw.share())
    }

    fn now(&self) -> SimTime {
        now_of(self.raw.share())
    }
}
