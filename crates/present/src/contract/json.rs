//! `rules` and `what_if` of the JSON of a report.

use std::collections::BTreeMap;

use prism_contract::rules::{
    AlignmentFindings, COVERAGES, Findings, Rule, Side, ValueCounts, Zombies,
};
use prism_contract::what_if::{Comparison, Figures, Skipped};
use prism_replay::SteadyState;
use serde::Serialize;
use serde_json::{Value, json};

use super::Contract;

/// One entry for each rule, by its key.
#[derive(Debug, Serialize)]
pub struct RulesObject(BTreeMap<&'static str, RuleObject>);

/// A rule.
#[derive(Debug, Serialize)]
struct RuleObject {
    /// From 0 to 1; null where the trace does not tell.
    score: Option<f64>,
    verdict: &'static str,
    /// What it costs, simulated: null where it was not.
    price: Option<PriceObject>,
    offenders: Vec<OffenderObject>,
    thresholds: ThresholdsObject,
    means: &'static str,
    figures: Value,
}

#[derive(Debug, Serialize)]
struct ThresholdsObject {
    kept: f64,
    broken: f64,
    why: &'static str,
}

#[derive(Debug, Serialize)]
struct OffenderObject {
    by: &'static str,
    name: String,
    share: f64,
    amount: f64,
}

/// What breaking a rule costs.
#[derive(Debug, Serialize)]
struct PriceObject {
    change: &'static str,
    upper_bound: bool,
    /// The rule broken as it is.
    before: FiguresObject,
    /// The rule kept.
    after: FiguresObject,
    /// Before over after.
    write_amplification: Option<f64>,
    /// Before over after.
    latency_p99: Option<f64>,
    /// After over before.
    throughput: Option<f64>,
    /// After over before.
    lifetime: Option<f64>,
}

/// A fix that was simulated.
#[derive(Debug, Serialize)]
pub struct WhatIfObject {
    change: &'static str,
    name: &'static str,
    rule: &'static str,
    upper_bound: bool,
    before: FiguresObject,
    after: FiguresObject,
    description: String,
    note: Option<String>,
}

/// A fix that was not simulated.
#[derive(Debug, Serialize)]
pub struct LeftOutObject {
    change: &'static str,
    reason: String,
}

impl LeftOutObject {
    /// Of every fix that was not.
    #[must_use]
    pub fn all(contract: &Contract) -> Vec<Self> {
        let one = |skipped: &Skipped| Self {
            change: skipped.change.key(),
            reason: skipped.reason.clone(),
        };
        contract.skipped.iter().map(one).collect()
    }
}

#[derive(Debug, Serialize)]
struct FiguresObject {
    write_amplification: Option<f64>,
    p99_ns: Option<u64>,
    lifetime_days: Option<f64>,
    bytes_per_second: f64,
    requests_per_second: f64,
    flash_bytes_programmed: u64,
    host_bytes_written: u64,
    passes: u32,
    /// Whether write amplification had settled before; null where that was not tested.
    steady: Option<bool>,
    erases_min: u32,
    erases_mean: f64,
    erases_max: u32,
    map_miss_ratio: Option<f64>,
}

impl FiguresObject {
    fn new(figures: &Figures) -> Self {
        Self {
            write_amplification: figures.write_amplification,
            p99_ns: figures.p99.map(|p99| p99.0),
            lifetime_days: figures.lifetime_days,
            bytes_per_second: figures.bytes_per_second,
            requests_per_second: figures.iops,
            flash_bytes_programmed: figures.flash_bytes.0,
            host_bytes_written: figures.host_bytes.0,
            passes: figures.passes,
            steady: match figures.steady {
                SteadyState::Reached => Some(true),
                SteadyState::NotReached => Some(false),
                SteadyState::NotTested | SteadyState::NoWrites => None,
            },
            erases_min: figures.wear.min,
            erases_mean: figures.wear.mean,
            erases_max: figures.wear.max,
            map_miss_ratio: figures.map_miss_ratio(),
        }
    }
}

impl PriceObject {
    fn new(price: &Comparison) -> Self {
        let (before, after) = (&price.before, &price.after);
        let over = |a: Option<f64>, b: Option<f64>| Some(a? / b?).filter(|ratio| ratio.is_finite());
        let p99 = |f: &Figures| f.p99.map(|p99| p99.0 as f64);
        Self {
            change: price.change.key(),
            upper_bound: price.change.upper_bound(),
            before: FiguresObject::new(before),
            after: FiguresObject::new(after),
            write_amplification: over(before.write_amplification, after.write_amplification),
            latency_p99: over(p99(before), p99(after)),
            throughput: over(Some(after.bytes_per_second), Some(before.bytes_per_second)),
            lifetime: over(after.lifetime_days, before.lifetime_days),
        }
    }
}

impl WhatIfObject {
    /// Of every fix that was simulated.
    #[must_use]
    pub fn all(contract: &Contract) -> Vec<Self> {
        let one = |what_if: &Comparison| Self {
            change: what_if.change.key(),
            name: what_if.change.name(),
            rule: what_if.change.rule().key(),
            upper_bound: what_if.change.upper_bound(),
            before: FiguresObject::new(&what_if.before),
            after: FiguresObject::new(&what_if.after),
            description: what_if.change.sentence(),
            note: what_if.note.clone(),
        };
        contract.what_ifs.iter().map(one).collect()
    }
}

impl RulesObject {
    /// Of every rule.
    #[must_use]
    pub fn new(contract: &Contract) -> Self {
        let findings = &contract.findings;
        let one = |rule: Rule| {
            let lines = findings.thresholds(rule);
            let offender = |o: &prism_contract::rules::Offender| OffenderObject {
                by: o.by.name(),
                name: o.name.clone(),
                share: o.share,
                amount: o.amount,
            };
            let object = RuleObject {
                score: findings.score(rule),
                verdict: findings.verdict(rule).name(),
                price: contract.price(rule).map(PriceObject::new),
                offenders: findings.offenders(rule).iter().map(offender).collect(),
                thresholds: ThresholdsObject {
                    kept: lines.kept,
                    broken: lines.broken,
                    why: rule.thresholds_why(),
                },
                means: rule.score_means(),
                figures: figures(contract, rule),
            };
            (rule.key(), object)
        };
        Self(Rule::ALL.into_iter().map(one).collect())
    }
}

/// The numbers behind a score.
fn figures(contract: &Contract, rule: Rule) -> Value {
    let findings = &contract.findings;
    match rule {
        Rule::RequestScale => request_scale(findings),
        Rule::Locality => locality(findings),
        Rule::AlignedSequentiality => {
            let by_block: Vec<Value> = findings.alignment.iter().map(alignment).collect();
            json!({ "by_block": by_block })
        }
        Rule::GroupingByDeathTime => grouping(contract),
        Rule::UniformLifetime => {
            let rule = &findings.lifetime;
            json!({
                "units_written": rule.units,
                "unit_writes": rule.writes,
                "writes_mean": rule.mean(),
                "writes_max": rule.counts.last().map(|&(most, _)| most),
                "gini": rule.gini(),
                "top_1_percent_share": rule.share_of_top(0.01),
                "top_10_percent_share": rule.share_of_top(0.1),
            })
        }
    }
}

fn request_scale(findings: &Findings) -> Value {
    let rule = &findings.request_scale;
    let quantiles = |counted: &ValueCounts| {
        let q = |q| counted.quantile(q);
        json!({"p25": q(0.25), "p50": q(0.5), "p75": q(0.75), "p99": q(0.99), "max": q(1.0)})
    };
    let side = |side: &Side| {
        let size = |q| side.sizes.quantile(q);
        json!({
            "requests": side.requests,
            "bytes": side.bytes,
            "size_bytes": {
                "p25": size(0.25), "p50": size(0.5), "p75": size(0.75), "p99": size(0.99),
                "max": size(1.0),
            },
            "outstanding": rule.depth_known.then(|| quantiles(&side.depth)),
            "outstanding_of_its_kind": rule.depth_known.then(|| quantiles(&side.depth_same)),
        })
    };
    json!({
        "full_scale_bytes": rule.full_scale().0,
        "score_by_bytes": rule.score_by_bytes(),
        "reads": side(&rule.reads),
        "writes": side(&rule.writes),
        "discards": rule.discards,
        "discard_ratio": rule.discard_ratio(),
        "flushes": rule.flushes,
        "durable_writes": rule.durable_writes,
        "kib_between_barriers": quantiles(&rule.kib_between_barriers),
    })
}

fn locality(findings: &Findings) -> Value {
    let (rule, map) = (&findings.locality, findings.subject.map_pages);
    let at = |coverage: f64| {
        let pages = ((map as f64 * coverage).round() as u64).max(1);
        json!({
            "coverage": coverage,
            "cache_pages": pages,
            "miss_ratio": rule.miss_ratio(pages),
            "miss_ratio_by_lookups": rule.miss_ratio_by_lookups(pages),
            "cold_misses": rule.distances.cold_misses(pages),
        })
    };
    json!({
        "translation_page_reach_bytes": rule.reach.0,
        "cache_pages": rule.cache_pages,
        "map_pages": map,
        "pages_visited": rule.distances.pages(),
        "visits": rule.distances.visits(),
        "lookups": rule.lookups,
        "coverages": COVERAGES.map(at),
        "misses_by_cache_pages": rule.distances.curve(),
    })
}

fn alignment(found: &AlignmentFindings) -> Value {
    let merges = |m: &prism_contract::rules::Merges| {
        json!({
            "switch": m.switch, "partial": m.partial, "full": m.full,
            "bytes_copied": m.copied * found.unit.0,
        })
    };
    json!({
        "block_bytes": found.block.0,
        "bytes_written": found.written.0,
        "bytes_mapped": found.mapped.0,
        "unaligned_ratio_by_live": found.unaligned_by_live(),
        "unaligned_ratio_by_traffic": found.unaligned_by_traffic(),
        "merged_at_end": merges(&found.at_end),
        "merged_when_full": merges(&found.when_full),
    })
}

fn grouping(contract: &Contract) -> Value {
    let rule = &contract.findings.grouping;
    let blocks = |zombies: &Zombies| {
        json!({
            "block_bytes": zombies.block.0,
            "held": zombies.held_blocks(),
            "mixed": zombies.mixed_blocks(),
            "open": zombies.open_blocks(),
            "curve": zombies.curve(),
        })
    };
    json!({
        "density": rule.density,
        "density_segmented": rule.density_segmented,
        "bytes_written": rule.written.0,
        "bytes_mapped": rule.mapped.0,
        "bytes_overwritten": rule.overwritten.0,
        "bytes_discarded": rule.discarded.0,
        "bytes_discarded_later": rule.discarded_later.0,
        "unsegmented": blocks(&rule.unsegmented),
        "segmented": blocks(&rule.segmented),
        "drive": {
            "data": contract.blocks.data.as_ref().map(blocks),
            "map": contract.blocks.map.as_ref().map(blocks),
        },
    })
}
