//! Updates in place, out of place and in a log, and the cost of a small change.

use prism_base::{Bytes, Nanos, Rng};
use prism_ssd::{Drive, InitialState};

use super::writers::{Stretch, threads, wide, write};
use super::{Bench, MIB};
use crate::drives::prepared;

/// A page of the application.
pub const PAGE: Bytes = Bytes(4096);
/// The smallest write to a drive.
pub const SECTOR: Bytes = Bytes(512);
/// Size of the file that is updated in place.
const FILE: u64 = 16 * MIB;
/// Updates of one kind at full scale.
const UPDATES: u64 = 400_000;

named_enum! {
    /// A kind of update.
    pub enum Update {
        /// Pages of a small file, sequentially and over and over, which needs no seeks on a hard
        /// disk.
        InPlace = "4 KiB in place",
        /// Pages at random addresses of the drive.
        Anywhere = "4 KiB anywhere",
        /// Pages of a log that wraps around the drive.
        Log = "4 KiB to a log",
        /// Sectors at random addresses; the rest of the page must be read.
        SectorAnywhere = "512 B anywhere",
        /// Sectors of a log.
        SectorLog = "512 B to a log",
    }
}

impl Update {
    /// Size of a write.
    #[must_use]
    pub fn size(self) -> Bytes {
        match self {
            Self::InPlace | Self::Anywhere | Self::Log => PAGE,
            Self::SectorAnywhere | Self::SectorLog => SECTOR,
        }
    }
}

/// The measurements of a kind of update by one thread, on a drive in the state to which such
/// updates lead.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateRow {
    /// The kind.
    pub update: Update,
    /// The measurements.
    pub stretch: Stretch,
    /// Mean time from the submission of a write until its data is on flash, on a drive without a
    /// write-back cache and firmware time. It shows the cost of reading the rest of a page.
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
        // The data was written sequentially and is updated sequentially.
        Update::InPlace | Update::Log | Update::SectorLog => InitialState::Filled,
    };
    let mut drive = prepared(device.clone(), state, bench.seed);
    let stretch = run(bench, &mut drive, update, count);
    let mut write_through = device;
    write_through.drive.firmware_write = Nanos::ZERO;
    write_through.drive.write_cache = prism_ssd::spec::WriteCache::WriteThrough;
    let mut drive = prepared(write_through, InitialState::Filled, bench.seed);
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

/// The cost of a change: bytes written per byte changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeRow {
    /// Bytes of a change.
    pub change: u64,
    /// Bytes written to the drive and to flash if each change is a write of a page.
    pub scattered: [f64; 2],
    /// Bytes written to the drive and to flash if each change is a write of a sector.
    pub sectors: [f64; 2],
    /// Bytes written to the drive and to flash if changes are packed into pages of a log.
    pub compact: [f64; 2],
}

/// The costs of changes that follow from `updates`; empty if one of the kinds is missing.
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
        // A byte costs a page of 4096 bytes, and twice as much on flash; a sector of 512 bytes,
        // and 8192 on flash, since a unit is eight sectors and cleaning doubles it; or a 4096th
        // of a page of the log.
        assert_eq!((costs[0].change, costs[0].scattered), (1, [4096.0, 8192.0]));
        assert_eq!((costs[0].sectors, costs[0].compact), ([512.0, 8192.0], [1.0, 1.0]));
        // A page costs one write of a page or eight writes of a sector.
        let page = costs.last().unwrap();
        assert_eq!((page.scattered, page.sectors), ([1.0, 2.0], [1.0, 16.0]));
        assert_eq!(page.compact, [1.0, 1.0]);
        assert!(changes(&rows[..2]).is_empty());
    }
}
