//! The host FTL as a block device. It keeps no bytes, as the drive below it keeps none.

use prism_base::SimTime;
use prism_engine::FlashWork;
use prism_ssd::{
    BlockDevice, Completion, Drive, HostCounts, HostOp, ReadOnly, Refused, Request, SubmitError,
};
use prism_trace::Source;
use prism_workload::Observer;

use super::{HostFtl, HostFtlCounts, ZONES};
use crate::options::Options;
use crate::replay_device::ReplayDevice;
use crate::run::{ReplayError, ReplayResult, replay_on};

impl BlockDevice for HostFtl {
    fn capacity(&self) -> u64 {
        self.units() * self.unit
    }

    fn unit(&self) -> u64 {
        self.unit
    }

    fn now(&self) -> SimTime {
        self.time()
    }

    fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError> {
        self.check(&request)?;
        if now > self.time() {
            let mut none = Vec::new();
            self.controller.device_mut().drive.advance(now, &mut none);
            assert!(none.is_empty(), "events before the request are due");
        }
        self.account();
        self.counts.submitted += 1;
        self.begin(request);
        Ok(())
    }

    fn submit_bytes(
        &mut self,
        request: Request,
        bytes: Vec<u8>,
        now: SimTime,
    ) -> Result<(), Refused> {
        request.check_buffer(bytes.len());
        match self.submit(request, now) {
            Ok(()) => {
                self.buffers.push((request.tag, bytes));
                Ok(())
            }
            Err(error) => Err(Refused { error, bytes }),
        }
    }

    fn take_bytes(&mut self) -> Option<(u64, Vec<u8>)> {
        self.returned.pop_front()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.next_at()
    }

    fn step(&mut self, out: &mut Vec<Completion>) {
        let before = out.len();
        if let Some(slot) = self.ready.pop_front() {
            self.finish(slot, out);
        } else {
            self.step_drive(out);
        }
        if !self.buffers.is_empty() {
            self.return_buffers(&out[before..]);
        }
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        while self.next_at().is_some_and(|at| at <= until) {
            self.step(out);
        }
        self.controller.device_mut().drive.advance(until, &mut Vec::new());
    }

    fn can_accept(&self, queue: u16) -> bool {
        queue == 0 && (self.slots.in_use() as u32) < self.flash().drive.device().drive.queue_depth
    }

    fn in_flight(&self) -> u32 {
        self.slots.in_use() as u32
    }

    fn host_counts(&self) -> &HostCounts {
        &self.counts
    }

    fn flash_work(&self) -> Option<FlashWork> {
        self.drive().flash_work()
    }

    fn is_read_only(&self) -> bool {
        ReplayDevice::read_only(self).is_some()
    }

    /// Checks that requests submitted = completed + in flight, and the laws of the drive and of the
    /// controller.
    fn assert_conserved(&self) {
        self.drive().assert_conserved();
        self.controller.assert_conserved();
        self.counts.assert_conserved(self.in_flight());
    }
}

impl HostFtl {
    /// Returns the buffers of completed requests to the caller; those of reads are zeros.
    #[cold]
    fn return_buffers(&mut self, done: &[Completion]) {
        for completion in done {
            let mut buffers = self.buffers.iter();
            let Some(place) = buffers.position(|&(tag, _)| tag == completion.tag) else { continue };
            let (tag, mut bytes) = self.buffers.remove(place);
            if completion.op == HostOp::Read {
                bytes.fill(0);
            }
            self.returned.push_back((tag, bytes));
        }
    }
}

impl ReplayDevice for HostFtl {
    fn drive(&self) -> &Drive {
        &self.flash().drive
    }

    fn host_ftl_counts(&self) -> Option<HostFtlCounts> {
        Some(self.counts())
    }

    fn read_only(&self) -> Option<ReadOnly> {
        self.read_only.or_else(|| self.drive().read_only())
    }

    fn spare_units(&self) -> u64 {
        let units = u64::from(self.good_zones()) * self.zone_units();
        units.saturating_sub(self.units())
    }

    fn erased_units(&self) -> u64 {
        u64::from(self.controller.ftl().free_blocks(ZONES)) * self.zone_units()
    }

    fn is_cleaning(&self, erased: u64) -> bool {
        let counts = self.counts();
        counts.written + counts.copied >= erased && counts.cleaned > 0
    }

    fn replay(
        &mut self,
        source: &mut dyn Source,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<ReplayResult, ReplayError> {
        replay_on(self, source, options, observer)
    }

    fn assert_consistent(&self) {
        self.assert_conserved();
        self.drive().assert_consistent();
        self.controller.ftl().assert_consistent();
        if self.flash().is_at_rest() {
            let written = self.drive().host_counts().bytes_written / self.unit;
            let counts = self.controller.counts();
            let (failed, all) = (counts.faults.program_failures, counts.units.total());
            assert_eq!(written + failed, all, "units submitted to the drive");
        }
    }
}
