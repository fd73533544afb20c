//! "The unwritten contract of solid state drives" (He, Kannan, Arpaci-Dusseau,
//! Arpaci-Dusseau, EuroSys'17) repeated on traces of the same applications and file
//! systems: its figures, its tables of medians and its observations.
//!
//! There is one trace for each pair of application and file system, with the usual run and reads
//! with cold caches, and there may be more with sequential work ([`Sequential`]). They are reduced
//! to [`Facts`], the numbers from which every verdict on an observation follows by its rule
//! ([`OBSERVATIONS`]).

mod facts;
mod figure1;
mod judge;
mod judge_later;
mod judge_variants;
mod observation;
mod published;
mod variants;
mod writes;

use prism_base::Bytes;

pub use facts::{Facts, Observed, Scale, observe};
pub use figure1::{Figure1, Point, WINDOW};
pub use observation::{Judged, OBSERVATIONS, Observation, ObservationVerdict, judge_all};
pub use published::{DepthMedians, FIGURE_1, Figure1Published, depth_medians};
pub use variants::{
    ColdReads, INSTANCES, READ_AHEADS, REMOVE_PHASE, Removed, Sequential, observe_sequential,
    reads_of,
};
pub use writes::{RangeBias, WriteCounts};

named_enum! {
    /// The applications of the paper, one with two settings.
    #[derive(PartialOrd, Ord)]
    pub enum App {
        /// LevelDB, a log-structured merge tree.
        LevelDb = "leveldb",
        /// RocksDB, a successor of LevelDB for SSDs.
        RocksDb = "rocksdb",
        /// SQLite with a rollback journal.
        SqliteRb = "sqlite-rb",
        /// SQLite with a write-ahead log.
        SqliteWal = "sqlite-wal",
        /// The mail server benchmark of filebench.
        Varmail = "varmail",
    }
}

named_enum! {
    /// The file systems of the paper.
    #[derive(PartialOrd, Ord)]
    pub enum Fs {
        /// ext4: updates in place and a journal.
        Ext4 = "ext4",
        /// F2FS: log-structured, made for flash.
        F2fs = "f2fs",
        /// XFS: updates in place, a journal and extents.
        Xfs = "xfs",
    }
}

impl App {
    /// The log-structured stores, which write logs of their own and merge them.
    pub const LOG_STRUCTURED: [Self; 2] = [Self::LevelDb, Self::RocksDb];
    /// SQLite in both settings.
    pub const SQLITE: [Self; 2] = [Self::SqliteRb, Self::SqliteWal];
}

impl Fs {
    /// The file systems that update data in place.
    pub const IN_PLACE: [Self; 2] = [Self::Ext4, Self::Xfs];
}

/// An application on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The application.
    pub app: App,
    /// The file system.
    pub fs: Fs,
}

impl Pair {
    /// Every pair, ordered by application.
    pub fn all() -> impl Iterator<Item = Self> {
        App::ALL.into_iter().flat_map(|app| Fs::ALL.into_iter().map(move |fs| Self { app, fs }))
    }

    /// `FS-APP`, the name of its trace file without the ending.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}-{}", self.fs.name(), self.app.name())
    }
}

/// The size of the device on which `prism capture stack` traced the pairs: that of the paper.
pub const TRACED: Bytes = Bytes(1 << 30);
/// The size of the device of the first traces, which are text of ftrace.
pub const TRACED_FIRST: Bytes = Bytes(4 << 30);
/// The phase of the traces in which the application runs.
pub const PHASE: &str = "app";
