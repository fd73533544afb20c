//! SLC blocks: cases worked out by hand.

use prism_ftl::{
    ConfigError, Frontiers, Ftl, PageConfig, PageMap, Placement, SlcConfig, SlcRule, SlcUse,
    UnitWrite, Units, VictimPolicy,
};
use prism_nand::{BlockId, Cause, DieGroupId, Geometry, ProgramUnitId, Pun, Slc};

const DIE_GROUP: DieGroupId = DieGroupId(0);

/// One die with blocks of four program units of one unit; SLC blocks have two program units.
fn geometry(blocks: u32, slc: u32) -> Geometry {
    Geometry {
        blocks_per_plane: blocks,
        pages_per_block: 4,
        slc: Some(Slc { blocks: slc, bits: 2 }),
        ..Geometry::SMALLEST
    }
}

fn config(logical: u32, usage: SlcUse, low: u32) -> PageConfig {
    PageConfig {
        free_blocks_low: 3,
        free_blocks_high: 3,
        slc: Some(SlcConfig { usage, free_blocks_low: low, free_blocks_high: low }),
        ..PageConfig::simple(logical, VictimPolicy::Greedy, Frontiers::Separate)
    }
}

fn write(map: &mut PageMap, lpn: u32, version: u64) -> ProgramUnitId {
    let stream = map.stream_of(lpn, 0);
    assert!(map.host_may_write(DIE_GROUP, stream), "room for unit {lpn}");
    let program_unit =
        map.put_program_unit(DIE_GROUP, stream, &[UnitWrite { lpn, source: None, version }]);
    map.assert_consistent();
    program_unit
}

/// Empties `victim` one program unit at a time; returns the program units of its copies.
fn empty(map: &mut PageMap, victim: BlockId) -> Vec<u32> {
    let (mut units, mut reads) = (Units::new(), Vec::new());
    let (mut cursor, mut program_units) = (0, Vec::new());
    loop {
        map.gather(victim, &mut cursor, &mut units, &mut reads);
        if units.is_empty() {
            map.erased(victim);
            map.assert_consistent();
            return program_units;
        }
        let program_unit = map.reserve_copy(DIE_GROUP, victim);
        let first = map.layout().first_unit(program_unit).0;
        for (unit, at) in units.iter().zip(first..) {
            map.commit(unit, Pun(at));
        }
        map.program_unit_done(program_unit);
        program_units.push(program_unit.0);
    }
}

#[test]
fn a_cache_fills_overflows_and_is_folded_oldest_first() {
    // Three cache blocks, then ten others from program unit 12 on.
    let usage = SlcUse::Cache { fold_when_idle: true };
    let mut map = PageMap::new(geometry(13, 3), config(14, usage, 0), 1).unwrap();
    let program_units: Vec<u32> = (0..8).map(|lpn| write(&mut map, lpn, 1).0).collect();
    assert_eq!(
        program_units,
        [0, 1, 4, 5, 8, 9, 12, 13],
        "two program units per block, then outside of the cache"
    );
    assert!(map.is_overflow(ProgramUnitId(12), 0) && !map.is_overflow(ProgramUnitId(9), 0));
    assert_eq!((map.slc_valid(DIE_GROUP), map.slc_free_blocks(DIE_GROUP)), (6, 0));
    assert_eq!(map.pick_victim(DIE_GROUP), None, "nothing is folded while the host is busy");
    write(&mut map, 2, 2);
    assert!(map.folds_when_idle(DIE_GROUP));
    let victim = map.pick_in_idle(DIE_GROUP).unwrap();
    assert_eq!((victim, map.cause_of_cleaning(victim)), (BlockId(0), Cause::Fold));
    assert_eq!(empty(&mut map, victim), [16, 17], "copies have a block of their own");
    let victim = map.pick_in_idle(DIE_GROUP).unwrap();
    assert_eq!((victim, empty(&mut map, victim)), (BlockId(1), vec![18]), "unit 2 is newer");
    assert_eq!(write(&mut map, 9, 3), ProgramUnitId(0), "the cache takes data again");
    let victim = map.pick_in_idle(DIE_GROUP).unwrap();
    assert_eq!((victim, empty(&mut map, victim)), (BlockId(2), vec![19, 20]));
    assert_eq!(map.pick_in_idle(DIE_GROUP), None, "the open block stays");
    assert_eq!((map.slc_valid(DIE_GROUP), map.mapped()), (1, 9));
}

#[test]
fn the_host_leaves_a_block_for_folding_and_one_for_cleaning() {
    let usage = SlcUse::Cache { fold_when_idle: true };
    let mut map = PageMap::new(geometry(11, 2), config(4, usage, 0), 1).unwrap();
    // The cache accepts four units, and of nine blocks the host may fill seven.
    for version in 0..4 + 7 * 4 {
        write(&mut map, version % 4, u64::from(version) + 1);
    }
    assert_eq!((map.free_blocks(DIE_GROUP), map.host_may_write(DIE_GROUP, 0)), (2, false));
    let victim = map.pick_victim(DIE_GROUP).unwrap();
    assert_eq!((map.cause_of_cleaning(victim), empty(&mut map, victim)), (Cause::Gc, vec![]));
    assert!(map.pick_victim(DIE_GROUP).is_none() && map.host_may_write(DIE_GROUP, 0));
}

