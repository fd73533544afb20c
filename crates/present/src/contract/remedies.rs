//! What to change first: for each rule that is not kept the change that helps most, and the design
//! rules that the trace violates.

use prism_contract::advice::{Advice, Verdict as DesignVerdict};
use prism_contract::rules::{Rule, Verdict};
use prism_contract::what_if::{Change, Comparison, FigureSource};
use prism_report::{Block, Section, Unit};

use super::sentences::figure;
use super::tables::capital;
use super::{COMPARED, Compared, Contract};

/// A change, and how much better it makes each figure.
struct Remedy<'a> {
    what_if: &'a Comparison,
    /// Figures that improve or worsen, with the factor: above 1 is better.
    factors: Vec<(&'static Compared, f64)>,
}

impl<'a> Remedy<'a> {
    fn of(what_if: &'a Comparison) -> Self {
        let factor = |compared: &'static Compared| {
            Some((compared, compared.change(&what_if.before, &what_if.after)?))
        };
        Self { what_if, factors: COMPARED.iter().filter_map(factor).collect() }
    }

    /// The largest gain. Write amplification counts by what it does to the lifetime.
    fn best(&self) -> f64 {
        let counted =
            self.factors.iter().filter(|(compared, _)| compared.key != "write_amplification");
        counted.map(|&(_, gain)| gain).fold(1.0, f64::max)
    }

    /// What the change does to each figure, with what it is if `explained`.
    fn sentence(&self, explained: bool) -> String {
        let change = &self.what_if.change;
        let factors = self.factors.iter().map(|&(compared, gain)| match compared.key {
            "throughput" if gain > 1.0 => {
                format!("the same work {} times as fast", Unit::Ratio.format(gain))
            }
            "throughput" => {
                format!("the same work {} times as slow", Unit::Ratio.format(1.0 / gain))
            }
            _ => figure(compared, self.what_if),
        });
        let (gains, losses): (Vec<_>, Vec<_>) =
            factors.zip(&self.factors).partition(|(_, (_, gain))| *gain > 1.0);
        let join = |all: Vec<(String, _)>| {
            all.into_iter().map(|(text, _)| text).collect::<Vec<_>>().join(", ")
        };
        let but = if gains.is_empty() || losses.is_empty() { "" } else { ", but " };
        let factors = format!("{}{but}{}", join(gains), join(losses));
        let bound = if change.upper_bound() { ", an upper bound" } else { "" };
        let what = if explained { format!(" ({})", change.sentence()) } else { String::new() };
        format!("{}{what}{bound}: {factors}.", change.name())
    }
}

/// Whether a change can be made to the drive or the application of the report. The others show
/// what another kind of drive would cost. Levelling is compared over more passes on the same drive.
fn applies(what_if: &Comparison) -> bool {
    what_if.against == FigureSource::Main || matches!(what_if.change, Change::Levelling { .. })
}

/// The section on what to change first; `None` if there is nothing to say.
#[must_use]
pub fn section(contract: &Contract, too_short: Option<&str>) -> Option<Section> {
    let mut remedies: Vec<Remedy<'_>> =
        contract.what_ifs.iter().filter(|what_if| applies(what_if)).map(Remedy::of).collect();
    remedies.retain(|remedy| remedy.best() > 1.0);
    remedies.sort_by(|a, b| b.best().total_cmp(&a.best()));
    let (mut notes, shown) = of_rules(contract, &remedies);
    let rest = remedies.iter().filter(|remedy| !shown.contains(&remedy.what_if.change.key()));
    notes.extend(rest.take(MORE).map(|remedy| format!("Also: {}", remedy.sentence(false))));
    let simulated = !notes.is_empty();
    notes.extend(contract.advice.iter().filter_map(violated));
    let lead = match too_short {
        Some(why) => {
            format!("{why}. What is said of write amplification and lifetime is weak.")
        }
        None if !simulated => "The design rules that the trace violates.".to_owned(),
        None => {
            "The rules that are not kept, the largest gain first; then other changes. Each change \
                 alone."
                .to_owned()
        }
    };
    let any = !notes.is_empty() || too_short.is_some();
    let mut section = Section::new("What to change first", lead);
    if !notes.is_empty() {
        section.push(Block::Notes(notes));
    }
    any.then_some(section)
}

/// A sentence for each rule that is not kept, the largest gain first, and the keys of the changes
/// that they name.
fn of_rules(contract: &Contract, remedies: &[Remedy<'_>]) -> (Vec<String>, Vec<&'static str>) {
    let (mut notes, mut shown) = (Vec::new(), Vec::new());
    let mut failed: Vec<(Rule, &str, Option<&Remedy<'_>>)> = Vec::new();
    for rule in Rule::ALL {
        let verdict = match contract.findings.verdict(rule) {
            Verdict::Broken => "broken",
            Verdict::Strained => "strained",
            Verdict::Kept | Verdict::Unknown => continue,
        };
        failed.push((rule, verdict, best_of(remedies, rule)));
    }
    let gain = |remedy: Option<&Remedy<'_>>| remedy.map_or(1.0, Remedy::best);
    failed.sort_by(|a, b| gain(b.2).total_cmp(&gain(a.2)));
    for (rule, verdict, remedy) in failed {
        let what_ifs = &contract.what_ifs;
        match remedy {
            Some(remedy) => {
                shown.push(remedy.what_if.change.key());
                let what = capital(&remedy.sentence(true));
                notes.push(format!("{} is {verdict}. {what}", rule.name()));
            }
            None if what_ifs.iter().any(|what_if| what_if.change.rule() == rule) => {
                let elsewhere = |price: &&Comparison| {
                    // The drive has no block-level mapping: its price is no advice.
                    !applies(price) && price.change != Change::PageMap
                };
                let price = contract.price(rule).filter(elsewhere).map(Remedy::of);
                let price = price.filter(|price| price.best() > 1.0);
                let price =
                    price.map(|price| format!(" On other drives, {}", price.sentence(true)));
                notes.push(format!(
                    "{} is {verdict}, but no simulated change of the application or of this drive \
                     gains much.{}",
                    rule.name(),
                    price.unwrap_or_default()
                ));
            }
            None => {}
        }
    }
    (notes, shown)
}

/// The change that helps most to keep `rule`: one that can be made, if there is one. `remedies` are
/// in order.
fn best_of<'a, 'b>(remedies: &'b [Remedy<'a>], rule: Rule) -> Option<&'b Remedy<'a>> {
    // More spare flash helps every trace and keeps no rule.
    let keeps = |change: &Change| {
        change.rule() == rule && !matches!(change, Change::OverProvisioning { .. })
    };
    let mut all = remedies.iter().filter(|remedy| keeps(&remedy.what_if.change));
    let real = all.clone().find(|remedy| !remedy.what_if.change.upper_bound());
    real.or_else(|| all.next())
}

/// Changes that are listed beyond the best one of each rule.
const MORE: usize = 2;

/// The first sentence; the page has the others.
fn first(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

fn violated(advice: &Advice) -> Option<String> {
    (advice.verdict == DesignVerdict::Violates)
        .then(|| format!("Design rule \"{}\" is violated: {}.", advice.rule, first(&advice.advice)))
}
