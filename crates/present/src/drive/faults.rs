//! Ageing and faults of a drive: as figures, as a sentence, and as JSON.

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
            "blocks_per_die_group": slc.die_group_blocks,
        })
    });
    let zones = health.zones.map(|zones| {
        json!({
            "count": zones.count,
            "read_only": zones.read_only,
            "offline": zones.offline,
            "relocated_bytes": zones.relocated.0,
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
        "blocks_per_die_group": health.die_group_blocks,
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

/// Ageing and faults of the run; `None` if the drive does not age.
#[must_use]
pub fn section(run: Run<'_>) -> Option<Section> {
    let Run { measured, device, end } = run;
    let (health, spec) = (end.health?, device.faults.as_ref()?);
    let lead = format!(
        "Cells of kind {} rated for {} cycles, of which {} were used at the start; the data on \
         the drive was {} old then.{}",
        spec.kind,
        device.flash.endurance,
        spec.wear,
        Unit::Nanos.format(spec.retention.0 as f64),
        health.read_only.map(|_| " The drive is read-only now.").unwrap_or_default()
    );
    let (faults, bad) = (&measured.flash.faults, health.bad);
    let grown = bad.failed_programs + bad.failed_erases;
    let failed: u64 = measured.errors.iter().sum();
    let mut figures = vec![
        Figure::new("Bad blocks", Unit::Count, bad.factory_bad + grown).note(format!(
            "{} from the factory, {grown} grown; {} of flash are retired",
            bad.factory_bad, health.retired
        )),
        spare(&health, device),
        Figure::new("Failures", Unit::Count, faults.program_failures + faults.erase_failures).note(
            format!("{} programs, {} erases", faults.program_failures, faults.erase_failures),
        ),
        Figure::new("Read retries", Unit::Count, faults.read_retries)
            .note(format!("for {} mapping units", faults.retried_units)),
        Figure::new("Unreadable units", Unit::Count, faults.unreadable_units).note(format!(
            "in host reads; {} were rebuilt from parity, {} were lost in copies",
            faults.rebuilt_units, faults.lost_units
        )),
        Figure::new("Failed requests", Unit::Count, failed).note("unreadable, or refused"),
    ];
    figures.extend(health.slc.map(|slc| {
        let grown = slc.bad.failed_programs + slc.bad.failed_erases;
        Figure::new("Bad SLC blocks", Unit::Count, slc.bad.factory_bad + grown).note(format!(
            "of these, {grown} grown; {} of the {} of a die group may still fail before no data \
             is written to SLC",
            slc.spare_blocks, slc.die_group_blocks
        ))
    }));
    figures.extend(health.zones.map(|zones| {
        Figure::new("Read-only zones", Unit::Count, zones.read_only).note(format!(
            "of {}; {} more are offline; {} of their data is relocated to other blocks",
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

/// The blocks that may still fail before a zone goes offline or the drive is read-only.
fn spare(health: &DriveHealth, device: &DriveSpec) -> Figure {
    let figure = Figure::new("Spare left", Unit::Count, health.spare_blocks);
    if health.zones.is_some() {
        return figure.note("blocks that may still fail before a zone goes offline");
    }
    if !device.ranges.is_empty() {
        return figure.note(
            "blocks that may fail in the range with the fewest, before the drive is read-only",
        );
    }
    if device.ftl.mapping.is_by_block() {
        return figure
            .note("blocks that may still fail in any die group, before the drive is read-only");
    }
    figure.note(format!(
        "spare blocks of the worst die group, of {}; without them the drive is read-only",
        health.die_group_blocks
    ))
}
