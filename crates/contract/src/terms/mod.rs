//! Decides the six terms of the unwritten contract of storage for a trace and a drive.
//!
//! The terms are assumptions that file systems make about every block device. The paper says
//! for disks, RAID arrays, MEMS storage and SSDs whether each term holds; these columns are
//! quoted. Whether a term holds for the drive at hand is computed from small jobs on drives
//! of the same kind ([`Probe`]) and from the replay of the trace.
//!
//! Source: Rajimwale, Prabhakaran, Davis, "Block management in solid-state devices",
//! USENIX ATC'09, section 3 and Table 1.

pub mod inputs;
pub mod probe;

pub use inputs::Inputs;
pub use probe::{Probe, ProbeError, Rates};

use prism_base::{Bytes, Nanos};
use prism_nand::{Cause, Counts};

/// Sequential accesses are *much better* than random ones from this ratio of throughputs on.
/// In Table 2 of the paper, disks are "several tens of times better" (66.8 and more), and 11.0
/// is "only a few times".
pub const MUCH_BETTER: f64 = 20.0;
/// Distant addresses take *longer* from this ratio of latencies on. Our choice, half way
/// between no difference and twice as long. A disk's longest seek takes several times its
/// shortest.
pub const LONGER: f64 = 1.5;
/// Address ranges *can be interchanged* if the ratio of their speeds is below this. Our
/// choice: random samples differ by a few percent, and the two ends of a disk with zoned
/// recording by more than this.
pub const INTERCHANGEABLE: f64 = 1.25;
/// There is *no write amplification* up to this ratio. Our choice: file systems themselves
/// write more than a twentieth in addition to the data of applications.
pub const NO_AMPLIFICATION: f64 = 1.05;
/// Media *does not wear down* if it lasts at least this long. Drives are warranted for five
/// years; at a hundred times that, these five years use up 1 % of the endurance.
pub const NO_WEAR_DAYS: f64 = 100.0 * 5.0 * 365.0;
/// There is *little background activity* up to this share of flash operations. Our choice:
/// more than one operation in ten is noticeable in throughput.
pub const LITTLE_BACKGROUND: f64 = 0.1;

prism_base::named_enum! {
    /// An entry of the paper's Table 1.
    pub enum Quoted {
        /// T: the term holds.
        True = "true",
        /// F: the term does not hold.
        False = "false",
        /// T with a dagger: the term holds approximately, because devices have become more
        /// complex.
        Approximately = "approximately",
    }
}

/// A term, and whether it holds for a trace and a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The number of the term in the paper, from 1.
    pub number: u8,
    /// The assumption, as stated in the paper.
    pub name: &'static str,
    /// Whether it holds for disks, according to the paper.
    pub disk: Quoted,
    /// Whether it holds for RAID arrays, according to the paper.
    pub raid: Quoted,
    /// Whether it holds for MEMS storage, according to the paper.
    pub mems: Quoted,
    /// Whether it holds for SSDs, according to the paper.
    pub ssd: Quoted,
    /// Whether it holds for this trace and drive; `None` if they do not decide it.
    pub holds: Option<bool>,
    /// The figures of this trace and drive and the threshold, in whole sentences.
    pub why: String,
    /// The table and the section of the paper.
    pub source: &'static str,
}

/// A row of Table 1: number, term, entries for disk, RAID, MEMS and SSD, and source.
type Row = (u8, &'static str, [Quoted; 4], &'static str);

const fn row(number: u8, name: &'static str, quoted: [Quoted; 4], source: &'static str) -> Row {
    (number, name, quoted, source)
}

use Quoted::{Approximately as A, False as F, True as T};

/// Table 1 of the paper.
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

/// Decides the six terms, in the order of the paper.
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

/// Whether a term holds, and the reason.
type Decision = (Option<bool>, String);

