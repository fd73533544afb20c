//! Lifetime of a drive at a given write rate.

use prism_base::{Bytes, Nanos};

/// The five years over which drive writes per day are usually stated.
const WARRANTY_DAYS: f64 = 5.0 * 365.0;

/// Endurance figures: size x cycles / (write amplification x rate). Source: "Designing
/// SSD-friendly applications", 2016.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lifetime {
    /// Days until every block has used up its cycles, with even wear and writes at the measured
    /// rate.
    pub days: f64,
    /// Terabytes (10^12) that the host can write in all.
    pub tbw: f64,
    /// Drive writes per day for five years.
    pub dwpd: f64,
}

/// The lifetime of a drive with `raw` bytes of flash rated for `cycles` and with a capacity of
/// `capacity`, if the host writes `written` per `span` at `write_amplification`. `None` if nothing
/// is written, or nothing reaches the flash.
#[must_use]
pub fn lifetime(
    raw: Bytes,
    cycles: u32,
    capacity: Bytes,
    write_amplification: f64,
    written: Bytes,
    span: Nanos,
) -> Option<Lifetime> {
    let writable = raw.0 as f64 * f64::from(cycles);
    lifetime_of(writable, capacity, write_amplification, written, span)
}

/// The same for flash to which `writable` bytes can be programmed in total.
#[must_use]
pub fn lifetime_of(
    writable: f64,
    capacity: Bytes,
    write_amplification: f64,
    written: Bytes,
    span: Nanos,
) -> Option<Lifetime> {
    if written.0 == 0 || span.0 == 0 || write_amplification <= 0.0 {
        return None;
    }
    let host_bytes = writable / write_amplification;
    let rate = written.0 as f64 / span.as_secs_f64();
    Some(Lifetime {
        days: host_bytes / rate / 86_400.0,
        tbw: host_bytes / 1e12,
        dwpd: host_bytes / capacity.0 as f64 / WARRANTY_DAYS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example() {
        // 1 TB of MLC (10 k cycles) at 100 MB/s and write amplification 4: 10 months.
        let tb = Bytes(1_000_000_000_000);
        let life = lifetime(tb, 10_000, tb, 4.0, Bytes(100_000_000), Nanos(1_000_000_000)).unwrap();
        assert!((life.days - 289.35).abs() < 0.01, "{life:?}");
        assert!((life.tbw - 2500.0).abs() < 1e-9);
        assert!((life.dwpd - 2500.0 / 1825.0).abs() < 1e-9);
        assert_eq!(lifetime(tb, 1, tb, 1.0, Bytes(0), Nanos(1)), None);
    }
}
