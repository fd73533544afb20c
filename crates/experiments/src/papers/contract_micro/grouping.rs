//! Grouping by death time: a block whose data dies together is erased, but the live part of a block
//! must be copied first.

use prism_base::Bytes;
use prism_ssd::HostOp;

use super::measured::MeasuredDrive;
use super::{
    Bench, CHUNK, Comparison, Cost, FLASH, Metric, Published, Rule, SPACE, Side, published,
};

/// Bytes of addresses that share an open block on a segmented drive.
const SEGMENT: u64 = 16 << 20;
const PUBLISHED: &[Published] = &[
    published(Metric::Bandwidth, 4.8),
    published(Metric::Throughput, 1.6),
    published(Metric::Erases, 1.8),
];

/// The ascending offsets of the pieces of two kinds of data: A is discarded and written again, B
/// stays.
struct Kinds {
    a: Vec<u64>,
    b: Vec<u64>,
}

impl Kinds {
    /// A in the first half of the addresses, B in the second.
    fn apart(bench: Bench) -> Self {
        let (half, end) = (bench.bytes(SPACE) / 2, bench.bytes(SPACE));
        let pieces = |from, to| (from..to).step_by(CHUNK as usize).collect();
        Self { a: pieces(0, half), b: pieces(half, end) }
    }

    /// Pieces of A and B alternate.
    fn alternating(bench: Bench) -> Self {
        let all = (0..bench.bytes(SPACE)).step_by(CHUNK as usize);
        let (a, b) = all.partition(|at| (at / CHUNK).is_multiple_of(2));
        Self { a, b }
    }

    fn one_after_the_other(&self) -> Vec<u64> {
        [&self.a[..], &self.b].concat()
    }

    fn alternately(&self) -> Vec<u64> {
        self.a.iter().zip(&self.b).flat_map(|(&a, &b)| [a, b]).collect()
    }
}

/// A and B are written one after the other or alternately, on a drive with one open block.
pub(super) fn in_time(bench: Bench) -> Vec<Comparison> {
    let kinds = Kinds::apart(bench);
    let side = |what: &str, order: Vec<u64>| Side {
        what: what.into(),
        cost: measure(bench, None, &order, &kinds.a),
    };
    vec![Comparison {
        rule: Rule::GroupingByDeathTime,
        name: "in time",
        conform: side("A, then B", kinds.one_after_the_other()),
        violate: side("A and B in turn", kinds.alternately()),
        published: PUBLISHED,
    }]
}

/// A and B are written alternately, to separate halves of the addresses or to alternating pieces,
/// on a drive with an open block for each segment.
pub(super) fn in_space(bench: Bench) -> Vec<Comparison> {
    let side = |what: &str, kinds: Kinds| Side {
        what: what.into(),
        cost: measure(bench, Some(SEGMENT), &kinds.alternately(), &kinds.a),
    };
    vec![Comparison {
        rule: Rule::GroupingByDeathTime,
        name: "in space",
        conform: side("A, B in halves", Kinds::apart(bench)),
        violate: side("A, B alternate", Kinds::alternating(bench)),
        published: PUBLISHED,
    }]
}

/// The cost of writing `dead` again after it was discarded.
fn measure(bench: Bench, segment: Option<u64>, order: &[u64], dead: &[u64]) -> Cost {
    let mut device = bench.device(SPACE, FLASH);
    device.ftl.segment = segment.map(|segment| Bytes(bench.bytes(segment)));
    let mut drive = MeasuredDrive::empty(device, bench.seed);
    drive.run(HostOp::Write, CHUNK, bench.depth(), order);
    drive.run(HostOp::Discard, CHUNK, bench.depth(), dead);
    drive.run(HostOp::Write, CHUNK, bench.depth(), dead)
}
