//! The findings as sentences with the numbers of the trace.

use prism_base::Bytes;
use prism_contract::rules::{Dimension, Findings, Rule, Side, Verdict};
use prism_contract::what_if::{Change, Comparison};
use prism_report::Unit;

use super::{COMPARED, Compared, Contract, LIFETIME, P99};

/// The findings on `rule` in one or two sentences: the numbers and the worst offenders.
#[must_use]
pub fn finding(contract: &Contract, rule: Rule) -> String {
    let findings = &contract.findings;
    let mut text = match rule {
        Rule::RequestScale => request_scale(findings),
        Rule::Locality => locality(findings),
        Rule::AlignedSequentiality => alignment(findings),
        Rule::GroupingByDeathTime => grouping(findings),
        Rule::UniformLifetime => lifetime(findings),
    };
    if findings.verdict(rule) != Verdict::Kept
        && let Some(worst) = worst(findings, rule)
    {
        text.push(' ');
        text.push_str(&worst);
    }
    text
}

fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

fn percent(share: f64) -> String {
    Unit::Percent.format(share)
}

/// `amount` of `thing`, in the singular or plural.
fn counted(amount: f64, thing: &str) -> String {
    match Unit::Ratio.format(amount) {
        one if one == "1" => format!("1 {thing}"),
        more => format!("{more} {thing}s"),
    }
}

fn request_scale(findings: &Findings) -> String {
    let rule = &findings.request_scale;
    let side = |name: &str, side: &Side| {
        let p50 = side.sizes.median()?;
        let depth = side.depth.quantile(0.5).filter(|_| rule.depth_known);
        let depth = depth.map(|d| format!(" with {d} outstanding")).unwrap_or_default();
        Some(format!("{name} {}{depth}", size(p50)))
    };
    let sides = [side("write", &rule.writes), side("read", &rule.reads)];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    if sides.is_empty() {
        return "Nothing is read or written.".into();
    }
    let barrier = rule.kib_between_barriers.quantile(0.5);
    let barrier = barrier
        .map(|kib| format!("; {} written between barriers", size(kib * 1024)))
        .unwrap_or_default();
    let scale = size(rule.full_scale().0);
    format!("Median {}{barrier}. {scale} at once would occupy all channels.", sides.join(", "))
}

fn locality(findings: &Findings) -> String {
    let rule = &findings.locality;
    let Some(ratio) = rule.miss_ratio(rule.cache_pages) else {
        return "Nothing is accessed.".into();
    };
    if findings.score(Rule::Locality).is_none() {
        let visits = counted(rule.distances.visits() as f64, "visit");
        return format!("{visits} to the map, too few to judge.");
    }
    let share = rule.cache_pages as f64 / findings.subject.map_pages as f64;
    let one = ((findings.subject.map_pages as f64 * 0.01).round() as u64).max(1);
    let tight = rule.miss_ratio(one).unwrap_or(0.0);
    format!(
        "A cache of {} of the map misses {} of visits, and a cache of {} misses {}.",
        percent(share.min(1.0)),
        percent(ratio),
        percent(one as f64 / findings.subject.map_pages as f64),
        percent(tight),
    )
}

fn alignment(findings: &Findings) -> String {
    let [small, large] = &findings.alignment;
    let ratio = |value: Option<f64>| value.map_or("?".into(), |r| Unit::Ratio.format(r));
    match large.unaligned_by_traffic() {
        None => "Nothing is written.".into(),
        Some(merged) => format!(
            "Block-level mapping in single blocks of {} merges {} per byte written ({} with {}), \
             {}.",
            large.block,
            counted(merged, "byte"),
            ratio(small.unaligned_by_traffic()),
            small.block,
            large.unaligned_by_live().map_or("no data is valid at the end".into(), |merged| {
                format!("{} per valid byte", Unit::Ratio.format(merged))
            }),
        ),
    }
}

fn grouping(findings: &Findings) -> String {
    let rule = &findings.grouping;
    let Some(density) = rule.density else {
        return if rule.written.0 == 0 {
            "Nothing is written.".into()
        } else if rule.unsegmented.closed.iter().all(|&blocks| blocks == 0) {
            "Less than a block is written.".into()
        } else {
            "No filled block holds valid data at the end.".into()
        };
    };
    let blocks = &rule.unsegmented;
    let mut text = format!(
        "{} of {} blocks with valid data also hold garbage; {} of their space is valid{}.",
        blocks.mixed_blocks(),
        blocks.held_blocks(),
        percent(density),
        rule.density_segmented
            .map(|d| format!(", {} with segments", percent(d)))
            .unwrap_or_default(),
    );
    if rule.discarded_later.0 > 0 {
        text.push_str(&format!(
            " Of {} mapped at the end, {} are discarded only later.",
            rule.mapped, rule.discarded_later
        ));
    }
    text
}

fn lifetime(findings: &Findings) -> String {
    let rule = &findings.lifetime;
    let (Some(top), Some(&(most, _))) = (rule.share_of_top(0.1), rule.counts.last()) else {
        return "Nothing is written.".into();
    };
    if findings.score(Rule::UniformLifetime).is_none() {
        return format!("{} written, too few to judge.", counted(rule.units as f64, "unit"));
    }
    format!(
        "The most written tenth of the units takes {} of the writes; a unit is written {} on \
         average, at most {}.",
        percent(top),
        counted(rule.mean(), "time"),
        counted(f64::from(most), "time"),
    )
}

