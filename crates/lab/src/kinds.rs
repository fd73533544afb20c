//! The parts of a combination: application, file system, access pattern, use of the page cache.

use std::ffi::CStr;
use std::fmt;

use prism_workload::overwrites::Workload;

prism_base::named_enum! {
    /// An application: a library, or our own implementation of varmail.
    #[derive(PartialOrd, Ord)]
    pub enum App {
        /// SQLite with a rollback journal, which is deleted at each commit.
        SqliteRb = "sqlite-rb",
        /// SQLite with a write-ahead log.
        SqliteWal = "sqlite-wal",
        /// RocksDB.
        RocksDb = "rocksdb",
        /// LevelDB.
        LevelDb = "leveldb",
        /// A mail server, as in filebench's workload of that name.
        Varmail = "varmail",
        /// Overwrites of blocks of a file by Zipf's law, as in the paper SFS.
        OverwriteZipf = "overwrite-zipf",
        /// The same with uniformly random blocks.
        OverwriteUniform = "overwrite-uniform",
        /// The same with the distribution of the paper's trace of TPC-C.
        OverwriteTpcC = "overwrite-tpcc",
        /// The same with that of its trace of research desktops.
        OverwriteRes = "overwrite-res",
    }
}

prism_base::named_enum! {
    /// A file system that can be made and mounted.
    #[derive(PartialOrd, Ord)]
    pub enum FileSystem {
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// Btrfs.
        Btrfs = "btrfs",
        /// F2FS.
        F2fs = "f2fs",
        /// Btrfs without copy-on-write, and so without checksums of data.
        BtrfsNodatacow = "btrfs-nodatacow",
    }
}

prism_base::named_enum! {
    /// The access pattern of an application.
    #[derive(PartialOrd, Ord)]
    pub enum Pattern {
        /// Updates in ascending order of keys, repeated.
        Seq = "seq",
        /// Updates of uniformly random keys.
        Rand = "rand",
        /// Alternating updates and reads of uniformly random keys.
        Mix = "mix",
    }
}

prism_base::named_enum! {
    /// Whether files go through the page cache.
    #[derive(PartialOrd, Ord)]
    pub enum Io {
        /// Files use the page cache.
        Buffered = "buffered",
        /// Files bypass the page cache as far as the application can: tables of RocksDB.
        Direct = "direct",
    }
}

/// An application on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Combination {
    /// The application.
    pub app: App,
    /// Its access pattern.
    pub pattern: Pattern,
    /// Its use of the page cache.
    pub io: Io,
    /// How many of it run at once, each in a folder of its own.
    pub instances: u32,
    /// The file system.
    pub fs: FileSystem,
}

/// Most instances of an application at once: each has its own process and memory.
pub const INSTANCES_MAX: u32 = 16;

impl App {
    /// Whether the application can bypass the page cache. SQLite and LevelDB have no such option,
    /// and the sizes of varmail's mails are not multiples of a sector.
    #[must_use]
    pub fn has_direct(self) -> bool {
        match self {
            Self::RocksDb => true,
            Self::SqliteRb | Self::SqliteWal | Self::LevelDb | Self::Varmail => false,
            Self::OverwriteZipf
            | Self::OverwriteUniform
            | Self::OverwriteTpcC
            | Self::OverwriteRes => false,
        }
    }

    /// The distribution of its overwrites, if it overwrites blocks of a file.
    #[must_use]
    pub fn overwrites(self) -> Option<Workload> {
        match self {
            Self::OverwriteZipf => Some(Workload::Zipf),
            Self::OverwriteUniform => Some(Workload::Uniform),
            Self::OverwriteTpcC => Some(Workload::TpcC),
            Self::OverwriteRes => Some(Workload::Res),
            Self::SqliteRb | Self::SqliteWal | Self::RocksDb | Self::LevelDb | Self::Varmail => {
                None
            }
        }
    }

    /// Whether the application can have the pattern: overwrites are random.
    #[must_use]
    pub fn has_pattern(self, pattern: Pattern) -> bool {
        self.overwrites().is_none() || pattern == Pattern::Rand
    }
}

