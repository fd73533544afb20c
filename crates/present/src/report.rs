//! The report on a trace: for a terminal, as an HTML page, and as JSON.

use prism_report::{Block, Document, Section};
use serde_json::{Value, json};

use crate::against::Against;
use crate::analysis::Analysis;
use crate::contract::{advice, json as contract_json, remedies, tables, terms};
use crate::drive::charts::with_charts;
use crate::drive::{self, document, faults, limits, wear};
use crate::json::{join, without_null};

/// A report in every form.
#[derive(Clone, Debug)]
pub struct Report {
    /// For programs.
    pub json: Value,
    /// For a terminal.
    pub short: Document,
    /// For an HTML page, with charts.
    pub page: Document,
}

impl Report {
    /// The report on `analysis`, compared with another one, which the user called by that name.
    #[must_use]
    pub fn new(analysis: Analysis, other: Option<(&str, &Analysis)>) -> Self {
        let against = other.map(|(name, other)| Against::new(&analysis, other, name));
        let json = json(&analysis, against.as_ref());
        let (short, long) = documents(&analysis, against.as_ref());
        Self { json, short, page: page(long, analysis) }
    }
}

/// The report as JSON.
#[must_use]
pub fn json(analysis: &Analysis, against: Option<&Against>) -> Value {
    let contract = &analysis.contract;
    let object = json!({
        "rules": contract_json::rules(contract),
        "what_if": contract_json::what_ifs(contract),
        "what_if_left_out": contract_json::left_out(contract),
        "terms": contract_json::terms(contract),
        "advice": contract_json::advice(contract),
        "zoned": analysis.zoned.as_ref().map(|zoned| zoned.json()),
        "against": against.map(Against::json),
    });
    join([drive::json::report(&analysis.facts), without_null(object, &["zoned", "against"])])
}

/// The HTML page: `long` with the charts, after a section that sums up verdict, advice and the two
/// charts that show most.
#[must_use]
pub fn page(long: Document, analysis: Analysis) -> Document {
    let Analysis { facts, contract, charts, .. } = analysis;
    let (sections, first) = charts.sections();
    let lead = format!("{} {}", contract.named(), wear::sentence(&facts));
    let mut glance = Section::new("At a glance", lead);
    let advice = remedies(&contract, facts.too_short().as_deref());
    let notes =
        advice.into_iter().flat_map(|section| section.blocks).find_map(|block| match block {
            Block::Notes(notes) => Some(notes),
            _ => None,
        });
    glance.push(Block::Notes(notes.unwrap_or_default().into_iter().take(GLANCE).collect()));
    glance.blocks.extend(first.into_iter().map(Block::Chart));
    let mut page = with_charts(long, sections);
    page.sections.insert(0, glance);
    page
}

/// Pieces of advice on the first screen.
const GLANCE: usize = 3;

/// The report for a terminal, and for an HTML page.
#[must_use]
pub fn documents(analysis: &Analysis, against: Option<&Against>) -> (Document, Document) {
    let (facts, contract) = (&analysis.facts, &analysis.contract);
    let head = document::head(facts);
    let mut short = head.clone().with(contract.verdicts());
    let mut long = head.with(contract.verdicts());
    if let Some(against) = against {
        short = short.with(against.section());
        long = long.with(against.section());
    }
    if let Some(zoned) = &analysis.zoned {
        short = short.with(zoned.section());
        long = long.with(zoned.section());
    }
    let too_short = facts.too_short();
    let remedies = remedies(contract, too_short.as_deref());
    short = short.with(document::brief(facts));
    short.sections.extend(remedies.clone());
    long.sections.extend(remedies);
    short.sections.extend(faults::section(facts.run()));
    short.sections.extend(tables::section(contract, false));
    short = short.with(limits::section(facts));
    long = long.with(document::summary(facts));
    long.sections.extend(tables::section(contract, true));
    long = long.with(advice::section(&contract.advice));
    long = long.with(terms::section(&contract.terms));
    long.sections.extend(contract.sections(facts.scaled.device.capacity()));
    long.sections.extend(document::sections(facts));
    (short, long)
}
