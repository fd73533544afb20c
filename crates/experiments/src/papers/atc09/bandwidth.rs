//! Table 2: sequential and random bandwidth of a disk and five SSDs.
//!
//! The paper gives neither queue depth nor request size nor the state of the drives. Here random
//! requests have 4 KiB and sequential ones 4 KiB to 1 MiB, at several queue depths. The closest
//! setting is chosen separately for random and for sequential requests: a real host and a real
//! drive read ahead, which deepens the queue of a sequential stream, and read-ahead is not
//! modelled. Drives are filled. Requests go to one eighth of the addresses, as in the validation
//! runs of the paper's simulator. Writes are measured after writes of the same pattern have used
//! up the spare flash.

use prism_base::{Bytes, Rng};
use prism_ssd::{Drive as Simulated, DriveSpec, HostOp, Request};

use super::{NOT_KNOWN, closest, distance, line};
use crate::comparison::{Basis, Comparison, Quantity, Why};
use crate::drives::{filled, preset, smaller, spare_units};
use crate::load::{Tally, closed_loop};
use crate::scale::Scale;

/// Bandwidths in 10^6 bytes a second, each as sequential, then random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Four {
    /// Reads.
    pub read: [f64; 2],
    /// Writes.
    pub write: [f64; 2],
}

/// The disk, a Seagate Barracuda 7200.11, as published; it is not simulated.
pub const HDD: Four = Four { read: [86.2, 0.6], write: [86.8, 1.3] };

named_enum! {
    /// The SSDs of the table.
    pub enum Drive {
        /// SLC; modelled with logical pages of 16 KiB.
        S1 = "S1 (SLC)",
        /// SLC; modelled with logical pages of 1 MiB over all dies of a gang.
        S2 = "S2 (SLC)",
        /// SLC; modelled with mapping units of 256 KiB and a buffer of 16 MB.
        S3 = "S3 (SLC)",
        /// SLC; the paper's simulator.
        S4 = "S4 (SLC, simulated)",
        /// MLC; modelled with a page map.
        S5 = "S5 (MLC)",
    }
}

impl Drive {
    /// The preset that models it.
    #[must_use]
    pub fn preset(self) -> &'static str {
        match self {
            Self::S1 => "atc09-s1",
            Self::S2 => "atc09-s2",
            Self::S3 => "atc09-s3",
            Self::S4 => "atc08",
            Self::S5 => "atc09-s5",
        }
    }

    /// Its bandwidths in Table 2.
    #[must_use]
    pub fn published(self) -> Four {
        match self {
            Self::S1 => Four { read: [205.6, 18.7], write: [169.4, 53.8] },
            Self::S2 => Four { read: [40.3, 4.4], write: [32.8, 0.1] },
            Self::S3 => Four { read: [72.5, 29.9], write: [75.8, 0.5] },
            Self::S4 => Four { read: [30.5, 29.1], write: [24.4, 18.4] },
            Self::S5 => Four { read: [68.3, 21.3], write: [22.5, 15.3] },
        }
    }

    /// The reason if bandwidths differ.
    fn reason(self) -> Why {
        match self {
            Self::S1 => Why::Unexplained(
                "S1: it is not known what keeps sequential writes below sequential reads; the \
                 modelled link has the same rate in both directions",
            ),
            Self::S2 => Why::Unexplained(
                "S2: random writes are printed with one digit, 0.1, which means 0.05 to 0.15 and \
                 ratios of 219 to 656",
            ),
            Self::S3 => Why::Unexplained(
                "S3: random writes are printed with one digit, 0.5, which means 0.45 to 0.55 and \
                 ratios of 138 to 168; in the model, one die erases while the other transfers",
            ),
            Self::S4 => Why::Unexplained(
                "S4: the paper's simulator cleans a block in one operation; Prism cleans in steps, \
                 which delays random writes less",
            ),
            Self::S5 => NOT_KNOWN,
        }
    }

    pub(super) fn device(self) -> DriveSpec {
        preset(self.preset())
    }
}

/// Requests in flight.
pub const DEPTHS: [u32; 5] = [1, 2, 4, 8, 32];
/// Sizes of sequential requests.
pub const SIZES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const PAGE: u64 = 4096;
/// Requests go to one part in so many of the addresses.
const REGION: u64 = 8;

/// Bandwidth of random requests of 4 KiB, in 10^6 bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// Requests in flight.
    pub depth: u32,
    /// Reads.
    pub read: f64,
    /// Writes.
    pub write: f64,
}

/// Bandwidth of sequential requests, in 10^6 bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequential {
    /// Requests in flight.
    pub depth: u32,
    /// Bytes of each request.
    pub size: u64,
    /// Reads.
    pub read: f64,
    /// Writes.
    pub write: f64,
}

/// The measured bandwidths of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidths {
    /// The drive.
    pub drive: Drive,
    /// By depth.
    pub random: Vec<Random>,
    /// By depth and size.
    pub sequential: Vec<Sequential>,
}

/// Bandwidth in the unit of the paper, 10^6 bytes a second.
pub(super) fn megabytes(tally: &Tally) -> f64 {
    tally.rate() / 1e6
}

/// A drive and the state of its request pattern.
struct PatternDrive {
    drive: Simulated,
    /// Bytes of addresses that are used: a multiple of the mapping unit.
    region: u64,
    /// Offset of the next sequential request.
    next: u64,
    rng: Rng,
    scale: Scale,
}

impl PatternDrive {
    fn new(device: DriveSpec, scale: Scale, seed: u64) -> Self {
        let unit = device.ftl.mapping_unit.0.max(SIZES[SIZES.len() - 1]);
        let region = device.capacity().0 / REGION / unit * unit;
        let rng = Rng::stream(seed, "atc09.bandwidth");
        Self { drive: filled(device, seed), region, next: 0, rng, scale }
    }