impl FileSystem {
    /// The kernel's name of it, and the options of its mounts: with discards of deleted data.
    #[must_use]
    pub fn mount(self) -> (&'static str, &'static CStr) {
        match self {
            Self::Ext4 | Self::Xfs | Self::Btrfs | Self::F2fs => (self.name(), c"discard"),
            Self::BtrfsNodatacow => ("btrfs", c"discard,nodatacow"),
        }
    }
}

impl Combination {
    /// All combinations, including impossible ones, in the order of the arguments.
    #[must_use]
    pub fn all(
        apps: &[App],
        patterns: &[Pattern],
        ios: &[Io],
        instances: &[u32],
        file_systems: &[FileSystem],
    ) -> Vec<Self> {
        let mut all = Vec::new();
        for &app in apps {
            for &pattern in patterns {
                for &io in ios {
                    for &instances in instances {
                        let on = |&fs: &FileSystem| Self { app, pattern, io, instances, fs };
                        all.extend(file_systems.iter().map(on));
                    }
                }
            }
        }
        all
    }

    /// What its application cannot do, so that it cannot be run: see [`App::has_direct`] and
    /// [`App::has_pattern`]. `None` if it can be run.
    #[must_use]
    pub fn impossible(self) -> Option<&'static str> {
        if !self.app.has_pattern(self.pattern) {
            Some("cannot have a pattern other than rand")
        } else if self.io == Io::Direct && !self.app.has_direct() {
            Some("cannot bypass the page cache")
        } else {
            None
        }
    }
}

/// The name of its trace, such as `ext4-sqlite-wal-rand`, with `-direct` appended for direct I/O
/// and `-x2` for two instances.
impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.fs.name(), self.app.name(), self.pattern.name())?;
        if self.io == Io::Direct {
            f.write_str("-direct")?;
        }
        if self.instances > 1 { write!(f, "-x{}", self.instances) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Named;

    use super::*;

    fn check_names<T: Named + PartialEq + fmt::Debug>(names: &str) {
        let all: Vec<&str> = T::ALL.iter().map(|member| member.name()).collect();
        assert_eq!(all.join(" "), names);
        for &member in T::ALL {
            assert_eq!(T::from_name(member.name()), Some(member));
        }
        assert_eq!(T::from_name("EXT4"), None);
    }

    #[test]
    fn names_are_read_and_written() {
        check_names::<App>(
            "sqlite-rb sqlite-wal rocksdb leveldb varmail overwrite-zipf overwrite-uniform \
             overwrite-tpcc overwrite-res",
        );
        check_names::<FileSystem>("ext4 xfs btrfs f2fs btrfs-nodatacow");
        check_names::<Pattern>("seq rand mix");
        check_names::<Io>("buffered direct");
    }

    #[test]
    fn combinations_come_in_the_order_of_the_arguments() {
        let all = Combination::all(
            &[App::RocksDb, App::SqliteWal],
            &[Pattern::Mix],
            &[Io::Buffered, Io::Direct],
            &[1],
            &[FileSystem::Xfs, FileSystem::Ext4],
        );
        let shown: Vec<String> = all
            .iter()
            .map(|one| format!("{one}{}", if one.impossible().is_none() { "" } else { "!" }))
            .collect();
        assert_eq!(
            shown.join(" "),
            "xfs-rocksdb-mix ext4-rocksdb-mix xfs-rocksdb-mix-direct ext4-rocksdb-mix-direct \
             xfs-sqlite-wal-mix ext4-sqlite-wal-mix xfs-sqlite-wal-mix-direct! \
             ext4-sqlite-wal-mix-direct!"
        );
        let ext4 = &[FileSystem::Ext4];
        let why = |app, pattern, io| {
            Combination::all(&[app], &[pattern], &[io], &[1], ext4)[0].impossible().unwrap_or("")
        };
        assert_eq!(why(App::OverwriteRes, Pattern::Rand, Io::Buffered), "");
        for pattern in [Pattern::Seq, Pattern::Mix] {
            let why = why(App::OverwriteRes, pattern, Io::Buffered);
            assert!(why.contains("other than rand"), "{why}");
        }
        let why = why(App::LevelDb, Pattern::Seq, Io::Direct);
        assert!(why.contains("page cache"), "{why}");
        let all =
            Combination::all(&[App::LevelDb], &[Pattern::Seq], &[Io::Buffered], &[1, 4], ext4);
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["ext4-leveldb-seq", "ext4-leveldb-seq-x4"]);
    }
}
