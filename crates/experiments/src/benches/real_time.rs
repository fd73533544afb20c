//! Whether flash in real time is as fast as the model: the same random reads, once in virtual time
//! and once by a real clock.

use prism_base::{Nanos, Rng, SimTime};
use prism_flash::raw::{Address, Command, Queue, Raw};
use prism_flash::{Cache, Device, DeviceGeometry, FlashError, MemoryDevice, WallClock};

use super::library::{share_of_all, timed};

/// Queue depths.
pub const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

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

/// Reads `count` random pages with `depth` in flight, in virtual time and by `clock`.
///
/// # Errors
/// [`FlashError`] only if the device fails, which would be a bug.
pub fn medians(
    depth: usize,
    count: usize,
    seed: u64,
    clock: &'static dyn WallClock,
) -> Result<Medians, FlashError> {
    let model = run(depth, count, seed, None)?;
    let real = run(depth, count, seed, Some(clock))?;
    Ok(Medians { model: median(model), real: median(real) })
}

fn run(
    depth: usize,
    count: usize,
    seed: u64,
    clock: Option<&'static dyn WallClock>,
) -> Result<Vec<u64>, FlashError> {
    let geometry = DeviceGeometry {
        channels: 8,
        luns_per_channel: 2,
        blocks_per_lun: 16,
        pages_per_block: 16,
        page_size: PAGE as u32,
        oob_size: 64,
        max_open_blocks: None,
    };
    let memory = MemoryDevice::new(geometry, Cache::None)?;
    let device = Device::format(memory, timed())?;
    let pages = filled(Raw::open(share_of_all(&device, "pages")?)?)?;
    // The pages were written in virtual time; from here on the real clock counts.
    let device = match clock {
        Some(clock) => device.in_real_time(clock)?,
        None => device,
    };
    let raw = Raw::open(device.attach("pages")?)?;
    let mut rng = Rng::stream(seed, "real-time");
    let mut queue = raw.queue(depth);
    let now = || match clock {
        Some(clock) => Ok(clock.now().0),
        None => raw.share().now().map(|SimTime(now)| now),
    };
    let (mut latencies, mut started) = (Vec::new(), vec![0; depth]);
    let mut buffers: Vec<Vec<u8>> = vec![vec![0; PAGE]; depth];
    let submit = |queue: &mut Queue<&Raw>, tag: usize, data: Vec<u8>, rng: &mut Rng| {
        let at = pages[rng.below(pages.len() as u64) as usize];
        queue.submit(Command::read(at, data), tag as u64).expect("there is room");
    };
    for (tag, buffer) in buffers.iter_mut().enumerate() {
        started[tag] = now()?;
        submit(&mut queue, tag, std::mem::take(buffer), &mut rng);
    }
    while let Some(done) = queue.complete() {
        done.result?;
        let tag = done.tag as usize;
        latencies.push(now()?.saturating_sub(started[tag]));
        if latencies.len() + queue.len() < count {
            started[tag] = now()?;
            submit(&mut queue, tag, done.data.into_vec(), &mut rng);
        }
    }
    Ok(latencies)
}

/// Writes every page of the share and returns their addresses.
fn filled(raw: Raw) -> Result<Vec<Address>, FlashError> {
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
        for depth in DEPTHS {
            let Medians { model, real } = medians(depth, 500, 1, &IDLE).expect("it works");
            assert_eq!(model, real, "depth {depth}");
            assert!(model.0 > 10_000, "depth {depth}: {model}");
        }
    }
}
