//! A drive of the same capacity with another amount of spare flash.

use prism_nand::Geometry;
use prism_ssd::Device;

/// Changes the number of blocks so that the effective over-provisioning is the least that
/// is not below `share` (0.07 is 7 %).
///
/// # Errors
/// What is wrong, if no number of blocks gives it.
pub fn set(device: &mut Device, share: f64) -> Result<(), String> {
    let wrong = |error: String| format!("op={}%: {error}", share * 100.0);
    let effective = |blocks: u32| {
        let mut other = device.clone();
        other.flash.blocks_per_plane = blocks;
        other.over_provisioning().effective
    };
    // More blocks never mean less spare, so the least that is enough can be halved down to.
    let geometry = device.geometry();
    let planes = u64::from(geometry.dies()) * u64::from(geometry.planes);
    let pages = planes * u64::from(geometry.pages_per_block);
    let units = pages * geometry.page.0 / geometry.unit.0;
    let (mut low, mut high) = (1u32, (Geometry::UNITS_MAX / units) as u32);
    if effective(high) < share {
        return Err(wrong("more flash than can be addressed".into()));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if effective(middle) < share { low = middle + 1 } else { high = middle }
    }
    device.flash.blocks_per_plane = low;
    device.check().map_err(|error| wrong(error.to_string()))
}

/// Reads `7%` or `0.07`.
///
/// # Errors
/// What is expected.
pub fn parse(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value / scale <= 10.0 => Ok(value / scale),
        _ => Err(format!("{text:?} is no over-provisioning; write for example 7% or 0.07")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Bytes;

    #[test]
    fn the_least_that_is_enough() {
        for name in Device::preset_names() {
            let preset = Device::preset(name).unwrap();
            let fitted = prism_ssd::fit(&preset, Bytes(4 << 30)).unwrap().device;
            for share in [0.07, 0.15, 0.28] {
                let mut device = fitted.clone();
                // Few large blocks may leave too little beside what cleaning needs.
                let Ok(()) = set(&mut device, share) else { continue };
                assert!(device.over_provisioning().effective >= share, "{name}");
                assert_eq!(device.capacity(), fitted.capacity());
                device.flash.blocks_per_plane -= 1;
                assert!(device.over_provisioning().effective < share, "{name}");
            }
        }
        let mut device = Device::preset("dc-tlc").unwrap();
        set(&mut device, 0.2).unwrap();
        assert!((device.over_provisioning().effective - 0.2).abs() < 0.001);
    }

    #[test]
    fn shares_are_percent_or_fractions() {
        assert_eq!((parse("7%"), parse("0.07")), (Ok(0.07), Ok(0.07)));
        for text in ["", "%", "-7%", "x", "0", "20000%"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
