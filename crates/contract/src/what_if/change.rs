//! The changes that a what-if can simulate, each with its parameters.

use prism_base::{Bytes, Nanos};

use crate::rules::Rule;

/// One change of the trace, of the pace of the replay, or of the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Adjacent or overlapping writes of the same kind are merged into one, unless a flush,
    /// a FUA write or an access to the same bytes comes between them. A write waits for
    /// others for at most the window. Data that is overwritten while it waits is not
    /// written. A buffer in the application could do this.
    Merge {
        /// The largest merged write.
        most: Bytes,
        /// The longest time that a write waits.
        window: Nanos,
    },
    /// All flushes and FUA writes of a window are replaced by one flush at its end, and
    /// writes merge across them. Data becomes durable later by up to the window, which
    /// applications may not accept. The result is therefore an upper bound on the gain.
    GroupCommit {
        /// The longest delay of durability.
        window: Nanos,
    },
    /// Writes are padded to whole mapping units, as software does that keeps the rest of a
    /// unit in memory. They are cut at multiples of the stripe size, and consecutive writes
    /// are joined to whole stripes (Rajimwale et al., ATC'09, 3.4). A whole stripe is issued
    /// at once. A write that does not fill its stripe, or whose last unit was padded, waits
    /// for more data for at most 10 ms.
    Align {
        /// The part of the flash that a stripe fills.
        what: Boundary,
        /// The stripe size: the mapping unit, or a multiple of it.
        to: Bytes,
    },
    /// A fixed number of requests is kept in flight, regardless of the times in the trace.
    Depth {
        /// Requests in flight.
        requests: u32,
    },
    /// Dead data that the trace does not discard is discarded. Data is dead if the trace, or
    /// its next pass, does not use it again before overwriting or discarding it. A file that
    /// overwrites its own data (known if the trace has inodes) updates it in place; such
    /// data is not dead.
    Discards {
        /// Time from the last use of the data to its discard. Data that is written again
        /// sooner is not discarded.
        delay: Nanos,
    },
    /// Discards are held back, merged where they touch, and issued all at once.
    DelayDiscards {
        /// The time that the first held discard waits.
        by: Nanos,
    },
    /// The trace without its discards.
    NoDiscards,
    /// Each unit is written with a placement handle chosen by its future lifetime.
    Streams {
        /// Number of handles, at least 2.
        handles: u16,
    },
    /// Each unit is written with a placement handle chosen by how often it was recently
    /// written.
    HotCold {
        /// Number of handles, 2 to 4.
        classes: u16,
    },
    /// A drive of the same capacity with more spare flash.
    OverProvisioning {
        /// Effective over-provisioning: 0.28 is 28 %.
        spare: f64,
    },
    /// A drive whose map is on flash and that caches more of it.
    MapCache {
        /// Memory for cached entries.
        bytes: Bytes,
    },
    /// A drive with a page-level mapping instead of a block-level mapping. The latter has to
    /// merge blocks that writes do not fill in order, so the difference is the price of
    /// unaligned writes.
    PageMap,
    /// Static wear levelling: the data of blocks that were erased much less often than the
    /// mean is moved.
    Levelling {
        /// Number of erases below the mean from which a block's data is moved.
        behind: u32,
    },
}

/// The part of the flash that writes are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// A flash page.
    Page,
    /// A program unit: a page on every plane that one program command writes.
    Stripe,
    /// An erase block: the pages that one erase command clears on a die.
    Block,
}

/// The figure that a change is meant to improve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headline {
    /// The speed at which the same work gets done.
    Speed,
    /// The 99th percentile of latency.
    Latency,
    /// Flash bytes programmed for each byte of the trace, and with it the lifetime.
    WriteAmplification,
    /// The spread of erases over the blocks.
    Wear,
}

impl Change {
    /// The key of every change, in the order of the variants.
    pub const KEYS: [&str; 15] = [
        "merge",
        "group-commit",
        "align-page",
        "align-stripe",
        "align-block",
        "depth",
        "discards",
        "delay-discards",
        "no-discards",
        "streams",
        "hot-cold",
        "over-provisioning",
        "map-cache",
        "page-map",
        "levelling",
    ];

