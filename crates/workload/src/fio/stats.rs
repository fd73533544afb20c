//! Statistics of a job, in the form in which fio reports them.

use prism_base::{Latencies, Nanos, SimTime};
use prism_ssd::{HostOp, Status};

prism_base::named_enum! {
    /// Directions of I/O, in fio's order, with the keys in its JSON.
    pub enum Dir {
        /// Reads.
        Read = "read",
        /// Writes.
        Write = "write",
        /// Trims.
        Trim = "trim",
    }
}

impl Dir {
    /// The direction of a command; `None` for a FLUSH or a zone management command.
    #[must_use]
    pub fn of(op: HostOp) -> Option<Self> {
        match op {
            HostOp::Read => Some(Self::Read),
            HostOp::Write | HostOp::WriteZeroes | HostOp::ZoneAppend => Some(Self::Write),
            HostOp::Discard => Some(Self::Trim),
            _ => None,
        }
    }
}

/// Length of a bandwidth sample: fio's default.
pub const SAMPLE: Nanos = Nanos(500_000_000);

/// Count, minimum, maximum, mean and standard deviation of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// Number of samples.
    pub count: u64,
    /// The smallest; 0 if there is none.
    pub min: f64,
    /// The largest; 0 if there is none.
    pub max: f64,
    sum: f64,
    squares: f64,
}

impl Samples {
    fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Adds `times` samples of zero.
    fn add_zeros(&mut self, times: u64) {
        if times > 0 {
            self.add(0.0);
            self.count += times - 1;
        }
    }

    /// The mean; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The standard deviation; 0 if there is none.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        (self.squares / self.count as f64 - self.mean() * self.mean()).max(0.0).sqrt()
    }
}

/// One direction of a row.
#[derive(Clone, Debug, Default)]
pub struct DirStats {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes of these I/Os.
    pub bytes: u64,
    /// Latencies, from issue by the job to completion.
    pub latency: Latencies,
    /// Bytes per second in each [`SAMPLE`].
    pub bandwidth: Samples,
    /// I/Os per second in each [`SAMPLE`].
    pub iops: Samples,
    /// End of the current sample, and its I/Os and bytes.
    sample_end: SimTime,
    sample_ios: u64,
    sample_bytes: u64,
}

impl DirStats {
    /// Ends the samples that end at `at` or before.
    #[inline(never)]
    fn end_samples(&mut self, at: SimTime) {
        if at < self.sample_end {
            return;
        }
        let seconds = SAMPLE.as_secs_f64();
        self.bandwidth.add(self.sample_bytes as f64 / seconds);
        self.iops.add(self.sample_ios as f64 / seconds);
        (self.sample_ios, self.sample_bytes) = (0, 0);
        // There may be a year without I/Os, so no loop.
        let empty = at.since(self.sample_end).0 / SAMPLE.0;
        self.bandwidth.add_zeros(empty);
        self.iops.add_zeros(empty);
        self.sample_end += Nanos((empty + 1) * SAMPLE.0);
    }

    #[inline]
    fn add_to_sample(&mut self, ios: u64, bytes: u64) {
        self.ios += ios;
        self.bytes += bytes;
        self.sample_ios += ios;
        self.sample_bytes += bytes;
    }
}

/// Completed I/Os that are counted at once, so that the cache misses of their histogram overlap.
pub(super) const COUNTED_AT_ONCE: usize = 64;

/// A completed I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    pub len: u64,
    pub at: SimTime,
    pub latency: Nanos,
}

/// One row of the report: a job, or the jobs of a group with `group_reporting`.
#[derive(Clone, Debug, Default)]
pub struct JobStats {
    /// Reads, writes and trims; `None` for a direction without I/Os.
    pub dirs: [Option<Box<DirStats>>; 3],
    /// Latencies of FLUSHes.
    pub flushes: Option<Box<Latencies>>,
    /// I/Os by the number in flight when they were issued: 1, 2-3, 4-7, 8-15, 16-31,
    /// 32-63, more.
    pub depths: [u64; 7],
    /// I/Os by latency below 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 ns.
    pub nanos: [u64; 10],
    /// The same in microseconds.
    pub micros: [u64; 10],
    /// In milliseconds, with below 2000 and above at the end.
    pub millis: [u64; 12],
    /// Failed I/Os, which no other count includes.
    pub errors: u64,
    /// Status of the first failed I/O.
    pub first_error: Option<Status>,
    /// When the measurement began.
    pub begin: Option<SimTime>,
    /// The last measured completion, or the begin.
    pub end: SimTime,
    /// I/Os that are not counted yet, with their direction and depth.
    recent: Vec<(Dir, u32, Completed)>,
}

