//! Locality: a drive that caches a part of its map reads the map from flash for addresses outside
//! that part, and writes changed parts back.

use prism_base::{Bytes, Rng};
use prism_ssd::spec::{MapLoad, Mapping};
use prism_ssd::{DriveSpec, HostOp};

use super::measured::MeasuredDrive;
use super::{Bench, Comparison, Cost, Metric, PAGE, Published, Rule, SPACE, Side, published};
use crate::drives::filled;

/// Bytes of addresses that the map cache covers.
const COVERED: u64 = SPACE;
/// Bytes of flash: so many that no block is cleaned.
const FLASH: u64 = 8 << 30;
/// The addresses used, as multiples of what the cache covers.
const WIDER: [(u64, &str); 4] =
    [(2, "2 x the cache"), (4, "4 x the cache"), (16, "16 x the cache"), (32, "32 x the cache")];
const PUBLISHED: &[Published] = &[published(Metric::Latency, 2.2)];

pub(super) fn run(bench: Bench) -> Vec<Comparison> {
    let side = |times: u64| Side {
        what: format!("{}, random 2 KiB", Bytes(bench.bytes(times * COVERED))),
        cost: measure(bench, times * COVERED),
    };
    let conform = side(1);
    WIDER
        .into_iter()
        .map(|(times, name)| Comparison {
            rule: Rule::Locality,
            name,
            conform: conform.clone(),
            violate: side(times),
            published: PUBLISHED,
        })
        .collect()
}

/// Random writes to a filled drive of `space` bytes. As many writes before the measurement fill the
/// cache.
fn measure(bench: Bench, space: u64) -> Cost {
    let mut device = bench.device(space, FLASH);
    device.ftl.mapping = Mapping::Dftl;
    device.ftl.map_load = MapLoad::Page;
    device.ftl.map_cache = Some(Bytes(bench.bytes(COVERED) / PAGE * DriveSpec::MAP_ENTRY));
    let mut drive = MeasuredDrive::on(filled(device, bench.seed));
    let mut rng = Rng::stream(bench.seed, "locality.address");
    let places = bench.bytes(space) / PAGE;
    let mut draw = || -> Vec<u64> {
        let writes = bench.bytes(SPACE) / PAGE;
        (0..writes).map(|_| rng.below(places) * PAGE).collect()
    };
    drive.run(HostOp::Write, PAGE, bench.depth(), &draw());
    drive.run(HostOp::Write, PAGE, bench.depth(), &draw())
}
