//! The figures of `stats` and `stats flash` in the text format of Prometheus, version 0.0.4.
//!
//! The values are those of the two commands, by their names; the table adds what the format wants.

use std::fmt::Write;

use super::stats::general;
use super::{Report, Shared};

/// The content type of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A figure: its name in `stats` or `stats flash`, that of its metric after `prism_cache_` with its
/// label, and what it is. Rows of the same metric follow each other. A metric is a counter if its
/// name ends in `_total`, else a gauge.
type Row = (&'static str, &'static str, &'static str);

const HITS: &str = "Lookups that found the item, by where it was.";
const GETS: &str = "Keys that clients asked for, by result.";
const COMMANDS: &str = "Commands of clients, by kind.";
const REFUSED: &str = "Insertions that were refused, by reason.";
const CPU: &str = "CPU time of the process.";
const CLEANED: &str = "Current items in slabs that were cleaned, by what cleaning did with them.";
const SLABS: &str = "Slabs by use.";
const PAGES: &str = "Flash pages programmed: for the cache, and as copies below it.";

/// Figures of `stats`.
const GENERAL: [Row; 22] = [
    ("uptime", "uptime_seconds", "Seconds since the server began."),
    ("curr_connections", "connections", "Open connections."),
    ("max_connections", "connections_max", "Most connections at once."),
    ("total_connections", "connections_total", "Connections accepted or refused."),
    (
        "rejected_connections",
        "connections_refused_total",
        "Connections refused because there were too many.",
    ),
    ("cmd_get", r#"commands_total{command="get"}"#, COMMANDS),
    ("cmd_set", r#"commands_total{command="set"}"#, COMMANDS),
    ("cmd_touch", r#"commands_total{command="touch"}"#, COMMANDS),
    ("cmd_flush", r#"commands_total{command="flush"}"#, COMMANDS),
    (
        "cmd_meta",
        "meta_commands_total",
        "Commands of the meta protocol, which are also among the others.",
    ),
    ("get_hits", r#"gets_total{result="hit"}"#, GETS),
    ("get_misses", r#"gets_total{result="miss"}"#, GETS),
    ("store_too_large", r#"insertions_refused_total{reason="size"}"#, REFUSED),
    ("store_no_memory", r#"insertions_refused_total{reason="space"}"#, REFUSED),
    ("bytes_read", "received_bytes_total", "Bytes that clients sent."),
    ("bytes_written", "sent_bytes_total", "Bytes sent to clients."),
    ("rusage_user", r#"cpu_seconds_total{mode="user"}"#, CPU),
    ("rusage_system", r#"cpu_seconds_total{mode="system"}"#, CPU),
    ("limit_maxbytes", "memory_limit_bytes", "Memory for the index and for buffers."),
    ("curr_items", "items", "Items in the cache."),
    ("total_items", "items_stored_total", "Items that clients stored."),
    (
        "conn_yields",
        "connection_yields_total",
        "Turns that a connection ended with commands left, for others.",
    ),
];

/// Figures of `stats flash`.
const FLASH: [Row; 35] = [
    ("bytes", "item_bytes", "Bytes of current items and their headers."),
    (
        "gets_with_touch",
        "gets_with_touch_total",
        "Keys of gat and gats, which are counted as get and as touch.",
    ),
    ("index_bytes", "index_bytes", "Bytes of memory of the index."),
    ("hits_memory", r#"hits_total{layer="memory"}"#, HITS),
    ("hits_flash", r#"hits_total{layer="flash"}"#, HITS),
    ("misses", "misses_total", "Lookups that found nothing."),
    ("items_inserted", "insertions_total", "Items inserted."),
    ("inserted_bytes", "inserted_bytes_total", "Bytes of records of these items."),
    (
        "written_item_bytes",
        "written_item_bytes_total",
        "Bytes of records of these items that were written to flash.",
    ),
    (
        "admission_rejected",
        "not_admitted_items_total",
        "Items that were not kept because of the limit of writes.",
    ),
    ("cleaning_items_copied", r#"cleaning_items_total{action="copy"}"#, CLEANED),
    ("cleaning_items_dropped", r#"cleaning_items_total{action="drop"}"#, CLEANED),
    (
        "cleaning_bytes_copied",
        "cleaning_copied_bytes_total",
        "Bytes of records that cleaning copied.",
    ),
    ("slabs_free", r#"slabs{state="free"}"#, SLABS),
    ("slabs_writing", r#"slabs{state="writing"}"#, SLABS),
    ("slabs_full", r#"slabs{state="full"}"#, SLABS),
    ("slabs_filled", "slabs_filled_total", "Slabs filled."),
    ("slabs_cleaned", "slabs_cleaned_total", "Slabs cleaned."),
    (
        "slabs_dropped",
        "slabs_dropped_total",
        "Slabs cleaned without copies because too few were free.",
    ),
    (
        "index_items_dropped",
        "index_dropped_items_total",
        "Items dropped because their buckets of the index were full.",
    ),
    (
        "reads_of_other_keys",
        "reads_of_other_keys_total",
        "Reads of flash that found an item with another key of the same hash.",
    ),
    ("reads_lost", "reads_lost_total", "Reads of flash that found the item damaged or gone."),
    ("commits", "commits_total", "Syncs after which changes were acknowledged, with --strict."),
    ("items_recovered", "recovered_items", "Items found when the server began."),
    (
        "items_lost_at_start",
        "lost_items",
        "Items on flash that were dropped when the server began, because their state was missing.",
    ),
    (
        "slabs_lost_at_start",
        "lost_slabs",
        "Slabs on flash that were dropped when the server began, because their state was missing.",
    ),
    ("flash_pages_programmed", r#"flash_pages_total{cause="cache"}"#, PAGES),
    ("flash_pages_copied", r#"flash_pages_total{cause="library"}"#, PAGES),
    ("flash_pages_read", "flash_pages_read_total", "Flash pages read."),
    ("flash_blocks_erased", "flash_blocks_erased_total", "Flash blocks erased."),
    ("flash_page_bytes", "flash_page_bytes", "Bytes of a flash page."),
    (
        "write_amplification",
        "write_amplification",
        "Bytes programmed per byte of items written to flash, since the server began.",
    ),
    ("wear_blocks_max", "block_erases_max", "Erases of the block erased most."),
    ("wear_blocks_mean", "block_erases_mean", "Mean erases of a block."),
    (
        "life_days_at_this_rate",
        "life_days",
        "Days until the mean block is worn out, at the rate of erases since the server began.",
    ),
];

/// All figures, in the text format. What a report lacks is left out.
#[must_use]
pub fn text(len: u64, shared: &Shared, report: &Report) -> String {
    let general = general(len, shared, report);
    let of_stats = |wanted: &str| {
        general.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str())
    };
    let of_flash = |wanted: &str| {
        report.figures.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    let mut text = String::new();
    rows(&mut text, &GENERAL, &of_stats);
    rows(&mut text, &FLASH, &of_flash);
    text
}

fn rows<'a>(text: &mut String, rows: &[Row], value: &dyn Fn(&str) -> Option<&'a str>) {
    let mut described = "";
    for (name, sample, help) in rows {
        // A figure that there is not yet is a dash.
        let Some(value) = value(name).filter(|value| *value != "-") else { continue };
        let mut write = |line: std::fmt::Arguments<'_>| {
            text.write_fmt(line).expect("a string takes everything");
        };
        let metric = metric_of(sample);
        if described != metric {
            let kind = if metric.ends_with("_total") { "counter" } else { "gauge" };
            write(format_args!("# HELP prism_cache_{metric} {help}\n"));
            write(format_args!("# TYPE prism_cache_{metric} {kind}\n"));
            described = metric;
        }
        write(format_args!("prism_cache_{sample} {value}\n"));
    }
}

/// The metric of a sample: its name without its label.
fn metric_of(sample: &str) -> &str {
    sample.split('{').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::protocol::Settings;

    /// Every row has a value of its own, and a metric's rows are together and alike.
    #[test]
    fn all_rows_are_printed_and_well_formed() {
        let mut report = Report::default();
        for (row, number) in FLASH.iter().zip(1000..) {
            report.add(row.0, &number);
        }
        let shared = Shared::new(Settings::default(), 5);
        let text = text(17, &shared, &report);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), GENERAL.len() + FLASH.len());
        assert!(samples.contains(&"prism_cache_items 17"), "{text}");
        assert!(samples.contains(&"prism_cache_hits_total{layer=\"flash\"} 1004"), "{text}");
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        assert_eq!(types.len(), types.iter().collect::<BTreeSet<_>>().len());
        for line in types {
            let (metric, kind) = line.rsplit_once(' ').unwrap();
            let expected = if metric.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(kind, expected, "{line}");
        }
        for row in GENERAL.iter().chain(&FLASH) {
            let named = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(metric_of(row.1).bytes().all(named) && row.2.ends_with('.'), "{row:?}");
            let label = row.1[metric_of(row.1).len()..].strip_prefix('{');
            let label = label.map(|label| label.strip_suffix("\"}")?.split_once("=\""));
            let well_formed =
                |(name, value): (&str, &str)| name.bytes().chain(value.bytes()).all(named);
            assert!(label.is_none_or(|label| label.is_some_and(well_formed)), "{row:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let shared = Shared::new(Settings::default(), 5);
        let text = text(0, &shared, &Report::default());
        assert!(!text.contains("block_erases") && text.contains("prism_cache_items 0\n"));
        let mut report = Report::default();
        report.add("write_amplification", &"-");
        assert!(!super::text(0, &shared, &report).contains("write_amplification"));
    }
}
