//! Whether flash in real time behaves as the model says: the same random reads, once in
//! virtual time and once by the clock of the world.

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_flash::raw::{Address, Command, Queue, Raw};
use prism_flash::{
    Allocation, Cache, Device, DeviceGeometry, FlashError, MemoryDevice, Options, WallClock,
};

/// Depths of the queue.
pub const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Bytes of a page.
const PAGE: usize = 16_384;

/// Latencies of the same commands, half of them in order of size.
#[derive(Clone, Copy, Debug)]
pub struct Medians {
    /// By the share's clock.
    pub model: Nanos,
    /// By the clock of the world.
    pub real: Nanos,
}

/// Reads `count` pages at random with `depth` in flight, in virtual time and by `clock`.
///
/// # Errors
/// [`FlashError`] of the device, which none of this should cause.
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
    let preset = prism_ssd::Device::preset("memblaze").expect("a preset that ships with Prism");
    let options = Options { timing: Some(preset.engine_config().timing), wear: None };
    let memory = MemoryDevice::new(geometry, Cache::None)?;
    let device = Device::format(Box::new(memory), options)?;
    let all = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    let share = device.allocate("pages", Allocation::new(all, 0))?;
    let pages = filled(Raw::open(share)?)?;
    // What was written took virtual time; from here on the world's time counts.
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
        queue.submit(Command::Read { at, data }, tag as u64).expect("there is room");
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
            submit(&mut queue, tag, done.data, &mut rng);
        }
    }
    Ok(latencies)
}

/// Writes every page of the share and gives their addresses.
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

    /// A world in which nothing takes time but waiting.
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
    fn a_world_without_other_work_measures_what_the_model_says() {
        static IDLE: Idle = Idle(AtomicU64::new(1_000_000));
        for depth in DEPTHS {
            let Medians { model, real } = medians(depth, 500, 1, &IDLE).expect("it works");
            assert_eq!(model, real, "depth {depth}");
            assert!(model.0 > 10_000, "depth {depth}: {model}");
        }
    }
}