/// Upper bounds of the latency classes, in their unit.
const BOUNDS: [usize; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// The latency class of each value below the last bound: a search would mispredict branches.
const CLASSES: [u8; BOUNDS[10]] = {
    let mut classes = [0; BOUNDS[10]];
    let (mut class, mut value) = (0, 0);
    while value < BOUNDS[10] {
        if value == BOUNDS[class] {
            class += 1;
        }
        classes[value] = class as u8;
        value += 1;
    }
    classes
};

impl JobStats {
    /// Begins the measurement, unless it has begun before.
    pub(super) fn begin(&mut self, at: SimTime) {
        let begin = *self.begin.get_or_insert(at);
        self.end = self.end.max(begin);
    }

    /// Counts a failed I/O.
    pub(super) fn fail(&mut self, status: Status, at: SimTime) {
        self.end = self.end.max(at);
        self.errors += 1;
        self.first_error.get_or_insert(status);
    }

    /// Adds a completed I/O, which [`JobStats::count_recent`] counts; `depth` I/Os were in flight
    /// when it was issued, itself included.
    #[inline(always)]
    pub(super) fn record(&mut self, op: HostOp, depth: u32, io: Completed) {
        let Some(dir) = Dir::of(op) else {
            self.end = self.end.max(io.at);
            self.flushes.get_or_insert_default().record(io.latency);
            return;
        };
        self.recent.push((dir, depth, io));
        if self.recent.len() >= COUNTED_AT_ONCE {
            self.count_recent();
        }
    }

    /// Counts the I/Os that were added since the last call.
    #[inline(never)]
    pub(super) fn count_recent(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        for run in recent.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let (dir, depth, _) = run[0];
            self.count(dir, depth, run.iter().map(|&(.., io)| io));
        }
        recent.clear();
        self.recent = recent;
    }

    /// Counts I/Os of one direction and depth that have completed in this order, after all others
    /// that were added.
    #[inline(always)]
    pub(super) fn count<I>(&mut self, dir: Dir, depth: u32, ios: I)
    where
        I: DoubleEndedIterator<Item = Completed> + ExactSizeIterator + Clone,
    {
        let Some(last) = ios.clone().next_back() else { return };
        let begin = self.begin.expect("measured only after the beginning");
        let stats = self.dirs[dir as usize].get_or_insert_default();
        if stats.ios == 0 {
            stats.sample_end = begin + SAMPLE;
        }
        self.end = self.end.max(last.at);
        self.depths[(depth.max(1).ilog2() as usize).min(6)] += ios.len() as u64;
        if last.at < stats.sample_end {
            stats.add_to_sample(ios.len() as u64, ios.clone().map(|io| io.len).sum());
        } else {
            for Completed { len, at, .. } in ios.clone() {
                stats.end_samples(at);
                stats.add_to_sample(1, len);
            }
        }
        let class = |value: u64| usize::from(CLASSES.get(value as usize).copied().unwrap_or(11));
        stats.latency.record_all(ios.map(|Completed { latency, .. }| {
            match latency.0 {
                ns @ 0..1000 => self.nanos[class(ns)] += 1,
                ns @ 1000..1_000_000 => self.micros[class(ns / 1000)] += 1,
                ns => self.millis[class(ns / 1_000_000)] += 1,
            }
            latency
        }));
    }

    /// One direction, if it has I/Os.
    #[must_use]
    pub fn dir(&self, dir: Dir) -> Option<&DirStats> {
        self.dirs[dir as usize].as_deref()
    }

    /// From the beginning of the measurement to the last completion.
    #[must_use]
    pub fn span(&self) -> Nanos {
        self.begin.map_or(Nanos::ZERO, |begin| self.end.since(begin))
    }

    /// I/Os of all directions.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.dirs.iter().flatten().map(|dir| dir.ios).sum()
    }

    /// `amount` per second of [`JobStats::span`]; 0 if the span is zero.
    #[must_use]
    pub fn per_second(&self, amount: u64) -> f64 {
        let span = self.span();
        if span == Nanos::ZERO { 0.0 } else { amount as f64 / span.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_io_is_in_one_class_of_latency_and_depth() {
        let mut stats = JobStats::default();
        stats.begin(SimTime::ZERO);
        let latencies = [0, 1, 2, 999, 1000, 1999, 2000, 999_999, 1_000_000, 5_000_000_000];
        for (depth, ns) in (1..).zip(latencies) {
            let (at, latency) = (SimTime(ns), Nanos(ns));
            stats.record(HostOp::Read, depth, Completed { len: 512, at, latency });
        }
        stats.count_recent();
        assert_eq!(stats.nanos, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(stats.micros, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(stats.millis, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(stats.depths, [1, 2, 4, 3, 0, 0, 0]);
        assert_eq!(stats.ios(), 10);
    }

    #[test]
    fn bandwidth_is_sampled_every_half_second() {
        let mut stats = JobStats::default();
        stats.begin(SimTime(1_000_000_000));
        for at in [1_100_000_000, 1_200_000_000, 1_700_000_000, 2_600_000_000] {
            let (at, latency) = (SimTime(at), Nanos(5));
            stats.record(HostOp::Write, 1, Completed { len: 1000, at, latency });
        }
        stats.count_recent();
        let write = stats.dir(Dir::Write).unwrap();
        // 2 in the first sample, 1 in the second, none in the third; the fourth has not ended.
        assert_eq!((write.iops.count, write.iops.min, write.iops.max), (3, 0.0, 4.0));
        assert_eq!(write.bandwidth.mean(), 2000.0);
        assert_eq!(stats.span(), Nanos(1_600_000_000));
    }
}
