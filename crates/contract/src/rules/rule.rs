//! The five rules: their names, the definitions of their scores, and their thresholds.

/// A rule of the contract. Source: He et al., EuroSys'17.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Requests are large, or many are in flight at once.
    RequestScale,
    /// Accesses are close to each other, so that the cached part of the map serves them.
    Locality,
    /// Writes start at the beginning of a block and continue in order.
    AlignedSequentiality,
    /// Data that dies together is written together.
    GroupingByDeathTime,
    /// All data has the same lifetime.
    UniformLifetime,
}

prism_base::named_enum! {
    /// The assessment of a score.
    #[derive(PartialOrd, Ord)]
    pub enum Verdict {
        /// The rule is kept.
        Kept = "kept",
        /// The score is between the thresholds.
        Strained = "strained",
        /// The rule is broken.
        Broken = "broken",
        /// The trace does not determine a score.
        Unknown = "unknown",
    }
}

/// The scores at which the verdict changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The rule is kept if the score is at least this.
    pub kept: f64,
    /// The rule is broken if the score is below this.
    pub broken: f64,
}

impl Thresholds {
    /// The verdict on `score`.
    #[must_use]
    pub fn verdict(&self, score: Option<f64>) -> Verdict {
        match score {
            None => Verdict::Unknown,
            Some(score) if score >= self.kept => Verdict::Kept,
            Some(score) if score >= self.broken => Verdict::Strained,
            Some(_) => Verdict::Broken,
        }
    }
}

impl Rule {
    /// All rules, in the order of the paper.
    pub const ALL: [Self; 5] = [
        Self::RequestScale,
        Self::Locality,
        Self::AlignedSequentiality,
        Self::GroupingByDeathTime,
        Self::UniformLifetime,
    ];

    /// The name in JSON and on the command line.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::RequestScale => "request_scale",
            Self::Locality => "locality",
            Self::AlignedSequentiality => "aligned_sequentiality",
            Self::GroupingByDeathTime => "grouping_by_death_time",
            Self::UniformLifetime => "uniform_lifetime",
        }
    }

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestScale => "Request scale",
            Self::Locality => "Locality",
            Self::AlignedSequentiality => "Aligned sequentiality",
            Self::GroupingByDeathTime => "Grouping by death time",
            Self::UniformLifetime => "Uniform data lifetime",
        }
    }

    /// A short name, for table headings.
    #[must_use]
    pub fn short_name(self) -> &'static str {
        match self {
            Self::RequestScale => "request scale",
            Self::Locality => "locality",
            Self::AlignedSequentiality => "alignment",
            Self::GroupingByDeathTime => "grouping",
            Self::UniformLifetime => "lifetime",
        }
    }

    /// The rule as a recommendation with its reason, in one sentence.
    #[must_use]
    pub fn statement(self) -> &'static str {
        match self {
            Self::RequestScale => {
                "Issue large requests, or many at once, so that every channel has work."
            }
            Self::Locality => {
                "Access addresses close to each other, so that the cached part of the map serves \
                 them."
            }
            Self::AlignedSequentiality => {
                "Start writing at the beginning of a block and continue in order, so that a drive \
                 with a block-level mapping need not merge blocks."
            }
            Self::GroupingByDeathTime => {
                "Write data that dies together at the same time, so that whole blocks become \
                 garbage and cleaning copies nothing."
            }
            Self::UniformLifetime => {
                "Give all data the same lifetime, so that blocks wear evenly without wear \
                 levelling."
            }
        }
    }

    /// The definition of the score, in one sentence.
    #[must_use]
    pub fn score_means(self) -> &'static str {
        match self {
            Self::RequestScale => {
                "mean over reads and writes of the share of channels that the flash pages in \
                 flight at the request's issue, including its own, can keep busy"
            }
            Self::Locality => {
                "share of visits to translation pages that hit a least-recently-used cache, \
                 with the trace repeated"
            }
            Self::AlignedSequentiality => {
                "bytes written / (bytes written + bytes merged), with logical blocks of 1 MiB \
                 and one log block for each, merged when it is full"
            }
            Self::GroupingByDeathTime => {
                "valid bytes / size of the full blocks of 1 MiB that hold valid data, on a drive \
                 that never cleans, at the end of the trace"
            }
            Self::UniformLifetime => {
                "1 - Gini coefficient of the number of writes to each unit that was written"
            }
        }
    }

    /// The thresholds of the rule. `spare` is the drive's effective over-provisioning.
    #[must_use]
    pub fn thresholds(self, spare: f64) -> Thresholds {
        match self {
            Self::RequestScale => Thresholds { kept: 0.8, broken: 0.5 },
            Self::Locality => Thresholds { kept: 0.9, broken: 0.5 },
            Self::AlignedSequentiality => Thresholds { kept: 0.8, broken: 0.5 },
            // `kept` is never below `broken`, even on a drive with much spare flash.
            Self::GroupingByDeathTime => {
                Thresholds { kept: (1.0 / (1.0 + spare.max(0.0))).max(0.5), broken: 0.5 }
            }
            Self::UniformLifetime => Thresholds { kept: 0.7, broken: 0.4 },
        }
    }

    /// The reasons for the thresholds, and their sources.
    #[must_use]
    pub fn thresholds_why(self) -> &'static str {
        match self {
            Self::RequestScale => {
                "a score of 1 is a flash page for every channel: with less, some channel is idle \
                 (\"Designing SSD-friendly applications\", rule 6: page size x parallelism); \
                 the rule is broken below half of that and kept from four fifths"
            }
            Self::Locality => {
                "each miss costs an additional flash read, so at 0.5 every second visit costs \
                 twice as much; the rule is kept with at most one miss in ten (cost model of \
                 DFTL, ASPLOS'09; a tenth of the map cached as in the EuroSys'17 paper's runs)"
            }
            Self::AlignedSequentiality => {
                "0.5 is an unaligned ratio of 1, the line in the EuroSys'17 paper's figures: the \
                 drive merges as many bytes as the host writes; the rule is kept up to a quarter \
                 of that"
            }
            Self::GroupingByDeathTime => {
                "at 1 / (1 + the drive's effective over-provisioning) the spare flash holds all \
                 garbage and cleaning need not copy; below 0.5 there is more garbage than data \
                 (zombie curves of the EuroSys'17 paper)"
            }
            Self::UniformLifetime => {
                "0.4 is the 80/20 rule (a fifth of the units gets four fifths of the writes); \
                 0.7 is our choice, because no source gives a threshold"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_change_at_the_thresholds() {
        let lines = Rule::RequestScale.thresholds(0.07);
        let check = |score, verdict| assert_eq!(lines.verdict(score), verdict, "{score:?}");
        check(None, Verdict::Unknown);
        check(Some(0.8), Verdict::Kept);
        check(Some(0.799), Verdict::Strained);
        check(Some(0.5), Verdict::Strained);
        check(Some(0.499), Verdict::Broken);
        let grouping = Rule::GroupingByDeathTime;
        assert!((grouping.thresholds(0.25).kept - 0.8).abs() < 1e-12);
        assert_eq!(grouping.thresholds(3.0).kept, 0.5);
    }
}
