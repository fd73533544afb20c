//! Simulated drives as experiments need them: presets, made smaller and written before.

use prism_base::Bytes;
use prism_ssd::{Drive, DriveSpec, InitialState, fit};

/// A preset that ships with Prism.
pub(crate) fn preset(name: &str) -> DriveSpec {
    DriveSpec::preset(name).expect("a preset that ships with Prism")
}

/// `device` with fewer dies or blocks, so that it has `capacity`.
pub(crate) fn smaller(device: &DriveSpec, capacity: Bytes) -> DriveSpec {
    fit(device, capacity).expect("a smaller drive of the same kind").device
}

/// A drive in `state`.
///
/// # Panics
/// If the device makes no sense.
pub(crate) fn prepared(device: DriveSpec, state: InitialState, seed: u64) -> Drive {
    let prepared = Drive::prepared(device, state, seed, |_| true);
    prepared.expect("a sound device").expect("the preparation is not interrupted").0
}

/// A drive on which every address was written once, in order.
pub(crate) fn filled(device: DriveSpec, seed: u64) -> Drive {
    prepared(device, InitialState::Filled, seed)
}

/// Mapping units of flash beyond the logical ones.
pub(crate) fn spare_units(device: &DriveSpec) -> u64 {
    device.usable_units().saturating_sub(u64::from(device.logical_units()))
}
