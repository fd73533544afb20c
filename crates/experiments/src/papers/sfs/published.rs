//! What the paper and its slides say of drives, beside ours.

use super::segments::{SEGMENT_PAGES, SegmentRow, Stream};
use super::sizes::{Map, Ssd};
use super::{Found, segments};
use crate::comparison::{Beside, Quantity, Why};

const TABLE: &str = "table of SSDs";
const CHARACTERISTICS: &str = "characteristics";
const ARITHMETIC: &str = "arithmetic";

/// Everything that can be compared.
#[must_use]
pub fn compare(found: &Found) -> Vec<Beside> {
    let mut all: Vec<Beside> = Ssd::ALL.into_iter().flat_map(|ssd| table(found, ssd)).collect();
    all.extend(meets(found));
    all.extend(found.segments.iter().flat_map(segment));
    all
}

/// The two rates of the paper, beside those of each mapping.
fn table(found: &Found, ssd: Ssd) -> Vec<Beside> {
    let (sequential, random) = ssd.published();
    let mut all = Vec::new();
    for map in [Map::Page, Map::Groups, Map::Fast, Map::Bast] {
        let Some(row) = found.sizes_of(ssd, map).next() else { continue };
        let name = format!("{}, {}", ssd.name(), map.name());
        let rate = |what: &str, published, ours: f64, why| Beside {
            what: format!("{name}: {what}"),
            place: TABLE,
            quantity: Quantity::MegabytesPerSecond,
            published,
            ours: Some(ours / 1e6),
            tolerance: 0.1,
            why,
        };
        let block = Why::Explained("the preset's dies are fitted with blocks of single dies");
        all.push(rate("sequential", sequential, row.sequential, block));
        all.push(rate("random 4 KB", random, row.rate, why_random(map)));
    }
    all
}

fn why_random(map: Map) -> Why {
    match map {
        Map::Page => Why::Explained(
            "a map by pages copies little; so slow a drive does not have one, or not of pages",
        ),
        Map::Groups | Map::Fast => Why::Unexplained(
            "neither the mapping of the real drive is known nor its log, with the inverse of \
             which the cost of random writes goes",
        ),
        Map::Bast => Why::Unexplained(
            "each write has a block merged here as well; one of the real drive takes as long as \
             writing 76 MB, so that its blocks are larger, or merged more than once",
        ),
    }
}

/// "Random write performance becomes same as sequential write performance when the request
/// size is same as erase block size."
fn meets(found: &Found) -> Vec<Beside> {
    let rows = found.sizes.iter().filter(|row| row.size == row.erase_block);
    let beside = |row: &super::SizeRow| Beside {
        what: format!(
            "{}, {}: random writes of {} over sequential",
            row.ssd.name(),
            row.map.name(),
            row.size
        ),
        place: CHARACTERISTICS,
        quantity: Quantity::Ratio,
        published: 1.0,
        ours: Some(row.share()),
        tolerance: 0.1,
        why: Why::Unexplained("whole blocks should be switched, or die as a whole, at no cost"),
    };
    rows.map(beside).collect()
}

/// With segments that are whole blocks nothing is to be copied, and a block of 128 pages is
/// erased for every 128 pages written. One that begins inside a block may cost one block more.
fn segment(row: &SegmentRow) -> Vec<Beside> {
    let extra = match row.stream {
        Stream::Aligned => 0.0,
        Stream::Misaligned => f64::from(segments::BLOCK_PAGES) / f64::from(SEGMENT_PAGES),
        Stream::Interleaved | Stream::Pages => return Vec::new(),
    };
    let beside = |what: &str, published: f64, ours| Beside {
        what: format!("{}, {}: {what}", row.map.name(), row.stream.name()),
        place: ARITHMETIC,
        quantity: Quantity::Ratio,
        published,
        ours: Some(ours),
        tolerance: 0.02,
        why: match row.map {
            Map::Groups => Why::Explained(
                "a group's log takes what comes, so that a segment which begins inside a block \
                 shifts the log blocks of its first group against its logical blocks: they are \
                 merged and not switched",
            ),
            Map::Page | Map::Fast | Map::Bast => {
                Why::Unexplained("whole blocks should die, at no cost")
            }
        },
    };
    let erases = 1000.0 / f64::from(segments::BLOCK_PAGES);
    vec![
        beside("write amplification", 1.0 + extra, row.write_amplification),
        beside("erases of 1000 pages", erases * (1.0 + extra), row.erases),
    ]
}
