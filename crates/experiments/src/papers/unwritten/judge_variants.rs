//! The rules that decide on observations 7, 9, 16 and 20, which need reads with cold caches or
//! several instances at once. [`super::observation::OBSERVATIONS`] states each rule in words.

use prism_base::Bytes;

use super::judge::{enough, name};
use super::judge_later::most_on_every_fs;
use super::observation::{Decision, Evidence, Needed, Pairs};
use super::variants::READ_AHEADS;
use super::{App, Facts, Fs, Scale};

/// The default read-ahead of Linux.
const DEFAULT: Bytes = READ_AHEADS[1];
/// A read-ahead is worth so many times the bytes in flight, or wastes so many times the bytes.
const PREFETCH_FACTOR: f64 = 2.0;
/// Two streams are worse than one if so many times as much is merged.
const MIXED_FACTOR: f64 = 1.1;
/// Share of a removed folder's data that lies among other data, from which folders count as mixed.
const AMID: f64 = 0.5;

/// Reads in order: with cold caches if they were recorded, else those of the application.
fn ordered(facts: &Facts) -> &Scale {
    facts.cold_reads(DEFAULT).map_or(&facts.reads, |cold| &cold.ordered)
}

pub(super) fn fragmentation(pairs: &Pairs) -> Decision {
    let (mut evidence, mut few) = (Evidence::default(), Evidence::default());
    for app in App::SQLITE {
        let Some(log) = pairs.get(app, Fs::F2fs) else { continue };
        for fs in Fs::IN_PLACE {
            let Some(in_place) = pairs.get(app, fs) else { continue };
            let [log, other] = [log, in_place].map(ordered);
            let both = enough(log) && enough(other);
            if let (true, Some(log), Some(other)) = (both, log.depth(), other.depth()) {
                let text = format!("{}: f2fs {log} against {} {other}", app.name(), fs.name());
                evidence.add(log > other, text);
            } else {
                let (log, other) = (log.requests, other.requests);
                let text = format!("{}: {log} reads on f2fs, {other} on {}", app.name(), fs.name());
                few.add(false, text);
            }
        }
    }
    if evidence.is_empty() {
        let why = match few.is_empty() {
            true => "SQLite on f2fs and on ext4 or xfs is needed",
            false => "SQLite finds its database in memory: too few reads",
        };
        return few.untestable(why);
    }
    evidence.decide(Needed::All, "SQLite on f2fs and on ext4 or xfs is needed")
}

/// Bytes in flight at a read: median size times median depth.
fn in_flight(reads: &Scale) -> Option<Bytes> {
    enough(reads).then_some(())?;
    reads.depth_same().map(|depth| Bytes(depth * reads.size()))
}

pub(super) fn prefetching(pairs: &Pairs) -> Decision {
    let (mut aggressive, mut accurate) = (Evidence::default(), Evidence::default());
    for facts in pairs.0 {
        let [none, default, large] = READ_AHEADS.map(|at| facts.cold_reads(at));
        if let (Some(default), Some(large)) = (
            default.and_then(|cold| in_flight(&cold.ordered)),
            large.and_then(|cold| in_flight(&cold.ordered)),
        ) {
            let text = format!("{} in order: {default} to {large} in flight", name(facts));
            aggressive.add(large.0 as f64 >= PREFETCH_FACTOR * default.0 as f64, text);
        }
        if let (Some(none), Some(large)) = (none, large)
            && enough(&none.random)
        {
            let [none, large] = [none, large].map(|cold| Bytes(cold.random.bytes));
            let text = format!("{} at random: {none} to {large} read", name(facts));
            accurate.add(large.0 as f64 >= PREFETCH_FACTOR * none.0 as f64, text);
        }
    }
    let missing = "reads with cold caches at a read-ahead of 0 KiB, 128 KiB and 1 MiB are needed";
    aggressive.decide_with(Needed::Most, accurate, Needed::One, missing)
}

pub(super) fn mixed_sequential(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for facts in pairs.0 {
        let ratio = |one: &super::Sequential| Some((one.instances, one.unaligned?));
        let known: Vec<(u32, f64)> = facts.sequential.iter().filter_map(ratio).collect();
        let Some(&(_, one)) = known.iter().find(|(instances, _)| *instances == 1) else {
            continue;
        };
        for &(instances, several) in known.iter().filter(|(instances, _)| *instances > 1) {
            let text = format!("{}: {several:.3} of {instances}, {one:.3} of one", name(facts));
            evidence.add(several > one && several >= MIXED_FACTOR * one, text);
        }
    }
    let missing = "traces of sequential work by one instance, and by two or four at once, are \
                   needed";
    evidence.decide(Needed::Most, missing)
}

pub(super) fn directories(pairs: &Pairs) -> Decision {
    most_on_every_fs(pairs, |facts| {
        let share = |one: &super::Sequential| one.removed.and_then(|removed| removed.share());
        let shares: Vec<f64> = facts.sequential.iter().filter_map(share).collect();
        let least = shares.iter().copied().reduce(f64::min)?;
        let shown: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
        Some((least >= AMID, format!("{} {}", facts.pair.app.name(), shown.join(" and "))))
    })
    .decide(Needed::All, "traces of two or four instances, one of which is removed, are needed")
}
