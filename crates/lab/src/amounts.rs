//! The amount of work of an application: a function of the size of the device and, if they are
//! given, of the bytes to write.
//!
//! Live data fills a quarter of the device; with overwrites, 85 %. The application then writes
//! about as many bytes to its files as the device holds, or as many as asked for. The number of
//! operations follows from the constants below, which are rounded and come from the file formats.
//! The report has the bytes actually written. The work does not depend on time, so it is the same
//! on a slow machine, unless a time is given after which it ends.

use prism_base::Bytes;

use crate::kinds::{App, Pattern};
use crate::overwrite::{BLOCK, file_blocks};

/// The device size over the live data.
const DEVICE_OVER_LIVE: u64 = 4;

/// Bytes of a key: digits with zeros before them, so that the order of texts is that of
/// numbers.
pub const KEY_BYTES: usize = 16;

/// Bytes of a value in SQLite. Source: the workloads of the unwritten contract's authors.
pub const ROW_VALUE_BYTES: usize = 100;

/// Bytes of a value in RocksDB and LevelDB: four times the 100 of their own benchmarks, so that
/// a device fills in reasonable time.
pub const LSM_VALUE_BYTES: usize = 400;

/// Bytes of a row in SQLite's file: 128 bytes in the table and 32 in the index of names, with
/// their headers and pointers.
const ROW_FILE_BYTES: u64 = 160;

/// Rows that a transaction of SQLite changes. Source as for [`ROW_VALUE_BYTES`].
pub const ROWS_PER_COMMIT: u64 = 10;

/// Times that a log-structured store writes a put: once to the log, once when the memtable is
/// flushed, and about three times in compactions.
const LSM_WRITES_PER_PUT: u64 = 5;

/// The default page size of SQLite.
const SQLITE_PAGE: u64 = 4096;

/// A changed page is written to the journal or log, and to the database.
const SQLITE_WRITES_PER_PAGE: u64 = 2;

/// Ten consecutive rows are in one page or two.
const SQLITE_PAGES_SEQ: u64 = 2;

/// Mails of varmail. Source: filebench, workloads/varmail.f, also for the next constants.
pub const MAILS: u64 = 1000;

/// Threads of varmail.
pub const MAIL_THREADS: u64 = 16;

/// The longest append of varmail; lengths are uniformly distributed up to it.
pub const APPEND_BYTES_MAX: u64 = 16 << 10;

/// Mean bytes written per round of varmail: two appends.
const MAIL_ROUND_BYTES: u64 = APPEND_BYTES_MAX;

/// The part of the live records that is read in order with cold caches: a quarter, so a sixteenth
/// of the device.
const READ_IN_ORDER: u64 = 4;

/// The device size over the number of records read at random with cold caches: 8192 of 4 GiB.
const DEVICE_OVER_READS: u64 = 512 << 10;

/// The work of one application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Records that exist before the application phase; for varmail, the numbers of mails.
    pub records: u64,
    /// Reads and updates; for varmail, rounds of all threads.
    pub operations: u64,
}

impl Work {
    /// The work of `app` on a device of `size`, with about `written` bytes written to its files: at
    /// least one record and operation.
    #[must_use]
    pub fn of(app: App, pattern: Pattern, size: Bytes, written: Bytes) -> Self {
        let live = size.0 / DEVICE_OVER_LIVE;
        match app {
            App::SqliteRb | App::SqliteWal => {
                let pages = match pattern {
                    Pattern::Seq => SQLITE_PAGES_SEQ,
                    // Rows that are updated at random are in different pages.
                    Pattern::Rand => ROWS_PER_COMMIT,
                    Pattern::Mix => ROWS_PER_COMMIT / 2,
                };
                let commits = written.0 / (pages * SQLITE_WRITES_PER_PAGE * SQLITE_PAGE);
                Self::at_least_one(live / ROW_FILE_BYTES, commits * ROWS_PER_COMMIT)
            }
            App::RocksDb | App::LevelDb => {
                let record = (KEY_BYTES + LSM_VALUE_BYTES) as u64;
                let puts = written.0 / (LSM_WRITES_PER_PUT * record);
                let reads = if pattern == Pattern::Mix { puts } else { 0 };
                Self::at_least_one(live / record, puts + reads)
            }
            App::Varmail => Self::at_least_one(MAILS, written.0 / MAIL_ROUND_BYTES),
            App::OverwriteZipf | App::OverwriteUniform | App::OverwriteTpcC | App::OverwriteRes => {
                let set = |writes| file_blocks(writes, size.0 / BLOCK)[0];
                Self::at_least_one(app.overwrites().map_or(0, set), written.0 / BLOCK)
            }
        }
    }

