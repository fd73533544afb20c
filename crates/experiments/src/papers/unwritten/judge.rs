//! The rules that decide on observations 1 to 13, on request scale and locality, except
//! 7 and 9.
//! [`super::observation::OBSERVATIONS`] states each rule in words.

use prism_base::Bytes;

use super::observation::{Decision, Evidence, Needed, Pairs};
use super::{App, Facts, Fs, Scale};

/// With fewer reads a trace is not evaluated for reads.
const READS_MIN: u64 = 50;
/// The default read-ahead of Linux in bytes.
const READ_AHEAD: u64 = 128 << 10;
/// Requests in flight of a reader that waits for each read, with one read-ahead.
const SERIAL: u64 = 2;
/// Score from which the rule of request scale counts as kept.
const SCALE_KEPT: f64 = 0.8;
/// Share of the written bytes from which overwriting is not an exception.
const OVERWRITTEN: f64 = 0.1;
const BOTH_KINDS: &str = "a log-structured store and SQLite on one file system are needed";
pub(super) const THREE_SYSTEMS: &str = "traces of one application on f2fs, ext4 and xfs are needed";
const ONE_STORE: &str = "a trace of a log-structured store with 50 reads or more is needed";

pub(super) fn name(facts: &Facts) -> String {
    facts.pair.name()
}

pub(super) fn enough(reads: &Scale) -> bool {
    reads.requests >= READS_MIN
}

/// The smallest and the largest of `values`; `None` if there are none.
fn ends<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((least, most)) => {
            let least = if value < least { value } else { least };
            Some((least, if value > most { value } else { most }))
        }
    })
}

pub(super) fn write_size(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for fs in Fs::ALL {
        let sizes = |apps| ends(pairs.on(fs, apps).map(|facts| facts.writes.size()));
        if let (Some((least, _)), Some((_, most))) =
            (sizes(&App::LOG_STRUCTURED), sizes(&App::SQLITE))
        {
            let text =
                format!("{}: {} or more against {} or less", fs.name(), Bytes(least), Bytes(most));
            evidence.add(least > most, text);
        }
    }
    evidence.decide(Needed::All, BOTH_KINDS)
}

pub(super) fn read_depth(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for facts in pairs.0.iter().filter(|facts| enough(&facts.reads)) {
        if let Some(depth) = facts.reads.depth() {
            let text = format!("{}: {depth}, of {}", name(facts), Bytes(facts.reads.size()));
            evidence.add(depth <= SERIAL, text);
        }
    }
    evidence.decide(Needed::Most, "a trace with 50 reads or more is needed")
}

pub(super) fn rocksdb(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for fs in Fs::ALL {
        let of = |app| pairs.get(app, fs);
        if let (Some(level), Some(rocks)) = (of(App::LevelDb), of(App::RocksDb)) {
            let depths = match (level.reads.depth(), rocks.reads.depth()) {
                (Some(a), Some(b)) if enough(&level.reads) && enough(&rocks.reads) => Some((a, b)),
                _ => None,
            };
            let scale = rocks.scores[0];
            let reads = match depths {
                Some((level, rocks)) => format!("{rocks} reads against {level}"),
                None => "too few reads".into(),
            };
            let shown = scale.map_or("unknown".into(), |scale| format!("{scale:.2}"));
            let text = format!("{}: {reads}, request scale {shown}", fs.name());
            let no_deeper = depths.is_some_and(|(level, rocks)| rocks <= level);
            evidence.add(no_deeper || scale.is_some_and(|scale| scale < SCALE_KEPT), text);
        }
    }
    evidence.decide(Needed::Most, "LevelDB and RocksDB on one file system are needed")
}

pub(super) fn application_barriers(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for fs in Fs::ALL {
        let apart = |apps| ends(pairs.on(fs, apps).filter_map(Facts::writes_per_barrier));
        let depth = |apps| ends(pairs.on(fs, apps).filter_map(|facts| facts.writes.depth()));
        let sqlite = (apart(&App::SQLITE), depth(&App::SQLITE));
        let stores = (apart(&App::LOG_STRUCTURED), depth(&App::LOG_STRUCTURED));
        if let ((Some((_, often)), Some((_, shallow))), (Some((rare, _)), Some((deep, _)))) =
            (sqlite, stores)
        {
            let text = format!(
                "{}: SQLite at most {often:.1} writes per barrier and {shallow} in flight, stores \
                 at least {rare:.1} and {deep}",
                fs.name()
            );
            evidence.add(often < rare && shallow <= deep, text);
        }
    }
    evidence.decide(Needed::All, BOTH_KINDS)
}

