//! What is changed: a closed family, each member with its parameters.

use prism_base::{Bytes, Nanos};

use crate::rules::Rule;

/// One thing that is changed about the trace, how it is replayed, or the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Writes of the same kind that touch or overlap become one, as long as no flush, FUA
    /// or access to the same bytes comes between. A write waits for others for at most the
    /// window; what is overwritten while it waits is not written. What a buffer in the
    /// application could do.
    Merge {
        /// The largest write that is made.
        most: Bytes,
        /// How long a write waits.
        window: Nanos,
    },
    /// Flushes and FUA give way to one flush at the end of each window in which there were
    /// any, and writes merge across them. Applications would have to live with durability
    /// that comes so much later, so it bounds what delaying it brings.
    GroupCommit {
        /// How much later.
        window: Nanos,
    },
    /// Writes are rounded out to whole mapping units, as software does that keeps the rest
    /// of a unit in memory, cut at multiples of a stripe, and those that follow each other
    /// put together to whole stripes (Rajimwale et al., ATC'09, 3.4). Whole stripes leave at
    /// once; what is not whole, or does not end with its last unit, waits 10 ms at most for
    /// the rest and then goes out as it is.
    Align {
        /// What of the flash the stripe is.
        what: Boundary,
        /// Its size: the mapping unit, or a multiple of it.
        to: Bytes,
    },
    /// So many requests are kept in flight, whatever their times.
    Depth {
        /// Requests in flight.
        requests: u32,
    },
    /// The discards that were missing: data is discarded when it has not been used for the
    /// delay and is, as the rest of the trace shows, not used again before it is
    /// overwritten or discarded. The next pass counts as the rest. An overwrite of a file
    /// by itself (where inodes are known) is an update, before which nothing is free.
    Discards {
        /// How long after its last use; data that is written anew sooner is left alone.
        delay: Nanos,
    },
    /// Discards are held back, merged where they touch, and issued all at once.
    DelayDiscards {
        /// How long the first of them waits.
        by: Nanos,
    },
    /// The trace without its discards.
    NoDiscards,
    /// Each unit is written with a placement handle that stands for how long it will live.
    Streams {
        /// Handles, at least 2.
        handles: u16,
    },
    /// Each unit is written with a placement handle that stands for how often it was
    /// written lately.
    HotCold {
        /// Handles, 2 to 4.
        classes: u16,
    },
    /// A drive of the same capacity with more spare flash.
    OverProvisioning {
        /// Effective over-provisioning: 0.28 is 28 %.
        spare: f64,
    },
    /// A drive that caches more of a map that lies on flash.
    MapCache {
        /// Memory for cached entries.
        bytes: Bytes,
    },
    /// A drive that maps every unit, in place of one that maps blocks and has to merge
    /// where writes do not fill them in order. The price of unaligned writes.
    PageMap,
    /// Static wear levelling: blocks so many erases behind the mean are moved.
    Levelling {
        /// Erases behind the mean.
        behind: u32,
    },
}

/// What of the flash writes are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// A flash page.
    Page,
    /// What one program writes on a die: a page on every plane.
    Stripe,
    /// What one erase clears on a die.
    Block,
}

/// The figure that a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headline {
    /// How fast the same work gets done.
    Speed,
    /// The 99th percentile of latency.
    Latency,
    /// Flash bytes for each byte of the trace, and with it lifetime.
    WriteAmplification,
    /// How far apart the erases of blocks are.
    Wear,
}

impl Change {
    /// Every key, in the order of the variants.
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

