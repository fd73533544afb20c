//! What age has made of a drive: as figures, as a sentence, and as JSON.

use std::collections::BTreeMap;

use prism_report::{Figure, Section, Unit};
use prism_ssd::{DriveHealth, DriveSpec, HostOp};
use serde_json::{Value, json};

use super::Run;

/// Age and faults of a run; null if the drive does not age.
#[must_use]
pub fn json(run: Run<'_>) -> Value {
    let (Some(health), Some(spec)) = (run.end.health, &run.device.faults) else {
        return Value::Null;
    };
    let faults = &run.measured.flash.faults;
    let failed = HostOp::ALL.map(|op| (op.name(), run.measured.errors[op as usize]));
    let slc = health.slc.map(|slc| {
        json!({
            "factory_bad_blocks": slc.bad.factory_bad,
            "failed_program_blocks": slc.bad.failed_programs,
            "failed_erase_blocks": slc.bad.failed_erases,
            "spare_blocks": slc.spare_blocks,
            "blocks_per_lane": slc.die_group_blocks,
        })
    });
    let zones = health.zones.map(|zones| {
        json!({
            "count": zones.count,
            "read_only": zones.read_only,
            "offline": zones.offline,
            "sheltered_bytes": zones.relocated.0,
        })
    });
    let read_only = health.read_only.map(|read_only| {
        json!({"since_ns": read_only.since.0, "host_bytes_written": read_only.written.0})
    });
    json!({
        "kind": spec.kind,
        "wear_at_start_cycles": spec.wear,
        "retention_at_start_ns": spec.retention.0,
        "factory_bad_blocks": health.bad.factory_bad,
        "failed_program_blocks": health.bad.failed_programs,
        "failed_erase_blocks": health.bad.failed_erases,
        "retired_bytes": health.retired.0,
        "spare_blocks": health.spare_blocks,
        "blocks_per_lane": health.die_group_blocks,
        "program_failures": faults.program_failures,
        "erase_failures": faults.erase_failures,
        "read_retries": faults.read_retries,
        "retried_units": faults.retried_units,
        "rebuilt_units": faults.rebuilt_units,
        "unreadable_units": faults.unreadable_units,
        "lost_units": faults.lost_units,
        // Null if all blocks are of one kind.
        "slc": slc,
        // Null if the drive has no zones.
        "zones": zones,
        "failed_requests": BTreeMap::from(failed),
        // Null if the drive still writes.
        "read_only": read_only,
    })
}

/// What age has made of the drive; `None` if it does not age.
#[must_use]
pub fn section(run: Run<'_>) -> Option<Section> {
    let Run { measured, device, end } = run;
    let (health, spec) = (end.health?, device.faults.as_ref()?);
    let lead = format!(
        "Cells of kind {} rated for {} cycles, {} of them used at the start; the data there was \
         {} old.{}",
        spec.kind,
        device.flash.endurance,
        spec.wear,
        Unit::Nanos.format(spec.retention.0 as f64),
        health.read_only.map(|_| " The drive writes no more.").unwrap_or_default()
    );
    let (faults, bad) = (&measured.flash.faults, health.bad);
    let grown = bad.failed_programs + bad.failed_erases;
    let failed: u64 = measured.errors.iter().sum();
    let mut figures = vec![
        Figure::new("Bad blocks", Unit::Count, bad.factory_bad + grown).note(format!(
            "{} from the factory, {grown} grown; {} of flash are out of use for these",
            bad.factory_bad, health.retired
        )),
        spare(&health, device),
        Figure::new("Failures", Unit::Count, faults.program_failures + faults.erase_failures).note(
            format!("{} programs, {} erases", faults.program_failures, faults.erase_failures),
        ),
        Figure::new("Readings repeated", Unit::Count, faults.read_retries)
            .note(format!("for {} mapping units", faults.retried_units)),
        Figure::new("Units unreadable", Unit::Count, faults.unreadable_units).note(format!(
            "asked for by the host; {} were rebuilt from parity, {} given up by copies",
            faults.rebuilt_units, faults.lost_units
        )),
        Figure::new("Requests failed", Unit::Count, failed).note("unreadable, or refused"),
    ];
    figures.extend(health.slc.map(|slc| {
        let grown = slc.bad.failed_programs + slc.bad.failed_erases;
        Figure::new("SLC blocks bad", Unit::Count, slc.bad.factory_bad + grown).note(format!(
            "of these, {grown} grown; {} of {} of a die group may still fail before none is \
             written there",
            slc.spare_blocks, slc.die_group_blocks
        ))
    }));
    figures.extend(health.zones.map(|zones| {
        Figure::new("Zones read-only", Unit::Count, zones.read_only).note(format!(
            "of {}; {} more are offline; {} that they had no room for stand elsewhere",
            zones.count, zones.offline, zones.relocated
        ))
    }));
    if let Some(read_only) = health.read_only {
        figures.push(
            Figure::new("Read-only since", Unit::Nanos, read_only.since.0).note(format!(
                "of simulated time, after {} written by the host",
                read_only.written
            )),
        );
    }
    Some(Section::new("Age and faults", lead).with(figures))
}

/// What may still fail before the host feels it.
fn spare(health: &DriveHealth, device: &DriveSpec) -> Figure {
    let figure = Figure::new("Spare left", Unit::Count, health.spare_blocks);
    if health.zones.is_some() {
        return figure.note("blocks that may still fail before a zone goes offline");
    }
    if !device.ranges.is_empty() {
        return figure.note(
            "blocks of the range with the least that may still fail, before the drive is read-only",
        );
    }
    if device.ftl.mapping.is_by_block() {
        return figure
            .note("blocks of any die group that may still fail, before the drive is read-only");
    }
    figure.note(format!(
        "blocks of {} that may still fail where least is left, before the drive is read-only",
        health.die_group_blocks
    ))
}
