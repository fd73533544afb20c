//! Request scale: many requests in flight, or large ones, keep all channels busy.

use prism_base::Rng;
use prism_ssd::HostOp;

use super::measured::{MeasuredDrive, shuffled};
use super::{
    Bench, CHUNK, Comparison, Cost, FLASH, Metric, PAGE, Published, Rule, SPACE, Side, published,
};

const WRITE: &[Published] = &[published(Metric::Bandwidth, 10.0)];
const READ: &[Published] = &[published(Metric::Bandwidth, 18.0)];

/// Small requests, with many or one in flight.
pub(super) fn count(bench: Bench) -> Vec<Comparison> {
    let depth = bench.depth();
    let name = |depth| format!("2 KiB, {depth} at once");
    let sides = [(name(depth), PAGE, depth), (name(1), PAGE, 1)];
    let names = ["count: write", "count: read", "count: cleaning"];
    compare(bench, sides, names)
}

/// Large or small requests, with one in flight.
pub(super) fn size(bench: Bench) -> Vec<Comparison> {
    let sides = [("128 KiB, 1 at once".into(), CHUNK, 1), ("2 KiB, 1 at once".into(), PAGE, 1)];
    compare(bench, sides, ["size: write", "size: read", "size: cleaning"])
}

fn compare(
    bench: Bench,
    sides: [(String, u64, u32); 2],
    names: [&'static str; 3],
) -> Vec<Comparison> {
    let [conform, violate] = sides.map(|(what, size, depth)| {
        phases(bench, size, depth).map(|cost| Side { what: what.clone(), cost })
    });
    let pairs = conform.into_iter().zip(violate).zip(names).zip([WRITE, READ, WRITE]);
    pairs
        .map(|(((conform, violate), name), published)| Comparison {
            rule: Rule::RequestScale,
            name,
            conform,
            violate,
            published,
        })
        .collect()
}

/// Writes every address once in random order, reads every address once in another order, discards a
/// random half, and writes that half again. Returns the costs of both writes and of the reads.
fn phases(bench: Bench, size: u64, depth: u32) -> [Cost; 3] {
    let mut drive = MeasuredDrive::empty(bench.device(SPACE, FLASH), bench.seed);
    let space = bench.bytes(SPACE);
    let order = |label| shuffled(space, size, &mut Rng::stream(bench.seed, label));
    let write = drive.run(HostOp::Write, size, depth, &order("request-scale.write"));
    let read = drive.run(HostOp::Read, size, depth, &order("request-scale.read"));
    let mut half = order("request-scale.discard");
    half.truncate(half.len() / 2);
    drive.run(HostOp::Discard, size, depth, &half);
    let again = drive.run(HostOp::Write, size, depth, &half);
    [write, read, again]
}