#[test]
fn a_region_keeps_its_data_separate() {
    // Ten region blocks of two program units, of which one of garbage makes a victim.
    let usage = SlcUse::Region(SlcRule::Below(2));
    let fifo = PageConfig { victim: VictimPolicy::Fifo, ..config(12, usage, 2) };
    let mut map = PageMap::new(geometry(20, 10), fifo, 1).unwrap();
    let slc = map.config().slc_frontier().unwrap();
    assert_eq!([0, 1, 2, 11].map(|lpn| map.stream_of(lpn, 0)), [slc, slc, 0, 0]);
    let program_units: Vec<u32> = [0, 5, 1, 6, 0].map(|lpn| write(&mut map, lpn, 1).0).into();
    assert_eq!(program_units, [0, 40, 1, 41, 4]);
    for version in 2..17 {
        write(&mut map, 0, version);
    }
    // Nine blocks are used, one is left for copies.
    assert_eq!((map.slc_free_blocks(DIE_GROUP), map.host_may_write(DIE_GROUP, slc)), (1, false));
    assert!(map.host_may_write(DIE_GROUP, 0), "other data does not wait for the region");
    let mut copies = Vec::new();
    for version in 17..200 {
        while !map.host_may_write(DIE_GROUP, slc) {
            let victim = map.pick_victim(DIE_GROUP).unwrap();
            assert_eq!(map.cause_of_cleaning(victim), Cause::Gc);
            copies.extend(empty(&mut map, victim));
        }
        write(&mut map, 0, version);
    }
    // Block 0 was cleaned, and unit 1 moved. Its new block, the last one, stays open.
    assert_eq!((copies, map.lookup(1)), (vec![36], Some(Pun(36))));
    assert_eq!(map.lookup(5), Some(Pun(40)), "no other unit has moved");
}

/// The second program of the cache fails: its unit gets another program unit of the cache, and the
/// other unit of the block is folded, since the block is no longer used.
#[test]
fn a_failed_program_in_the_cache_closes_its_block_and_folds_it() {
    let usage = SlcUse::Cache { fold_when_idle: false };
    let mut map = PageMap::new(geometry(13, 3), config(14, usage, 0), 1).unwrap();
    assert_eq!(write(&mut map, 0, 1), ProgramUnitId(0));
    let spare = map.spare_blocks();
    assert_eq!(map.slc_spare_blocks(), Some(2));
    let program_unit = map.reserve_host(DIE_GROUP, 0);
    assert_eq!(program_unit, ProgramUnitId(1));
    map.program_failed(program_unit);
    assert_eq!((map.bad_blocks(), map.slc_spare_blocks()), (1, Some(1)));
    assert_eq!(map.spare_blocks(), spare, "no other block is lost");
    assert_eq!(write(&mut map, 1, 2), ProgramUnitId(4), "the next block of the cache");
    assert_eq!(map.lookup(0), Some(Pun(0)), "still readable");
    let mut ftl = Ftl::from(map);
    let failed = ftl.pick_failed(DIE_GROUP).unwrap();
    let (mut cursor, mut units, mut reads) = (0, Units::new(), Vec::new());
    ftl.gather(failed, &mut cursor, &mut units, &mut reads);
    assert_eq!((failed, units.len(), units[0].lpn), (BlockId(0), 1, 0));
    let program_unit = ftl.reserve_copy(DIE_GROUP, failed);
    assert_eq!(program_unit, ProgramUnitId(12), "a block that is not SLC");
    ftl.commit(program_unit, &units, &[]);
    ftl.gather(failed, &mut cursor, &mut units, &mut reads);
    assert!(units.is_empty());
    assert_eq!(ftl.emptied(failed), None, "retired and not erased");
    ftl.assert_consistent();
    assert_eq!((ftl.lookup(0), ftl.pick_failed(DIE_GROUP)), (Some(Pun(12)), None));
}

/// Lost blocks of a region of ten reduce its limit: 12 units with ten blocks, 2 with five, none
/// with four. Three of them are for program units in flight.
#[test]
fn a_region_shrinks_and_overflows_to_other_blocks() {
    let slc = |map: &PageMap| map.config().slc_frontier().unwrap();
    let handles = PageConfig {
        placement: Placement::Handles(2),
        ..config(12, SlcUse::Region(SlcRule::Handle(1)), 2)
    };
    for (bad, first) in [(5, 5 * 4), (6, 40)] {
        let mut map = PageMap::new(geometry(24, 10), handles.clone(), 1).unwrap();
        map.set_aside((0..bad).map(BlockId)).unwrap();
        let stream = slc(&map);
        assert_eq!(map.reserve_host(DIE_GROUP, stream), ProgramUnitId(first), "{bad} are bad");
        assert!(!map.is_read_only() && !map.below_low(DIE_GROUP) && map.reached_high(DIE_GROUP));
    }
    let below = |units| config(12, SlcUse::Region(SlcRule::Below(units)), 2);
    for (units, bad, fits) in [(9, 0, true), (9, 1, false), (7, 1, true), (7, 2, false)] {
        let mut map = PageMap::new(geometry(24, 10), below(units), 1).unwrap();
        let aside = map.set_aside((0..bad).map(BlockId));
        assert_eq!(aside.is_ok(), fits, "{units} units and {bad} bad blocks");
        assert_eq!(map.is_read_only(), !fits);
    }
}

