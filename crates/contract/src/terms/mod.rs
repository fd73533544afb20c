//! The six terms of the unwritten contract of storage, decisions for a trace and a drive.
//!
//! They are what file systems take for granted of any block device. The paper says of disks,
//! RAID arrays, MEMS storage and SSDs whether each holds; those columns are quoted. Whether it
//! holds here is computed: from small jobs on drives of the kind ([`Probe`]), and from what
//! the trace made of the drive.
//!
//! Source: Rajimwale, Prabhakaran, Davis, "Block management in solid-state devices",
//! USENIX ATC'09, section 3 and Table 1.

pub mod inputs;
pub mod probe;

pub use inputs::Inputs;
pub use probe::{Probe, ProbeError, Rates};

use prism_base::{Bytes, Nanos};
use prism_nand::{Cause, Counts};

/// Sequential accesses are *much* better from this ratio on. Table 2 of the paper: disks are
/// "several tens of times better" (66.8 and more), and 11.0 is "only a few times".
pub const MUCH_BETTER: f64 = 20.0;
/// Distant addresses take *longer* from this ratio of latencies on. Our choice, half way
/// between none and twice: a disk's longest seek takes several times its shortest.
pub const LONGER: f64 = 1.5;
/// Address ranges that differ in speed by less than this can be interchanged. Our choice:
/// beyond the few percent by which draws differ, below what zoned recording makes of the two
/// ends of a disk.
pub const INTERCHANGEABLE: f64 = 1.25;
/// As much is written as is issued up to this write amplification. Our choice: one part in
/// twenty more is less than what file systems add themselves.
pub const NO_AMPLIFICATION: f64 = 1.05;
/// Media that lasts so many days at this rate does not wear down for anybody: a hundred
/// times the five years over which drives are warranted, so that these use up 1 %.
pub const NO_WEAR_DAYS: f64 = 100.0 * 5.0 * 365.0;
/// Background activity is little up to this share of flash operations. Our choice: beyond
/// one in ten it shows in throughput.
pub const LITTLE_BACKGROUND: f64 = 0.1;

/// What the paper's Table 1 says of a kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// T: the term is satisfied.
    True,
    /// F: it is not.
    False,
    /// T with a dagger: only approximately, because the device has grown more complex.
    Approximately,
}

impl Quoted {
    /// The word for it, in text and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Approximately => "approximately",
        }
    }
}

/// A term, and whether it holds here.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Its number in the paper, from 1.
    pub number: u8,
    /// What is taken for granted.
    pub name: &'static str,
    /// Quoted of disks.
    pub disk: Quoted,
    /// Quoted of RAID arrays.
    pub raid: Quoted,
    /// Quoted of MEMS storage.
    pub mems: Quoted,
    /// Quoted of SSDs.
    pub ssd: Quoted,
    /// Whether it holds here; `None` where this trace and drive do not decide it.
    pub holds: Option<bool>,
    /// The numbers of this trace and drive, and the line between true and false, in
    /// sentences.
    pub why: String,
    /// Where the term is from.
    pub source: &'static str,
}

/// Number, term, and what is quoted of disk, RAID, MEMS and SSD.
type Row = (u8, &'static str, [Quoted; 4], &'static str);

const fn row(number: u8, name: &'static str, quoted: [Quoted; 4], source: &'static str) -> Row {
    (number, name, quoted, source)
}

use Quoted::{Approximately as A, False as F, True as T};

/// Table 1.
const TABLE: [Row; 6] = [
    row(
        1,
        "Sequential accesses are much better than random accesses",
        [T, T, T, F],
        "Rajimwale et al., ATC'09, Table 1 and 3.1",
    ),
    row(
        2,
        "Distant LBNs lead to longer seek times",
        [A, F, T, F],
        "Rajimwale et al., ATC'09, Table 1 and 3.2",
    ),
    row(
        3,
        "LBN spaces can be interchanged",
        [F, F, T, F],
        "Rajimwale et al., ATC'09, Table 1 and 3.3",
    ),
    row(
        4,
        "Data written is equal to data issued (no write amplification)",
        [T, F, T, F],
        "Rajimwale et al., ATC'09, Table 1 and 3.4",
    ),
    row(5, "Media does not wear down", [T, T, T, F], "Rajimwale et al., ATC'09, Table 1 and 3.5"),
    row(
        6,
        "Storage devices are passive with little background activity",
        [A, F, T, F],
        "Rajimwale et al., ATC'09, Table 1 and 3.6",
    ),
];

/// The six terms, in the order of the paper.
#[must_use]
pub fn terms(inputs: &Inputs) -> Vec<Term> {
    let decisions = [
        probed(inputs, sequential),
        probed(inputs, distant),
        interchangeable(inputs),
        amplification(inputs),
        wear(inputs),
        passive(inputs),
    ];
    let term =
        |((number, name, [disk, raid, mems, ssd], source), (holds, why)): (Row, Decision)| Term {
            number,
            name,
            disk,
            raid,
            mems,
            ssd,
            holds,
            why,
            source,
        };
    TABLE.into_iter().zip(decisions).map(term).collect()
}