/// Decides a term by the results of the probe, if there are any.
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
        format!("{name} {} with 1 in flight, {} with 32 in flight", pair(one), pair(deep))
    };
    let why = format!(
        "Sequential against random requests of {}: {}; {}, on the smallest full drive of \
         this kind. Sequential is much better if any ratio is at least {MUCH_BETTER}.",
        probe::REQUEST,
        of("reads", &probe.reads),
        of("writes", &probe.writes),
    );
    (Some(most >= MUCH_BETTER), why)
}

fn distant(probe: &Probe) -> Decision {
    let ratio = probe.distant_ns / probe.near_ns;
    let why = format!(
        "A read far from the previous one takes {}, a read near it {}: {ratio:.2} times. The term \
         holds from {LONGER} times on.",
        Nanos(probe.distant_ns as u64),
        Nanos(probe.near_ns as u64),
    );
    (Some(ratio >= LONGER), why)
}

fn interchangeable(inputs: &Inputs) -> Decision {
    let (holds, mut why) = probed(inputs, |probe| {
        let ratio = probe.first.max(probe.last) / probe.first.min(probe.last);
        let why = format!(
            "Random reads of the first addresses reach {}, of the last {}; the addresses are \
             interchangeable below a ratio of {INTERCHANGEABLE}. All flash of this drive is of \
             one type, which the paper expects to change.",
            rate(probe.first),
            rate(probe.last),
        );
        (Some(ratio < INTERCHANGEABLE), why)
    });
    if let Some(segment) = inputs.segment {
        why.push_str(&format!(
            " Each {segment} of addresses has separate erase blocks, all of the same type."
        ));
    }
    (holds, why)
}

fn amplification(inputs: &Inputs) -> Decision {
    let Some(amplification) = inputs.write_amplification else {
        let why = match inputs.written {
            Bytes(0) => "The trace writes nothing.",
            _ => "Nothing reaches the flash: what the trace writes stays in the write buffer.",
        };
        return (None, why.into());
    };
    if inputs.units.total() == 0 {
        let why = format!(
            "For each byte that this trace writes, about {amplification:.2} bytes are programmed: \
             an estimate, as nothing was in the measured passes. The term holds up to \
             {NO_AMPLIFICATION}."
        );
        return (Some(amplification <= NO_AMPLIFICATION), why);
    }
    let total = inputs.units.total() as f64;
    let shares: Vec<String> = inputs
        .units
        .iter()
        .filter(|&(_, units)| units > 0)
        .map(|(cause, units)| {
            let share = amplification * units as f64 / total;
            format!("{} {share:.2}", cause.name())
        })
        .collect();
    let why = format!(
        "For each byte that this trace writes, {amplification:.2} bytes are programmed, by cause: \
         {}. The term holds up to {NO_AMPLIFICATION}.",
        shares.join(", ")
    );
    (Some(amplification <= NO_AMPLIFICATION), why)
}

fn wear(inputs: &Inputs) -> Decision {
    let Some(days) = inputs.lifetime_days else {
        let why = if inputs.units.total() > 0 || inputs.write_amplification.is_some() {
            "The trace is too short to judge wear by."
        } else {
            "No flash is programmed, so nothing wears."
        };
        return (None, why.into());
    };
    let why = format!(
        "At the rate of this trace the {} cycles of a block last {:.1} years on the described \
         drive; {} blocks were erased in the measured {}. The term holds from {:.0} years on.",
        inputs.endurance,
        days / 365.0,
        inputs.erases,
        inputs.simulated,
        NO_WEAR_DAYS / 365.0,
    );
    (Some(days >= NO_WEAR_DAYS), why)
}

fn passive(inputs: &Inputs) -> Decision {
    let total = inputs.operations.total();
    if total == 0 {
        return (None, "This trace causes no flash operations.".into());
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
        "{} of the page reads, page programs and block erases are issued by the drive itself{own}. \
         The term holds up to {}.",
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

/// The share of operations with a cause other than `host`.
fn background(operations: &Counts) -> f64 {
    let own = operations.total() - operations[Cause::Host];
    own as f64 / operations.total() as f64
}

#[cfg(test)]
mod tests;
