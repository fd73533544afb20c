//! Set-up of the flash library that its benchmarks share.

use prism_base::Bytes;
use prism_flash::{Allocation, Device, Options, Result, Share};

use crate::drives::preset;

/// Options of a device with the flash times of the preset `memblaze`.
pub(crate) fn timed() -> Options {
    Options { timing: Some(preset("memblaze").engine_config().timing), wear: None }
}

/// A share of all LUNs of `device`.
pub(crate) fn share_of_all(device: &Device, name: &str) -> Result<Share> {
    let all = Bytes(device.lun_capacity().0 * u64::from(device.free_luns()));
    device.allocate(name, Allocation::new(all, 0))
}
