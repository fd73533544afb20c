//! What age has made of a drive: as figures, as a sentence, and as JSON.

use std::collections::BTreeMap;

use prism_report::{Block, Figure, Section, Unit};
use prism_ssd::{Device, DriveHealth, HostOp};
use prism_workload::Measured;
use serde::Serialize;

/// Age and faults of a run, on a drive that has them.
#[derive(Debug, Serialize)]
pub struct FaultsObject {
    kind: String,
    wear_at_start_cycles: u32,
    retention_at_start_ns: u64,
    factory_bad_blocks: u32,
    failed_program_blocks: u32,
    failed_erase_blocks: u32,
    retired_bytes: u64,
    spare_blocks: u32,
    blocks_per_die_group: u32,
    program_failures: u64,
    erase_failures: u64,
    read_retries: u64,
    retried_units: u64,
    rebuilt_units: u64,
    unreadable_units: u64,
    lost_units: u64,
    /// Null if all blocks are of one kind.
    slc: Option<SlcObject>,
    /// Null if the drive has no zones.
    zones: Option<ZonesObject>,
    failed_requests: BTreeMap<&'static str, u64>,
    /// Null if the drive still writes.
    read_only: Option<ReadOnlyObject>,
}

#[derive(Debug, Serialize)]
struct SlcObject {
    factory_bad_blocks: u32,
    failed_program_blocks: u32,
    failed_erase_blocks: u32,
    spare_blocks: u32,
    blocks_per_die_group: u32,
}

#[derive(Debug, Serialize)]
struct ZonesObject {
    count: u32,
    read_only: u32,
    offline: u32,
    sheltered_bytes: u64,
}

#[derive(Debug, Serialize)]
struct ReadOnlyObject {
    since_ns: u64,
    host_bytes_written: u64,
}

impl FaultsObject {
    /// Of a run with these figures; `None` if the drive does not age.
    #[must_use]
    pub fn new(measured: &Measured, device: &Device, health: Option<DriveHealth>) -> Option<Self> {
        let (health, spec) = (health?, device.faults.as_ref()?);
        let faults = &measured.flash.faults;
        let failed = HostOp::ALL.map(|op| (op.name(), measured.errors[op as usize]));
        Some(Self {
            kind: spec.kind.clone(),
            wear_at_start_cycles: spec.wear,
            retention_at_start_ns: spec.retention.0,
            factory_bad_blocks: health.bad.factory_bad,
            failed_program_blocks: health.bad.failed_programs,
            failed_erase_blocks: health.bad.failed_erases,
            retired_bytes: health.retired.0,
            spare_blocks: health.spare_blocks,
            blocks_per_die_group: health.die_group_blocks,
            program_failures: faults.program_failures,
            erase_failures: faults.erase_failures,
            read_retries: faults.read_retries,
            retried_units: faults.retried_units,
            rebuilt_units: faults.rebuilt_units,
            unreadable_units: faults.unreadable_units,
            lost_units: faults.lost_units,
            slc: health.slc.map(|slc| SlcObject {
                factory_bad_blocks: slc.bad.factory_bad,
                failed_program_blocks: slc.bad.failed_programs,
                failed_erase_blocks: slc.bad.failed_erases,
                spare_blocks: slc.spare_blocks,
                blocks_per_die_group: slc.die_group_blocks,
            }),
            zones: health.zones.map(|zones| ZonesObject {
                count: zones.count,
                read_only: zones.read_only,
                offline: zones.offline,
                sheltered_bytes: zones.relocated.0,
            }),
            failed_requests: failed.into_iter().collect(),
            read_only: health.read_only.map(|read_only| ReadOnlyObject {
                since_ns: read_only.since.0,
                host_bytes_written: read_only.written.0,
            }),
        })
    }
}

/// What age has made of the drive; `None` if it does not age.
#[must_use]
pub fn section(
    measured: &Measured,
    device: &Device,
    health: Option<DriveHealth>,
) -> Option<Section> {
    let (health, spec) = (health?, device.faults.as_ref()?);
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
        Figure::new("Bad blocks", Unit::Count, u64::from(bad.factory_bad + grown)).note(format!(
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
        Figure::new("SLC blocks bad", Unit::Count, u64::from(slc.bad.factory_bad + grown)).note(
            format!(
                "of these, {grown} grown; {} of {} of a die group may still fail before none is \
                 written there",
                slc.spare_blocks, slc.die_group_blocks
            ),
        )
    }));
    figures.extend(health.zones.map(|zones| {
        Figure::new("Zones read-only", Unit::Count, u64::from(zones.read_only)).note(format!(
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
    let mut section = Section::new("Age and faults", lead);
    section.push(Block::KeyFigures(figures));
    Some(section)
}

/// What may still fail before the host feels it.
fn spare(health: &DriveHealth, device: &Device) -> Figure {
    let figure = Figure::new("Spare left", Unit::Count, u64::from(health.spare_blocks));
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