pub(super) fn buffered_io(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for facts in pairs.of(&App::LOG_STRUCTURED).filter(|facts| enough(&facts.reads)) {
        if let Some(depth) = facts.reads.depth_same() {
            let size = facts.reads.sizes[2];
            let text = format!("{}: {} and {depth} reads", name(facts), Bytes(size));
            evidence.add(size <= READ_AHEAD && depth <= SERIAL, text);
        }
    }
    evidence.decide(Needed::Most, ONE_STORE)
}

pub(super) fn file_system_barriers(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    let depth = |fs| pairs.get(App::Varmail, fs).and_then(|facts| facts.writes.depth());
    for fs in Fs::IN_PLACE {
        if let (Some(log), Some(in_place)) = (depth(Fs::F2fs), depth(fs)) {
            evidence
                .add(log >= 2 * in_place, format!("f2fs {log} against {} {in_place}", fs.name()));
        }
    }
    evidence.decide(Needed::All, "Varmail on f2fs and on ext4 or xfs is needed")
}

pub(super) fn delayed_discards(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for app in App::ALL {
        let Some(log) = pairs.get(app, Fs::F2fs) else { continue };
        for fs in Fs::IN_PLACE {
            let Some(other) = pairs.get(app, fs).filter(|facts| facts.discards > 0) else {
                continue;
            };
            let text = format!(
                "{}: f2fs {} and {} later, {} {}",
                app.name(),
                log.discards,
                log.discards_later,
                fs.name(),
                other.discards
            );
            evidence.add(10 * log.discards < other.discards, text);
        }
    }
    evidence.decide(Needed::All, "an application on f2fs, and on ext4 or xfs, is needed")
}

/// Compares `number` on f2fs with the other file systems, for each application.
pub(super) fn against_f2fs(
    pairs: &Pairs,
    number: impl Fn(&Facts) -> Option<f64>,
    holds: impl Fn(f64, f64) -> bool,
) -> Evidence {
    let mut evidence = Evidence::default();
    for app in App::ALL {
        let of = |fs| pairs.get(app, fs).and_then(&number);
        if let (Some(log), Some(ext4), Some(xfs)) = (of(Fs::F2fs), of(Fs::Ext4), of(Fs::Xfs)) {
            let text = format!("{}: f2fs {log:.3}, ext4 {ext4:.3}, xfs {xfs:.3}", app.name());
            evidence.add(holds(log, ext4) && holds(log, xfs), text);
        }
    }
    evidence
}

pub(super) fn reuse(pairs: &Pairs) -> Decision {
    let misses = |facts: &Facts| facts.misses_by_lookups[0];
    against_f2fs(pairs, misses, |log, other| other < log).decide(Needed::Most, THREE_SYSTEMS)
}

pub(super) fn block_groups(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    let spread = |fs| pairs.get(App::Varmail, fs).and_then(|facts| facts.spread);
    if let (Some(ext4), Some(xfs)) = (spread(Fs::Ext4), spread(Fs::Xfs)) {
        let text = format!(
            "bytes mapped by touched translation pages over bytes written: ext4 {ext4:.2}, \
             xfs {xfs:.2}"
        );
        evidence.add(ext4 > xfs, text);
    }
    evidence.decide(Needed::One, "Varmail on ext4 and xfs is needed")
}

pub(super) fn in_place_on_f2fs(pairs: &Pairs) -> Decision {
    let mut evidence = Evidence::default();
    for facts in pairs.on(Fs::F2fs, &App::ALL) {
        if let Some(share) = facts.overwritten {
            let text = format!("{}: {:.0} %", facts.pair.app.name(), 100.0 * share);
            evidence.add(share >= OVERWRITTEN, text);
        }
    }
    evidence.decide(Needed::One, "a trace of f2fs is needed")
}

pub(super) fn spread(pairs: &Pairs) -> Decision {
    let spread = |facts: &Facts| facts.spread;
    against_f2fs(pairs, spread, |log, other| log > other).decide(Needed::Most, THREE_SYSTEMS)
}
