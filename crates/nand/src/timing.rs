//! Timing of flash operations.

use prism_base::{Bytes, Nanos};

/// A time for each page type. Cells of several bits hold several pages, and the upper ones take
/// longer: one time for all, or one for each type, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTimes {
    times: [Nanos; PageTimes::TYPES_MAX],
    types: u32,
}

impl PageTimes {
    /// The most page types.
    pub const TYPES_MAX: usize = 8;

    /// The same time for every page.
    #[must_use]
    pub const fn uniform(time: Nanos) -> Self {
        Self { times: [time; Self::TYPES_MAX], types: 1 }
    }

    /// One time for each type; `None` if there are none or more than
    /// [`PageTimes::TYPES_MAX`].
    #[must_use]
    pub fn by_type(times: &[Nanos]) -> Option<Self> {
        let mut all = [*times.first()?; Self::TYPES_MAX];
        all.get_mut(..times.len())?.copy_from_slice(times);
        Some(Self { times: all, types: times.len() as u32 })
    }

    /// The times, lowest page first.
    #[must_use]
    pub fn all(&self) -> &[Nanos] {
        &self.times[..self.types as usize]
    }

    /// The time of every page, if they all have the same.
    #[must_use]
    #[inline]
    pub fn only(&self) -> Option<Nanos> {
        (self.types == 1).then_some(self.times[0])
    }

    /// The time of page number `page` of a block: page types repeat in order.
    #[must_use]
    #[inline]
    pub fn of(&self, page: u32) -> Nanos {
        match self.types {
            1 => self.times[0],
            types => self.times[(page % types) as usize],
        }
    }

    /// The mean over the types, rounded down.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        Nanos(self.all().iter().map(|time| time.0).sum::<u64>() / u64::from(self.types))
    }
}

/// Timing of a die and of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Array to page register (tR), by type of page.
    pub t_read: PageTimes,
    /// Page register to array (tPROG), for one program unit: by type of page, or, with one-shot
    /// programming, one time for the wordline.
    pub t_program: PageTimes,
    /// Erase of a block (tBERS), on all ganged planes at once.
    pub t_erase: Nanos,
    /// Command and address cycles before each operation; they hold the channel.
    pub t_command: Nanos,
    /// Bandwidth of a channel in bytes/s; `None` for an infinitely fast channel, as in some older
    /// simulators.
    pub bus_bytes_per_second: Option<u64>,
}

impl Timing {
    /// How long a transfer of `amount` takes on the channel, rounded up to the nanosecond.
    #[must_use]
    pub fn transfer(&self, amount: Bytes) -> Nanos {
        self.bus_bytes_per_second.map_or(Nanos::ZERO, |rate| transfer_time(amount, rate))
    }
}

/// How long a transfer of `amount` takes at `bytes_per_second`, rounded up to the nanosecond.
#[must_use]
pub fn transfer_time(amount: Bytes, bytes_per_second: u64) -> Nanos {
    // 2^34 bytes times 10^9 fits into 64 bits, which avoids the 128-bit division.
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
    fn page_types_repeat() {
        let times = PageTimes::by_type(&[Nanos(1), Nanos(2), Nanos(6)]).unwrap();
        assert_eq!([0, 1, 2, 3, 5].map(|page| times.of(page).0), [1, 2, 6, 1, 6]);
        assert_eq!((times.mean(), PageTimes::uniform(Nanos(7)).of(9)), (Nanos(3), Nanos(7)));
        assert_eq!((PageTimes::by_type(&[]), PageTimes::by_type(&[Nanos(1); 9])), (None, None));
    }

    #[test]
    fn transfers_round_up() {
        assert_eq!(transfer_time(Bytes(8192), 333_000_000), Nanos(24_601));
        assert_eq!(transfer_time(Bytes(0), 1), Nanos(0));
        assert_eq!(transfer_time(Bytes(1 << 40), 1 << 40), Nanos(1_000_000_000));
    }
}
