//! Recovery of the page-level map from the flash after a loss of power.

use prism_nand::{BlockId, ProgramUnitId, Pun, UnitTag};

use super::state::BlockState;
use super::{P2L_TOMBSTONE, PageConfig, PageMap, TRIMMED};
use crate::config::ConfigError;
use crate::plan::TrimRange;
use crate::scan::{FlashScan, Recovered, trim_best};

/// The best copy found of a logical unit.
#[derive(Clone, Copy, Default)]
struct Best {
    version: u64,
    /// Of two copies of one version the one programmed first wins: the other was written by an
    /// interrupted cleaning, and its block has no other valid units, so that it can be erased at
    /// once. Otherwise repeated losses of power would use up the reserve of erased blocks.
    sequence: u64,
    /// The map entry.
    entry: u32,
}

impl Best {
    fn offer(&mut self, version: u64, entry: u32, sequence: u64) {
        let newer = version > self.version;
        let first = version == self.version && sequence < self.sequence;
        if newer || self.entry == 0 || first {
            *self = Self { version, sequence, entry };
        }
    }
}

/// Results of the scan so far.
struct Scan {
    best: Vec<Best>,
    tombstones: Vec<(Pun, Vec<TrimRange>)>,
    /// By block: the sequence number of its first readable program.
    first_sequence: Vec<u64>,
    newest: Recovered,
}

impl PageMap {
    /// Scans the out-of-band bytes of every programmed unit. For each logical unit the highest
    /// version wins, of data, the range of a tombstone, or one of `trims`, which are durable
    /// elsewhere and leave nothing in the map.
    ///
    /// Partly written blocks are closed. A block whose erase was interrupted has no data and is
    /// erased again before it is used. The flash is not written, so that power may be lost again at
    /// any moment.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash or its content.
    pub fn recover_from(
        flash: &mut impl FlashScan,
        config: PageConfig,
        seed: u64,
        trims: &[TrimRange],
    ) -> Result<(Self, Recovered), ConfigError> {
        let mut map = Self::new(flash.geometry().clone(), config, seed)?;
        let blocks = map.geometry().blocks();
        let mut scan = Scan {
            best: vec![Best::default(); map.l2p.len()],
            tombstones: Vec::new(),
            first_sequence: vec![0; blocks as usize],
            newest: Recovered::default(),
        };
        for part in map.die_groups.iter_mut().flat_map(|die_group| &mut die_group.parts) {
            part.free.clear();
        }
        for block in (0..blocks).map(BlockId) {
            let erases = flash.erases(block);
            map.erases[block.0 as usize] = erases;
            let (die_group, place) = map.layout.split_block(block);
            let kind = map.kind_at(place);
            map.die_groups[die_group.0 as usize].part_mut(kind).erases += u64::from(erases);
            if flash.is_bad(block) {
                let holds = !flash.is_erased(block) && !flash.is_unstable(block);
                map.found_bad(block, holds);
                if !holds {
                    continue;
                }
            } else if flash.is_erased(block) {
                map.die_groups[die_group.0 as usize].part_mut(kind).free.push_back(block.0);
                continue;
            }
            // Open while units are added, sealed at the end.
            map.blocks[block.0 as usize].state = BlockState::Open;
            // The data that an interrupted erase has left in a superblock was moved before; as
            // data, it would win against its copies.
            if !flash.is_unstable(block) {
                map.scan_block(flash, block, &mut scan)?;
            }
        }
        scan.newest.newest_version =
            trim_best(trims, scan.newest.newest_version, |lpn, version| {
                if let Some(best) = scan.best.get_mut(lpn as usize)
                    && best.version < version
                {
                    *best = Best::default();
                }
            });
        let newest = scan.newest;
        map.settle(scan);
        Ok((map, newest))
    }

