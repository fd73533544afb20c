//! The valid data in each block of a simulated drive, and the erase count of each block.
//!
//! The zombie curves in [`crate::rules`] describe a drive that never cleans. This module
//! describes the blocks of the replayed drive after its own cleaning. It counts data blocks
//! and map blocks separately (a drive has map blocks if its map is on flash), and open
//! blocks separately from full ones.

use prism_nand::{BlockId, Pun};
use prism_ssd::Drive;

use crate::rules::Zombies;

/// The largest drive whose units are examined, in mapping units. Examining this many takes a
/// few seconds.
const UNITS_MAX: u32 = 1 << 26;

/// Valid data and erase counts of the blocks of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveBlocks {
    /// Data blocks by their number of valid units. If the drive has an SLC region, its
    /// blocks are left out, because they hold fewer units than the others. `None` on a drive
    /// with more than 2^26 units.
    pub data: Option<Zombies>,
    /// Blocks of the map, by their number of valid units. `None` as for `data`.
    pub map: Option<Zombies>,
    /// Erase count of each block since the drive was made, in ascending order.
    pub erases: Vec<u32>,
}

impl DriveBlocks {
    /// Examines the current state of `drive`.
    #[must_use]
    pub fn of(drive: &Drive) -> Self {
        let mut erases = drive.engine().nand().erase_counts().to_vec();
        erases.sort_unstable();
        if drive.engine().nand().geometry().units() > UNITS_MAX {
            return Self { data: None, map: None, erases };
        }
        let (data, map) = blocks_by_contents(drive);
        Self { data: Some(data), map: Some(map), erases }
    }

    /// Erase counts in ascending order, as points of a curve: (share of the blocks up to
    /// this point, erase count). At most 513 points.
    #[must_use]
    pub fn wear_curve(&self) -> Vec<(f64, u32)> {
        let count = self.erases.len();
        let step = count.div_ceil(512).max(1);
        let at = |i: usize| (i as f64 / count as f64, self.erases[i]);
        let mut curve: Vec<_> = (0..count).step_by(step).map(at).collect();
        curve.extend(self.erases.last().map(|&most| (1.0, most)));
        curve
    }
}

/// The data blocks and the map blocks of `drive`, each by number of valid units.
fn blocks_by_contents(drive: &Drive) -> (Zombies, Zombies) {
    let (nand, ftl) = (drive.engine().nand(), drive.engine().ftl());
    let (geometry, layout) = (nand.geometry(), nand.layout());
    let units = geometry.data_units_per_block();
    let empty = || Zombies {
        block: geometry.unit * u64::from(units),
        closed: vec![0; units as usize + 1],
        open: vec![0; units as usize + 1],
    };
    let (mut data, mut map) = (empty(), empty());
    for block in (0..geometry.blocks()).map(BlockId) {
        if nand.program_units_programmed(block) == 0 || layout.is_slc(block) {
            continue;
        }
        let first = layout.first_unit(layout.first_program_unit(block)).0;
        let (mut of_data, mut of_map) = (0, 0);
        for at in first..first + geometry.units_per_block() {
            match ftl.live(Pun(at)) {
                Some(lpn) if lpn < ftl.logical_units() => of_data += 1,
                Some(_) => of_map += 1,
                None => {}
            }
        }
        let kind = if of_map > of_data { &mut map } else { &mut data };
        let by_valid = if ftl.is_writing(block) { &mut kind.open } else { &mut kind.closed };
        by_valid[(of_data + of_map).min(units) as usize] += 1;
    }
    (data, map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_base::Bytes;
    use prism_ssd::spec::Mapping;
    use prism_ssd::{DriveSpec, HostOp, InitialState, Request, fit};

    fn drive(mapping: Mapping) -> Drive {
        let mut device =
            fit(&DriveSpec::preset("wiscsim").unwrap(), Bytes(64 << 20)).unwrap().device;
        device.ftl.mapping = mapping;
        device.ftl.map_cache = (mapping == Mapping::Dftl).then_some(Bytes(4096));
        let keep_going = |_| true;
        Drive::prepared(device, InitialState::Filled, 1, keep_going).unwrap().unwrap().0
    }

    #[test]
    fn a_filled_drive_holds_its_capacity_without_garbage() {
        let blocks = DriveBlocks::of(&drive(Mapping::Page));
        let data = blocks.data.as_ref().unwrap();
        let units = |by: &[u64]| by.iter().enumerate().map(|(v, n)| v as u64 * n).sum::<u64>();
        assert_eq!((units(&data.closed) + units(&data.open)) * 2048, 64 << 20);
        assert_eq!(data.mixed_blocks(), 0);
        assert_eq!(blocks.map.as_ref().unwrap().held_blocks(), 0);
        assert_eq!(blocks.wear_curve().first(), Some(&(0.0, 0)));
    }

    #[test]
    fn map_blocks_are_counted_separately_from_data_blocks() {
        let mut drive = drive(Mapping::Dftl);
        let mut done = Vec::new();
        for i in 0..6000u64 {
            let offset = (i * 7919 % 32768) * 2048;
            drive.submit(Request::new(HostOp::Write, offset, 2048, i), drive.now()).unwrap();
            while drive.next_event().is_some() {
                drive.step(&mut done);
            }
        }
        let blocks = DriveBlocks::of(&drive);
        let (data, map) = (blocks.data.unwrap(), blocks.map.unwrap());
        assert!(map.held_blocks() + map.open_blocks() > 0, "{map:?}");
        assert!(data.mixed_blocks() > 0, "overwritten units leave garbage");
    }
}
