//! The section of a report on a zoned drive: the writes that the drive alone would refuse, and the
//! work of the host FTL.

use prism_replay::{HostFtlCounts, ZoneRuleCheck};
use prism_report::{Figure, Section, Table, Unit};
use prism_ssd::{ReadOnly, ZoneShape};
use serde_json::{Value as Json, json};

/// A trace on a zoned drive.
#[derive(Clone, Copy, Debug)]
pub struct ZonedFacts {
    /// The zones.
    pub shape: ZoneShape,
    /// The results of the writes on the drive without a host FTL.
    pub bare: ZoneRuleCheck,
    /// Effective over-provisioning of the host FTL.
    pub over_provisioning: f64,
    /// The work of the host FTL in the measured passes.
    pub log: Option<HostFtlCounts>,
    /// Since when the host FTL or its drive is read-only.
    pub read_only: Option<ReadOnly>,
}

impl ZonedFacts {
    /// The same as JSON.
    #[must_use]
    pub fn json(&self) -> Json {
        let Self { shape, bare, over_provisioning, .. } = *self;
        let log = self.log.unwrap_or_default();
        json!({
            "zones": shape.count,
            "zone_size_bytes": shape.size,
            "zone_capacity_bytes": shape.capacity,
            "max_open_zones": shape.max_open,
            "max_active_zones": shape.max_active,
            "bare_drive": {
                "writes": bare.writes,
                "failed": bare.failed(),
                "not_at_write_pointer": bare.not_at_write_pointer,
                "unaligned": bare.unaligned,
                "beyond_zone": bare.beyond_zone,
                "too_many_zones": bare.limits,
            },
            "host_ftl": {
                "over_provisioning": over_provisioning,
                "write_amplification": log.write_amplification(),
                "units_written": log.written,
                "units_copied": log.copied,
                "units_completed": log.completed,
                "units_discarded": log.discarded,
                "units_rewritten": log.rewritten,
                "units_evacuated": log.evacuated,
                "units_lost": log.lost,
                "zones_cleaned": log.cleaned,
            },
        })
    }

    /// The section of the report.
    #[must_use]
    pub fn section(&self) -> Section {
        let bare = &self.bare;
        let lead = match bare.failed() {
            0 => "Every write of the trace is at the write pointer of its zone.".to_owned(),
            failed => format!(
                "{} of {} writes would fail on the zoned drive alone, mostly because they are not \
                 at the write pointer of their zone. Therefore the trace runs on a host FTL: it \
                 writes units to an open zone in the order of arrival, and cleans and resets \
                 zones. The flash programs of cause \"host\" include the copies of the host FTL.",
                Unit::Count.format(failed as f64),
                Unit::Count.format(bare.writes as f64),
            ),
        };
        let mut section = Section::new("On zones", lead);
        let log = self.log.unwrap_or_default();
        let amplification = log.write_amplification();
        section.push(vec![
            Figure::new("Write amplification of the host FTL", Unit::Ratio, amplification)
                .note("units written for requests and as copies, over units written for requests"),
            Figure::new("Copied by the host", Unit::Count, log.copied).note(format!(
                "units, from {} zones; {} written for requests",
                Unit::Count.format(log.cleaned as f64),
                Unit::Count.format(log.written as f64)
            )),
            Figure::new("Over-provisioning of the host FTL", Unit::Percent, self.over_provisioning)
                .note("capacity beyond its data and its open zones, over its data"),
        ]);
        section.push(self.refusals());
        section
    }

    fn refusals(&self) -> Table {
        let bare = &self.bare;
        let mut rows = vec![
            ("accepted", bare.taken),
            ("not at a write pointer", bare.not_at_write_pointer),
            ("not whole units", bare.unaligned),
            ("beyond the end of a zone", bare.beyond_zone),
            ("too many zones open or active", bare.limits),
        ];
        rows.retain(|&(_, count)| count > 0);
        Table::listing(&rows)
            .text("writes on the drive alone", |&(what, _)| what)
            .number("count", Unit::Count, |&(_, count)| count)
            .table("What a bare zoned drive would refuse")
    }
}