    /// Key, name, rule and headline of the change.
    fn row(&self) -> (&'static str, &'static str, Rule, Headline) {
        use Headline::{Latency, Speed, Wear, WriteAmplification};
        use Rule::{
            AlignedSequentiality as Alignment, GroupingByDeathTime as Grouping, Locality,
            RequestScale as Scale, UniformLifetime as Lifetime,
        };
        let aligned = |key, name| (key, name, Alignment, WriteAmplification);
        let grouped = |key, name| (key, name, Grouping, WriteAmplification);
        match self {
            Self::Merge { .. } => ("merge", "merge small writes", Scale, Speed),
            Self::GroupCommit { .. } => ("group-commit", "commit in groups", Scale, Speed),
            Self::Align { what: Boundary::Page, .. } => {
                aligned("align-page", "align writes to pages")
            }
            Self::Align { what: Boundary::Stripe, .. } => {
                aligned("align-stripe", "align writes to stripes")
            }
            Self::Align { what: Boundary::Block, .. } => {
                aligned("align-block", "align writes to blocks")
            }
            Self::Depth { .. } => ("depth", "keep more requests in flight", Scale, Speed),
            Self::Discards { .. } => grouped("discards", "discard dead data"),
            // Discards are slow, carry no data, and delay reads and writes (He et al.,
            // EuroSys'17, observation 8).
            Self::DelayDiscards { .. } => ("delay-discards", "delay discards", Scale, Speed),
            Self::NoDiscards => grouped("no-discards", "leave out discards"),
            Self::Streams { .. } => grouped("streams", "separate data by death time"),
            Self::HotCold { .. } => grouped("hot-cold", "separate data by heat"),
            // With more spare flash, the data of a block has more time to die before the
            // block is cleaned.
            Self::OverProvisioning { .. } => grouped("over-provisioning", "add spare flash"),
            Self::MapCache { .. } => ("map-cache", "cache more of the map", Locality, Latency),
            Self::PageMap => aligned("page-map", "map pages, not blocks"),
            Self::Levelling { .. } => ("levelling", "level wear", Lifetime, Wear),
        }
    }

    /// The name of the change in reports, as an imperative: "merge small writes".
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.row().1
    }

    /// The name of the change in JSON and on the command line.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.row().0
    }

    /// Describes the changed trace or drive, in one sentence without its full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        match *self {
            Self::Merge { most, window } => format!(
                "adjacent writes within {window} are merged into one of at most {most}, but not \
                 across a flush"
            ),
            Self::GroupCommit { window } => format!(
                "data becomes durable once every {window} instead of at every flush, and writes \
                 in between merge"
            ),
            Self::Align { what, to } => format!(
                "writes are padded to mapping units and joined to whole {} of {to}",
                match what {
                    Boundary::Page => "flash pages",
                    Boundary::Stripe => "program units",
                    Boundary::Block => "erase blocks",
                }
            ),
            Self::Depth { requests } => {
                format!("{requests} requests are kept in flight until the trace ends")
            }
            Self::Discards { delay } => {
                format!("data that is not used again is discarded {delay} after its last use")
            }
            Self::DelayDiscards { by } => {
                format!("discards are held back for up to {by} and merged")
            }
            Self::NoDiscards => "the trace without its discards".into(),
            Self::Streams { handles } => {
                format!("{handles} placement handles separate data by how long it will live")
            }
            Self::HotCold { classes } => format!(
                "{classes} placement handles separate data by how often it was recently written"
            ),
            Self::OverProvisioning { spare } => {
                format!("a drive with {:.0} % of spare flash", spare * 100.0)
            }
            Self::MapCache { bytes } => {
                format!("a drive with its map on flash caches map entries in {bytes} of memory")
            }
            Self::PageMap => {
                "a drive with a page-level mapping instead of a block-level mapping".into()
            }
            Self::Levelling { behind } => {
                format!("the data of blocks more than {behind} erases below the mean is moved")
            }
        }
    }

    /// The rule that the change helps to keep, or whose price it shows.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.row().2
    }

    /// The figure by which the change is judged.
    #[must_use]
    pub fn headline(&self) -> Headline {
        self.row().3
    }

    /// Whether the gain is an upper bound that no real system reaches: the change uses
    /// knowledge of the future, or gives up durability that applications need.
    #[must_use]
    pub fn upper_bound(&self) -> bool {
        matches!(self, Self::GroupCommit { .. } | Self::Discards { .. } | Self::Streams { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_has_its_own_key_name_and_sentence() {
        let window = Nanos(10_000_000);
        let all = [
            Change::Merge { most: Bytes(1 << 20), window },
            Change::GroupCommit { window },
            Change::Align { what: Boundary::Page, to: Bytes(1 << 14) },
            Change::Align { what: Boundary::Stripe, to: Bytes(1 << 15) },
            Change::Align { what: Boundary::Block, to: Bytes(1 << 20) },
            Change::Depth { requests: 32 },
            Change::Discards { delay: window },
            Change::DelayDiscards { by: window },
            Change::NoDiscards,
            Change::Streams { handles: 8 },
            Change::HotCold { classes: 4 },
            Change::OverProvisioning { spare: 0.28 },
            Change::MapCache { bytes: Bytes(1 << 20) },
            Change::PageMap,
            Change::Levelling { behind: 5 },
        ];
        let mut keys: Vec<_> = all.iter().map(Change::key).collect();
        let mut names: Vec<_> = all.iter().map(Change::name).collect();
        assert_eq!(keys, Change::KEYS);
        keys.sort_unstable();
        names.sort_unstable();
        keys.dedup();
        names.dedup();
        assert_eq!((keys.len(), names.len()), (all.len(), all.len()));
        for change in all {
            let sentence = change.sentence();
            assert!(!sentence.ends_with('.') && sentence.len() < 100, "{sentence}");
        }
        let merge = all[0].sentence();
        let expected = "adjacent writes within 10 ms are merged into one of at most 1 MiB, but \
                        not across a flush";
        assert_eq!(merge, expected);
        assert_eq!(all[11].sentence(), "a drive with 28 % of spare flash");
    }
}
