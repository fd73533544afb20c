//! Default fault models by cell type.
//!
//! Orders of magnitude only. Error rates are recalled from Mielke and others (IRPS'08), Cai and
//! others (DATE'12, DATE'13) and Grupp and others (FAST'12), failure rates from data sheets, which
//! promise that at most 2 % of blocks are or become bad within the rated endurance. The exact
//! numbers are ours, chosen so that a drive at its endurance still reads data after a year, as
//! JESD218 requires of client drives.

use prism_base::Nanos;

use super::forms::PageFactors;
use super::{BitErrors, Ecc, FailureLaw, FaultModel};

impl FaultModel {
    /// The names of the cell types.
    pub const KINDS: [&str; 4] = ["slc", "mlc", "tlc", "qlc"];

    /// A new device of this cell type, rated for `endurance` cycles; `None` for an unknown name.
    #[must_use]
    pub fn of_kind(kind: &str, endurance: u32) -> Option<Self> {
        let place = Self::KINDS.iter().position(|&known| known == kind)?;
        // At the endurance: failure rates of programs and erases, bit error rates fresh, from
        // cycles, after a year. Then bytes and correctable bits of a codeword, and retries.
        let (program, erase, fresh, cycled, aged, bytes, correctable, retries) = [
            (6e-9, 4e-7, 1e-9, 1e-7, 1e-6, 512, 4, 0),
            (3e-8, 4e-6, 1e-6, 1e-4, 4e-4, 1024, 24, 3),
            (5e-8, 1.5e-5, 1e-5, 8e-4, 3e-3, 1024, 72, 5),
            (1e-7, 4e-5, 1e-4, 1.5e-3, 4.5e-3, 2048, 200, 7),
        ][place];
        let types: &[f64] =
            [&[1.0][..], &[0.7, 1.3], &[0.6, 1.0, 1.4], &[0.6, 0.85, 1.15, 1.4]][place];
        Some(Self {
            factory_bad: 0.005,
            endurance,
            program: FailureLaw { at_endurance: program, exponent: 3.0 },
            erase: FailureLaw { at_endurance: erase, exponent: 3.0 },
            bits: BitErrors {
                fresh,
                cycled,
                wear_exponent: 2.0,
                aged,
                aged_exponent: 2.0,
                years_exponent: 0.5,
                types: PageFactors::by_type(types).expect("one to eight types"),
            },
            ecc: Ecc { codeword_bits: bytes * 8, correctable, retries, retry_factor: 0.7 },
            wear: 0,
            age: Nanos::ZERO,
        })
    }
}
