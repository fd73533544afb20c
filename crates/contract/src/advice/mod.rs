//! Checks the seven design rules for applications against a trace on a drive.
//!
//! The rules are advice to programmers. A block trace shows for some of them whether they are
//! followed. For the others the verdict is "not decidable", with a reason.
//!
//! Source: "Designing SSD-friendly applications for better application performance and
//! higher IO efficiency", 2016 (an extended version is in IEEE COMPSAC'16).

pub mod inputs;

mod rules;

pub use inputs::Inputs;

use prism_base::Nanos;

/// Rule 1 is violated if at least this share of the written bytes overwrites data in place.
/// The source gives no threshold; one half is our choice.
pub const IN_PLACE: f64 = 0.5;
/// Rule 3 is violated if at least this share of the writes is shorter than a mapping unit.
/// One in ten is our choice: each such write costs a whole unit and often a read.
pub const BELOW_UNIT: f64 = 0.1;
/// A write with a latency above this is slow. Source: rule 4, whose runs count latencies above
/// 50 ms.
pub const SLOW: Nanos = Nanos(50_000_000);
/// A drive is full if more than this share of its capacity is in use. Source: the first
/// example of rule 5, where five blocks are compacted to free one.
pub const FULL: f64 = 0.8;
/// The number of large requests in flight that suffices. Source: rule 7, "one or two".
pub const FEW: u64 = 2;

/// Whether a design rule is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule is followed, as far as a block trace shows.
    Follows,
    /// The rule is violated.
    Violates,
    /// The trace does not show it. The text is the reason, as a whole sentence.
    NotDecidable(String),
}

impl Verdict {
    /// The name in JSON.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Follows => "follows",
            Self::Violates => "violates",
            Self::NotDecidable(_) => "not_decidable",
        }
    }

    /// The name in text.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Follows => "followed",
            Self::Violates => "violated",
            Self::NotDecidable(_) => "not decidable",
        }
    }
}

/// A design rule and its result for a trace on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The number of the rule in the source, from 1.
    pub number: u8,
    /// The rule.
    pub rule: &'static str,
    /// Whether the trace follows the rule.
    pub verdict: Verdict,
    /// The figures of this trace and drive and the threshold, in whole sentences.
    pub numbers: String,
    /// The recommendation, in whole sentences.
    pub advice: String,
    /// Title and section of the source.
    pub source: &'static str,
}

/// Checks the seven rules, in the order of the source.
#[must_use]
pub fn advice(inputs: &Inputs) -> Vec<Advice> {
    let table = [
        ("Avoid in-place updates", rules::in_place(inputs)),
        ("Separate hot data from cold data", rules::hot_cold(inputs)),
        ("Adopt compact data structures", rules::compact(inputs)),
        ("Avoid long, heavy writes", rules::heavy(inputs)),
        ("Avoid full SSD usage", rules::full(inputs)),
        ("Use multiple threads to do small I/O", rules::small(inputs)),
        ("Use fewer threads to do big I/O", rules::big(inputs)),
    ];
    let one = |(number, (rule, assessment)): (u8, (&'static str, rules::Assessment))| Advice {
        number,
        rule,
        verdict: assessment.verdict,
        numbers: assessment.numbers,
        advice: assessment.advice,
        source: SOURCES[usize::from(number) - 1],
    };
    (1..).zip(table).map(one).collect()
}

const SOURCES: [&str; 7] = [
    "\"Designing SSD-friendly applications\", 2016, data structure, 1",
    "\"Designing SSD-friendly applications\", 2016, data structure, 2",
    "\"Designing SSD-friendly applications\", 2016, data structure, 3",
    "\"Designing SSD-friendly applications\", 2016, I/O handling, 4",
    "\"Designing SSD-friendly applications\", 2016, I/O handling, 5",
    "\"Designing SSD-friendly applications\", 2016, threading, 6",
    "\"Designing SSD-friendly applications\", 2016, threading, 7",
];

#[cfg(test)]
mod tests;
