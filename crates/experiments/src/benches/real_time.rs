//! Whether flash in real time is as fast as the model, at each level of the library: the same
//! random reads, once in virtual time and once by a real clock.
//!
//! The simulated drive, a model of a device and not a device, has no real time.

use prism_base::{Nanos, Rng, SimTime};
use prism_flash::function::{self, Channel, Function, Unit};
use prism_flash::policy::{self, Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};
use prism_flash::raw::{self, Address, Command, Completion, Raw};
use prism_flash::{Cache, Device, DeviceGeometry, MemoryDevice, Result, Share, WallClock};

use super::levels::Level;
use super::library::{share_of_all, timed};

/// Queue depths.
pub const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Levels with real time.
pub const LEVELS: [Level; 3] = [Level::Raw, Level::Function, Level::Policy];

/// Bytes of a page.
const PAGE: usize = 16_384;

/// Median latencies of the same commands.
#[derive(Clone, Copy, Debug)]
pub struct Medians {
    /// In virtual time.
    pub model: Nanos,
    /// By the real clock.
    pub real: Nanos,
}

/// Reads `count` random pages at `level` with `depth` in flight, in virtual time and by `clock`.
///
/// # Errors
/// [`prism_flash::FlashError`] only if the device fails, which would be a bug.
///
/// # Panics
/// For a level that is not one of [`LEVELS`].
pub fn medians(
    level: Level,
    depth: usize,
    count: usize,
    seed: u64,
    clock: &'static dyn WallClock,
) -> Result<Medians> {
    let run = Run { depth, count, seed, clock: None };
    let model = run.at(level)?;
    let real = Run { clock: Some(clock), ..run }.at(level)?;
    Ok(Medians { model: median(model), real: median(real) })
}

/// Reads in flight at a level.
trait Reads {
    /// Begins to read a page; there is room for it.
    fn submit(&mut self, page: usize, data: Vec<u8>, tag: u64);
    /// Waits for the next completion.
    fn complete(&mut self) -> Option<Completion>;
}

struct RawReads<'a>(raw::Queue<&'a Raw>, &'a [Address]);

impl Reads for RawReads<'_> {
    fn submit(&mut self, page: usize, data: Vec<u8>, tag: u64) {
        self.0.submit(Command::read(self.1[page], data), tag).expect("there is room");
    }

    fn complete(&mut self) -> Option<Completion> {
        self.0.complete()
    }
}

struct FunctionReads<'a>(function::Queue<&'a Function>, &'a [Address]);

impl Reads for FunctionReads<'_> {
    fn submit(&mut self, page: usize, data: Vec<u8>, tag: u64) {
        self.0.submit_read(self.1[page], data, tag).expect("there is room");
    }

    fn complete(&mut self) -> Option<Completion> {
        self.0.complete()
    }
}

struct PolicyReads<'a>(policy::Queue<&'a Policy>);

impl Reads for PolicyReads<'_> {
    fn submit(&mut self, page: usize, data: Vec<u8>, tag: u64) {
        self.0.submit((page * PAGE) as u64, data, tag).expect("there is room");
    }

    fn complete(&mut self) -> Option<Completion> {
        self.0.complete()
    }
}

#[derive(Clone, Copy)]
struct Run {
    depth: usize,
    count: usize,
    seed: u64,
    /// None for virtual time.
    clock: Option<&'static dyn WallClock>,
}

impl Run {
    /// The latencies at a level. Pages are written in virtual time; from then on the clock counts.
    fn at(self, level: Level) -> Result<Vec<u64>> {
        let geometry = DeviceGeometry {
            channels: 8,
            luns_per_channel: 2,
            blocks_per_lun: 16,
            pages_per_block: 16,
            page_size: PAGE as u32,
            oob_size: 128,
            max_open_blocks: None,
        };
        let device = Device::format(MemoryDevice::new(geometry, Cache::None)?, timed())?;
        let share = share_of_all(&device, "pages")?;
        match level {
            Level::Raw => {
                let pages = filled_raw(Raw::open(share)?)?;
                let raw = Raw::open(self.attach(device)?)?;
                let reads = RawReads(raw.queue(self.depth), &pages);
                self.measure(reads, pages.len(), raw.share())
            }
            Level::Function => {
                let pages = filled_function(Function::open(share)?)?;
                let function = Function::open(self.attach(device)?)?;
                let reads = FunctionReads(function.queue(self.depth), &pages);
                self.measure(reads, pages.len(), &function.share())
            }
            Level::Policy => {
                let pages = filled_policy(Policy::open(share)?)?;
                let policy = Policy::open(self.attach(device)?)?;
                let reads = PolicyReads(policy.queue(self.depth));
                self.measure(reads, pages, &policy.share())
            }
            Level::Drive => panic!("the simulated drive has no real time"),
        }
    }

