//! The content of programs, for devices that keep content.

use prism_ftl::UnitWrite;
use prism_nand::{Nand, NandError, ProgramUnitId, StoredUnit, UnitTag};

/// Begins the program of `program_unit` on `nand` with the content of `units`: data tagged with
/// logical unit and version, copies with the content of their source. `payloads` are the bytes of
/// the units, one each, empty for a unit without; or none at all. `tombstones` is what the
/// tombstones among the units say, in their order.
#[inline(always)]
pub(crate) fn program_begin(
    nand: &mut Nand,
    program_unit: ProgramUnitId,
    units: &[UnitWrite],
    payloads: &[Box<[u8]>],
    tombstones: &[Box<[u8]>],
) -> Result<(), NandError> {
    if !nand.keeps_content() {
        return nand.program_begin(program_unit, []);
    }
    let stored = stored(nand, units, payloads, tombstones)?;
    nand.program_begin(program_unit, stored)
}

/// The content of a program unit of `units`, padded to its end.
#[cold]
fn stored(
    nand: &Nand,
    units: &[UnitWrite],
    payloads: &[Box<[u8]>],
    tombstones: &[Box<[u8]>],
) -> Result<Vec<StoredUnit>, NandError> {
    let mut trims = tombstones.iter();
    let pad = StoredUnit { tag: UnitTag::Pad, version: 0, payload: None };
    let mut stored = Vec::with_capacity(units.len());
    for (i, write) in units.iter().enumerate() {
        stored.push(match write.source {
            Some(source) => {
                nand.read(source)?.cloned().ok_or(NandError::ReadErased { unit: source })?
            }
            None if write.lpn == UnitWrite::PAD => pad.clone(),
            None if write.lpn == UnitWrite::TOMBSTONE => StoredUnit {
                tag: UnitTag::Tombstone,
                version: write.version,
                payload: trims.next().cloned(),
            },
            None => StoredUnit {
                tag: UnitTag::Data(write.lpn),
                version: write.version,
                payload: payloads.get(i).filter(|bytes| !bytes.is_empty()).cloned(),
            },
        });
    }
    stored.resize(nand.layout().units_per_program_unit() as usize, pad);
    Ok(stored)
}