    /// The part of each of `instances` of `app` that run at once and together do this work. Each
    /// has all mails of varmail, whose number does not depend on the size either.
    #[must_use]
    pub fn shared(self, app: App, instances: u32) -> Self {
        let instances = u64::from(instances);
        let records = if app == App::Varmail { self.records } else { self.records / instances };
        Self::at_least_one(records, self.operations / instances)
    }

    /// Records of a store that are read in order with cold caches.
    #[must_use]
    pub fn read_in_order(self) -> u64 {
        self.records.div_ceil(READ_IN_ORDER)
    }

    /// Records that each of `instances` on a device of `size` reads at random with cold caches.
    #[must_use]
    pub fn read_at_random(size: Bytes, instances: u32) -> u64 {
        (size.0 / DEVICE_OVER_READS / u64::from(instances)).max(1)
    }

    fn at_least_one(records: u64, operations: u64) -> Self {
        Self { records: records.max(1), operations: operations.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_follow_from_the_size() {
        let check = |app, pattern, size, records, operations| {
            let work = Work::of(app, pattern, Bytes(size), Bytes(size));
            assert_eq!(work, Work { records, operations }, "{app:?} {pattern:?} {size}");
        };
        let mib = 1u64 << 20;
        // 64 MiB / 4 / 160 bytes per row; 64 MiB / 16 KiB, 80 KiB and 40 KiB per commit.
        check(App::SqliteWal, Pattern::Seq, 64 * mib, 104_857, 40_960);
        check(App::SqliteRb, Pattern::Rand, 64 * mib, 104_857, 8_190);
        check(App::SqliteRb, Pattern::Mix, 64 * mib, 104_857, 16_380);
        // 16 MiB / 416 bytes; 64 MiB / 2080 bytes per put.
        check(App::LevelDb, Pattern::Rand, 64 * mib, 40_329, 32_263);
        check(App::RocksDb, Pattern::Seq, 64 * mib, 40_329, 32_263);
        check(App::RocksDb, Pattern::Mix, 64 * mib, 40_329, 64_526);
        check(App::Varmail, Pattern::Rand, 64 * mib, 1000, 4096);
        // 27 % of 16,384 blocks.
        check(App::OverwriteZipf, Pattern::Rand, 64 * mib, 4423, 16_384);
        check(App::Varmail, Pattern::Mix, 1, 1000, 1);
        check(App::LevelDb, Pattern::Seq, 1, 1, 1);
        // Twice as many operations on the same records.
        let twice = Work::of(App::LevelDb, Pattern::Rand, Bytes(64 * mib), Bytes(128 * mib));
        assert_eq!(twice, Work { records: 40_329, operations: 64_527 });
    }

    #[test]
    fn instances_share_the_work_and_read_a_part_of_it() {
        let work = Work { records: 1000, operations: 10 };
        assert_eq!(work.shared(App::LevelDb, 4), Work { records: 250, operations: 2 });
        assert_eq!(work.shared(App::Varmail, 4), Work { records: 1000, operations: 2 });
        assert_eq!(work.shared(App::LevelDb, 2000), Work { records: 1, operations: 1 });
        assert_eq!(work.read_in_order(), 250);
        assert_eq!(Work::read_at_random(Bytes(4 << 30), 1), 8192);
        assert_eq!(Work::read_at_random(Bytes(4 << 30), 4), 2048);
        assert_eq!(Work::read_at_random(Bytes(1), 1), 1);
    }
}