/// The worst offenders of the two most specific kinds: file, process, range or operation.
fn worst(findings: &Findings, rule: Rule) -> Option<String> {
    let offenders = findings.offenders(rule);
    let mut parts = Vec::new();
    for by in [Dimension::File, Dimension::Process, Dimension::Range, Dimension::Operation] {
        let found = offenders.iter().find(|offender| offender.by == by);
        if let Some(offender) = found
            && parts.len() < 2
        {
            parts.push(format!("{} {} ({})", by.name(), offender.name, percent(offender.share)));
        }
    }
    (!parts.is_empty()).then(|| format!("Worst: {}.", parts.join(", ")))
}

/// The rule, its score, its thresholds and the numbers behind a verdict, as names and values.
#[must_use]
pub fn details(contract: &Contract, rule: Rule) -> Vec<(String, String)> {
    let findings = &contract.findings;
    let thresholds = findings.thresholds(rule);
    let mut details = vec![
        ("the rule".to_owned(), rule.statement().to_owned()),
        ("the score".to_owned(), format!("{}.", rule.score_means())),
        (
            "the thresholds".to_owned(),
            format!(
                "kept from a score of {:.2}, broken below {:.2}: {}.",
                thresholds.kept,
                thresholds.broken,
                rule.thresholds_why()
            ),
        ),
    ];
    if let Some(price) = contract.price(rule) {
        details.push(("the price".into(), self::price(price)));
    }
    details.extend(more(findings, rule));
    details
}

/// What breaking a rule costs, as a sentence.
#[must_use]
pub fn price(price: &Comparison) -> String {
    let bound = if price.change.upper_bound() { " (an upper bound)" } else { "" };
    // Levelling does not keep the rule: it is what a drive does when the rule is broken.
    let what = match price.change {
        Change::Levelling { .. } => "on a drive that levels wear",
        _ => "if the rule is kept",
    };
    let mut text = format!("{what}{bound}, {}: {}.", price.change.sentence(), comparison(price));
    if let Some(note) = &price.note {
        text.push(' ');
        text.push_str(note);
    }
    text
}

/// A figure before and after a change: what it is of, and at which pace it was measured.
pub(super) fn figure(compared: &Compared, what_if: &Comparison) -> String {
    let Comparison { change, before, after, loop_depth, .. } = what_if;
    let show =
        |figures| compared.shown(figures).map_or("-".to_owned(), |v| compared.unit.format(v));
    let (name, before, after) = (compared.name, show(before), show(after));
    match (change, loop_depth) {
        (Change::Levelling { .. }, _) if compared.key == LIFETIME => {
            format!("{name} of the block erased most at least {after} instead of {before}")
        }
        (_, Some(depth)) if compared.key == P99 => {
            format!("{name} {after} instead of {before} at pace closed:{depth}")
        }
        _ => format!("{name} {after} instead of {before}"),
    }
}

/// The figures before and after a change that differ, and what they are of.
pub(super) fn compared(what_if: &Comparison) -> String {
    let Comparison { before, after, note, .. } = what_if;
    let differing = COMPARED.iter().filter(|one| one.change(before, after).is_some());
    let mut figures: Vec<String> = differing.map(|one| figure(one, what_if)).collect();
    if figures.is_empty() {
        figures.push("no figure changes by more than 5 % (p99: 25 %)".to_owned());
    }
    let note = note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
    format!("{}.{note}", figures.join(", "))
}

fn comparison(what_if: &Comparison) -> String {
    let known = |compared: &&Compared| {
        [&what_if.before, &what_if.after].into_iter().all(|side| compared.shown(side).is_some())
    };
    let figures = COMPARED.iter().filter(known).map(|one| figure(one, what_if));
    figures.collect::<Vec<_>>().join(", ")
}

/// Further numbers of a rule.
fn more(findings: &Findings, rule: Rule) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    match rule {
        Rule::RequestScale => {
            let rule = &findings.request_scale;
            let ratio = rule.discard_ratio().map_or("-".into(), percent);
            vec![
                pair(
                    "score by bytes",
                    rule.score_by_bytes().map_or("-".into(), |s| format!("{s:.2}")),
                ),
                pair("discards", format!("{} ({ratio} of requests)", rule.discards)),
                pair(
                    "barriers",
                    format!("{} flushes, {} durable writes", rule.flushes, rule.durable_writes),
                ),
            ]
        }
        Rule::Locality => {
            let rule = &findings.locality;
            vec![
                pair("translation pages visited", rule.distances.pages().to_string()),
                pair(
                    "misses by unit lookups",
                    rule.miss_ratio_by_lookups(rule.cache_pages).map_or("-".into(), percent),
                ),
            ]
        }
        Rule::AlignedSequentiality => {
            let merges = findings.alignment[1].when_full;
            vec![pair(
                "merges of log blocks",
                format!(
                    "{} switch, {} partial, {} full",
                    merges.switch, merges.partial, merges.full
                ),
            )]
        }
        Rule::GroupingByDeathTime => {
            let rule = &findings.grouping;
            vec![
                pair("mapped at the end", rule.mapped.to_string()),
                pair("overwritten", rule.overwritten.to_string()),
                pair("discarded", rule.discarded.to_string()),
                pair("blocks still open", rule.unsegmented.open_blocks().to_string()),
            ]
        }
        Rule::UniformLifetime => {
            let gini = findings.lifetime.gini();
            vec![pair("Gini coefficient", gini.map_or("-".into(), |g| format!("{g:.2}")))]
        }
    }
}
