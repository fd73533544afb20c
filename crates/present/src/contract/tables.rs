//! The tables of the contract.

use prism_contract::rules::{Findings, Rule};
use prism_contract::what_if::{Comparison, FigureSource, Figures, Headline, Skipped};
use prism_report::{Block, Column, Section, Table, Unit};

use super::{COMPARED, Contract, sentences};

/// The worst offenders against `rule`.
#[must_use]
pub fn offenders(findings: &Findings, rule: Rule) -> Table {
    let (measure, unit) = match rule {
        Rule::RequestScale => ("requests short of full scale", Unit::Count),
        Rule::Locality => ("misses", Unit::Count),
        Rule::AlignedSequentiality => ("merged", Unit::Bytes),
        Rule::GroupingByDeathTime => ("garbage held captive", Unit::Bytes),
        Rule::UniformLifetime => ("writes above the mean", Unit::Count),
    };
    Table::listing(findings.offenders(rule))
        .text("by", |offender| offender.by.name())
        .text("name", |offender| offender.name.as_str())
        .number("share", Unit::Percent, |offender| offender.share)
        .column(Column::number(measure, unit).key("amount"), |offender| offender.amount)
        .table(format!("{}: the worst offenders", rule.name()))
}

/// The figures of each fix, before and after.
#[must_use]
pub fn what_ifs(all: &[Comparison]) -> Table {
    let mut listing = Table::listing(all).text("change", |what_if| {
        let star = match (what_if.change.upper_bound(), &what_if.note) {
            (true, Some(_)) => " *+",
            (true, None) => " *",
            (false, Some(_)) => " +",
            (false, None) => "",
        };
        format!("{}{star}", what_if.change.name())
    });
    for compared in &COMPARED {
        let (before, after) = compared.columns;
        if let Some(name) = before {
            listing =
                listing.number(name, compared.unit, |what_if| compared.shown(&what_if.before));
        }
        if let Some(name) = after {
            listing = listing.number(name, compared.unit, |what_if| compared.shown(&what_if.after));
        }
    }
    listing
        .number("speed-up", Unit::Ratio, |what_if| {
            what_if.after.speed.bytes_per_second / what_if.before.speed.bytes_per_second
        })
        .whole(
            "Before and after each change: write amplification (WA), p99 of reads and writes, \
             lifetime; speed-up is how many times as fast the same work gets done",
        )
}

/// The section on fixes; if `long`, it describes each fix and lists those left out.
#[must_use]
pub fn section(contract: &Contract, long: bool) -> Option<Section> {
    if contract.what_ifs.is_empty() {
        let mut section = Section::new("What would change", "No change was simulated.");
        let why = contract.unsimulated.map(str::to_owned).into_iter();
        let notes: Vec<String> = why.chain(contract.skipped.iter().map(left_out)).collect();
        let asked = !notes.is_empty();
        section.push(Block::Notes(notes));
        return asked.then_some(section);
    }
    let mut section = Section::new("What would change", lead(&contract.what_ifs));
    // A terminal shows only the changes that matter.
    let shown = |what_if: &Comparison| long || matters(what_if);
    let (some, idle): (Vec<_>, Vec<_>) = contract.what_ifs.iter().cloned().partition(shown);
    // Figures before and after on another drive are not those of the report.
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        some.into_iter().partition(|what_if| what_if.against == FigureSource::Main);
    if !here.is_empty() {
        section.push(what_ifs(&here));
        if !long {
            section.blocks.extend(marked(&here).into_iter().map(Block::Text));
        }
    }
    let texts = elsewhere.iter().map(|what_if| {
        format!("{}: {}", capital(what_if.change.name()), sentences::compared(what_if))
    });
    section.blocks.extend(texts.map(Block::Text));
    if long {
        section.push(Block::Notes(notes(contract)));
    }
    if !idle.is_empty() {
        let names: Vec<_> = idle.iter().map(|what_if| what_if.change.name()).collect();
        section
            .push(Block::Text(format!("No effect above 5 % (25 % on p99): {}.", names.join(", "))));
    }
    Some(section)
}

/// Whether some figure changes enough for a terminal to show it.
fn matters(what_if: &Comparison) -> bool {
    let Comparison { before, after, .. } = what_if;
    COMPARED.iter().any(|compared| {
        let known = |figures| (compared.of)(figures).is_some();
        compared.change(before, after).is_some() || known(before) != known(after)
    })
}

/// What the marks mean.
fn lead(all: &[Comparison]) -> String {
    let mut lead = "Each change alone, on the same trace and drive.".to_owned();
    if all.iter().any(|c| c.change.upper_bound()) {
        lead.push_str(" A * marks an upper bound: it knows the future or gives up a promise.");
    }
    if all.iter().any(|c| c.note.is_some() && c.against == FigureSource::Main) {
        lead.push_str(" A + marks another pace, which is described below the table.");
    }
    lead
}

/// What each mark + stands for, one note for all changes that share it.
fn marked(all: &[Comparison]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for Comparison { change, note, .. } in all {
        let Some(note) = note else { continue };
        match notes.iter_mut().find(|(known, _)| known == note) {
            Some((_, names)) => names.push(change.name()),
            None => notes.push((note, vec![change.name()])),
        }
    }
    notes.into_iter().map(|(note, names)| format!("+ {}: {note}", names.join(", "))).collect()
}

fn notes(contract: &Contract) -> Vec<String> {
    let mut notes = vec![
        "WA is flash bytes programmed per byte that the original trace writes; life is at the \
         original trace's write rate; speed is how many times as fast the same work is done; \
         latencies count from the issue of a changed request, without its wait for other \
         requests before that."
            .to_owned(),
    ];
    for Comparison { change, note, against, .. } in &contract.what_ifs {
        // That of another drive stands with its figures.
        let note = note.as_ref().filter(|_| *against == FigureSource::Main);
        let note = note.map(|note| format!(" {note}")).unwrap_or_default();
        notes.push(format!("{}: {}.{note}", capital(change.name()), change.sentence()));
    }
    notes.extend(contract.what_ifs.iter().filter_map(wear));
    notes.extend(contract.skipped.iter().map(left_out));
    notes
}

fn left_out(Skipped { change, reason }: &Skipped) -> String {
    format!("{}: not simulated because {reason}.", capital(change.name()))
}

/// What a change does to the block erased most, if wear is its headline figure.
fn wear(what_if: &Comparison) -> Option<String> {
    let shown =
        |figures: &Figures| format!("{} times (mean {:.1})", figures.wear.max, figures.wear.mean);
    (what_if.change.headline() == Headline::Wear).then(|| {
        format!(
            "The most erased block is erased {}; to {} would make that {}.",
            shown(&what_if.before),
            what_if.change.name(),
            shown(&what_if.after)
        )
    })
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
