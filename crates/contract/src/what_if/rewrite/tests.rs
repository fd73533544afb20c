//! Properties that every rewrite must keep, tested on random traces.

use std::collections::BTreeMap;

use prism_base::{Bytes, Nanos};
use prism_testkit::cases;
use prism_trace::{Flags, Op, Record, VecSource};
use proptest::prelude::*;

use super::testing::pass;
use super::*;

const SECTOR: u64 = 512;
const UNIT: Bytes = Bytes(4096);
/// Logical units of the drive.
const UNITS: u32 = 32;
const WINDOW: Nanos = Nanos(10_000_000);

/// The last write to each sector: its operation and its stream.
type Content = BTreeMap<u64, (Op, u16)>;

fn apply(content: &mut Content, record: &Record) {
    for sector in record.offset / SECTOR..record.end() / SECTOR {
        match record.op {
            Op::Write | Op::WriteZeroes => {
                content.insert(sector, (record.op, record.stream));
            }
            Op::Discard => {
                content.remove(&sector);
            }
            Op::Read | Op::Flush => {}
        }
    }
}

fn record() -> impl Strategy<Value = (u8, u8, u64, u64, u16)> {
    let sectors = u64::from(UNITS) * UNIT.0 / SECTOR;
    (0..20u8, 0..8u8, 0..sectors - 64, 1..64u64, 1..3u16)
}

/// Records with gaps of 0 to 7 ms, mostly writes; those after a gap of 7 ms have FUA.
fn trace() -> impl Strategy<Value = Vec<Record>> {
    prop::collection::vec(record(), 0..60).prop_map(|items| {
        let mut at_ns = 0;
        let mut out = Vec::new();
        for (op, gap, sector, sectors, stream) in items {
            at_ns += i64::from(gap) * 1_000_000;
            let op = match op {
                0..=2 => Op::Read,
                3 => Op::Discard,
                4 => Op::WriteZeroes,
                5 => Op::Flush,
                _ => Op::Write,
            };
            let range = if op == Op::Flush { (0, 0) } else { (sector, sectors) };
            let flags = if gap == 7 { Flags::FUA } else { Flags::NONE };
            let record = Record::new(op, at_ns, range.0 * SECTOR, range.1 * SECTOR);
            out.push(Record { stream, flags, ..record });
        }
        out
    })
}

fn units() -> Units {
    Units::new(UNIT, UNITS)
}

fn rewritten(records: &[Record], rewrite: impl Rewrite + 'static) -> Vec<Record> {
    let mut source = VecSource::new(records.to_vec());
    let mut rewritten = Rewritten::new(&mut source, Some(Box::new(rewrite)));
    // Checks use the second pass, which must be as complete as the first.
    pass(&mut rewritten);
    pass(&mut rewritten)
}

fn is_in_order(records: &[Record]) -> bool {
    records.iter().zip(records.iter().skip(1)).all(|(a, b)| a.issue_ns <= b.issue_ns)
}

fn count(records: &[Record], op: Op) -> usize {
    records.iter().filter(|record| record.op == op).count()
}

fn bytes(records: &[Record], op: Op) -> u64 {
    records.iter().filter(|record| record.op == op).map(|record| record.len).sum()
}

/// The data that each read finds and, if `flushes` is set, that each flush makes durable, in
/// the order of the records, and the data at the end.
fn seen(records: &[Record], flushes: bool) -> Vec<Content> {
    let mut content = Content::new();
    let mut out = Vec::new();
    for record in records {
        apply(&mut content, record);
        let range = match record.op {
            Op::Read => record.offset / SECTOR..record.end() / SECTOR,
            Op::Flush if flushes => 0..u64::MAX,
            _ => continue,
        };
        out.push(content.range(range).map(|(&sector, &write)| (sector, write)).collect());
    }
    out.push(content);
    out
}

/// Checks that all reads find the same data and, if `flushes` is set, that all flushes make
/// the same data durable.
fn same_content(before: &[Record], after: &[Record], flushes: bool) -> Result<(), TestCaseError> {
    prop_assert!(is_in_order(after), "{after:?}");
    prop_assert_eq!(seen(before, flushes), seen(after, flushes));
    Ok(())
}

