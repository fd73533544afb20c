//! Reads of many pages at the policy level, compared with an array of bytes:
//! rewritten, trimmed and buffered units are read with their present content.

use prism_base::{Bytes, Rng};
use prism_flash::policy::{Cleaning, Mapping, Policy, RangeConfig};
use prism_flash::{Allocation, Device, DeviceGeometry, Options};
use prism_flashfile::{EngineChoice, FlashFile, Settings};
use prism_testkit::seeds;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 1,
    blocks_per_lun: 48,
    pages_per_block: 16,
    page_size: 4096,
    oob_size: 64,
    max_open_blocks: None,
};

const SIZE: usize = 3 << 20;

/// A random range, mostly longer than a page, sometimes longer than what is read at once.
fn part(rng: &mut Rng) -> (usize, usize) {
    let at = rng.below(SIZE as u64) as usize;
    let most = [2000, 20_000, 400_000][rng.below(3) as usize];
    (at, (rng.below(most) as usize + 1).min(SIZE - at))
}

fn step(policy: &Policy, model: &mut [u8], rng: &mut Rng) {
    let (at, len) = part(rng);
    match rng.below(10) {
        0..4 => {
            let data: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            policy.write(at as u64, &data).unwrap();
            model[at..at + len].copy_from_slice(&data);
        }
        4 => {
            let (at, len) = (at / 4096 * 4096, len / 4096 * 4096);
            if len > 0 {
                policy.trim(at as u64, len as u64).unwrap();
                model[at..at + len].fill(0);
            }
        }
        5 => policy.flush().unwrap(),
        _ => {
            let mut data = vec![1; len];
            policy.read(at as u64, &mut data).unwrap();
            assert!(data == model[at..at + len], "{len} bytes from {at} on");
        }
    }
}

#[test]
fn random_runs_are_read_as_they_were_written_last() {
    let ways = [(EngineChoice::Best, 64), (EngineChoice::Best, 3), (EngineChoice::Portable, 64)];
    for seed in seeds(0..3) {
        let (engine, depth) = ways[seed as usize % ways.len()];
        let mut rng = Rng::stream(seed, "runs");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        let settings = Settings { engine, depth, ..Settings::USUAL };
        let file = FlashFile::create_with(&path, GEOMETRY, settings).unwrap();
        let device = Device::format(file, Options::default()).unwrap();
        let all = Bytes(2 * device.lun_capacity().0);
        let policy = Policy::open(device.allocate("a", Allocation::new(all, 0)).unwrap()).unwrap();
        let range = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        policy.configure(0, SIZE as u64, range).unwrap();
        let mut model = vec![0; SIZE];
        (0..250).for_each(|_| step(&policy, &mut model, &mut rng));
        policy.flush().unwrap();
        drop((policy, device));
        let file = FlashFile::open_with(&path, settings).unwrap();
        let device = Device::open(file, Options::default()).unwrap();
        let policy = Policy::open(device.attach("a").unwrap()).unwrap();
        let mut found = vec![1; SIZE];
        policy.read(0, &mut found).unwrap();
        assert!(found == model, "seed {seed}");
        (0..100).for_each(|_| step(&policy, &mut model, &mut rng));
    }
}
