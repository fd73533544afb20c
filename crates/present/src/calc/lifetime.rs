//! How long a drive lasts at a rate of writes.

use prism_base::Bytes;
use prism_replay::Lifetime;
use prism_report::{Block, Document, Figure, Section, Unit};
use serde::Serialize;

/// A year of 365.25 days has twelve.
const MONTH_DAYS: f64 = 365.25 / 12.0;
const DAY_NS: f64 = 86_400e9;

/// What was asked, and the answer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Answer {
    capacity_bytes: u64,
    cycles: u32,
    write_amplification: f64,
    host_bytes_per_sec: u64,
    days: f64,
    months: f64,
    tbw: f64,
    dwpd: f64,
}

impl Answer {
    /// The answer for a drive of this capacity and endurance, written to at this rate.
    #[must_use]
    pub fn new(
        capacity: Bytes,
        cycles: u32,
        write_amplification: f64,
        rate: Bytes,
        life: Lifetime,
    ) -> Self {
        Self {
            capacity_bytes: capacity.0,
            cycles,
            write_amplification,
            host_bytes_per_sec: rate.0,
            days: life.days,
            months: life.days / MONTH_DAYS,
            tbw: life.tbw,
            dwpd: life.dwpd,
        }
    }
}

/// The answer as a document.
#[must_use]
pub fn document(answer: &Answer) -> Document {
    let mut section = Section::new(
        "Lifetime",
        "Size x cycles / (write amplification x rate), with wear spread evenly.",
    );
    let figures = vec![
        Figure::new("Lifetime", Unit::Nanos, answer.days * DAY_NS),
        Figure::new("in days", Unit::Count, answer.days),
        Figure::new("in months", Unit::Count, answer.months),
        Figure::new("P/E cycles", Unit::Count, u64::from(answer.cycles)),
        Figure::new("TBW", Unit::Count, answer.tbw).note("TB (10^12) that the host can write"),
        Figure::new("DWPD", Unit::Ratio, answer.dwpd).note("capacities a day for five years"),
    ];
    section.push(Block::KeyFigures(figures));
    Document::new("prism calc lifetime", "how long a drive lasts").with(section)
}