    fn attach(self, device: Device) -> Result<Share> {
        let device = match self.clock {
            Some(clock) => device.in_real_time(clock)?,
            None => device,
        };
        device.attach("pages")
    }

    /// Reads random pages of the first `pages`.
    fn measure(self, mut reads: impl Reads, pages: usize, share: &Share) -> Result<Vec<u64>> {
        let Self { depth, count, seed, clock } = self;
        let mut rng = Rng::stream(seed, "real-time");
        let now = || match clock {
            Some(clock) => Ok(clock.now().0),
            None => share.now().map(|SimTime(now)| now),
        };
        let (mut latencies, mut started) = (Vec::with_capacity(count), vec![0; depth]);
        let mut submitted = 0;
        let mut submit = |reads: &mut dyn Reads, data: Vec<u8>, tag: usize| {
            submitted += 1;
            (submitted <= count).then(|| {
                reads.submit(rng.below(pages as u64) as usize, data, tag as u64);
            })
        };
        for (tag, started) in started.iter_mut().enumerate() {
            *started = now()?;
            submit(&mut reads, vec![0; PAGE], tag);
        }
        while let Some(done) = reads.complete() {
            done.result?;
            let tag = done.tag as usize;
            latencies.push(now()?.saturating_sub(started[tag]));
            started[tag] = now()?;
            submit(&mut reads, done.data.into_vec(), tag);
        }
        Ok(latencies)
    }
}

/// Writes every page of the share and returns their addresses.
fn filled_raw(raw: Raw) -> Result<Vec<Address>> {
    let (data, mut pages) = (vec![7; PAGE], Vec::new());
    for block in raw.blocks().collect::<Vec<_>>() {
        for page in 0..raw.geometry().pages_per_block {
            let at = block.with_page(page);
            raw.write_page(at, &data)?;
            pages.push(at);
        }
    }
    Ok(pages)
}

/// Writes every block that can be allocated and returns the addresses of the pages.
fn filled_function(function: Function) -> Result<Vec<Address>> {
    let geometry = function.geometry();
    let (data, mut pages) = (vec![7; PAGE * geometry.pages_per_block as usize], Vec::new());
    for channel in 0..geometry.channels.len() as u32 {
        while function.free(channel)? > 0 {
            let new = function.address_mapper(Channel::Number(channel), Unit::Block)?;
            function.write(new.at, &data)?;
            pages.extend((0..geometry.pages_per_block).map(|page| new.at.with_page(page)));
        }
    }
    Ok(pages)
}

/// Writes a range of three quarters of the share and returns the number of its pages.
fn filled_policy(policy: Policy) -> Result<usize> {
    let geometry = policy.share().geometry()?;
    let pages = geometry.blocks() as usize * geometry.pages_per_block as usize * 3 / 4;
    let mut config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
    config.over_provisioning = OverProvisioning::Rest;
    policy.configure(0, (pages * PAGE) as u64, config)?;
    for page in 0..pages {
        policy.write((page * PAGE) as u64, &[7; PAGE])?;
    }
    policy.flush()?;
    Ok(pages)
}

fn median(mut values: Vec<u64>) -> Nanos {
    values.sort_unstable();
    Nanos(values[values.len() / 2])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that advances only while the caller waits.
    struct Idle(AtomicU64);

    impl WallClock for Idle {
        fn now(&self) -> Nanos {
            Nanos(self.0.load(Ordering::Relaxed))
        }

        fn wait_until(&self, time: Nanos) {
            self.0.fetch_max(time.0, Ordering::Relaxed);
        }
    }

    #[test]
    fn without_other_work_real_time_equals_the_model() {
        static IDLE: Idle = Idle(AtomicU64::new(1_000_000));
        for (level, depth) in LEVELS.into_iter().flat_map(|l| DEPTHS.map(|depth| (l, depth))) {
            let Medians { model, real } = medians(level, depth, 500, 1, &IDLE).expect("it works");
            assert_eq!(model, real, "{level:?}, depth {depth}");
            assert!(model.0 > 10_000, "{level:?}, depth {depth}: {model}");
        }
    }
}
