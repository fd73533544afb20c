//! The results of the five rules.

use prism_base::Bytes;

use super::alignment::AlignmentFindings;
use super::grouping::{SpaceSample, Zombies};
use super::lifetime::LifetimeFindings;
use super::locality::LocalityFindings;
use super::offenders::Offender;
use super::request_scale::RequestScale;
use super::rule::{Rule, Thresholds, Verdict};
use super::subject::Subject;

/// The result of the rule of grouping by death time.
#[derive(Clone, Debug)]
pub struct GroupingFindings {
    /// Blocks of a drive with one stream.
    pub unsegmented: Zombies,
    /// Blocks of a drive that writes each segment of addresses to separate blocks.
    pub segmented: Zombies,
    /// Valid bytes / size of the closed blocks that hold valid data, on the drive with one
    /// stream; `None` if no closed block holds valid data.
    pub density: Option<f64>,
    /// As `density`, on the drive with segments.
    pub density_segmented: Option<f64>,
    /// Bytes written, in whole units.
    pub written: Bytes,
    /// Bytes that hold data at the end.
    pub mapped: Bytes,
    /// Bytes written over data.
    pub overwritten: Bytes,
    /// Bytes of data discarded.
    pub discarded: Bytes,
    /// Bytes that hold data at the end of the judged part of the trace and are discarded in
    /// the part after it: mapped, but no longer live. 0 if the trace ends with the judged
    /// part.
    pub discarded_later: Bytes,
    /// Mapped bytes and the blocks that hold them, as writing goes on.
    pub history: Vec<SpaceSample>,
}

/// The results of all rules.
#[derive(Debug)]
pub struct Findings {
    /// The properties of the drive.
    pub subject: Subject,
    /// Request scale.
    pub request_scale: RequestScale,
    /// Locality.
    pub locality: LocalityFindings,
    /// Aligned sequentiality, for each of the two sizes of logical blocks.
    pub alignment: [AlignmentFindings; 2],
    /// Grouping by death time.
    pub grouping: GroupingFindings,
    /// Uniform data lifetime.
    pub lifetime: LifetimeFindings,
    /// Whether all touched units were tracked; false if the trace touches more than 2^31
    /// units (8 TiB in units of 4 KiB).
    pub exact: bool,
    /// The worst offenders against each rule, in the order of [`Rule::ALL`].
    pub offenders: [Vec<Offender>; 5],
}

/// Fewer visits to the map, or units that are written, than this show no distribution.
pub const FEW: u64 = 10;

impl Findings {
    /// The score of `rule`, from 0 to 1; `None` if the trace does not determine it.
    #[must_use]
    pub fn score(&self, rule: Rule) -> Option<f64> {
        match rule {
            Rule::RequestScale => self.request_scale.score(),
            Rule::Locality => {
                self.locality.score().filter(|_| self.locality.distances.visits() >= FEW)
            }
            Rule::AlignedSequentiality => self.alignment[1].score(),
            Rule::GroupingByDeathTime => self.grouping.density,
            Rule::UniformLifetime => self.lifetime.score().filter(|_| self.lifetime.units >= FEW),
        }
    }

    /// The thresholds of `rule`.
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
