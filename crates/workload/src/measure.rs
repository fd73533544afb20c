//! Figures measured while a drive serves requests, over one or more passes.

use prism_base::{Latencies, Nanos};
use prism_engine::{FlashCounts, FlashWork};
use prism_ssd::{HostOp, MapCounts, MergeCounts, Status};

use crate::fio::stats::JobStats;

/// Figures of a part of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Number of passes.
    pub passes: u32,
    /// Latencies by operation, in the order of [`HostOp::ALL`], from the time a request was due to
    /// its completion.
    pub latency: [Latencies; HostOp::COUNT],
    /// Bytes of completed requests, in the same order.
    pub bytes: [u64; HostOp::COUNT],
    /// Bytes of write-zeroes that the drive wrote as data, because it does not unmap.
    pub zeroed: u64,
    /// Completed requests other than flushes, failed ones included.
    pub requests: u64,
    /// Requests that failed, in the same order: they have no latency and no bytes.
    pub errors: [u64; HostOp::COUNT],
    /// Requests that were due while the drive's queue was full.
    pub held_back: u64,
    /// The sum of the times they waited, in nanoseconds.
    pub held_back_ns: u128,
    /// Flash operations.
    pub flash: FlashCounts,
    /// Bytes of flash programmed, padding included.
    pub flash_bytes: u64,
    /// Hits and misses of the map cache, if the map is on flash.
    pub map: Option<MapCounts>,
    /// Merges by kind, with block-level and hybrid mappings.
    pub merges: Option<MergeCounts>,
    /// Simulated time.
    pub simulated: Nanos,
    /// Integral of requests in flight, in nanoseconds: divide by time for the mean depth.
    pub in_flight_ns: u128,
    /// The most requests in flight at once.
    pub in_flight_max: u32,
    /// Mapping units read or rewritten in the write buffer.
    pub buffer_hits: u64,
    /// Unmapped mapping units read.
    pub unmapped: u64,
    /// The most simulated time by which a submission was later than due.
    pub behind_max: Nanos,
}

impl Measured {
    /// Bytes programmed for every cause over bytes the host wrote ([`Self::written`]); `None` if it
    /// wrote nothing.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.written();
        (written > 0).then(|| self.flash_bytes as f64 / written as f64)
    }

    /// Adds work on flash whose mapping units have `unit` bytes.
    pub fn add_work(&mut self, work: &FlashWork, unit: u64) {
        self.flash.add(&work.flash);
        self.flash_bytes += work.flash.units.total() * unit;
        if let Some(map) = &work.map {
            self.map.get_or_insert_default().add(map);
        }
        if let Some(merges) = &work.merges {
            self.merges.get_or_insert_default().add(merges);
        }
    }

    /// Adds the figures of another period, except the number of passes.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.latency.iter_mut().zip(&other.latency) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            *ours += theirs;
        }
        for (ours, theirs) in self.errors.iter_mut().zip(other.errors) {
            *ours += theirs;
        }
        self.zeroed += other.zeroed;
        self.requests += other.requests;
        self.held_back += other.held_back;
        self.held_back_ns += other.held_back_ns;
        self.flash.add(&other.flash);
        self.flash_bytes += other.flash_bytes;
        if let Some(map) = &other.map {
            self.map.get_or_insert_default().add(map);
        }
        if let Some(merges) = &other.merges {
            self.merges.get_or_insert_default().add(merges);
        }
        self.simulated += other.simulated;
        self.in_flight_ns += other.in_flight_ns;
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.buffer_hits += other.buffer_hits;
        self.unmapped += other.unmapped;
        self.behind_max = self.behind_max.max(other.behind_max);
    }

    /// Adds a completion of `op` over `len` bytes, `latency` after it was due.
    pub fn completed(&mut self, op: HostOp, len: u64, status: Status, latency: Nanos) {
        if status == Status::Done {
            self.latency[op as usize].record(latency);
            self.bytes[op as usize] += len;
        } else {
            self.errors[op as usize] += 1;
        }
        self.requests += u64::from(op != HostOp::Flush);
    }

    /// Adds the I/Os of a row of jobs, without those that failed.
    pub(crate) fn add_row(&mut self, row: &JobStats) {
        let ops = [HostOp::Read, HostOp::Write, HostOp::Discard];
        for (op, dir) in ops.into_iter().zip(&row.dirs) {
            let Some(dir) = dir else { continue };
            self.latency[op as usize].merge(&dir.latency);
            self.bytes[op as usize] += dir.bytes;
            self.requests += dir.ios;
        }
        if let Some(flushes) = &row.flushes {
            self.latency[HostOp::Flush as usize].merge(flushes);
        }
    }

    /// Latencies of `op`.
    #[must_use]
    pub fn latency_of(&self, op: HostOp) -> &Latencies {
        &self.latency[op as usize]
    }

    /// Bytes that the host wrote: by writes, zone appends, and write-zeroes that are data.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.bytes_of(HostOp::Write) + self.bytes_of(HostOp::ZoneAppend) + self.zeroed
    }

    /// Latencies of reads and writes together.
    #[must_use]
    pub fn reads_and_writes(&self) -> Latencies {
        let mut both = self.latency_of(HostOp::Read).clone();
        both.merge(self.latency_of(HostOp::Write));
        both
    }

    /// Bytes of completed requests of `op`.
    #[must_use]
    pub fn bytes_of(&self, op: HostOp) -> u64 {
        self.bytes[op as usize]
    }

    /// Requests per second of simulated time, without flushes.
    #[must_use]
    pub fn iops(&self) -> f64 {
        rate(self.requests, self.simulated)
    }

    /// Bytes read and written per second of simulated time.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        let moved = self.bytes_of(HostOp::Read) + self.bytes_of(HostOp::Write);
        rate(moved, self.simulated)
    }

    /// Mean number of requests in flight.
    #[must_use]
    pub fn in_flight_mean(&self) -> f64 {
        if self.simulated.0 == 0 { 0.0 } else { self.in_flight_ns as f64 / self.simulated.0 as f64 }
    }
}

fn rate(amount: u64, span: Nanos) -> f64 {
    if span.0 == 0 { 0.0 } else { amount as f64 / span.as_secs_f64() }
}
