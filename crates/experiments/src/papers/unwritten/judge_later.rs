//! The rules that decide on observations 14 to 24, on alignment, grouping and lifetime,
//! except 16 and 20.
//! [`super::observation::OBSERVATIONS`] states each rule in words.

use super::judge::{THREE_SYSTEMS, against_f2fs, name};
use super::observation::{Decision, Evidence, Needed, Pairs};
use super::{App, Facts, Fs};

/// Bytes merged over live bytes from which data counts as unaligned: a score of 0.8.
const UNALIGNED: f64 = 0.25;
/// Share of zombie blocks (blocks with valid data and garbage) that matters to cleaning.
const ZOMBIES: f64 = 0.1;
/// Share of zombie blocks from which data of different death times counts as mixed.
const ZOMBIES_HALF: f64 = 0.5;
/// Data overwritten so many times as often has another lifetime.
const FACTOR: f64 = 2.0;
/// With fewer written units of one kind the lifetimes are not compared.
const UNITS_MIN: u64 = 16;

/// Evidence from one number of each of `facts`: whether it satisfies `holds`.
fn each<'a>(
    facts: impl Iterator<Item = &'a Facts>,
    number: impl Fn(&Facts) -> Option<f64>,
    holds: impl Fn(f64) -> bool,
) -> Evidence {
    let mut evidence = Evidence::default();
    for facts in facts {
        if let Some(value) = number(facts) {
            evidence.add(holds(value), format!("{}: {value:.2}", name(facts)));
        }
    }
    evidence
}

/// Evidence from each file system: whether `holds` is true for most of its applications.
pub(super) fn most_on_every_fs(
    pairs: &Pairs,
    holds: impl Fn(&Facts) -> Option<(bool, String)>,
) -> Evidence {
    let mut evidence = Evidence::default();
    for fs in Fs::ALL {
        let known: Vec<(bool, String)> = pairs.on(fs, &App::ALL).filter_map(&holds).collect();
        if known.is_empty() {
            continue;
        }
        let yes = known.iter().filter(|(holds, _)| *holds).count();
        let numbers: Vec<String> = known.iter().map(|(_, numbers)| numbers.clone()).collect();
        let text = format!("{}: {yes} of {} ({})", fs.name(), known.len(), numbers.join(", "));
        evidence.add(2 * yes > known.len(), text);
    }
    evidence
}

pub(super) fn aligned_stores(pairs: &Pairs) -> Decision {
    let ratio = |facts: &Facts| facts.unaligned[1];
    each(pairs.of(&App::LOG_STRUCTURED), ratio, |ratio| ratio >= UNALIGNED)
        .decide(Needed::One, "a trace of a log-structured store is needed")
}

pub(super) fn aligned_f2fs(pairs: &Pairs) -> Decision {
    let apps = [App::SqliteRb, App::SqliteWal, App::Varmail];
    let ratio = |facts: &Facts| facts.unaligned[1];
    each(pairs.on(Fs::F2fs, &apps), ratio, |ratio| ratio > 1.0)
        .decide(Needed::One, "SQLite or Varmail on f2fs is needed")
}

pub(super) fn zombies_of_stores(pairs: &Pairs) -> Decision {
    let mixed = |facts: &Facts| facts.mixed[0];
    each(pairs.of(&App::LOG_STRUCTURED), mixed, |share| share >= ZOMBIES)
        .decide(Needed::Most, "a trace of a log-structured store is needed")
}

pub(super) fn mixed_death_times(pairs: &Pairs) -> Decision {
    let mixed = |facts: &Facts| facts.mixed[0];
    each(pairs.of(&App::SQLITE), mixed, |share| share >= ZOMBIES_HALF)
        .decide(Needed::Most, "a trace of SQLite is needed")
}

pub(super) fn segmented_tails(pairs: &Pairs) -> Decision {
    most_on_every_fs(pairs, |facts| match facts.density {
        [Some(whole), Some(segmented)] => {
            Some((segmented > whole, format!("{whole:.2} to {segmented:.2}")))
        }
        _ => None,
    })
    .decide(Needed::All, "traces that fill a block, of devices larger than 128 MiB, are needed")
}

/// Compares the dead share of the mapped bytes on f2fs and on the other file systems.
pub(super) fn late_discards(pairs: &Pairs) -> Decision {
    against_f2fs(pairs, Facts::dead_share, |log, other| log > other)
        .decide(Needed::Most, THREE_SYSTEMS)
}

pub(super) fn lifetimes(pairs: &Pairs) -> Decision {
    let enough = |facts: &Facts| facts.metadata.units.min(facts.data.units) >= UNITS_MIN;
    let ratio = |facts: &Facts| {
        let (own, data) = facts.metadata.mean().zip(facts.data.mean())?;
        enough(facts).then_some(own / data)
    };
    each(pairs.0.iter(), ratio, |ratio| ratio >= FACTOR || ratio <= 1.0 / FACTOR)
        .decide(Needed::Most, "traces whose writes say which are metadata are needed")
}

pub(super) fn allocation(pairs: &Pairs) -> Decision {
    most_on_every_fs(pairs, |facts| {
        let bias = facts.bias;
        let text = format!("{:.1}", bias.most_over_mean);
        (bias.ranges > 1).then_some((bias.most_over_mean >= FACTOR, text))
    })
    .decide(Needed::All, "traces that write to two ranges of addresses are needed")
}

pub(super) fn preserved_lifetimes(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for app in App::SQLITE {
        let top = |fs| pairs.get(app, fs).and_then(|facts| facts.top_tenth);
        let Some(log) = top(Fs::F2fs) else { continue };
        for fs in Fs::IN_PLACE {
            if let Some(in_place) = top(fs) {
                let (app, fs) = (app.name(), fs.name());
                evidence.add(in_place > log, format!("{app}: {fs} {in_place:.2}, f2fs {log:.2}"));
            }
        }
    }
    evidence.decide(Needed::All, "SQLite on f2fs and on ext4 or xfs is needed")
}
