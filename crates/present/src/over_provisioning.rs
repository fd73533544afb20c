//! Changes the spare flash of a drive but not its capacity.

use prism_ssd::DriveSpec;

/// Sets the number of blocks to the smallest one whose effective over-provisioning is at least
/// `share` (0.07 is 7 %).
///
/// # Errors
/// The reason, if no number of blocks gives it.
pub fn set(device: &mut DriveSpec, share: f64) -> Result<(), String> {
    let wrong = |error| format!("op={}%: {error}", share * 100.0);
    device.set_over_provisioning(share).map_err(wrong)
}

/// Reads `7%` or `0.07`. More than all of the capacity has to be in percent: a user who writes 7
/// means 7 %.
///
/// # Errors
/// What is expected.
pub fn parse(text: &str) -> Result<f64, String> {
    let (number, scale, most) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0, 1000.0),
        None => (text, 1.0, 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= most => Ok(value / scale),
        _ => Err(format!(
            "{text:?} is not an over-provisioning; write for example 7% or 0.07, and more than 1 \
             in percent, such as 150%"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Bytes;

    #[test]
    fn the_least_that_is_enough() {
        for name in DriveSpec::preset_names() {
            let preset = DriveSpec::preset(name).unwrap();
            let fitted = prism_ssd::fit(&preset, Bytes(4 << 30)).unwrap().device;
            for share in [0.07, 0.15, 0.28] {
                let mut device = fitted.clone();
                // A drive of few large blocks may lack space for cleaning.
                let Ok(()) = set(&mut device, share) else { continue };
                assert!(device.over_provisioning().effective >= share, "{name}");
                assert_eq!(device.capacity(), fitted.capacity());
                device.flash.blocks_per_plane -= 1;
                assert!(device.over_provisioning().effective < share, "{name}");
            }
        }
        let mut device = DriveSpec::preset("dc-tlc").unwrap();
        set(&mut device, 0.2).unwrap();
        assert!((device.over_provisioning().effective - 0.2).abs() < 0.001);
    }

    #[test]
    fn shares_are_percent_or_fractions() {
        assert_eq!((parse("7%"), parse("0.07")), (Ok(0.07), Ok(0.07)));
        assert_eq!((parse("1"), parse("700%")), (Ok(1.0), Ok(7.0)));
        for text in ["", "%", "-7%", "x", "0", "7", "nan", "inf%", "20000%"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
