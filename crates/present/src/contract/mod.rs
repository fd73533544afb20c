//! The contract of a trace: verdicts, offenders and what-ifs, as text and as JSON.

pub mod advice;
pub mod charts;
pub mod fail_on;
pub mod json;
mod remedies;
pub mod sentences;
pub mod tables;
pub mod terms;

use prism_base::Bytes;
use prism_contract::advice::Advice;
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{Findings, Rule, Thresholds, Verdict as RuleVerdict};
use prism_contract::terms::Term;
use prism_contract::what_if::{Comparison, Figures, Skipped};
use prism_report::{Block, Grade, Section, Unit, Verdict};

use crate::drive::DAY_NS;

pub use remedies::section as remedies;

/// The findings of a trace on a drive, and the simulated fixes.
pub struct Contract {
    /// The rules.
    pub findings: Findings,
    /// The blocks of the simulated drive at the end.
    pub blocks: DriveBlocks,
    /// Fixes that were simulated.
    pub what_ifs: Vec<Comparison>,
    /// Fixes that were not simulated, and why.
    pub skipped: Vec<Skipped>,
    /// Why no fix could be simulated at all, as a sentence.
    pub unsimulated: Option<&'static str>,
    /// The assumptions about storage, and whether they hold.
    pub terms: Vec<Term>,
    /// The design rules.
    pub advice: Vec<Advice>,
}

/// A figure that is compared before and after a change.
struct Compared {
    /// Its name in sentences.
    name: &'static str,
    /// Its key in the JSON of a price.
    key: &'static str,
    /// The headings of its columns before and after a change; a table lacks those that are `None`.
    columns: (Option<&'static str>, Option<&'static str>),
    unit: Unit,
    /// The factor from the values of `of` to the base unit of `unit`.
    scale: f64,
    of: fn(&Figures) -> Option<f64>,
    less_is_better: bool,
    /// A smaller factor between two runs is not worth a word: a p99 depends on few requests. It
    /// also has to be beyond what these leave open.
    matters: f64,
}

/// Keys of the figures that are compared.
const P99: &str = "latency_p99";
const LIFETIME: &str = "lifetime";

const COMPARED: [Compared; 4] = [
    Compared {
        name: "write amplification",
        key: "write_amplification",
        columns: (Some("WA before"), Some("WA after")),
        unit: Unit::Ratio,
        scale: 1.0,
        of: |figures| figures.write_amplification,
        less_is_better: true,
        matters: 1.05,
    },
    Compared {
        name: "p99 of reads and writes",
        key: P99,
        columns: (Some("p99 before"), Some("p99 after")),
        unit: Unit::Nanos,
        scale: 1.0,
        of: |figures| figures.speed.p99.map(|p99| p99.0 as f64),
        less_is_better: true,
        matters: 1.25,
    },
    Compared {
        name: "throughput",
        key: "throughput",
        columns: (None, None),
        unit: Unit::BytesPerSec,
        scale: 1.0,
        of: |figures| Some(figures.speed.bytes_per_second),
        less_is_better: false,
        matters: 1.05,
    },
    Compared {
        name: "lifetime",
        key: LIFETIME,
        columns: (None, Some("life after")),
        unit: Unit::Nanos,
        scale: DAY_NS,
        of: |figures| figures.lifetime_days,
        less_is_better: false,
        matters: 1.05,
    },
];

impl Compared {
    /// The value in the base unit.
    fn shown(&self, figures: &Figures) -> Option<f64> {
        (self.of)(figures).map(|value| value * self.scale)
    }

    /// How many times better `after` is, or how many times worse if below 1; `None` if it hardly
    /// differs.
    fn change(&self, before: &Figures, after: &Figures) -> Option<f64> {
        let gain = self.gain(before, after)?;
        if self.key == P99 && !before.speed.p99_differs(&after.speed) {
            return None;
        }
        (!(1.0 / self.matters..=self.matters).contains(&gain)).then_some(gain)
    }

    /// How many times better `after` is.
    fn gain(&self, before: &Figures, after: &Figures) -> Option<f64> {
        let (before, after) = ((self.of)(before)?, (self.of)(after)?);
        let gain = if self.less_is_better { before / after } else { after / before };
        Some(gain).filter(|gain| gain.is_finite())
    }
}

/// `score` in two digits, rounded down where the nearest would earn a better verdict.
fn rounded(score: f64, thresholds: Thresholds) -> f64 {
    let nearest = (score * 100.0).round() / 100.0;
    let same = thresholds.verdict(Some(nearest)) == thresholds.verdict(Some(score));
    if same { nearest } else { (score * 100.0).floor() / 100.0 }
}

