//! The contract of a trace as JSON. The keys and their order are stable.

use std::collections::BTreeMap;

use prism_contract::advice::Advice;
use prism_contract::rules::{
    AlignmentFindings, COVERAGES, Findings, Rule, Side, ValueCounts, Zombies,
};
use prism_contract::terms::Term;
use prism_contract::what_if::{Comparison, Figures};
use prism_report::json::rows;
use serde_json::{Map, Value, json};

use super::{COMPARED, Compared, Contract, tables};
use crate::json::join;

/// The five rules by key.
#[must_use]
pub fn rules(contract: &Contract) -> Value {
    let all = Rule::ALL.into_iter().map(|rule| (rule.key(), self::rule(contract, rule)));
    json!(all.collect::<BTreeMap<_, _>>())
}

fn rule(contract: &Contract, rule: Rule) -> Value {
    let findings = &contract.findings;
    let thresholds = findings.thresholds(rule);
    json!({
        // From 0 to 1; null if the trace does not determine it.
        "score": findings.score(rule),
        "verdict": findings.verdict(rule).name(),
        // What breaking the rule costs; null if that was not simulated.
        "price": contract.price(rule).map(price),
        "offenders": rows(&tables::offenders(findings, rule)),
        "thresholds": {
            "kept": thresholds.kept, "broken": thresholds.broken, "why": rule.thresholds_why(),
        },
        "means": rule.score_means(),
        "figures": figures(contract, rule),
    })
}

/// The figures with the rule broken (before) and kept (after), and their ratios.
fn price(price: &Comparison) -> Value {
    let sides = json!({
        "change": price.change.key(),
        "upper_bound": price.change.upper_bound(),
        "before": simulated(&price.before),
        "after": simulated(&price.after),
    });
    let gain = |compared: &Compared| {
        (compared.key.to_owned(), compared.gain(&price.before, &price.after).into())
    };
    join([sides, Value::Object(COMPARED.iter().map(gain).collect::<Map<_, _>>())])
}

/// Every fix that was simulated.
#[must_use]
pub fn what_ifs(contract: &Contract) -> Value {
    let one = |what_if: &Comparison| {
        json!({
            "change": what_if.change.key(),
            "name": what_if.change.name(),
            "rule": what_if.change.rule().key(),
            "upper_bound": what_if.change.upper_bound(),
            "before": simulated(&what_if.before),
            "after": simulated(&what_if.after),
            "description": what_if.change.sentence(),
            "note": what_if.note,
        })
    };
    contract.what_ifs.iter().map(one).collect()
}

/// Every fix that was not simulated, and why.
#[must_use]
pub fn left_out(contract: &Contract) -> Value {
    let skipped = contract.skipped.iter();
    skipped.map(|one| json!({"change": one.change.key(), "reason": one.reason})).collect()
}

fn simulated(figures: &Figures) -> Value {
    json!({
        "write_amplification": figures.write_amplification,
        "p99_ns": figures.speed.p99.map(|p99| p99.0),
        "lifetime_days": figures.lifetime_days,
        "bytes_per_second": figures.speed.bytes_per_second,
        "requests_per_second": figures.speed.iops,
        "flash_bytes_programmed": figures.flash_bytes.0,
        "host_bytes_written": figures.host_bytes.0,
        "passes": figures.passes,
        // Whether write amplification was steady; null if that was not tested.
        "steady": figures.steady.reached(),
        "erases_min": figures.wear.min,
        "erases_mean": figures.wear.mean,
        "erases_max": figures.wear.max,
        "map_miss_ratio": figures.map_miss_ratio(),
    })
}

/// The seven design rules.
#[must_use]
pub fn advice(contract: &Contract) -> Value {
    let one = |advice: &Advice| {
        json!({
            "number": advice.number,
            "rule": advice.rule,
            "verdict": advice.verdict.key(),
            // Why the trace does not decide the rule; null if it does.
            "reason": super::advice::reason(&advice.verdict),
            "numbers": advice.numbers,
            "advice": advice.advice,
            "source": advice.source,
        })
    };
    contract.advice.iter().map(one).collect()
}

/// The six assumptions about storage.
#[must_use]
pub fn terms(contract: &Contract) -> Value {
    let one = |term: &Term| {
        json!({
            "number": term.number,
            "name": term.name,
            // Whether it holds for this trace and drive; null if they do not decide it.
            "holds": term.holds,
            "why": term.why,
            // The columns of the paper's table.
            "quoted": {
                "disk": term.disk.name(),
                "raid": term.raid.name(),
                "mems": term.mems.name(),
                "ssd": term.ssd.name(),
            },
            "source": term.source,
        })
    };
    contract.terms.iter().map(one).collect()
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
