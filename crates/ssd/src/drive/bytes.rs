//! The bytes of requests, on drives whose flash keeps content, and the drive as a block device.
//!
//! Bytes are moved at one instant, between the caller's buffer, the write buffer and the flash. The
//! reads, transfers and programs that this takes are simulated without them. A read returns the
//! bytes of the units as they are when it looks them up. A partly written unit gets the bytes of
//! its rest when it enters the buffer, though the flash read that fetches them may end later: no
//! other write of the unit can come between, because it would find the unit in the buffer.

use std::collections::VecDeque;

use prism_base::SimTime;
use prism_engine::FlashWork;
use prism_engine::block::{
    BlockDevice, Completion, HostCounts, HostOp, Refused, Request, SubmitError,
};

use super::Drive;

/// Buffers of the callers.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    /// Buffers of requests in flight, by slot.
    by_slot: Vec<Option<Vec<u8>>>,
    /// Buffers of completed requests with their tags, until the caller takes them.
    returned: VecDeque<(u64, Vec<u8>)>,
}

impl Payloads {
    fn of(&mut self, slot: u32) -> &mut Option<Vec<u8>> {
        let slot = slot as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize_with(slot + 1, || None);
        }
        &mut self.by_slot[slot]
    }
}

impl Drive {
    /// Takes a request with its bytes; see [`BlockDevice::submit_bytes`].
    ///
    /// # Errors
    /// [`Refused`]; the drive is unchanged.
    ///
    /// # Panics
    /// As [`Drive::submit`], or if the buffer of a read or write has another length than the
    /// request.
    pub fn submit_bytes(
        &mut self,
        request: Request,
        bytes: Vec<u8>,
        now: SimTime,
    ) -> Result<(), Refused> {
        request.check_buffer(bytes.len());
        match self.accept(request, now) {
            Ok(slot) => {
                *self.payloads.get_or_insert_default().of(slot) = Some(bytes);
                Ok(())
            }
            Err(error) => Err(Refused { error, bytes }),
        }
    }

    /// The buffer of a completed request; see [`BlockDevice::take_bytes`].
    pub fn take_bytes(&mut self) -> Option<(u64, Vec<u8>)> {
        self.payloads.as_mut()?.returned.pop_front()
    }

    /// Returns the buffer of a request that completes to the caller.
    #[cold]
    pub(super) fn return_bytes(&mut self, slot: u32) {
        let tag = self.slots[slot].request.tag;
        let Some(payloads) = &mut self.payloads else { return };
        if let Some(bytes) = payloads.of(slot).take() {
            payloads.returned.push_back((tag, bytes));
        }
    }

    /// The bytes of `lpn` that a read would return now; empty if the unit is unmapped or was
    /// written without bytes, so that a read returns zeros.
    ///
    /// # Panics
    /// If the map leads to a page that cannot be read, which is a bug.
    #[must_use]
    pub fn bytes_of(&self, lpn: u32) -> &[u8] {
        match self.buffer.find(lpn) {
            Some(place) => self.buffer.bytes(place),
            None => self.flash_bytes(lpn),
        }
    }

    /// The bytes of `lpn` on flash; empty if there are none.
    fn flash_bytes(&self, lpn: u32) -> &[u8] {
        let Some(at) = self.engine.ftl().lookup(lpn) else { return &[] };
        let unit = self.engine.nand().read(at).expect("the map points to readable units only");
        unit.and_then(|unit| unit.payload.as_deref()).unwrap_or(&[])
    }

    /// Copies the bytes that a read returns into its buffer.
    #[cold]
    pub(super) fn read_bytes(&mut self, slot: u32) {
        let Some(payloads) = &mut self.payloads else { return };
        let Some(mut bytes) = payloads.of(slot).take() else { return };
        let mut at = self.slots[slot].request.offset;
        let mut left = &mut bytes[..];
        while !left.is_empty() {
            let within = (at % self.unit) as usize;
            let len = left.len().min(self.unit as usize - within);
            let (part, rest) = left.split_at_mut(len);
            match self.bytes_of(self.unit_of(at)) {
                [] => part.fill(0),
                unit => part.copy_from_slice(&unit[within..within + len]),
            }
            at += len as u64;
            left = rest;
        }
        if let Some(payloads) = &mut self.payloads {
            *payloads.of(slot) = Some(bytes);
        }
    }

