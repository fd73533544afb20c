//! The map rebuilt from what stands in the flash after power was lost.

use prism_nand::{BlockId, Nand, Pun, UnitTag};

use crate::config::{ConfigError, FtlConfig};
use crate::pagemap::{BlockState, P2L_TOMBSTONE, PageMap, TRIMMED};
use crate::plan::TrimRange;

/// The best that was found for a logical unit.
#[derive(Clone, Copy, Default)]
struct Best {
    version: u64,
    /// Of two copies of one version the one programmed first wins: the other one is what
    /// an interrupted cleaning had written, and its block, without anything else that is
    /// live, can be erased at once. Otherwise cuts that come again and again would use up
    /// the reserve of erased blocks.
    sequence: u64,
    /// As in the map.
    entry: u32,
}

impl PageMap {
    /// Scans the out-of-band bytes of every programmed unit of `nand`, which keeps
    /// content. For each logical unit the highest version wins, be it data or the range
    /// of a tombstone. Returns the map and the highest version seen.
    ///
    /// Blocks that were being written are closed as they are; a block whose erase was
    /// interrupted holds nothing and is erased again before it is used, as every victim
    /// is. Nothing is written here, so that power may go again at any moment.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit the flash.
    ///
    /// # Panics
    /// If `nand` keeps no content.
    pub fn recover(nand: &Nand, config: FtlConfig, seed: u64) -> Result<(Self, u64), ConfigError> {
        assert!(nand.keeps_content(), "recovery reads what the flash holds");
        let mut map = Self::new(nand.geometry().clone(), config, seed)?;
        let mut best = vec![Best::default(); map.l2p.len()];
        let mut tombstones: Vec<(Pun, Vec<TrimRange>)> = Vec::new();
        let mut newest = 0;
        for lane in &mut map.lanes {
            lane.free.clear();
        }
        let dies = map.layout.dies_per_lane() as usize;
        for index in 0..nand.geometry().blocks() {
            let block = BlockId(index);
            let first = index as usize * dies;
            let worn = nand.erase_counts()[first..first + dies].iter().max();
            map.erases[index as usize] = *worn.expect("a block has members");
            let (lane, _) = map.layout.split_block(block);
            map.lanes[lane.0 as usize].erases += u64::from(map.erases[index as usize]);
            if nand.rows_programmed(block) == 0 && !nand.is_unstable(block) {
                map.lanes[lane.0 as usize].free.push_back(index);
                continue;
            }
            // Open for as long as units are put into it, sealed at the end.
            map.state[index as usize] = BlockState::Open;
            // What an interrupted erase has left of a superblock was moved before: taken
            // for data, it would win against its copies.
            if !nand.is_unstable(block) {
                newest = newest.max(map.scan_block(nand, block, &mut best, &mut tombstones));
            }
        }
        map.settle(nand, &best, tombstones);
        Ok((map, newest))
    }

    fn scan_block(
        &mut self,
        nand: &Nand,
        block: BlockId,
        best: &mut [Best],
        tombstones: &mut Vec<(Pun, Vec<TrimRange>)>,
    ) -> u64 {
        let first = self.layout.first_unit(self.layout.first_row(block)).0;
        let mut newest = 0;
        let offer = |best: &mut Best, version, entry, sequence| {
            let newer = version > best.version;
            if newer || best.entry == 0 || version == best.version && sequence < best.sequence {
                *best = Best { version, sequence, entry };
            }
        };
        for at in first..first + self.layout.units_per_block() {
            // What is erased, torn or half erased holds nothing.
            let Ok(Some(unit)) = nand.read(Pun(at)) else { continue };
            let sequence = nand.sequence(self.layout.row_of(Pun(at)));
            match unit.tag {
                UnitTag::Pad => {}
                UnitTag::Data(lpn) => {
                    self.p2l[at as usize] = lpn + 1;
                    // Its handle is not on flash; only segments and the map stay apart.
                    let stream = self.config.stream_of(lpn, 0);
                    self.frontier_of[block.0 as usize] = stream as u16;
                    newest = newest.max(unit.version);
                    offer(&mut best[lpn as usize], unit.version, at + 1, sequence);
                }
                UnitTag::Tombstone => {
                    self.p2l[at as usize] = P2L_TOMBSTONE;
                    let ranges = TrimRange::decode_all(unit.payload.as_deref().unwrap_or(&[]));
                    for range in &ranges {
                        newest = newest.max(range.version);
                        let span = range.start as usize..(range.start + range.count) as usize;
                        for best in &mut best[span] {
                            offer(best, range.version, (at + 1) | TRIMMED, sequence);
                        }
                    }
                    tombstones.push((Pun(at), ranges));
                }
            }
        }
        newest
    }

    fn settle(&mut self, nand: &Nand, best: &[Best], tombstones: Vec<(Pun, Vec<TrimRange>)>) {
        let mut refs = prism_base::FastMap::<u32, u32>::default();
        for (lpn, best) in best.iter().enumerate() {
            if best.entry & TRIMMED != 0 {
                *refs.entry((best.entry & !TRIMMED) - 1).or_default() += 1;
                self.l2p[lpn] = best.entry;
            } else if best.entry != 0 {
                self.map(lpn as u32, Pun(best.entry - 1));
            }
        }
        for (at, ranges) in tombstones {
            if let Some(&refs) = refs.get(&at.0) {
                self.add_tombstone(at, ranges, refs);
            }
        }
        // In the order in which they were first written, for policies that go by age.
        let mut written: Vec<_> = (0..self.state.len() as u32)
            .filter(|&index| self.state[index as usize] == BlockState::Open)
            .collect();
        written.sort_by_key(|&index| nand.sequence(self.layout.first_row(BlockId(index))));
        for index in written {
            self.seal(BlockId(index));
            if self.is_dead(BlockId(index)) {
                let (lane, _) = self.layout.split_block(BlockId(index));
                self.lanes[lane.0 as usize].dead.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Bytes;
    use prism_nand::{Geometry, LaneId, StoredUnit};

    use super::*;
    use crate::config::Frontiers;
    use crate::victim::VictimPolicy;

    #[test]
    fn age_survives_and_the_dead_go_first() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes: 1,
            planes_ganged: 1,
            blocks_per_plane: 8,
            pages_per_block: 2,
            pages_per_program: 1,
            dies_per_superblock: 1,
            parity: false,
            page: Bytes(4096),
            unit: Bytes(4096),
        };
        let config = FtlConfig::simple(5, VictimPolicy::Fifo, Frontiers::Shared);
        let mut nand = Nand::with_content(geometry.clone());
        // Block 3 is the oldest, then 1 and 0; 2 holds an old version only.
        for (order, (block, lpn, version)) in
            [(3, 0, 1), (2, 1, 2), (1, 2, 3), (0, 1, 4)].into_iter().enumerate()
        {
            let row = nand.layout().first_row(BlockId(block));
            let unit = StoredUnit { tag: UnitTag::Data(lpn), version, payload: None };
            nand.program_begin(row, [unit]).unwrap();
            nand.program_end(row);
            assert_eq!(nand.sequence(row), order as u64 + 1);
        }
        let (mut map, newest) = PageMap::recover(&nand, config, 1).unwrap();
        map.assert_consistent();
        assert_eq!((newest, map.mapped(), map.free_blocks(LaneId(0))), (4, 3, 4));
        let victims: Vec<_> = (0..5).map(|_| map.pick_victim(LaneId(0))).collect();
        assert_eq!(victims, [Some(2), Some(3), Some(1), Some(0), None].map(|v| v.map(BlockId)));
    }
}
