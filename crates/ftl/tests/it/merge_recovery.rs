//! Recovery from a merge during which the host continued to write, operation by operation.

use prism_ftl::{Ftl, FtlConfig, HybridConfig, Logs, UnitWrite, Units, VictimPolicy};
use prism_nand::{DieGroupId, Geometry, Nand, ProgramUnitId, StoredUnit, UnitTag};

const DIE_GROUP: DieGroupId = DieGroupId(0);
/// Units of a logical block, one per program unit.
const BLOCK: u32 = 4;

/// When the program ends that the host begins during the merge.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// Before the copies are programmed.
    Before,
    /// After the merge has taken effect.
    After,
}

struct Flash {
    nand: Nand,
    ftl: Ftl,
    config: FtlConfig,
    version: u64,
}

impl Flash {
    fn new() -> Self {
        let geometry =
            Geometry { blocks_per_plane: 8, pages_per_block: BLOCK, ..Geometry::SMALLEST };
        let config = FtlConfig::Hybrid(HybridConfig {
            logical_units: 3 * BLOCK,
            logs: Logs::Groups,
            gaps: false,
            group_blocks: 1,
            group_log_blocks: 3,
            log_blocks: 4,
            victim: VictimPolicy::Fifo,
            free_blocks_low: 0,
            free_blocks_high: 0,
            reserve_blocks: 0,
        });
        let ftl = Ftl::new(geometry.clone(), config.clone(), 1).unwrap();
        Self { nand: Nand::with_content(geometry), ftl, config, version: 0 }
    }

    /// Begins a host program of `lpn`.
    fn begin(&mut self, lpn: u32) -> (ProgramUnitId, UnitWrite) {
        self.version += 1;
        let write = UnitWrite { lpn, source: None, version: self.version };
        let program_unit = self.ftl.reserve_host(DIE_GROUP, self.ftl.stream_of(lpn, 0), lpn);
        self.ftl.write_begin(lpn);
        let unit = StoredUnit { tag: UnitTag::Data(lpn), version: self.version, payload: None };
        self.nand.program_begin(program_unit, [unit]).unwrap();
        (program_unit, write)
    }

    fn end(&mut self, (program_unit, write): (ProgramUnitId, UnitWrite)) {
        self.nand.program_end(program_unit);
        self.ftl.commit(program_unit, &[write], &[]);
    }

    fn write(&mut self, lpn: u32) {
        let begun = self.begin(lpn);
        self.end(begun);
    }

    fn copy(&mut self, program_unit: ProgramUnitId, units: &[UnitWrite]) {
        let pad = StoredUnit { tag: UnitTag::Pad, version: 0, payload: None };
        let stored = units.iter().map(|unit| match unit.source {
            Some(source) => self.nand.read(source).unwrap().cloned().unwrap(),
            None => pad.clone(),
        });
        let stored: Vec<_> = stored.collect();
        self.nand.program_begin(program_unit, stored).unwrap();
        self.nand.program_end(program_unit);
        self.ftl.commit(program_unit, units, &[]);
    }

    /// The physical unit of each logical unit, by the FTL and by a scan of the flash.
    fn places(&self) -> [Vec<Option<u32>>; 2] {
        let (found, _) = Ftl::recover(&mut &self.nand, self.config.clone(), 1, &[]).unwrap();
        found.assert_consistent();
        [&self.ftl, &found]
            .map(|ftl| (0..3 * BLOCK).map(|lpn| ftl.lookup(lpn).map(|at| at.0)).collect())
    }
}

#[test]
fn a_merge_includes_later_host_writes() {
    for ends in [Ends::Before, Ends::After] {
        let mut flash = Flash::new();
        // Out of order, so that it is a full merge of two program units.
        flash.write(1);
        flash.write(0);
        flash.ftl.request_all_merges();
        let victim = flash.ftl.pick_victim(DIE_GROUP).expect("a log block to merge");
        let (mut units, mut reads) = (Units::new(), Vec::new());
        let mut cursor = 0;
        let mut planned = Vec::new();
        for _ in 0..2 {
            flash.ftl.gather(victim, &mut cursor, &mut units, &mut reads);
            planned.push((flash.ftl.reserve_copy(DIE_GROUP, victim), units.clone()));
        }
        // The host writes before the first copy, to a unit after the last one.
        let begun = flash.begin(3);
        if ends == Ends::Before {
            flash.end(begun);
        }
        for (program_unit, units) in planned {
            flash.copy(program_unit, &units);
        }
        loop {
            flash.ftl.gather(victim, &mut cursor, &mut units, &mut reads);
            if units.is_empty() {
                break;
            }
            let program_unit = flash.ftl.reserve_copy(DIE_GROUP, victim);
            flash.copy(program_unit, &units.clone());
        }
        assert_eq!(cursor, BLOCK, "{ends:?}: it is extended to the later unit");
        assert_eq!(flash.ftl.emptied(victim), None, "there was no data block before");
        if ends == Ends::After {
            flash.end(begun);
        }
        // The sources of all copies are still readable, and yet the merge is recognised as
        // complete.
        let [kept, found] = flash.places();
        assert_eq!(found, kept, "{ends:?}");
    }
}

#[test]
fn an_incomplete_merge_is_discarded() {
    let mut flash = Flash::new();
    for lpn in [1, 0, 2] {
        flash.write(lpn);
    }
    let before = flash.places()[1].clone();
    flash.ftl.request_all_merges();
    let victim = flash.ftl.pick_victim(DIE_GROUP).expect("a log block to merge");
    let (mut units, mut reads) = (Units::new(), Vec::new());
    let mut cursor = 0;
    for program_units in 0..3 {
        assert_eq!(flash.places()[1], before, "after {program_units} program units of 3");
        flash.ftl.gather(victim, &mut cursor, &mut units, &mut reads);
        let program_unit = flash.ftl.reserve_copy(DIE_GROUP, victim);
        flash.copy(program_unit, &units.clone());
    }
    assert_ne!(flash.places()[1], before, "complete, although not yet in the map");
}
