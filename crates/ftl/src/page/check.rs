//! Checks the whole map.

use prism_base::{FastMap, prefetch};
use prism_nand::{BlockId, Pun};

use super::{PageMap, TRIM_STEP, TRIMMED};
use crate::plan::UnitWrite;

impl PageMap {
    /// As [`PageMap::assert_conserved`], recounted over every logical unit and block. Walks the
    /// whole map.
    ///
    /// # Panics
    /// If a sum or an array disagrees with the map.
    pub fn assert_consistent(&self) {
        self.assert_conserved();
        let mut refs: FastMap<u32, u32> = FastMap::default();
        let mut mapped = 0;
        for entries in self.l2p.chunks(TRIM_STEP) {
            // Most of a large map is often unused: such stretches are skipped as wholes.
            if entries.iter().fold(0, |any, &entry| any | entry) == 0 {
                continue;
            }
            for &entry in entries {
                if entry & TRIMMED != 0 {
                    *refs.entry((entry & !TRIMMED) - 1).or_default() += 1;
                } else if entry != 0 {
                    mapped += 1;
                }
            }
        }
        assert_eq!(mapped, self.mapped, "every mapped unit is counted");
        assert_eq!(refs.len(), self.tombstones.len(), "each tombstone has a reference");
        for (&unit, &count) in &refs {
            assert_eq!(self.tombstones[&unit].refs, count, "references of a tombstone");
        }
        let (mut data, mut tombstones) = (0, 0);
        for (block, counted) in (0..).map(BlockId).zip(&self.blocks) {
            let (units, others) = self.count_live(block, &refs);
            assert_eq!(counted.valid, units + others, "valid counts must match the map");
            data += u64::from(units);
            tombstones += u64::from(others);
        }
        // Each valid unit is the one that the map names for its logical unit. So if both are as
        // many, every mapped unit is valid.
        assert_eq!(data, self.mapped, "a mapped unit is live");
        assert_eq!(tombstones, self.live_tombstones, "a tombstone with references is live");
        self.assert_kinds();
    }

    /// The valid units of `block` with data and those with tombstones, of which `refs` has the
    /// references. Checks that the map points to them.
    fn count_live(&self, block: BlockId, refs: &FastMap<u32, u32>) -> (u32, u32) {
        /// How many units ahead map entries are prefetched.
        const AHEAD: u32 = 32;
        let first = self.layout.first_unit(self.layout.first_program_unit(block)).0;
        let (mut data, mut tombstones) = (0, 0);
        let (mut at, end) = (first, first + self.layout.units_per_block());
        while at < end {
            let word = self.live_bits[at as usize / 64] >> (at % 64);
            if word == 0 {
                // Unused flash is skipped, so that its part of the map takes no memory.
                at += 64 - at % 64;
                continue;
            }
            if let Some(&ahead) = self.p2l.get((at + AHEAD) as usize) {
                prefetch(&self.l2p, ahead.wrapping_sub(1) as usize);
            }
            match self.live(Pun(at)) {
                None => {}
                Some(UnitWrite::TOMBSTONE) => {
                    assert!(refs.contains_key(&at), "the map points to a tombstone");
                    tombstones += 1;
                }
                Some(lpn) => {
                    assert_eq!(self.l2p[lpn as usize], at + 1, "both maps must agree");
                    data += 1;
                }
            }
            at += 1;
        }
        (data, tombstones)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use prism_nand::Geometry;

    use super::*;
    use crate::page::{Frontiers, PageConfig};
    use crate::victim::VictimPolicy;

    /// A map in steady state, and the place of its unit 5.
    fn steady() -> (PageMap, usize) {
        let geometry = Geometry {
            channels: 2,
            blocks_per_plane: 16,
            pages_per_block: 32,
            ..Geometry::SMALLEST
        };
        let config = PageConfig::simple(700, VictimPolicy::Greedy, Frontiers::Shared);
        let map = PageMap::steady(geometry, config, None, 1, std::iter::empty(), &mut |_| true);
        let map = map.unwrap().unwrap();
        let at = map.lookup(5).expect("every unit is mapped").0 as usize;
        (map, at)
    }

    #[test]
    fn every_disagreement_is_found() {
        steady().0.assert_consistent();
        type Damage = fn(&mut PageMap, usize);
        let damage: [(&str, Damage); 6] = [
            ("two map entries exchanged", |map, _| map.l2p.swap(5, 6)),
            ("two units on flash exchanged", |map, at| map.p2l.swap(at, at + 1)),
            ("a unit unmapped", |map, _| map.l2p[5] = 0),
            ("a tombstone that is none", |map, _| map.l2p[5] |= TRIMMED),
            ("a valid unit forgotten", |map, at| map.live_bits[at / 64] &= !(1 << (at % 64))),
            ("a valid unit counted for another block", |map, at| {
                let block = map.layout.block_of_unit(Pun(at as u32)).0 as usize;
                let other = map.layout.block_of_unit(Pun(map.l2p[6] - 1)).0 as usize;
                assert!(block != other, "units 5 and 6 are in different blocks");
                map.blocks[block].valid -= 1;
                map.blocks[other].valid += 1;
            }),
        ];
        for (what, damage) in damage {
            let (mut map, at) = steady();
            damage(&mut map, at);
            let checked = catch_unwind(AssertUnwindSafe(|| map.assert_consistent()));
            assert!(checked.is_err(), "{what} is not found");
        }
    }
}