/// Ten blocks of a region may hold twelve units, and seven blocks six. FIFO would move the oldest
/// block forever without gaining room.
#[test]
fn an_overfull_region_is_not_cleaned_without_end() {
    let handles = PageConfig {
        placement: Placement::Handles(2),
        victim: VictimPolicy::Fifo,
        ..config(14, SlcUse::Region(SlcRule::Handle(1)), 2)
    };
    let mut map = PageMap::new(geometry(24, 10), handles, 1).unwrap();
    let put = |map: &mut PageMap, lpn| {
        let stream = map.stream_of(lpn, 1);
        map.put_program_unit(DIE_GROUP, stream, &[UnitWrite { lpn, source: None, version: 1 }])
    };
    let program_units: Vec<u32> = (0..13).map(|lpn| put(&mut map, lpn).0).collect();
    assert_eq!(program_units[..12], [0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21]);
    assert_eq!(
        (program_units[12], map.slc_valid(DIE_GROUP), map.slc_free_blocks(DIE_GROUP)),
        (40, 12, 4)
    );
    map.set_aside((7..10).map(BlockId)).unwrap();
    assert!(map.below_low(DIE_GROUP), "one erased block is left");
    assert_eq!(map.pick_victim(DIE_GROUP), None, "cleaning gains nothing");
    // Both units of block 0 are rewritten elsewhere: then its erase gains room.
    assert_eq!([put(&mut map, 0), put(&mut map, 1)], [ProgramUnitId(41), ProgramUnitId(42)]);
    assert_eq!(map.pick_victim(DIE_GROUP), Some(BlockId(0)));
    map.assert_consistent();
}

/// Copies out of a region without an erased block are written to the other blocks, unless these
/// have no room for the addresses of the region.
#[test]
fn copies_leave_a_region_that_has_no_erased_block() {
    let handles = PageConfig {
        placement: Placement::Handles(2),
        ..config(12, SlcUse::Region(SlcRule::Handle(1)), 2)
    };
    let below = config(12, SlcUse::Region(SlcRule::Below(9)), 2);
    for (config, expected) in [(handles, Some(ProgramUnitId(40))), (below, None)] {
        let mut map = PageMap::new(geometry(24, 10), config, 1).unwrap();
        let stream = map.config().slc_frontier().unwrap();
        let first = map.reserve_host(DIE_GROUP, stream);
        let unit = UnitWrite { lpn: 1, source: None, version: 1 };
        map.write_begin(1);
        map.commit(&unit, Pun(first.0));
        map.program_unit_done(first);
        // The second program unit of the block fails, and then every program unit for its data.
        let second = map.reserve_host(DIE_GROUP, stream);
        map.program_failed(second);
        let victim = map.pick_failed(DIE_GROUP).unwrap();
        for block in 1..10 {
            assert_eq!(
                map.next_copy_program_unit(DIE_GROUP, victim),
                Some(ProgramUnitId(4 * block))
            );
            let program_unit = map.reserve_copy(DIE_GROUP, victim);
            map.program_failed(program_unit);
        }
        assert_eq!(map.next_copy_program_unit(DIE_GROUP, victim), expected);
        assert_eq!(map.is_read_only(), expected.is_none());
    }
}

#[test]
fn invalid_configurations_are_named() {
    let check = |geometry: Geometry, config: PageConfig, expected: &str| {
        let message = PageMap::new(geometry, config, 1).unwrap_err().to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    };
    let cache = SlcUse::Cache { fold_when_idle: true };
    let without = Geometry { slc: None, ..geometry(13, 3) };
    check(without, config(4, cache, 0), "give slc.blocks");
    let unused = PageConfig { slc: None, ..config(4, cache, 0) };
    check(geometry(13, 3), unused, "are SLC but have no use");
    check(geometry(13, 3), config(4, cache, 3), "slc.free_blocks_low is 3");
    check(geometry(13, 3), PageConfig { free_blocks_low: 2, ..config(4, cache, 0) }, "low is 2");
    let region = |units| config(12, SlcUse::Region(SlcRule::Below(units)), 2);
    check(geometry(20, 10), region(10), "hold at most 9");
    let most = PageMap::new(geometry(20, 10), region(9), 1);
    assert!(most.is_ok());
    let huge = PageMap::new(geometry(13, 3), config(1000, cache, 0), 1).unwrap_err();
    assert!(matches!(huge, ConfigError::NoSpare { .. }));
}
