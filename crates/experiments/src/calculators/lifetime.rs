//! How long a drive lasts at a rate of writes.

use prism_base::{Bytes, Nanos};
use prism_replay::lifetime::{Lifetime, lifetime};
pub use prism_ssd::spec::Cell;

use super::CalcError;

/// P/E cycles that a block of such cells usually endures. The article gives numbers for SLC and
/// MLC and "a few thousand" for TLC. It gives none for QLC; 1,000 is common in data sheets.
#[must_use]
pub fn usual_cycles(cell: Cell) -> u32 {
    match cell {
        Cell::Slc => 100_000,
        Cell::Mlc => 10_000,
        Cell::Tlc => 3_000,
        Cell::Qlc => 1_000,
    }
}

/// The lifetime of a drive of `capacity` whose blocks endure `cycles`, if the host writes `rate`
/// bytes a second: capacity x cycles / (write amplification x rate). As in the article, spare
/// flash beyond the capacity does not count, although it prolongs the lifetime in proportion.
///
/// # Errors
/// [`CalcError`] if a quantity is 0 or not a number.
pub fn life(
    capacity: Bytes,
    cycles: u32,
    write_amplification: f64,
    rate: Bytes,
) -> Result<Lifetime, CalcError> {
    let none = [
        ("the capacity", capacity.0 == 0),
        ("the number of cycles", cycles == 0),
        ("the rate of writes", rate.0 == 0),
    ];
    if let Some((field, _)) = none.into_iter().find(|(_, is_zero)| *is_zero) {
        return Err(CalcError::Zero { field });
    }
    if !(write_amplification.is_finite() && write_amplification > 0.0) {
        return Err(CalcError::WriteAmplification { given: write_amplification });
    }
    let second = Nanos(1_000_000_000);
    let life = lifetime(capacity, cycles, capacity, write_amplification, rate, second);
    Ok(life.expect("neither the rate nor the write amplification is 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TB: Bytes = Bytes(1_000_000_000_000);
    const RATE: Bytes = Bytes(100_000_000);

    #[test]
    fn published_lifetimes_are_reproduced() {
        // 1e12 x 1e4 / (4 x 1e8) = 2.5e7 s, 10 months; 1e12 x 3e3 / (10 x 1e8) = 3e6 s, 1 month.
        for (cell, write_amplification, seconds) in
            [(Cell::Mlc, 4.0, 2.5e7), (Cell::Tlc, 10.0, 3e6)]
        {
            let life = life(TB, usual_cycles(cell), write_amplification, RATE).unwrap();
            let expected = seconds / 86_400.0;
            assert!((life.days / expected - 1.0).abs() <= 1e-12, "{} days", life.days);
        }
    }

    #[test]
    fn quantities_of_zero_are_refused() {
        let zero = |field| Err(CalcError::Zero { field });
        assert_eq!(life(Bytes(0), 1, 1.0, RATE), zero("the capacity"));
        assert_eq!(life(TB, 0, 1.0, RATE), zero("the number of cycles"));
        assert_eq!(life(TB, 1, 1.0, Bytes(0)), zero("the rate of writes"));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(
                matches!(life(TB, 1, wrong, RATE), Err(CalcError::WriteAmplification { .. })),
                "{wrong}"
            );
        }
    }
}