    /// What it is called in reports: something that can be done.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Merge { .. } => "merge small writes",
            Self::GroupCommit { .. } => "commit in groups",
            Self::Align { what: Boundary::Page, .. } => "align writes to pages",
            Self::Align { what: Boundary::Stripe, .. } => "align writes to stripes",
            Self::Align { what: Boundary::Block, .. } => "align writes to blocks",
            Self::Depth { .. } => "keep more requests in flight",
            Self::Discards { .. } => "discard dead data",
            Self::DelayDiscards { .. } => "delay discards",
            Self::NoDiscards => "leave out discards",
            Self::Streams { .. } => "separate data by death time",
            Self::HotCold { .. } => "separate data by heat",
            Self::OverProvisioning { .. } => "add spare flash",
            Self::MapCache { .. } => "cache more of the map",
            Self::PageMap => "map pages, not blocks",
            Self::Levelling { .. } => "level wear",
        }
    }

    /// What it is called in JSON and on the command line.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Merge { .. } => "merge",
            Self::GroupCommit { .. } => "group-commit",
            Self::Align { what: Boundary::Page, .. } => "align-page",
            Self::Align { what: Boundary::Stripe, .. } => "align-stripe",
            Self::Align { what: Boundary::Block, .. } => "align-block",
            Self::Depth { .. } => "depth",
            Self::Discards { .. } => "discards",
            Self::DelayDiscards { .. } => "delay-discards",
            Self::NoDiscards => "no-discards",
            Self::Streams { .. } => "streams",
            Self::HotCold { .. } => "hot-cold",
            Self::OverProvisioning { .. } => "over-provisioning",
            Self::MapCache { .. } => "map-cache",
            Self::PageMap => "page-map",
            Self::Levelling { .. } => "levelling",
        }
    }

    /// What is different, in one sentence without its full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        match *self {
            Self::Merge { most, window } => format!(
                "writes that touch within {window} become one of at most {most}, but not across \
                 a flush"
            ),
            Self::GroupCommit { window } => format!(
                "data becomes durable once in {window} instead of at every flush, and writes \
                 merge meanwhile"
            ),
            Self::Align { what, to } => format!(
                "writes fill whole mapping units, those that follow each other whole {} of {to}",
                match what {
                    Boundary::Page => "flash pages",
                    Boundary::Stripe => "rows over all planes",
                    Boundary::Block => "erase blocks",
                }
            ),
            Self::Depth { requests } => {
                format!("{requests} requests are in flight as long as there are any")
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
                "{classes} placement handles separate data by how often it was written lately"
            ),
            Self::OverProvisioning { spare } => {
                format!("a drive with {:.0} % of spare flash", spare * 100.0)
            }
            Self::MapCache { bytes } => {
                format!("{bytes} of memory hold cached entries of a map on flash")
            }
            Self::PageMap => "a drive that maps pages in place of one that maps blocks".into(),
            Self::Levelling { behind } => {
                format!("blocks more than {behind} erases behind the mean are moved")
            }
        }
    }

    /// The rule that it mends, or whose price it shows.
    #[must_use]
    pub fn rule(&self) -> Rule {
        match self {
            Self::Merge { .. }
            | Self::GroupCommit { .. }
            | Self::Depth { .. }
            // Slow operations that carry no data delay those that do (observation 8).
            | Self::DelayDiscards { .. } => Rule::RequestScale,
            Self::MapCache { .. } => Rule::Locality,
            Self::Align { .. } | Self::PageMap => Rule::AlignedSequentiality,
            Self::Discards { .. }
            | Self::NoDiscards
            | Self::Streams { .. }
            | Self::HotCold { .. }
            // Spare flash gives data of one block more time to die together.
            | Self::OverProvisioning { .. } => Rule::GroupingByDeathTime,
            Self::Levelling { .. } => Rule::UniformLifetime,
        }
    }

    /// The figure by which it is judged.
    #[must_use]
    pub fn headline(&self) -> Headline {
        match self {
            Self::Merge { .. }
            | Self::GroupCommit { .. }
            | Self::Depth { .. }
            | Self::DelayDiscards { .. } => Headline::Speed,
            Self::MapCache { .. } => Headline::Latency,
            Self::Align { .. }
            | Self::Discards { .. }
            | Self::NoDiscards
            | Self::Streams { .. }
            | Self::HotCold { .. }
            | Self::OverProvisioning { .. }
            | Self::PageMap => Headline::WriteAmplification,
            Self::Levelling { .. } => Headline::Wear,
        }
    }

    /// Whether it uses what nobody knows when it would be needed, or gives up what
    /// applications cannot do without: no real system does better.
    #[must_use]
    pub fn upper_bound(&self) -> bool {
        match self {
            Self::GroupCommit { .. } | Self::Discards { .. } | Self::Streams { .. } => true,
            Self::Merge { .. }
            | Self::Align { .. }
            | Self::Depth { .. }
            | Self::DelayDiscards { .. }
            | Self::NoDiscards
            | Self::HotCold { .. }
            | Self::OverProvisioning { .. }
            | Self::MapCache { .. }
            | Self::PageMap
            | Self::Levelling { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_says_what_it_is() {
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
        let expected = "writes that touch within 10 ms become one of at most 1 MiB, but not \
                        across a flush";
        assert_eq!(merge, expected);
        assert_eq!(all[11].sentence(), "a drive with 28 % of spare flash");
    }
}
