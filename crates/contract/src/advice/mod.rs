//! The seven design rules for applications, found against a trace on a drive.
//!
//! They are advice to programmers; a trace of requests shows whether some of them are
//! followed, and says nothing of others. "Not decidable" is then the answer, with its reason.
//!
//! Source: "Designing SSD-friendly applications for better application performance and
//! higher IO efficiency", 2016 (an extended version is in IEEE COMPSAC'16).

pub mod inputs;

mod rules;

pub use inputs::Inputs;

use prism_base::Nanos;

/// From this share of written bytes on that replace data where it is, updating in place is
/// the rule and not the exception. Our choice, the source gives no line: the larger half.
pub const IN_PLACE: f64 = 0.5;
/// From this share of writes on that are shorter than a mapping unit, structures are too
/// small for the drive. Our choice: one in ten, each of which costs a unit and often a read.
pub const BELOW_UNIT: f64 = 0.1;
/// Latencies above are large. Source: rule 4, whose runs count latencies above 50 ms.
pub const SLOW: Nanos = Nanos(50_000_000);
/// A drive is full from this share of its capacity on. Source: the first example of rule 5,
/// where five blocks are compacted to free one.
pub const FULL: f64 = 0.8;
/// Requests in flight that are enough where each is large. Source: rule 7, "one or two".
pub const FEW: u64 = 2;

/// Whether a design rule is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is, as far as requests show.
    Follows,
    /// It is not.
    Violates,
    /// The trace does not tell, for this reason, as a whole sentence.
    NotDecidable(String),
}

impl Verdict {
    /// The word for it, in JSON.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Follows => "follows",
            Self::Violates => "violates",
            Self::NotDecidable(_) => "not_decidable",
        }
    }

    /// The word for it, in text.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Follows => "followed",
            Self::Violates => "violated",
            Self::NotDecidable(_) => "not decidable",
        }
    }
}

/// A design rule, and what it means for this trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Its number in the source, from 1.
    pub number: u8,
    /// What is advised.
    pub rule: &'static str,
    /// Whether it is followed.
    pub verdict: Verdict,
    /// The numbers of this trace and drive, and the line, in sentences.
    pub numbers: String,
    /// What to do, in sentences.
    pub advice: String,
    /// Where the rule is from.
    pub source: &'static str,
}

/// The seven rules, in the order of the source.
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
    let one = |(number, (rule, found)): (u8, (&'static str, rules::Assessment))| Advice {
        number,
        rule,
        verdict: found.verdict,
        numbers: found.numbers,
        advice: found.advice,
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
