//! The five rules: their names, what their scores mean, and where the lines are drawn.

/// A rule of the contract. Source: He et al., EuroSys'17.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Large requests, or many at once.
    RequestScale,
    /// Accesses close to each other, so that the cached part of the map serves them.
    Locality,
    /// Writes that start at the beginning of a block and go on in order.
    AlignedSequentiality,
    /// Data that dies together is written together.
    GroupingByDeathTime,
    /// Data lives equally long everywhere.
    UniformLifetime,
}

/// What a score amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The rule is kept.
    Kept,
    /// In between.
    Strained,
    /// The rule is broken.
    Broken,
    /// The trace does not tell.
    Unknown,
}

impl Verdict {
    /// The word for it, in text and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Strained => "strained",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

/// Where a score turns from kept to strained to broken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A score from here on keeps the rule.
    pub kept: f64,
    /// A score below breaks it.
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
    /// Every rule, in the order of the paper.
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

    /// The name for people.
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

    /// A short name, for the heads of tables.
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

    /// What the rule statement for, and why, in one sentence.
    #[must_use]
    pub fn statement(self) -> &'static str {
        match self {
            Self::RequestScale => {
                "Issue large requests, or many at once, so that every channel has work."
            }
            Self::Locality => {
                "Access what lies close together, so that the cached part of the map serves it."
            }
            Self::AlignedSequentiality => {
                "Start writing at the beginning of a block and go on in order, so that a drive \
                 mapped by blocks need not merge."
            }
            Self::GroupingByDeathTime => {
                "Write together what dies together, so that whole blocks die and cleaning copies \
                 nothing."
            }
            Self::UniformLifetime => {
                "Let all data live equally long, so that blocks wear evenly without levelling."
            }
        }
    }

    /// What the score is, in one sentence.
    #[must_use]
    pub fn score_means(self) -> &'static str {
        match self {
            Self::RequestScale => {
                "mean over reads and writes of the share of channels that the flash pages \
                 outstanding at the request's issue, its own included, can keep busy"
            }
            Self::Locality => {
                "share of visits to translation pages that a least-recently-used cache finds, \
                 the trace following itself"
            }
            Self::AlignedSequentiality => {
                "bytes written / (bytes written + bytes merged), with logical blocks of 1 MiB, \
                 a log block each, merged when it is full"
            }
            Self::GroupingByDeathTime => {
                "valid bytes / bytes of the closed blocks of 1 MiB that hold any, on a drive \
                 that never cleans, at the end of the trace"
            }
            Self::UniformLifetime => {
                "1 - Gini coefficient of the number of writes to each unit that was written"
            }
        }
    }

    /// Where the lines lie. `spare` is the drive's effective over-provisioning.
    #[must_use]
    pub fn thresholds(self, spare: f64) -> Thresholds {
        match self {
            Self::RequestScale => Thresholds { kept: 0.8, broken: 0.5 },
            Self::Locality => Thresholds { kept: 0.9, broken: 0.5 },
            Self::AlignedSequentiality => Thresholds { kept: 0.8, broken: 0.5 },
            // Never less than what counts as broken, however large the spare.
            Self::GroupingByDeathTime => {
                Thresholds { kept: (1.0 / (1.0 + spare.max(0.0))).max(0.5), broken: 0.5 }
            }
            Self::UniformLifetime => Thresholds { kept: 0.7, broken: 0.4 },
        }
    }

    /// Why the lines lie where they do, and who says so.
    #[must_use]
    pub fn thresholds_why(self) -> &'static str {
        match self {
            Self::RequestScale => {
                "full scale is a flash page for every channel: less leaves some channel idle \
                 (\"Designing SSD-friendly applications\", rule 6: page size x parallelism); \
                 broken is half of that, kept four fifths"
            }
            Self::Locality => {
                "each miss is a flash read more, so 0.5 costs every second visit twice; kept is \
                 one miss in ten (cost model of DFTL, ASPLOS'09; a tenth of the map cached as in \
                 the EuroSys'17 paper's runs)"
            }
            Self::AlignedSequentiality => {
                "0.5 is an unaligned ratio of 1, the line in the EuroSys'17 paper's figures: as \
                 much is merged as is written; kept is a quarter of that"
            }
            Self::GroupingByDeathTime => {
                "kept from 1 / (1 + the drive's effective over-provisioning) on: the spare holds \
                 all garbage and cleaning need not copy; broken below 0.5: as much garbage as \
                 data (zombie curves of the EuroSys'17 paper)"
            }
            Self::UniformLifetime => {
                "0.4 is the 80/20 rule (a fifth of the units takes four fifths of the writes); \
                 kept from 0.7 on is our choice, no source gives one"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_at_the_lines() {
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