    fn scan_block(
        &mut self,
        flash: &mut impl FlashScan,
        block: BlockId,
        scan: &mut Scan,
    ) -> Result<(), ConfigError> {
        let foreign = |why| ConfigError::Foreign { block: block.0, why };
        let first = self.layout.first_program_unit(block).0;
        let mut found = Vec::new();
        for program_unit in
            (first..first + self.layout.program_units_per_block()).map(ProgramUnitId)
        {
            found.clear();
            let sequence = flash.program_unit(program_unit, &mut found);
            let start = &mut scan.first_sequence[block.0 as usize];
            *start = if *start == 0 { sequence } else { *start };
            scan.newest.newest_sequence = scan.newest.newest_sequence.max(sequence);
            let newest = &mut scan.newest.newest_version;
            for unit in found.drain(..) {
                let at = self.layout.first_unit(program_unit).0 + unit.place;
                match unit.tag {
                    UnitTag::Pad => {}
                    UnitTag::Data(lpn) => {
                        let best = scan.best.get_mut(lpn as usize);
                        let best = best.ok_or_else(|| foreign("a unit is beyond the drive"))?;
                        best.offer(unit.version, at + 1, sequence);
                        self.p2l[at as usize] = lpn + 1;
                        self.blocks[block.0 as usize].frontier = self.frontier_found(block, lpn);
                        *newest = unit.version.max(*newest);
                    }
                    UnitTag::Tombstone => {
                        self.p2l[at as usize] = P2L_TOMBSTONE;
                        for range in &unit.trims {
                            *newest = range.version.max(*newest);
                            let end = range.start.saturating_add(range.count);
                            let span = scan.best.get_mut(range.start as usize..end as usize);
                            let span = span.ok_or_else(|| foreign("a trim is beyond the drive"))?;
                            for best in span {
                                best.offer(range.version, (at + 1) | TRIMMED, sequence);
                            }
                        }
                        scan.tombstones.push((Pun(at), unit.trims));
                    }
                }
            }
        }
        Ok(())
    }

    /// The frontier that may have written `lpn` to `block`.
    fn frontier_found(&self, block: BlockId, lpn: u32) -> u16 {
        if let Some(first) = self.config.slc_frontier() {
            let overflowed = !self.layout.is_slc(block) && self.config.belongs_to_region(lpn, 0);
            if overflowed {
                return 0;
            }
            if self.layout.is_slc(block) {
                return first as u16;
            }
        }
        // Placement handles are not on flash; only segments and the map stay separate.
        self.config.stream_of(lpn, 0) as u16
    }

    fn settle(&mut self, scan: Scan) {
        let mut refs = prism_base::FastMap::<u32, u32>::default();
        for (lpn, best) in scan.best.iter().enumerate() {
            if best.entry & TRIMMED != 0 {
                *refs.entry((best.entry & !TRIMMED) - 1).or_default() += 1;
                self.l2p[lpn] = best.entry;
            } else if best.entry != 0 {
                self.map(lpn as u32, Pun(best.entry - 1));
            }
        }
        for (at, ranges) in scan.tombstones {
            if let Some(&refs) = refs.get(&at.0) {
                self.add_tombstone(at, ranges, refs);
            }
        }
        // In the order in which they were first written, for policies by age.
        let mut written: Vec<_> = (0..self.blocks.len() as u32)
            .filter(|&index| self.blocks[index as usize].state == BlockState::Open)
            .collect();
        written.sort_by_key(|&index| scan.first_sequence[index as usize]);
        for index in written {
            self.close(BlockId(index));
            let sealed = self.blocks[index as usize].state == BlockState::Sealed;
            if sealed && self.is_dead(BlockId(index)) {
                let (die_group, _) = self.layout.split_block(BlockId(index));
                self.die_groups[die_group.0 as usize].dead.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_nand::{DieGroupId, Geometry, Nand, StoredUnit};

    use super::*;
    use crate::page::Frontiers;
    use crate::victim::VictimPolicy;

    #[test]
    fn recovery_keeps_ages_and_dead_blocks_go_first() {
        let geometry = Geometry { blocks_per_plane: 8, pages_per_block: 2, ..Geometry::SMALLEST };
        let config = PageConfig::simple(5, VictimPolicy::Fifo, Frontiers::Shared);
        let mut nand = Nand::with_content(geometry.clone());
        // Block 3 is the oldest, then 1 and 0; 2 has an old version only.
        for (order, (block, lpn, version)) in
            [(3, 0, 1), (2, 1, 2), (1, 2, 3), (0, 1, 4)].into_iter().enumerate()
        {
            let program_unit = nand.layout().first_program_unit(BlockId(block));
            let unit = StoredUnit { tag: UnitTag::Data(lpn), version, payload: None };
            nand.program_begin(program_unit, [unit]).unwrap();
            nand.program_end(program_unit);
            assert_eq!(nand.sequence(program_unit), order as u64 + 1);
        }
        let (mut map, found) = PageMap::recover_from(&mut &nand, config, 1, &[]).unwrap();
        map.assert_consistent();
        assert_eq!((found.newest_version, map.mapped(), map.free_blocks(DieGroupId(0))), (4, 3, 4));
        let victims: Vec<_> = (0..5).map(|_| map.pick_victim(DieGroupId(0))).collect();
        assert_eq!(victims, [Some(2), Some(3), Some(1), Some(0), None].map(|v| v.map(BlockId)));
    }
}