/// Whether a term holds, and why.
type Decision = (Option<bool>, String);

fn probed(inputs: &Inputs, decide: fn(&Probe) -> Decision) -> Decision {
    match &inputs.probe {
        Ok(probe) => decide(probe),
        Err(error) => (None, format!("Not simulated: {error}.")),
    }
}

fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", Bytes(bytes_per_second as u64))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn sequential(probe: &Probe) -> Decision {
    let all = probe.reads.iter().chain(&probe.writes);
    let most = all.map(Rates::ratio).fold(0.0, f64::max);
    let of = |name: &str, [one, deep]: &[Rates; 2]| {
        let pair = |rates: &Rates| {
            let (a, b) = (rate(rates.sequential), rate(rates.random));
            format!("{a} against {b} ({:.2} times)", rates.ratio())
        };
        format!("{name} {} one at a time, {} with 32 in flight", pair(one), pair(deep))
    };
    let why = format!(
        "Sequential against random requests of {}: {}; {}, on the smallest full drive of \
         the kind. Much better is from {MUCH_BETTER} times on, for either.",
        probe::REQUEST,
        of("reads", &probe.reads),
        of("writes", &probe.writes),
    );
    (Some(most >= MUCH_BETTER), why)
}

fn distant(probe: &Probe) -> Decision {
    let ratio = probe.distant_ns / probe.near_ns;
    let why = format!(
        "A read far from the one before it takes {}, one near it {}: {ratio:.2} times. Longer is \
         from {LONGER} times on.",
        Nanos(probe.distant_ns as u64),
        Nanos(probe.near_ns as u64),
    );
    (Some(ratio >= LONGER), why)
}

fn interchangeable(inputs: &Inputs) -> Decision {
    let (holds, mut why) = probed(inputs, |probe| {
        let ratio = probe.first.max(probe.last) / probe.first.min(probe.last);
        let why = format!(
            "Random reads of the first addresses bring {}, of the last {}; they differ from \
             {INTERCHANGEABLE} times on. All flash of this drive is of one type, which the paper \
             expects to change.",
            rate(probe.first),
            rate(probe.last),
        );
        (Some(ratio < INTERCHANGEABLE), why)
    });
    if let Some(segment) = inputs.segment {
        why.push_str(&format!(
            " Every {segment} of addresses have erase blocks of their own, all alike."
        ));
    }
    (holds, why)
}

fn amplification(inputs: &Inputs) -> Decision {
    let Some(amplification) = inputs.write_amplification else {
        return (None, "Nothing is written.".into());
    };
    let total = inputs.units.total().max(1) as f64;
    let shares: Vec<String> = inputs
        .units
        .iter()
        .filter(|&(_, units)| units > 0)
        .map(|(cause, units)| {
            let share = amplification * units as f64 / total;
            format!("{} {share:.2}", cause.name())
        })
        .collect();
    let by_cause = if shares.is_empty() { "none".into() } else { shares.join(", ") };
    let why = format!(
        "Of each byte that this trace writes {amplification:.2} reach the flash, by cause: \
         {by_cause}. Equal is up to {NO_AMPLIFICATION}."
    );
    (Some(amplification <= NO_AMPLIFICATION), why)
}

fn wear(inputs: &Inputs) -> Decision {
    let Some(days) = inputs.lifetime_days else {
        return (None, "Nothing is written, so nothing wears.".into());
    };
    let why = format!(
        "{} blocks are erased in {} of this trace; at this rate the {} cycles of a block last \
         {:.1} years. Without wear is from {:.0} years on.",
        inputs.erases,
        inputs.simulated,
        inputs.endurance,
        days / 365.0,
        NO_WEAR_DAYS / 365.0,
    );
    (Some(days >= NO_WEAR_DAYS), why)
}

fn passive(inputs: &Inputs) -> Decision {
    let total = inputs.operations.total();
    if total == 0 {
        return (None, "The flash does nothing for this trace.".into());
    }
    let share = background(&inputs.operations);
    let own: Vec<String> = inputs
        .operations
        .iter()
        .filter(|&(cause, count)| cause != Cause::Host && count > 0)
        .map(|(cause, count)| format!("{} {}", cause.name(), percent(count as f64 / total as f64)))
        .collect();
    let own = if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) };
    let mut why = format!(
        "{} of page reads, page programs and block erases are the drive's own{own}; little is up \
         to {}.",
        percent(share),
        percent(LITTLE_BACKGROUND),
    );
    if let Some((median, longest)) = inputs.latency {
        let times = longest.0 as f64 / median.0.max(1) as f64;
        why.push_str(&format!(
            " The longest request takes {longest}, {times:.0} times the median of {median}."
        ));
    }
    (Some(share <= LITTLE_BACKGROUND), why)
}

/// The share of operations that the host did not ask for.
fn background(operations: &Counts) -> f64 {
    let own = operations.total() - operations[Cause::Host];
    own as f64 / operations.total() as f64
}

#[cfg(test)]
mod tests;
