//! Write amplification, lifetime and wear of a drive: sentences, notes and figures.

use prism_nand::Cause;
use prism_report::{Block, Figure, Section, Unit};
use prism_ssd::DriveSpec;
use prism_ssd::spec::SlcUsage;

use super::{Facts, Run};

/// Write amplification and lifetime as a sentence; empty if the trace determines neither.
#[must_use]
pub fn sentence(facts: &Facts) -> String {
    let Some(ratio) = facts.write_amplification() else { return String::new() };
    let ratio = match facts.is_estimate() {
        true => format!("about {} ({})", Unit::Ratio.format(ratio), estimate_note()),
        false => Unit::Ratio.format(ratio),
    };
    if let Some(why) = facts.too_short() {
        return format!("Write amplification {ratio}. {why}.");
    }
    let life = facts.lifetime_ns().map(|life| {
        let (life, capacity) = (Unit::Nanos.format(life), facts.described.capacity());
        format!(", lifetime {life} of the {capacity} drive {}", even_wear(facts))
    });
    format!("Write amplification {ratio}{}.", life.unwrap_or_default())
}

/// The cycles of a block, and how many of them it has used before.
pub(super) fn cycles(device: &DriveSpec) -> String {
    let endurance = device.flash.endurance;
    match device.faults.as_ref().map_or(0, |faults| faults.wear) {
        0 => format!("{endurance} cycles"),
        used => format!("{endurance} cycles of which {used} were used before"),
    }
}

/// What a lifetime assumes, and what it would be otherwise.
fn even_wear(facts: &Facts) -> String {
    let unlevelled = facts.unlevelled_ns().map(|first| {
        let first = Unit::Nanos.format(first);
        format!(" ({first} until its first block is worn out, if it does not level wear)")
    });
    let brief = facts.brief_pass().map(|pass| format!(", extrapolated from {pass}"));
    format!("with even wear{}{}", unlevelled.unwrap_or_default(), brief.unwrap_or_default())
}

/// Why write amplification is an estimate.
pub(super) fn estimate_note() -> String {
    "an estimate: as if the trace wrote its addresses at random for long".to_owned()
}

/// How much write amplification varies, as the end of a sentence.
pub(super) fn deviation(facts: &Facts) -> String {
    match facts.outcome.steady_write_amplification() {
        Some((_, deviation)) if deviation >= 0.005 => format!(
            "; varies by {} over {} rounds",
            Unit::Ratio.format(deviation),
            facts.outcome.window_rounds
        ),
        _ => String::new(),
    }
}

/// What a lifetime refers to.
pub(super) fn lifetime_note(facts: &Facts) -> String {
    if let Some(why) = facts.too_short() {
        return why;
    }
    let Some(life) = facts.lifetime() else { return "nothing reaches the flash".into() };
    format!(
        "of the {} drive, {}, {}; lasts 5 years at {} drive writes a day",
        facts.described.capacity(),
        cycles(&facts.described),
        even_wear(facts),
        Unit::Ratio.format(life.dwpd)
    )
}

/// Pushes the figures of cleaning and wear, and those of SLC blocks.
pub fn push(section: &mut Section, run: Run<'_>) {
    section.push(wear_figures(run));
    section.blocks.extend(slc_figures(run));
}

/// The use of SLC blocks, if the drive has some.
fn slc_figures(run: Run<'_>) -> Option<Block> {
    let Run { measured, device, end } = run;
    let slc = device.slc.as_ref()?;
    let (flash, unit) = (&measured.flash, device.ftl.mapping_unit.0);
    let in_slc = flash.slc_units[Cause::Host];
    let share = |units: u64| {
        let of_host = units as f64 / flash.units[Cause::Host].max(1) as f64;
        format!("{} of what the host wrote to flash", Unit::Percent.format(of_host))
    };
    let overflow = flash.slc_overflow;
    let mut figures = vec![
        Figure::new("Written to SLC blocks", Unit::Bytes, in_slc * unit).note(share(in_slc)),
        Figure::new("Did not fit there", Unit::Bytes, overflow * unit).note(share(overflow)),
    ];
    if slc.usage == SlcUsage::Cache {
        let folded = flash.units[Cause::Fold];
        figures.push(
            Figure::new("Folded", Unit::Bytes, folded * unit)
                .note("moved from the SLC write cache to the other blocks"),
        );
    }
    if let Some(wear) = end.slc_wear {
        figures.push(Figure::new("Erases of an SLC block", Unit::Count, wear.mean).note(format!(
            "since the start; between {} and {}; rated for {}",
            wear.min, wear.max, slc.endurance
        )));
    }
    Some(Block::KeyFigures(figures))
}

/// Copies, erases, hits of the buffer and the map cache, and merges.
fn wear_figures(run: Run<'_>) -> Block {
    let Run { measured, device, end } = run;
    let wear = end.wear;
    let flash = &measured.flash;
    let geometry = device.geometry();
    // Erases are counted in blocks of one plane of one die.
    let upb = u64::from(geometry.units_per_block())
        / u64::from(geometry.planes_ganged * geometry.dies_per_superblock);
    let erased = flash.erases.total() - flash.erases[Cause::Fold];
    let copied = flash.units[Cause::Gc];
    // Blocks of an SLC region hold fewer units, so erases of both kinds do not add up.
    let alike = device.slc.as_ref().is_none_or(|slc| slc.usage == SlcUsage::Cache);
    let share = (erased > 0 && alike).then(|| copied as f64 / (erased * upb) as f64);
    let mut figures = vec![
        Figure::new("Still valid in cleaned blocks", Unit::Percent, share)
            .note("data that cleaning had to copy"),
        Figure::new("Erases of a block", Unit::Count, wear.mean)
            .note(format!("since the start; between {} and {}", wear.min, wear.max)),
        Figure::new("Found in the write buffer", Unit::Count, measured.buffer_hits)
            .note("mapping units read from it or overwritten in it"),
    ];
    if let Some(map) = measured.map {
        figures.push(Figure::new("Misses of the map cache", Unit::Percent, map.miss_ratio()).note(
            format!(
                "{} translation pages read for them, {} to be rewritten",
                map.loads, map.writebacks
            ),
        ));
    }
    if let Some(merges) = measured.merges {
        let all = merges.switches + merges.partial + merges.full;
        figures.push(Figure::new("Merges", Unit::Count, all).note(format!(
            "{} switches, {} partial, {} full; {} blocks erased with nothing left in them",
            merges.switches, merges.partial, merges.full, merges.empty
        )));
    }
    Block::KeyFigures(figures)
}
