//! Segments on a block device, such as a conventional drive, whose flash the program does not see.

use std::collections::VecDeque;

use prism_base::{Nanos, SimTime};
use prism_engine::block::{BlockDevice, Completion, HostOp, Request, Status};
use prism_flash::{Buffer, FlashError};

use crate::{Done, FlashCounts, Shape, Store};

/// The tag of trims.
const TRIM: u64 = u64::MAX;

/// A store on a block device that is new.
#[derive(Debug)]
pub struct DriveStore<D> {
    device: D,
    free: VecDeque<u32>,
    completed: Vec<Completion>,
    done: VecDeque<Done>,
    shape: Shape,
    trims: bool,
    counts: fn(&D) -> FlashCounts,
}

impl<D: BlockDevice> DriveStore<D> {
    /// A store of segments of this many bytes on a device of `channels` channels, whose work on
    /// flash `counts` returns. It trims what it frees, or leaves it to be overwritten, as fatcache
    /// does.
    #[must_use]
    pub fn new(
        device: D,
        segment_bytes: u32,
        channels: u32,
        trims: bool,
        counts: fn(&D) -> FlashCounts,
    ) -> Self {
        let shape = Shape {
            segments: (device.capacity() / u64::from(segment_bytes)) as u32,
            segment_bytes,
            page_bytes: device.unit() as u32,
            channels,
            dynamic_reserve: false,
        };
        let free = (0..shape.segments).collect();
        Self { device, free, completed: Vec::new(), done: VecDeque::new(), shape, trims, counts }
    }

    fn submit(&mut self, op: HostOp, segment: u32, offset: u32, data: Buffer, tag: u64) {
        let begin = u64::from(segment) * u64::from(self.shape.segment_bytes) + u64::from(offset);
        let len = if tag == TRIM { u64::from(self.shape.segment_bytes) } else { data.len() as u64 };
        let request = Request::new(op, begin, len, tag);
        // The queue of a drive is long enough for all buffers of a program.
        while !self.device.can_accept(0) && self.device.next_completion(&mut self.completed) {}
        let submitted = self.device.submit_bytes(request, data.into_vec(), self.device.now());
        submitted.expect("whole pages of the device");
        self.take();
    }

    /// Takes what has completed.
    fn take(&mut self) {
        for completion in self.completed.drain(..) {
            let (tag, data) = self.device.take_bytes().expect("every request has a buffer");
            let result = match completion.status {
                Status::Done => Ok(()),
                status => Err(FlashError::Invalid { what: format!("the drive: {status:?}") }),
            };
            if tag != TRIM {
                let (end, data) = (completion.completed, data.into());
                self.done.push_back(Done { tag, end, result, data });
            }
        }
    }
}

impl<D: BlockDevice> Store for DriveStore<D> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        Ok(Vec::new())
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.free.pop_front())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.submit(HostOp::Write, segment, offset, data, tag);
    }

    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        self.submit(HostOp::Read, segment, offset, data, tag);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        if self.trims {
            self.submit(HostOp::Discard, segment, 0, Buffer::default(), TRIM);
        }
        self.free.push_back(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.submit(HostOp::Flush, 0, 0, Buffer::default(), tag);
    }

    fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn wait(&mut self, timeout: Option<Nanos>) -> bool {
        let until = timeout.map_or(SimTime(u64::MAX), |timeout| self.device.now() + timeout);
        while self.done.is_empty() {
            match self.device.next_event() {
                Some(event) if event <= until => self.device.step(&mut self.completed),
                _ if timeout.is_some() => {
                    self.device.advance(until, &mut self.completed);
                    break;
                }
                _ => return false,
            }
            self.take();
        }
        !self.done.is_empty()
    }

    fn counts(&self) -> FlashCounts {
        (self.counts)(&self.device)
    }

    fn now(&self) -> SimTime {
        self.device.now()
    }
}
