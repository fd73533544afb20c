//! The lifetime of a drive at a given write rate.

use prism_base::Bytes;
use prism_experiments::calc::{Cell, life};
use prism_replay::Lifetime;
use prism_report::{Document, Figure, Section, Unit};
use serde_json::{Value, json};

use crate::drive::DAY_NS;
use crate::error::PresentError;

/// Computes the lifetime.
///
/// # Errors
/// [`PresentError::Refused`] if a quantity is 0 or not a number.
pub fn run(inputs: &LifetimeInputs) -> Result<Lifetime, PresentError> {
    let LifetimeInputs { capacity, cycles, write_amplification, rate } = *inputs;
    life(capacity, cycles, write_amplification, rate)
        .map_err(|error| PresentError::refused(error.to_string()))
}

/// Reads a kind of cells.
///
/// # Errors
/// The kinds that exist.
pub fn parse_cell(text: &str) -> Result<Cell, String> {
    let found = Cell::ALL.into_iter().find(|cell| cell.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "the cells are: slc mlc tlc qlc".into())
}

/// A year of 365.25 days has twelve.
const MONTH_DAYS: f64 = 365.25 / 12.0;

/// The inputs of the calculation.
#[derive(Clone, Copy, Debug)]
pub struct LifetimeInputs {
    /// Size of the drive.
    pub capacity: Bytes,
    /// P/E cycles that a block endures.
    pub cycles: u32,
    /// Bytes programmed for each byte that the host writes.
    pub write_amplification: f64,
    /// Bytes that the host writes per second.
    pub rate: Bytes,
}

/// Inputs and result as JSON.
#[must_use]
pub fn json(inputs: &LifetimeInputs, life: &Lifetime) -> Value {
    json!({
        "capacity_bytes": inputs.capacity.0,
        "cycles": inputs.cycles,
        "write_amplification": inputs.write_amplification,
        "host_bytes_per_sec": inputs.rate.0,
        "days": life.days,
        "months": life.days / MONTH_DAYS,
        "tbw": life.tbw,
        "dwpd": life.dwpd,
    })
}

/// The result as a document.
#[must_use]
pub fn document(inputs: &LifetimeInputs, life: &Lifetime) -> Document {
    let mut section = Section::new(
        "Lifetime",
        "Size x cycles / (write amplification x rate), with wear spread evenly.",
    );
    let figures = vec![
        Figure::new("Lifetime", Unit::Nanos, life.days * DAY_NS),
        Figure::new("in days", Unit::Count, life.days),
        Figure::new("in months", Unit::Count, life.days / MONTH_DAYS),
        Figure::new("P/E cycles", Unit::Count, inputs.cycles),
        Figure::new("TBW", Unit::Count, life.tbw).note("TB (10^12) that the host can write"),
        Figure::new("DWPD", Unit::Ratio, life.dwpd).note("capacities per day for five years"),
    ];
    section.push(figures);
    Document::new("prism calc lifetime", "how long a drive lasts").with(section)
}
