//! Random drives whose flash often fails.

use prism_base::{Bytes, Rng};
use prism_ssd::DriveSpec;

use super::{aged, swarm};

/// A random drive whose flash often fails, with spare blocks to replace retired ones.
pub fn device(rng: &mut Rng, draw: impl Fn(&mut Rng) -> DriveSpec) -> DriveSpec {
    loop {
        let mut device = draw(rng);
        let more = swarm::one_of(rng, &[2, 4, 8]);
        device.flash.blocks_per_plane *= more;
        device.faults = Some(aged::often(rng));
        device.ftl.segment = None;
        let unit = device.ftl.mapping_unit.0;
        let most = match device.ranges.is_empty() {
            true => swarm::most_units(&device),
            // The same capacity, less the reserved blocks of each range.
            false => device.drive.capacity.0 / unit * u64::from(more) * 9 / 10,
        };
        let units = swarm::one_of(rng, &[most * 9 / 10, most * 2 / 3, most / 2]);
        device.drive.capacity = Bytes(units * unit);
        if units >= 64 && (device.ranges.is_empty() || device.check().is_ok()) {
            device.check().unwrap();
            return device;
        }
    }
}
