//! What the rules found.

use prism_base::Bytes;

use super::alignment::AlignmentFindings;
use super::grouping::{SpaceSample, Zombies};
use super::lifetime::LifetimeFindings;
use super::locality::LocalityFindings;
use super::offenders::Offender;
use super::request_scale::RequestScale;
use super::rule::{Rule, Thresholds, Verdict};
use super::subject::Subject;

/// Garbage among data.
#[derive(Clone, Debug)]
pub struct GroupingFindings {
    /// Blocks of a drive with one stream.
    pub unsegmented: Zombies,
    /// Blocks of a drive whose segments of addresses have blocks of their own.
    pub segmented: Zombies,
    /// Valid bytes / bytes of the closed blocks that hold any, of the first.
    pub density: Option<f64>,
    /// The same of the second.
    pub density_segmented: Option<f64>,
    /// Bytes written, in whole units.
    pub written: Bytes,
    /// Bytes that hold data at the end.
    pub mapped: Bytes,
    /// Bytes written over data.
    pub overwritten: Bytes,
    /// Bytes of data discarded.
    pub discarded: Bytes,
    /// Bytes that hold data at the end and are discarded in what comes after the judged
    /// part of the trace: mapped, but no longer live. 0 where nothing comes after it.
    pub discarded_later: Bytes,
    /// How it went.
    pub history: Vec<SpaceSample>,
}

/// All of it.
#[derive(Debug)]
pub struct Findings {
    /// The drive's numbers.
    pub subject: Subject,
    /// Request scale.
    pub request_scale: RequestScale,
    /// Locality.
    pub locality: LocalityFindings,
    /// Aligned sequentiality, with logical blocks of each of the two sizes.
    pub alignment: [AlignmentFindings; 2],
    /// Grouping by death time.
    pub grouping: GroupingFindings,
    /// Uniform data lifetime.
    pub lifetime: LifetimeFindings,
    /// Whether every unit was followed; false beyond 8 TiB of touched units of 4 KiB.
    pub exact: bool,
    /// The worst offenders against each rule, in the order of [`Rule::ALL`].
    pub offenders: [Vec<Offender>; 5],
}

impl Findings {
    /// The score of `rule`, from 0 to 1; none where the trace does not tell.
    #[must_use]
    pub fn score(&self, rule: Rule) -> Option<f64> {
        match rule {
            Rule::RequestScale => self.request_scale.score(),
            Rule::Locality => self.locality.score(),
            Rule::AlignedSequentiality => self.alignment[1].score(),
            Rule::GroupingByDeathTime => self.grouping.density,
            Rule::UniformLifetime => self.lifetime.score(),
        }
    }

    /// Where the lines of `rule` lie.
    #[must_use]
    pub fn thresholds(&self, rule: Rule) -> Thresholds {
        rule.thresholds(self.subject.spare)
    }

    /// The verdict on `rule`.
    #[must_use]
    pub fn verdict(&self, rule: Rule) -> Verdict {
        self.thresholds(rule).verdict(self.score(rule))
    }

    /// The worst offenders against `rule`.
    #[must_use]
    pub fn offenders(&self, rule: Rule) -> &[Offender] {
        &self.offenders[rule as usize]
    }
}