    /// Gives the buffered unit `lpn` at `place` its bytes: those that the request writes, and
    /// around them the bytes from before, which are at `older` in the buffer or else on flash.
    #[cold]
    pub(super) fn buffer_bytes(&mut self, slot: u32, lpn: u32, place: u32, older: Option<u32>) {
        if !self.engine.nand().keeps_content() {
            return;
        }
        let Some(payloads) = &mut self.payloads else { return };
        let payload = payloads.of(slot).take();
        let request = self.slots[slot].request;
        let begin = u64::from(lpn) * self.unit;
        let from = request.offset.max(begin);
        let to = (request.offset + request.len).min(begin + self.unit);
        let within = (from - begin) as usize..(to - begin) as usize;
        let before = match older {
            Some(older) => self.buffer.bytes(older),
            None => self.flash_bytes(lpn),
        };
        let written = payload.as_deref().filter(|_| request.op.is_write());
        let mut unit: Box<[u8]> = match (before, written) {
            ([], None) => Box::default(),
            ([], Some(_)) => vec![0; self.unit as usize].into(),
            (before, _) => before.into(),
        };
        match written {
            Some(bytes) => {
                let first = (from - request.offset) as usize;
                unit[within.clone()].copy_from_slice(&bytes[first..first + within.len()]);
            }
            None if request.op == HostOp::WriteZeroes && !unit.is_empty() => unit[within].fill(0),
            None => {}
        }
        *self.buffer.bytes_mut(place) = unit;
        if let Some(payloads) = &mut self.payloads {
            *payloads.of(slot) = payload;
        }
    }

    /// The bytes of the program unit that is about to be programmed, unit by unit.
    #[cold]
    pub(super) fn program_unit_bytes(&self) -> Vec<Box<[u8]>> {
        self.program_unit.iter().map(|unit| self.buffer.bytes(unit.tag).into()).collect()
    }
}

impl BlockDevice for Drive {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn unit(&self) -> u64 {
        self.unit
    }

    #[inline]
    fn now(&self) -> SimTime {
        Drive::now(self)
    }

    fn queues(&self) -> u16 {
        self.device.drive.queues as u16
    }

    #[inline]
    fn can_accept(&self, queue: u16) -> bool {
        Drive::can_accept(self, queue)
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        Drive::in_flight(self)
    }

    #[inline]
    fn host_counts(&self) -> &HostCounts {
        Drive::host_counts(self)
    }

    fn flash_work(&self) -> Option<FlashWork> {
        let (flash, map) = (*self.flash_counts(), self.map_counts().copied());
        Some(FlashWork { flash, map, merges: self.merge_counts() })
    }

    fn is_read_only(&self) -> bool {
        self.read_only().is_some()
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        Drive::prefetch(self, offset);
    }

    #[inline]
    fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError> {
        Drive::submit(self, request, now)
    }

    fn submit_bytes(
        &mut self,
        request: Request,
        bytes: Vec<u8>,
        now: SimTime,
    ) -> Result<(), Refused> {
        Drive::submit_bytes(self, request, bytes, now)
    }

    fn take_bytes(&mut self) -> Option<(u64, Vec<u8>)> {
        Drive::take_bytes(self)
    }

    #[inline]
    fn next_event(&self) -> Option<SimTime> {
        Drive::next_event(self)
    }

    fn step(&mut self, out: &mut Vec<Completion>) {
        Drive::step(self, out);
    }

    #[inline]
    fn next_completion(&mut self, out: &mut Vec<Completion>) -> bool {
        Drive::next_completion(self, out)
    }

    #[inline]
    fn next_completion_before(&mut self, end: SimTime, out: &mut Vec<Completion>) -> bool {
        Drive::next_completion_before(self, end, out)
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        Drive::advance(self, until, out);
    }

    fn assert_conserved(&self) {
        Drive::assert_conserved(self);
    }
}
