//! Comparison with what the paper and its slides state about drives.

use super::segments::{SEGMENT_PAGES, SegmentRow, Stream};
use super::sizes::{Map, Ssd};
use super::{Results, segments};
use crate::comparison::{Basis, Comparison, Quantity, Why};

const TABLE: &str = "table of SSDs";
const CHARACTERISTICS: &str = "characteristics";
const ARITHMETIC: &str = "arithmetic";

/// Every comparison.
#[must_use]
pub fn compare(found: &Results) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = Ssd::ALL.into_iter().flat_map(|ssd| table(found, ssd)).collect();
    all.extend(meets(found));
    all.extend(found.segments.iter().flat_map(segment));
    all
}

/// The two rates of a drive in the paper, compared with each mapping.
fn table(found: &Results, ssd: Ssd) -> Vec<Comparison> {
    let (sequential, random) = ssd.published();
    let mut all = Vec::new();
    for map in [Map::Page, Map::Groups, Map::Fast, Map::Bast] {
        let Some(row) = found.sizes_of(ssd, map).next() else { continue };
        let name = format!("{}, {}", ssd.name(), map.name());
        let rate = |what: &str, published, ours: f64, why| {
            let (what, both) = (format!("{name}: {what}"), [published, ours / 1e6]);
            Comparison::new(TABLE, what, Quantity::MegabytesPerSecond, both, 0.1, why)
        };
        let block = Why::Unexplained("the preset is fitted with blocks of single dies");
        all.push(rate("sequential", sequential, row.sequential, block).on(Basis::Fitted));
        all.push(rate("random 4 KB", random, row.rate, why_random(map)));
    }
    all
}

fn why_random(map: Map) -> Why {
    match map {
        Map::Page => Why::NotGiven(
            "the mapping of the real drive is not given; page-level mapping with small units \
             copies little",
        ),
        Map::Groups | Map::Fast => Why::Unexplained(
            "neither the mapping of the real drive is known nor the size of its log, to which the \
             cost of random writes is inversely proportional",
        ),
        Map::Bast => Why::Unexplained(
            "each write merges a block in the simulation as well; a write of the real drive takes \
             as long as writing 76 MB, so its blocks are larger, or are merged more than once",
        ),
    }
}

/// "Random write performance becomes same as sequential write performance when the request
/// size is same as erase block size." The sentence counts once.
fn meets(found: &Results) -> Vec<Comparison> {
    let rows = found.sizes.iter().filter(|row| row.size == row.erase_block);
    let comparison = |row: &super::SizeRow| {
        let (ssd, map, size) = (row.ssd.name(), row.map.name(), row.size);
        let what = format!("{ssd}, {map}: random writes of {size} over sequential");
        let why = Why::Unexplained(
            "writes of whole blocks should cost no copies: a switch merge, or a block without \
             valid data",
        );
        Comparison::new(CHARACTERISTICS, what, Quantity::Ratio, [1.0, row.share()], 0.1, why)
    };
    let basis = |n| if n == 0 { Basis::Independent } else { Basis::Repeated };
    rows.enumerate().map(|(n, row)| comparison(row).on(basis(n))).collect()
}

/// Write amplification and erases of a stream against arithmetic. If segments are whole blocks, no
/// page is copied and a block of 128 pages is erased for every 128 pages written. A segment that
/// begins inside a block may cost one more block.
fn segment(row: &SegmentRow) -> Vec<Comparison> {
    let extra = match row.stream {
        Stream::Aligned => 0.0,
        Stream::Misaligned => f64::from(segments::BLOCK_PAGES) / f64::from(SEGMENT_PAGES),
        Stream::Interleaved | Stream::Pages => return Vec::new(),
    };
    let why = match row.map {
        Map::Groups => Why::Unexplained(
            "the log of a group is written in the order of arrival, so a segment that begins \
             inside a block shifts the log blocks of its first group against the logical blocks: \
             they need full merges, not switch merges",
        ),
        Map::Page | Map::Fast | Map::Bast => {
            Why::Unexplained("blocks should die as a whole and cost no copies")
        }
    };
    let comparison = |what: &str, published: f64, ours| {
        let what = format!("{}, {}: {what}", row.map.name(), row.stream.name());
        Comparison::new(ARITHMETIC, what, Quantity::Ratio, [published, ours], 0.02, why)
            .on(Basis::Arithmetic)
    };
    let erases = 1000.0 / f64::from(segments::BLOCK_PAGES);
    vec![
        comparison("write amplification", 1.0 + extra, row.write_amplification),
        comparison("erases of 1000 pages", erases * (1.0 + extra), row.erases),
    ]
}
