//! How long the flash takes.

use prism_base::{Bytes, Nanos};

/// Times of a die and of the channel it hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Array to page register (tR).
    pub t_read: Nanos,
    /// Page register to array (tPROG), for one row.
    pub t_program: Nanos,
    /// Erase of a block (tBERS), on all ganged planes at once.
    pub t_erase: Nanos,
    /// Bandwidth of a channel in bytes a second; `None` is infinitely fast, as some older
    /// simulators have it.
    pub bus_bytes_per_second: Option<u64>,
}

impl Timing {
    /// How long `amount` takes over the channel, rounded up to the nanosecond.
    #[must_use]
    pub fn transfer(&self, amount: Bytes) -> Nanos {
        self.bus_bytes_per_second.map_or(Nanos::ZERO, |rate| transfer_time(amount, rate))
    }
}

/// How long `amount` takes at `bytes_per_second`, rounded up to the nanosecond.
#[must_use]
pub fn transfer_time(amount: Bytes, bytes_per_second: u64) -> Nanos {
    // 2^34 bytes times 10^9 still fits into 64 bits, which spares the 128-bit division.
    if amount.0 < 1 << 34 {
        Nanos((amount.0 * 1_000_000_000).div_ceil(bytes_per_second))
    } else {
        let wide = (u128::from(amount.0) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
        Nanos(wide as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_round_up() {
        assert_eq!(transfer_time(Bytes(8192), 333_000_000), Nanos(24_601));
        assert_eq!(transfer_time(Bytes(0), 1), Nanos(0));
        assert_eq!(transfer_time(Bytes(1 << 40), 1 << 40), Nanos(1_000_000_000));
    }
}