fn merge(shape: Shape, round: u64) -> Merge {
    Merge::new(shape, WINDOW, Bytes(round))
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn random_merges_keep_the_data_that_reads_see(records in trace(), most in 1..40u64) {
        let most = Bytes(most * SECTOR);
        for shape in [Shape::UpTo(most), Shape::Stripes(most)] {
            let after = rewritten(&records, merge(shape, 1));
            same_content(&records, &after, true)?;
            for op in [Op::Read, Op::Discard, Op::WriteZeroes, Op::Flush] {
                prop_assert_eq!(count(&records, op), count(&after, op));
            }
            prop_assert!(bytes(&after, Op::Write) <= bytes(&records, Op::Write));
            // No write is held longer than the window.
            for record in records.iter().filter(|record| record.op == Op::Write) {
                let latest = record.issue_ns + WINDOW.0 as i64;
                let covers = |sector: u64| {
                    after.iter().any(|other| {
                        other.op == Op::Write
                            && (record.issue_ns..=latest).contains(&other.issue_ns)
                            && (other.offset..other.end()).contains(&(sector * SECTOR))
                    })
                };
                prop_assert!((record.offset / SECTOR..record.end() / SECTOR).all(covers));
            }
        }
    }

    #[test]
    fn random_writes_are_padded_to_whole_units(records in trace()) {
        for stripe in [UNIT.0, 4 * UNIT.0] {
            let after = rewritten(&records, merge(Shape::Stripes(Bytes(stripe)), UNIT.0));
            prop_assert!(is_in_order(&after));
            let rounded: Vec<Record> = records.iter().map(|record| {
                let offset = record.offset / UNIT.0 * UNIT.0;
                let end = record.end().next_multiple_of(UNIT.0);
                match record.op {
                    Op::Write => Record { offset, len: end - offset, ..*record },
                    _ => *record,
                }
            }).collect();
            same_content(&rounded, &after, true)?;
            let whole = |record: &&Record| {
                record.offset.is_multiple_of(UNIT.0) && record.len.is_multiple_of(UNIT.0)
            };
            let writes = after.iter().filter(|record| record.op == Op::Write);
            prop_assert!(writes.clone().all(|record| whole(&record)));
        }
    }

    #[test]
    fn random_group_commits_keep_the_data_that_reads_see(records in trace()) {
        let merge = merge(Shape::UpTo(Bytes(1 << 20)), 1);
        let after = rewritten(&records, Chain::new(GroupCommit::new(WINDOW), merge));
        same_content(&records, &after, false)?;
        prop_assert!(count(&after, Op::Flush) <= records.iter().filter(|r| is_barrier(r)).count());
        prop_assert!(after.iter().all(|record| !is_barrier(record) || record.op == Op::Flush));
    }

    #[test]
    fn random_delayed_discards_lead_to_the_same_data(records in trace()) {
        let after = rewritten(&records, DelayDiscards::new(WINDOW));
        prop_assert!(is_in_order(&after));
        let (before, now) = (seen(&records, false), seen(&after, false));
        prop_assert_eq!(before.last(), now.last());
        prop_assert!(count(&after, Op::Discard) <= 3 * count(&records, Op::Discard)
            + count(&records, Op::Write) + count(&records, Op::WriteZeroes));
        prop_assert_eq!(bytes(&records, Op::Write), bytes(&after, Op::Write));
    }

    #[test]
    fn random_traces_keep_all_records_but_discards(records in trace()) {
        let kept: Vec<Record> =
            records.iter().filter(|record| record.op != Op::Discard).copied().collect();
        prop_assert_eq!(rewritten(&records, Without(Op::Discard)), kept);
    }

    #[test]
    fn random_placement_handles_only_split_writes(records in trace(), classes in 2..5u16) {
        let mut source = VecSource::new(records.clone());
        let death = DeathTime::new(&mut source, units(), classes).unwrap();
        let heat = HotCold::new(units(), classes);
        for after in [rewritten(&records, death), rewritten(&records, heat)] {
            prop_assert!(is_in_order(&after));
            let writes = after.iter().filter(|record| record.op == Op::Write);
            prop_assert!(writes.clone().all(|record| record.stream < classes));
            // Joined again, the parts are the original writes.
            let mut parts = after.iter();
            for record in &records {
                let mut next = record.offset;
                while next < record.end() || record.op == Op::Flush {
                    let part = parts.next().unwrap();
                    prop_assert_eq!((part.op, part.issue_ns), (record.op, record.issue_ns));
                    prop_assert_eq!(part.flags, record.flags);
                    if record.op == Op::Flush {
                        break;
                    }
                    prop_assert_eq!(part.offset, next);
                    next = part.end();
                }
                prop_assert!(next == record.end());
            }
            prop_assert!(parts.next().is_none());
        }
    }

    #[test]
    fn random_discards_cover_only_dead_data(records in trace(), delay in 0..30u64) {
        let mut source = VecSource::new(records.clone());
        let delay = Nanos(delay * 1_000_000);
        let discard = DiscardDead::new(&mut source, units(), delay).unwrap();
        let after = rewritten(&records, discard);
        prop_assert!(is_in_order(&after));
        // Over two passes in a row, all data that a read or a partial write needs is still
        // there, and the other records are unmodified.
        let twice = |records: &[Record]| [records, records].concat();
        let (mut before, mut now) = (Content::new(), Content::new());
        let both = twice(&after);
        let mut original = twice(&records).into_iter().peekable();
        for record in both {
            let own = original.peek() == Some(&record);
            if own {
                original.next();
                let edges = [record.offset, record.end()];
                let cut = edges.map(|edge| (edge / UNIT.0, !edge.is_multiple_of(UNIT.0)));
                let per = UNIT.0 / SECTOR;
                for (unit, _) in cut.into_iter().filter(|&(_, cut)| cut) {
                    let range = || unit * per..(unit + 1) * per;
                    prop_assert!(before.range(range()).eq(now.range(range())));
                }
                if record.op == Op::Read {
                    let range = || record.offset / SECTOR..record.end() / SECTOR;
                    prop_assert!(before.range(range()).eq(now.range(range())));
                }
                apply(&mut before, &record);
            } else {
                prop_assert_eq!(record.op, Op::Discard);
            }
            apply(&mut now, &record);
        }
        prop_assert!(original.next().is_none());
    }
}
