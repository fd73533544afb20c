//! The report on a trace: everything that was analysed, for a screen, a page and programs.

use prism_report::Document;
use serde::Serialize;

use crate::against::{Against, AgainstObject};
use crate::analysis::Analysis;
use crate::contract::{
    AdviceObject, LeftOutObject, RulesObject, TermObject, WhatIfObject, advice, tables, terms,
};
use crate::drive::{ReportObject, document};
use crate::zoned::ZonedObject;

/// Everything that the JSON of a report has.
#[derive(Serialize)]
pub struct Object {
    #[serde(flatten)]
    report: ReportObject,
    rules: RulesObject,
    what_if: Vec<WhatIfObject>,
    what_if_left_out: Vec<LeftOutObject>,
    terms: Vec<TermObject>,
    advice: Vec<AdviceObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zoned: Option<ZonedObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<AgainstObject>,
}

/// The report for programs.
#[must_use]
pub fn object(analysis: &Analysis, against: Option<&Against>) -> Object {
    Object {
        report: ReportObject::new(&analysis.facts()),
        rules: RulesObject::new(&analysis.contract),
        what_if: WhatIfObject::all(&analysis.contract),
        what_if_left_out: LeftOutObject::all(&analysis.contract),
        terms: TermObject::all(&analysis.contract.terms),
        advice: AdviceObject::all(&analysis.contract.advice),
        zoned: analysis.zoned.as_ref().map(ZonedObject::new),
        against: against.map(Against::object),
    }
}

/// The report for a screen, and for a page.
#[must_use]
pub fn documents(analysis: &Analysis, against: Option<&Against>) -> (Document, Document) {
    let facts = analysis.facts();
    let (contract, head) = (&analysis.contract, document::head(&facts));
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
    short = short.with(document::brief(&facts));
    short.sections.extend(document::aged(&facts));
    short.sections.extend(tables::section(contract, false));
    short = short.with(document::limits(&facts));
    long = long.with(document::summary(&facts));
    long.sections.extend(tables::section(contract, true));
    long = long.with(advice::section(&contract.advice));
    long = long.with(terms::section(&contract.terms));
    long.sections.extend(contract.sections(facts.scaled.device.capacity()));
    long.sections.extend(document::sections(&facts));
    (short, long)
}