/// The changes that show what breaking a rule costs, the most telling first.
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
    /// What breaking `rule` costs, if it was simulated.
    #[must_use]
    pub fn price(&self, rule: Rule) -> Option<&Comparison> {
        let named = |key: &&str| self.what_ifs.iter().find(|what_if| what_if.change.key() == *key);
        prices_of(rule).iter().find_map(named)
    }

    /// Which rules are broken and strained, as sentences.
    #[must_use]
    pub fn named(&self) -> String {
        let of = |verdict: RuleVerdict, word: &str| {
            let with = Rule::ALL.into_iter().filter(|&rule| self.findings.verdict(rule) == verdict);
            let names: Vec<&str> = with.map(Rule::name).collect();
            (!names.is_empty()).then(|| format!("{word}: {}.", names.join(", ").to_lowercase()))
        };
        let both = [of(RuleVerdict::Broken, "Broken"), of(RuleVerdict::Strained, "Strained")];
        let text = both.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if text.is_empty() { self.lead() } else { text }
    }

    /// How many rules are broken, as a sentence.
    #[must_use]
    pub fn lead(&self) -> String {
        let broken = self.count(RuleVerdict::Broken);
        let strained = self.count(RuleVerdict::Strained);
        let unknown = self.count(RuleVerdict::Unknown);
        let lead = match (broken, strained) {
            (0, 0) if unknown == 5 => "The trace decides no rule of the contract.".to_owned(),
            (0, 0) if unknown > 0 => {
                format!("No rule of the contract is broken; {unknown} of 5 are undecided.")
            }
            (0, 0) => "No rule of the unwritten contract of SSDs is broken.".to_owned(),
            (0, n) => format!("No rule of the contract is broken; {n} of 5 strained."),
            (1, 0) => "1 of 5 rules of the contract is broken.".to_owned(),
            (1, m) => format!("1 of 5 rules of the contract is broken, {m} strained."),
            (n, 0) => format!("{n} of 5 rules of the contract are broken."),
            (n, m) => format!("{n} of 5 rules of the contract are broken, {m} strained."),
        };
        if self.findings.exact {
            return lead;
        }
        format!(
            "{lead} The trace writes to more addresses than Prism tracks: writes to the addresses \
             beyond that limit count only for request scale and locality."
        )
    }

    /// The verdicts, one line per rule.
    #[must_use]
    pub fn verdicts(&self) -> Section {
        let kept = |rule: Rule| {
            let limits = self.findings.thresholds(rule);
            let [kept, broken] = [limits.kept, limits.broken].map(|at| Unit::Ratio.format(at));
            format!("{} {kept} / {broken}", rule.name().to_lowercase())
        };
        let kept: Vec<String> = Rule::ALL.into_iter().map(kept).collect();
        let lead = format!(
            "{} Scores from which kept / below which broken: {}.",
            self.lead(),
            kept.join(", ")
        );
        let mut section = Section::new("The unwritten contract", lead);
        let one = |rule| Verdict {
            name: Rule::name(rule).into(),
            grade: match self.findings.verdict(rule) {
                RuleVerdict::Kept => Grade::Kept,
                RuleVerdict::Strained => Grade::Strained,
                RuleVerdict::Broken => Grade::Broken,
                RuleVerdict::Unknown => Grade::Unknown,
            },
            score: self.shown_score(rule),
            sentence: sentences::finding(self, rule),
            details: sentences::details(self, rule),
        };
        section.push(Block::Verdicts(Rule::ALL.into_iter().map(one).collect()));
        section
    }

    /// The score in two digits, so that it is on the same side of the thresholds as it is in full.
    fn shown_score(&self, rule: Rule) -> Option<f64> {
        let score = self.findings.score(rule)?;
        Some(rounded(score, self.findings.thresholds(rule)))
    }

    fn count(&self, verdict: RuleVerdict) -> usize {
        Rule::ALL.into_iter().filter(|&rule| self.findings.verdict(rule) == verdict).count()
    }

    /// The sections that only the HTML page has: the offenders and the charts.
    #[must_use]
    pub fn sections(&self, capacity: Bytes) -> Vec<Section> {
        let mut offenders = Section::new(
            "Who breaks the rules",
            "Shares of each rule's violations, in the rule's own measure. A share is of all \
             violations of the rule, however few these are.",
        );
        for rule in Rule::ALL {
            if !self.findings.offenders(rule).is_empty() {
                offenders.push(Block::Table(tables::offenders(&self.findings, rule)));
            }
        }
        let mut all = vec![offenders];
        all.extend(charts::sections(self, capacity));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_score_has_the_verdict_of_the_full_one() {
        let thresholds = Rule::RequestScale.thresholds(0.0);
        let check = |score, shown| assert_eq!(rounded(score, thresholds), shown, "{score}");
        check(0.499, 0.49);
        check(0.5, 0.5);
        check(0.7999, 0.79);
        check(0.666, 0.67);
        check(1.0, 1.0);
    }
}
