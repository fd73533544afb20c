//! Updates in place, out of place and in a log, and what a small change costs.

use prism_base::{Bytes, Nanos, Rng};
use prism_ssd::{Drive, InitialState};

use super::bed::{Stretch, threads, wide, write};
use super::{Bench, MIB};
use crate::drives::prepared;

/// A page of the application.
pub const PAGE: Bytes = Bytes(4096);
/// The least that a drive is written.
pub const SECTOR: Bytes = Bytes(512);
/// The file that is updated in place.
const FILE: u64 = 16 * MIB;
/// Updates of one kind at full scale.
const UPDATES: u64 = 400_000;

/// How something is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Pages of a small file, over and over in order: what needs no seek on a hard disk.
    InPlace,
    /// Pages anywhere on the drive.
    Anywhere,
    /// Pages of a log that goes round the drive.
    Log,
    /// Sectors anywhere: the rest of the page has to be read.
    SectorAnywhere,
    /// Sectors of a log.
    SectorLog,
}

impl Update {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::InPlace, Self::Anywhere, Self::Log, Self::SectorAnywhere, Self::SectorLog];

    /// What it is, in a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InPlace => "4 KiB in place",
            Self::Anywhere => "4 KiB anywhere",
            Self::Log => "4 KiB to a log",
            Self::SectorAnywhere => "512 B anywhere",
            Self::SectorLog => "512 B to a log",
        }
    }

    /// Bytes of a write.
    #[must_use]
    pub fn size(self) -> Bytes {
        match self {
            Self::InPlace | Self::Anywhere | Self::Log => PAGE,
            Self::SectorAnywhere | Self::SectorLog => SECTOR,
        }
    }
}

/// One kind of update by one thread on a drive in the state that such updates lead to.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateRow {
    /// The kind.
    pub update: Update,
    /// What came of it.
    pub stretch: Stretch,
    /// Mean time from a write's submission until all its data is on flash, where nothing is
    /// buffered and firmware takes no time: what reading the rest of a page adds.
    pub on_flash: Nanos,
}

/// Every kind.
pub(super) fn rows(bench: Bench) -> Vec<UpdateRow> {
    Update::ALL.map(|update| row(bench, update)).into()
}

fn row(bench: Bench, update: Update) -> UpdateRow {
    let device = wide(Bytes(bench.bytes(4)));
    let count = bench.count(UPDATES);
    let state = match update {
        Update::Anywhere | Update::SectorAnywhere => InitialState::Steady,
        // Written in order before, and in order now.
        Update::InPlace | Update::Log | Update::SectorLog => InitialState::Filled,
    };
    let mut drive = prepared(device.clone(), state, bench.seed);
    let stretch = run(bench, &mut drive, update, count);
    let mut bare = device;
    bare.drive.firmware_write = Nanos::ZERO;
    bare.drive.write_cache = prism_ssd::device::WriteCache::WriteThrough;
    let mut drive = prepared(bare, InitialState::Filled, bench.seed);
    let on_flash = run(bench, &mut drive, update, count / 20).latency;
    UpdateRow { update, stretch, on_flash }
}

fn run(bench: Bench, drive: &mut Drive, update: Update, count: u64) -> Stretch {
    let size = update.size().0;
    let capacity = drive.device().capacity().0;
    let places = match update {
        Update::InPlace => FILE / size,
        _ => capacity / size,
    };
    let mut rng = Rng::stream(bench.seed, "linkedin.updates");
    let mut turn = 0;
    threads(drive, 1, count, |_| {
        let place = match update {
            Update::Anywhere | Update::SectorAnywhere => rng.below(places),
            Update::InPlace | Update::Log | Update::SectorLog => turn % places,
        };
        turn += 1;
        write(place * size, size)
    })
}

/// Bytes that an application changes at a time.
pub const CHANGES: [u64; 5] = [1, 8, 64, 512, 4096];

/// What changing so many bytes costs: bytes written for each byte changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeRow {
    /// Bytes of a change.
    pub change: u64,
    /// Scattered: each change is a page of its own. To the drive, and to flash.
    pub scattered: [f64; 2],
    /// Scattered, in whole sectors.
    pub sectors: [f64; 2],
    /// Compact: as many changes as there is room for share a page of a log.
    pub compact: [f64; 2],
}

/// The costs that follow from what writes of each kind cost in `updates`.
#[must_use]
pub fn changes(updates: &[UpdateRow]) -> Vec<ChangeRow> {
    let of = |update| updates.iter().find(|row| row.update == update);
    let (Some(pages), Some(sectors), Some(log)) =
        (of(Update::Anywhere), of(Update::SectorAnywhere), of(Update::Log))
    else {
        return Vec::new();
    };
    let cost = |row: &UpdateRow, changed: u64, change: u64| {
        // A change larger than a write takes several.
        let writes = change.div_ceil(row.update.size().0).max(1);
        let written = (writes * row.update.size().0) as f64 / changed as f64;
        [written, written * row.stretch.write_amplification]
    };
    CHANGES
        .map(|change| ChangeRow {
            change,
            scattered: cost(pages, change, change),
            sectors: cost(sectors, change, change),
            compact: cost(log, PAGE.0 / change * change, change),
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(update: Update, write_amplification: f64) -> UpdateRow {
        let time = Nanos(1);
        let stretch = Stretch {
            count: 1,
            rate: 1.0,
            per_second: 1.0,
            latency: time,
            latency_max: time,
            write_amplification,
            rmw_reads: 0,
        };
        UpdateRow { update, stretch, on_flash: time }
    }

    #[test]
    fn costs_of_changes_by_hand() {
        let rows =
            [row(Update::Anywhere, 2.0), row(Update::SectorAnywhere, 16.0), row(Update::Log, 1.0)];
        let costs = changes(&rows);
        // A byte: a page of 4096 and twice that on flash; a sector of 512 and, since a unit
        // is eight sectors and cleaning doubles it, 8192; a 4096th of a page of the log.
        assert_eq!((costs[0].change, costs[0].scattered), (1, [4096.0, 8192.0]));
        assert_eq!((costs[0].sectors, costs[0].compact), ([512.0, 8192.0], [1.0, 1.0]));
        // A page: each is written once, in one write or in eight.
        let page = costs.last().unwrap();
        assert_eq!((page.scattered, page.sectors), ([1.0, 2.0], [1.0, 16.0]));
        assert_eq!(page.compact, [1.0, 1.0]);
        assert!(changes(&rows[..2]).is_empty());
    }
}
