//! Large reads at the policy level, and fio with blocks of the same size.

use std::path::Path;

use prism_base::Rng;
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::{Allocation, Device, DeviceGeometry, Options};
use prism_flashfile::{FlashFile, Settings};
use prism_host::clock;

use super::checks::{Value, ratio};
use super::fio::{self, Job};
use super::store::geometry;
use super::{Args, Pattern, median};
use crate::commands::device_create;
use crate::failure::Failure;

const PAGE: u32 = 16 << 10;
const READ: u64 = 1 << 20;
const DEPTH: usize = 8;

/// What is measured of the reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The throughput, relative to fio's.
    Throughput,
    /// Nanoseconds of CPU time for each byte.
    CpuTime,
}

/// A device whose range is written in order, once.
struct Reads {
    policy: Policy,
    device: Device,
    bytes: u64,
    seed: u64,
}

impl Reads {
    fn make(args: &Args, path: &Path) -> Result<Self, Failure> {
        let _ = std::fs::remove_file(path);
        let shape = DeviceGeometry { oob_size: device_create::OOB, ..geometry(args.size, PAGE) };
        let settings = Settings { preallocate: true, ..Settings::USUAL };
        let device = FlashFile::format_with(path, shape, &[], Options::default(), settings)?;
        let all = prism_base::Bytes(device.lun_capacity().0 * u64::from(shape.luns()));
        let share = device.allocate("bench", Allocation::new(all, 0))?;
        let policy = Policy::open(share)?;
        let bytes = args.size.0 / 2 / READ * READ;
        let config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, bytes, config)?;
        let data = vec![0x5A; READ as usize];
        for at in (0..bytes).step_by(READ as usize) {
            policy.write(at, &data)?;
        }
        policy.flush()?;
        Ok(Self { policy, device, bytes, seed: args.seed })
    }

    /// Bytes per second, and seconds of CPU time per byte, of reads for `seconds`.
    fn run(&self, pattern: Pattern, seconds: f64) -> Result<[f64; 2], Failure> {
        let mut queue = self.policy.queue(DEPTH);
        let mut rng = Rng::stream(self.seed, "bench.policy");
        let places = self.bytes / READ;
        let mut place = |number: u64| match pattern {
            Pattern::ReadInOrder => number % places * READ,
            _ => rng.below(places) * READ,
        };
        for number in 0..DEPTH as u64 {
            let buffer = self.device.buffer(READ as usize);
            assert!(queue.submit(place(number), buffer, number).is_ok(), "there is room");
        }
        let (begin, cpu) = (clock::seconds(), clock::cpu_seconds());
        let mut done = 0;
        while let Some(read) = queue.complete() {
            read.result?;
            done += 1;
            if clock::seconds() < begin + seconds {
                let next = place(done + DEPTH as u64 - 1);
                assert!(queue.submit(next, read.data, 0).is_ok(), "there is room");
            }
        }
        let bytes = (done * READ) as f64;
        let (time, cpu) = (clock::seconds() - begin, clock::cpu_seconds() - cpu);
        Ok([bytes / time, cpu / bytes])
    }
}

/// Measures reads at the policy level and by fio alternately.
///
/// # Errors
/// [`Failure`] if a device or fio fails.
pub fn reads(
    args: &Args,
    ours: &Path,
    fios: &Path,
    pattern: Pattern,
    of: Of,
) -> Result<Value, Failure> {
    let reads = Reads::make(args, ours)?;
    let (depth, time) = (DEPTH as u32, Some(args.time));
    let job = Job { depth, time, huge: true, ..Job::of(pattern.name(), READ as u32) };
    let ours = || reads.run(pattern, args.time.as_secs_f64());
    if of == Of::CpuTime {
        let runs: Vec<f64> =
            (0..args.runs).map(|_| Ok(ours()?[1] * 1e9)).collect::<Result<_, Failure>>()?;
        return Ok(Value { value: median(&runs), rates: None });
    }
    ratio(args, || Ok(ours()?[0]), || Ok(fio::run(args, fios, &[job])?[0]))
}
