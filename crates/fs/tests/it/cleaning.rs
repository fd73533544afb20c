//! What cleaning costs in steady state, and that it goes on for hours.

use prism_base::Rng;
use prism_fs::{Config, Fs, ROOT, Time, Victim};
use prism_testkit::seeds;

use crate::memory::MemoryStore;
use crate::model::{FILE, TIME, formatted};

/// A file system with a file that takes this share of what files can take.
fn filled(segments: u32, blocks: u32, percent: u64, config: Config) -> (Fs<MemoryStore>, u32, u64) {
    let mut fs = formatted(segments, blocks, config);
    let file = fs.make(ROOT, b"file", FILE).unwrap();
    let count = fs.space().free * percent / 100;
    for at in 0..count {
        overwrite(&mut fs, file, at);
    }
    (fs, file, count)
}

/// Overwrites a block. What the store recorded is not needed.
fn overwrite(fs: &mut Fs<MemoryStore>, file: u32, at: u64) {
    fs.write(file, at * 4096, &[0; 4096]).unwrap();
    fs.store().take_ops();
}

/// Blocks written for each block that is overwritten at random.
fn write_cost(percent: u64, victim: Victim) -> f64 {
    let mut rng = Rng::stream(1, "cleaning");
    let config = Config { victim, ..Config::NORMAL };
    let (mut fs, file, count) = filled(512, 32, percent, config);
    let mut before = fs.counts();
    for number in 0..2 * count {
        if number == count {
            before = fs.counts();
        }
        overwrite(&mut fs, file, rng.below(count));
    }
    let after = fs.counts();
    (after.total() - before.total()) as f64 / (after.data - before.data) as f64
}

/// With a checkpoint, and so all dirty nodes, for every three victims these were 10 and more.
#[test]
fn cleaning_writes_few_nodes() {
    for (percent, victim, most) in [
        (80, Victim::Greedy, 4.5),
        (80, Victim::CostBenefit, 4.5),
        (80, Victim::CostHotness, 6.5),
        (95, Victim::Greedy, 12.0),
    ] {
        let cost = write_cost(percent, victim);
        assert!(cost < most, "{percent} %, {victim:?}: {cost:.2} blocks for one");
    }
}

#[test]
fn random_ten_hours_at_95_percent_neither_stall_nor_leak() {
    for seed in seeds(0..3) {
        let mut rng = Rng::stream(seed, "hours");
        let (mut fs, file, count) = filled(160, 32, 95, crate::random::config(seed));
        fs.checkpoint().unwrap();
        let (free, mut most) = (fs.space().free, 0);
        let hours = 10 * 3600;
        for second in (0..hours).step_by(5) {
            fs.set_now(Time { secs: TIME.secs + second, nanos: 0 });
            for _ in 0..rng.below(6) {
                let range = if rng.chance(0.8) { count / 5 } else { count };
                let before = fs.counts().total();
                overwrite(&mut fs, file, rng.below(range));
                most = most.max(fs.counts().total() - before);
            }
            fs.tick().unwrap();
        }
        // A call that waits for cleaning waits for a part of the device.
        assert!(most < 160 * 32 / 2, "a call wrote {most} blocks");
        fs.checkpoint().unwrap();
        assert_eq!(fs.space().free, free, "space leaks");
        assert_eq!(fs.check().unwrap().problems, []);
    }
}
