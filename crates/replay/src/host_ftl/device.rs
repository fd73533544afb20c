//! The host FTL as a block device. It keeps no bytes, as the drive below it keeps none.

use prism_base::SimTime;
use prism_ssd::{
    BlockDevice, Completion, Drive, HostCounts, HostOp, ReadOnly, Refused, Request, SubmitError,
};
use prism_trace::Source;
use prism_workload::Observer;

use super::{HostFtl, HostFtlCounts, ZoneUse};
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

    fn keeps_bytes(&self) -> bool {
        false
    }

    fn now(&self) -> SimTime {
        self.drive.now()
    }

    fn submit(&mut self, request: Request, now: SimTime) -> Result<(), SubmitError> {
        self.check(&request)?;
        if now > self.drive.now() {
            let mut none = Vec::new();
            self.drive.advance(now, &mut none);
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
        } else if let Some(refused) = self.refused.pop_front() {
            self.completed(&refused, out);
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
        self.drive.advance(until, &mut Vec::new());
    }

    fn can_accept(&self, queue: u16) -> bool {
        queue == 0 && (self.slots.in_use() as u32) < self.drive.device().drive.queue_depth
    }

    fn in_flight(&self) -> u32 {
        self.slots.in_use() as u32
    }

    fn host_counts(&self) -> &HostCounts {
        &self.counts
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
        &self.drive
    }

    fn prefetch(&self, _offset: u64) {
        // The offset on the drive is not known before the request is submitted.
    }

    fn host_ftl_counts(&self) -> Option<&HostFtlCounts> {
        Some(&self.ftl_counts)
    }

    fn read_only(&self) -> Option<ReadOnly> {
        self.read_only.or_else(|| self.drive.read_only())
    }

    fn spare_units(&self) -> u64 {
        let units = u64::from(self.good_zones()) * u64::from(self.zone_units);
        units.saturating_sub(self.units())
    }

    fn erased_units(&self) -> u64 {
        self.empty.len() as u64 * u64::from(self.zone_units)
    }

    fn is_cleaning(&self, erased: u64) -> bool {
        self.ftl_counts.written + self.ftl_counts.copied >= erased && self.ftl_counts.cleaned > 0
    }

    fn replay(
        &mut self,
        source: &mut dyn Source,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<ReplayResult, ReplayError> {
        replay_on(self, source, options, observer)
    }

    /// Checks that requests submitted = completed + in flight, and the laws of the drive.
    fn assert_conserved(&self) {
        self.drive.assert_conserved();
        self.counts.assert_conserved(self.in_flight());
    }

    fn assert_consistent(&self) {
        self.assert_conserved();
        self.drive.assert_consistent();
        let mut valid = vec![0; self.zones.len()];
        for (lpn, pun) in (0..self.map.len() as u32).filter_map(|l| Some((l, self.pun_of(l)?))) {
            assert_eq!(self.valid_at(pun), Some(lpn), "both maps must agree");
            valid[self.zone_of(pun)] += 1;
        }
        for (zone, known) in self.zones.iter().enumerate() {
            assert_eq!(valid[zone], known.valid, "valid units of zone {zone}");
            let failed = matches!(known.used, ZoneUse::Failed | ZoneUse::Gone);
            assert!(
                failed || known.next >= known.valid,
                "at most as many valid units as written ones"
            );
            assert_eq!(known.used == ZoneUse::Empty, self.empty.contains(&(zone as u32)));
        }
        if self.drive.in_flight() == 0 && self.outbox.is_empty() {
            let written = self.drive.host_counts().bytes_written / self.unit;
            let submitted =
                self.ftl_counts.written + self.ftl_counts.copied + self.ftl_counts.rewritten;
            assert_eq!(written + self.failed_units, submitted, "units submitted to the drive");
        }
    }
}
