//! Drives whose flash fails often, drawn at random.

use prism_base::{Bytes, Rng};
use prism_ssd::Device;
use prism_ssd::device::FaultSpec;

use super::swarm;

/// A drive of any kind whose flash fails often, with room for blocks to be retired.
pub fn device(rng: &mut Rng, draw: impl Fn(&mut Rng) -> Device) -> Device {
    loop {
        let mut device = draw(rng);
        let more = swarm::one_of(rng, &[2, 4, 8]);
        device.flash.blocks_per_plane *= more;
        let mut faults = FaultSpec::of_kind("tlc");
        let often = swarm::one_of(rng, &[0.0, 0.001, 0.004]);
        faults.factory_bad = Some(swarm::one_of(rng, &[0.0, 0.02]));
        faults.program_failure = Some(often * rng.unit());
        faults.program_exponent = Some(0.0);
        faults.erase_failure = Some(swarm::one_of(rng, &[0.0, 0.004, 0.02]));
        faults.erase_exponent = Some(0.0);
        // About as many errors as a codeword of 512 bytes may have; then one in some hundred
        // units is beyond help.
        faults.codeword = Some(Bytes(512));
        faults.correctable_bits = Some(24);
        faults.rber_fresh = Some(swarm::one_of(rng, &[1e-9, 3e-3, 5e-3]));
        faults.read_retries = Some(rng.below(4) as u32);
        faults.retry_factor = Some(0.8);
        device.faults = Some(faults);
        device.ftl.segment = None;
        let unit = device.ftl.mapping_unit.0;
        let most = match device.ranges.is_empty() {
            true => swarm::most_units(&device),
            // As full as it was, less what each range keeps.
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
