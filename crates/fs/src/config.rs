//! Settings of cleaning and grouping. They belong to a mount, not to the format: each mount may use
//! others.

/// How cleaning chooses its victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The segment with the fewest live blocks.
    Greedy,
    /// `(1 - u) age / (1 + u)`, with the age of the youngest block. Source: Sprite LFS, SOSP'91.
    CostBenefit,
    /// `(1 - u) / (2 u h)`, with the hotness h of the segment. Source: SFS, FAST'12 section 3.4.
    CostHotness,
}

/// The distance by which a segment is assigned to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Of hotnesses, as in SFS.
    Linear,
    /// Of their logarithms.
    Log,
}

/// How the segments are divided into groups of hotness. Source: SFS, FAST'12, Figure 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantization {
    /// By iteration, as in SFS: each segment belongs to the nearest group.
    Iterative,
    /// Into equal parts of the range of hotness (SFS: equi-height).
    EqualRanges,
    /// Into equal numbers of segments (SFS: equi-width).
    EqualCounts,
}

/// When data that was not synced is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// A group is written when it fills a segment; the others wait for it, or for a checkpoint.
    WholeSegments,
    /// All groups are written when the data fill a segment.
    None,
}

/// The settings of a mount.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How victims are chosen.
    pub victim: Victim,
    /// Groups of hotness, 1 to 16.
    pub groups: u32,
    /// How segments are divided into groups.
    pub quantization: Quantization,
    /// The distance of the quantization.
    pub distance: Distance,
    /// Whether groups wait until they fill a segment.
    pub deferral: Deferral,
    /// The least age, in percent of the blocks of the file system: blocks that were written since
    /// count as equally old. 0 is the literal algorithm of SFS.
    pub age_floor: u32,
    /// Segments that cleaning makes free at once, at least; a 64th of all if that is more.
    pub victims: u32,
    /// Segments written after which a checkpoint is due.
    pub checkpoint_segments: u32,
    /// Seconds after which a checkpoint is due.
    pub checkpoint_seconds: i64,
    /// Leaves of the map of a file that are removed at once.
    pub removal_leaves: u32,
    /// Bytes of blocks and of nodes that are kept in memory, each; dirty ones are not among them.
    pub cache_bytes: u64,
    /// Whether blocks of files stay in this memory when they are written. A mount needs only the
    /// last blocks of files that will grow, since the kernel has the others in its own cache.
    pub caches_written: bool,
    /// Whether reading a file may change the time of its last access.
    pub access_times: bool,
}

impl Config {
    /// The settings for a file system that is used.
    pub const NORMAL: Self = Self {
        victim: Victim::CostBenefit,
        groups: 4,
        quantization: Quantization::Iterative,
        distance: Distance::Log,
        deferral: Deferral::WholeSegments,
        age_floor: 2,
        victims: 3,
        checkpoint_segments: 20,
        checkpoint_seconds: 30,
        removal_leaves: 256,
        cache_bytes: 32 << 20,
        caches_written: true,
        access_times: true,
    };

    /// The literal algorithms of SFS. Source: FAST'12, sections 3.2 to 3.5; differs: fsync appends
    /// a transaction where SFS makes a checkpoint, age is counted in blocks written, and cleaning
    /// frees more segments at once on large devices.
    pub const SFS: Self = Self {
        victim: Victim::CostHotness,
        distance: Distance::Linear,
        age_floor: 0,
        ..Self::NORMAL
    };

    /// The baseline of the SFS paper, LFS-CB: one group and cost-benefit.
    pub const LFS_CB: Self =
        Self { groups: 1, deferral: Deferral::None, age_floor: 0, ..Self::NORMAL };
}
