//! What the contract says of a trace: verdicts, offenders, what-ifs, as text and as JSON.

pub mod advice;
pub mod charts;
pub mod fail_on;
pub mod json;
pub mod sentences;
pub mod tables;
pub mod terms;

use prism_base::Bytes;
use prism_contract::advice::Advice;
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{Findings, Rule, Verdict as RuleVerdict};
use prism_contract::terms::Term;
use prism_contract::what_if::{Comparison, Figures, Skipped};
use prism_report::{Block, Grade, Section, Unit, Verdict};

use crate::drive::DAY_NS;

/// The findings of a trace on a drive, and what was simulated of its fixes.
pub struct Contract {
    /// The rules.
    pub findings: Findings,
    /// The blocks of the simulated drive at the end.
    pub blocks: DriveBlocks,
    /// Fixes that were simulated.
    pub what_ifs: Vec<Comparison>,
    /// Fixes that were not, and why.
    pub skipped: Vec<Skipped>,
    /// Why no fix could be simulated at all, as a sentence.
    pub unsimulated: Option<&'static str>,
    /// What storage is taken to be, and whether it is.
    pub terms: Vec<Term>,
    /// The design rules.
    pub advice: Vec<Advice>,
}

/// A figure by which a change is judged.
struct Compared {
    /// In sentences.
    name: &'static str,
    /// In the JSON of a price.
    key: &'static str,
    /// The head of its columns; none if no table has it.
    column: Option<&'static str>,
    unit: Unit,
    /// What one of `of` is in the base unit of `unit`.
    scale: f64,
    of: fn(&Figures) -> Option<f64>,
    less_is_better: bool,
}

const COMPARED: [Compared; 4] = [
    Compared {
        name: "write amplification",
        key: "write_amplification",
        column: Some("WA"),
        unit: Unit::Ratio,
        scale: 1.0,
        of: |figures| figures.write_amplification,
        less_is_better: true,
    },
    Compared {
        name: "p99",
        key: "latency_p99",
        column: Some("p99"),
        unit: Unit::Nanos,
        scale: 1.0,
        of: |figures| figures.p99.map(|p99| p99.0 as f64),
        less_is_better: true,
    },
    Compared {
        name: "throughput",
        key: "throughput",
        column: None,
        unit: Unit::BytesPerSec,
        scale: 1.0,
        of: |figures| Some(figures.bytes_per_second),
        less_is_better: false,
    },
    Compared {
        name: "lifetime",
        key: "lifetime",
        column: Some("life"),
        unit: Unit::Nanos,
        scale: DAY_NS,
        of: |figures| figures.lifetime_days,
        less_is_better: false,
    },
];

impl Compared {
    /// The value in the base unit.
    fn shown(&self, figures: &Figures) -> Option<f64> {
        (self.of)(figures).map(|value| value * self.scale)
    }

    /// How many times better `after` is.
    fn gain(&self, before: &Figures, after: &Figures) -> Option<f64> {
        let (before, after) = ((self.of)(before)?, (self.of)(after)?);
        let gain = if self.less_is_better { before / after } else { after / before };
        Some(gain).filter(|gain| gain.is_finite())
    }
}

/// The changes that show what a rule costs, the best first: the rule broken as it is,
/// against the rule kept.
fn prices_of(rule: Rule) -> &'static [&'static str] {
    match rule {
        Rule::RequestScale => &["depth", "merge"],
        Rule::Locality => &["map-cache"],
        Rule::AlignedSequentiality => &["page-map", "align-stripe", "align-block", "align-page"],
        Rule::GroupingByDeathTime => &["streams", "hot-cold", "discards"],
        Rule::UniformLifetime => &["levelling"],
    }
}

impl Contract {
    /// What breaking `rule` costs, as far as it was simulated.
    #[must_use]
    pub fn price(&self, rule: Rule) -> Option<&Comparison> {
        let named = |key: &&str| self.what_ifs.iter().find(|what_if| what_if.change.key() == *key);
        prices_of(rule).iter().find_map(named)
    }

    /// The verdicts, one line a rule.
    #[must_use]
    pub fn verdicts(&self) -> Section {
        let broken = self.count(RuleVerdict::Broken);
        let strained = self.count(RuleVerdict::Strained);
        let unknown = self.count(RuleVerdict::Unknown);
        let lead = match (broken, strained) {
            (0, 0) if unknown == 5 => "The trace tells nothing of the contract.".to_owned(),
            (0, 0) if unknown > 0 => {
                format!("No rule of the contract is broken; the trace does not tell of {unknown}.")
            }
            (0, 0) => "No rule of the unwritten contract of SSDs is broken.".to_owned(),
            (0, n) => format!("No rule of the contract is broken; {n} of 5 strained."),
            (n, 0) => format!("{n} of 5 rules of the contract are broken."),
            (n, m) => format!("{n} of 5 rules of the contract are broken, {m} strained."),
        };
        let lead = if self.findings.exact {
            lead
        } else {
            format!(
                "{lead} The trace writes to more places than are followed: those it came to last \
                 count for request scale and locality only."
            )
        };
        let mut section = Section::new("The unwritten contract", lead);
        let one = |rule| Verdict {
            name: Rule::name(rule).into(),
            grade: match self.findings.verdict(rule) {
                RuleVerdict::Kept => Grade::Kept,
                RuleVerdict::Strained => Grade::Strained,
                RuleVerdict::Broken => Grade::Broken,
                RuleVerdict::Unknown => Grade::Unknown,
            },
            score: self.findings.score(rule),
            sentence: sentences::finding(self, rule),
            details: sentences::details(self, rule),
        };
        section.push(Block::Verdicts(Rule::ALL.into_iter().map(one).collect()));
        section
    }

    fn count(&self, verdict: RuleVerdict) -> usize {
        Rule::ALL.into_iter().filter(|&rule| self.findings.verdict(rule) == verdict).count()
    }

    /// The sections that only the page has: who it was, and the charts.
    #[must_use]
    pub fn sections(&self, capacity: Bytes) -> Vec<Section> {
        let mut who = Section::new(
            "Who breaks the rules",
            "Shares of each rule's violation, in the rule's own measure; a share is of all that \
             breaks the rule, however little that is.",
        );
        for rule in Rule::ALL {
            if !self.findings.offenders(rule).is_empty() {
                who.push(Block::Table(tables::offenders(&self.findings, rule)));
            }
        }
        let mut all = vec![who];
        all.extend(charts::sections(self, capacity));
        all
    }
}