    fn random(&mut self, op: HostOp, depth: u32, count: u64) -> f64 {
        let (pages, rng) = (self.region / PAGE, &mut self.rng);
        let next = |number| Request::new(op, rng.below(pages) * PAGE, PAGE, number);
        megabytes(&closed_loop(&mut self.drive, depth, count, next))
    }

    fn sequential(&mut self, op: HostOp, depth: u32, size: u64, count: u64) -> f64 {
        let (region, at) = (self.region, &mut self.next);
        let next = |number| {
            // A request begins at a multiple of its size.
            let begin = at.div_ceil(size) * size % region;
            *at = begin + size;
            Request::new(op, begin, size, number)
        };
        megabytes(&closed_loop(&mut self.drive, depth, count, next))
    }

    /// The number of requests of `size` bytes for a measurement.
    fn count(&self, size: u64) -> u64 {
        let (bytes, most) = match self.scale {
            Scale::Full => (256 << 20, 8192),
            Scale::Quarter => (32 << 20, 1024),
        };
        (bytes / size).min(most).max(64)
    }

    /// Size of the write buffer in mapping units.
    fn buffer_units(&self) -> u64 {
        let device = self.drive.device();
        device.drive.write_buffer.0 / device.ftl.mapping_unit.0
    }

    /// Mapping units of writes that use up the spare flash: twice its size.
    fn warm_up_units(&self) -> u64 {
        2 * spare_units(self.drive.device())
    }
}

pub(super) fn measure(drive: Drive, scale: Scale, seed: u64) -> Bandwidths {
    let device = smaller(&drive.device(), Bytes(scale.of(4 << 30)));
    let mut reads = PatternDrive::new(device.clone(), scale, seed);
    let mut random_writes = PatternDrive::new(device.clone(), scale, seed);
    let (warm_up, fill) = (random_writes.warm_up_units(), random_writes.buffer_units());
    random_writes.random(HostOp::Write, 32, warm_up.max(1));
    let random = |depth| {
        let count = reads.count(PAGE);
        let read = reads.random(HostOp::Read, depth, count);
        random_writes.random(HostOp::Write, depth, fill.max(1));
        Random { depth, read, write: random_writes.random(HostOp::Write, depth, count) }
    };
    let random = DEPTHS.into_iter().map(random).collect();
    let mut writes = PatternDrive::new(device, scale, seed);
    let unit = writes.drive.device().ftl.mapping_unit.0;
    let large = SIZES[3];
    writes.sequential(HostOp::Write, 32, large, (warm_up * unit / large).max(1));
    let settings = DEPTHS.into_iter().flat_map(|depth| SIZES.map(|size| (depth, size)));
    let sequential = |(depth, size)| {
        let count = reads.count(size);
        let read = reads.sequential(HostOp::Read, depth, size, count);
        writes.sequential(HostOp::Write, depth, size, (fill * unit).div_ceil(size));
        let write = writes.sequential(HostOp::Write, depth, size, count);
        Sequential { depth, size, read, write }
    };
    Bandwidths { drive, random, sequential: settings.map(sequential).collect() }
}

/// The setting of `all` whose `rate` is closest to `published`.
fn nearest<T: Copy>(all: &[T], published: f64, rate: impl Fn(&T) -> f64) -> T {
    *closest(all, |one| distance(rate(one), published)).expect("settings were tried")
}

/// The settings closest to the table, for reads or for writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closest {
    /// Of random requests.
    pub random: Random,
    /// Of sequential requests.
    pub sequential: Sequential,
}

impl Bandwidths {
    /// The closest settings for reads. Reads and writes are separate runs with separate settings.
    #[must_use]
    pub fn closest_reads(&self) -> Closest {
        let [sequential, random] = self.drive.published().read;
        Closest {
            random: nearest(&self.random, random, |r| r.read),
            sequential: nearest(&self.sequential, sequential, |s| s.read),
        }
    }

    /// The closest settings for writes.
    #[must_use]
    pub fn closest_writes(&self) -> Closest {
        let [sequential, random] = self.drive.published().write;
        Closest {
            random: nearest(&self.random, random, |r| r.write),
            sequential: nearest(&self.sequential, sequential, |s| s.write),
        }
    }

    /// The bandwidths that are compared with the table.
    #[must_use]
    pub fn ours(&self) -> Four {
        let (reads, writes) = (self.closest_reads(), self.closest_writes());
        Four {
            read: [reads.sequential.read, reads.random.read],
            write: [writes.sequential.write, writes.random.write],
        }
    }

    pub(super) fn lines(&self) -> Vec<Comparison> {
        let (ours, published) = (self.ours(), self.drive.published());
        let mut lines = Vec::new();
        let sides = [("read", ours.read, published.read), ("write", ours.write, published.write)];
        for (op, ours, published) in sides {
            let mut line = |what: &str, quantity, both, basis| {
                let what = format!("{}, {op}, {what}", self.drive.name());
                lines.push(line("Table 2", what, quantity, both, self.drive.reason()).on(basis));
            };
            let rate = Quantity::MegabytesPerSecond;
            // The drives are inferred from these rates.
            line("sequential", rate, [published[0], ours[0]], Basis::Fitted);
            line("random", rate, [published[1], ours[1]], Basis::Fitted);
            let ratios = [published[0] / published[1], ours[0] / ours[1]];
            line("ratio", Quantity::Ratio, ratios, Basis::Derived);
        }
        lines
    }
}
