//! Zone mapping without a drive: placement of program units, allocation of blocks, and the scan
//! after a torn program unit.

use prism_base::Bytes;
use prism_ftl::{ConfigError, Ftl, FtlConfig, HostPlace, Recovered, UnitWrite, ZonedConfig};
use prism_nand::{BlockId, DieGroupId, Geometry, Nand, ProgramUnitId, StoredUnit, UnitTag};

/// Two die groups of two dies, six blocks each, of eight program units of two units.
fn geometry() -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 2,
        blocks_per_plane: 6,
        pages_per_block: 4,
        dies_per_superblock: 2,
        page: Bytes(8192),
        ..Geometry::SMALLEST
    }
}

const ZONE: u32 = 20;
const CAPACITY: u32 = 16;

fn config(zones: u32) -> FtlConfig {
    config_with(zones, 0)
}

fn config_with(zones: u32, kept: u32) -> FtlConfig {
    FtlConfig::Zoned(ZonedConfig { zones, zone_units: ZONE, kept })
}

struct Zones {
    nand: Nand,
    ftl: Ftl,
    /// Next unit of each zone.
    next: Vec<u32>,
    version: u64,
}

impl Zones {
    fn new(zones: u32) -> Self {
        Self::over(zones, config(zones))
    }

    fn over(zones: u32, config: FtlConfig) -> Self {
        let ftl = Ftl::new(geometry(), config, 1).unwrap();
        let nand = Nand::with_content(geometry());
        Self { nand, ftl, next: vec![0; zones as usize], version: 0 }
    }

    /// Begins the next program unit of `zone`; returns it with its units.
    fn begin(&mut self, zone: u32) -> (ProgramUnitId, Vec<UnitWrite>) {
        let HostPlace::DieGroup(die_group) = self.ftl.host_place(zone, 0) else {
            panic!("no place for zone {zone}");
        };
        let program_unit = self.ftl.reserve_host(die_group, zone, 0);
        let first = zone * ZONE + self.next[zone as usize];
        self.next[zone as usize] += 2;
        let units: Vec<_> = (first..first + 2)
            .map(|lpn| {
                self.version += 1;
                UnitWrite { lpn, source: None, version: self.version }
            })
            .collect();
        let stored = units.iter().map(|unit| {
            let tag = UnitTag::Data(unit.lpn);
            StoredUnit { tag, version: unit.version, payload: None }
        });
        self.nand.program_begin(program_unit, stored.collect::<Vec<_>>()).unwrap();
        (program_unit, units)
    }

    fn write(&mut self, zone: u32) -> ProgramUnitId {
        let (program_unit, units) = self.begin(zone);
        self.nand.program_end(program_unit);
        self.ftl.commit(program_unit, &units, &[]);
        program_unit
    }

    fn reset(&mut self, zone: u32) {
        self.ftl.zoned_mut().unwrap().reset(zone);
        self.next[zone as usize] = 0;
        for die_group in [0, 1].map(DieGroupId) {
            while let Some(block) = self.ftl.pick_victim(die_group) {
                self.erase(block);
            }
        }
    }

    fn erase(&mut self, block: BlockId) {
        for member in 0..2 {
            self.nand.erase_begin(block, member).unwrap();
            self.nand.erase_end(block, member);
        }
        self.ftl.erased(block);
    }

    fn scan(&self) -> (Ftl, Recovered) {
        let zones = self.next.len() as u32;
        let found = Ftl::recover(&mut { &self.nand }, config(zones), 1, &[]).unwrap();
        found.0.assert_consistent();
        found
    }
}

fn block_of(program_unit: ProgramUnitId) -> u32 {
    program_unit.0 / 8
}

#[test]
fn zones_spread_over_die_groups_and_keep_their_places() {
    let mut zones = Zones::new(10);
    let program_units: Vec<_> = (0..4).map(|zone| zones.write(zone)).collect();
    let die_groups: Vec<_> =
        program_units.iter().map(|&program_unit| block_of(program_unit) / 6).collect();
    assert_eq!(die_groups, [0, 1, 0, 1]);
    for _ in 1..8 {
        zones.write(2);
    }
    zones.ftl.assert_consistent();
    let map = zones.ftl.zoned().unwrap();
    assert_eq!((map.written(2), map.has_program_units(2), map.written(9)), (CAPACITY, false, 0));
    let start = program_units[2].0 * 2;
    for unit in 0..ZONE {
        let at = (unit < CAPACITY).then_some(start + unit);
        assert_eq!(map.lookup(2 * ZONE + unit).map(|pun| pun.0), at);
        if let Some(at) = at {
            assert_eq!(map.live(prism_nand::Pun(at)), Some(2 * ZONE + unit));
        }
    }
}

/// Repeated writes and resets of one zone wear all erased blocks evenly.
#[test]
fn the_least_worn_erased_block_is_opened() {
    let mut zones = Zones::new(8);
    for zone in 1..8 {
        zones.write(zone);
    }
    for _ in 0..40 {
        zones.write(0);
        zones.reset(0);
        zones.ftl.assert_consistent();
    }
    let erases = zones.ftl.erases();
    let die_group = |die_group: usize| -> Vec<u32> {
        let free = (die_group * 6..die_group * 6 + 6)
            .filter(|&block| !zones.ftl.is_writing(BlockId(block as u32)));
        free.map(|block| erases[block]).collect()
    };
    for worn in [die_group(0), die_group(1)] {
        let (min, max) = (worn.iter().min().unwrap(), worn.iter().max().unwrap());
        assert!(max - min <= 1, "{worn:?}");
    }
    assert_eq!(erases.iter().sum::<u32>(), 40);
}

#[test]
fn without_erased_blocks_a_zone_waits_for_an_erase() {
    let mut zones = Zones::new(12);
    for zone in 0..12 {
        zones.write(zone);
    }
    let map = zones.ftl.zoned_mut().unwrap();
    map.reset(5);
    assert_eq!(zones.ftl.host_place(5, 0), HostPlace::Blocked);
    let die_group = zones.ftl.make_room(5, 0).unwrap();
    assert!(zones.ftl.below_low(die_group));
    let block = zones.ftl.pick_victim(die_group).unwrap();
    zones.erase(block);
    assert!(zones.ftl.reached_high(die_group));
    assert_eq!(zones.ftl.host_place(5, 0), HostPlace::DieGroup(die_group));
    zones.ftl.assert_consistent();
}

#[test]
fn a_reset_with_program_units_in_flight_waits_for_them() {
    let mut zones = Zones::new(4);
    let (program_unit, units) = zones.begin(0);
    zones.ftl.zoned_mut().unwrap().reset(0);
    assert!(!zones.ftl.below_low(DieGroupId(0)));
    zones.nand.program_end(program_unit);
    zones.ftl.commit(program_unit, &units, &[]);
    assert_eq!((zones.ftl.mapped(), zones.ftl.below_low(DieGroupId(0))), (0, true));
    zones.ftl.assert_consistent();
}

/// A torn program unit ends its zone: it can be read up to there, and has to be reset.
#[test]
fn a_scan_ends_a_zone_at_its_first_gap() {
    let mut zones = Zones::new(6);
    for _ in 0..3 {
        zones.write(0);
    }
    let torn = zones.begin(0).0;
    let (after, units) = zones.begin(0);
    zones.nand.program_end(after);
    zones.ftl.commit(after, &units, &[]);
    for _ in 0..8 {
        zones.write(1);
    }
    assert!(zones.nand.check_read_program_unit(torn).is_err());
    let (mut found, newest) = zones.scan();
    assert_eq!(newest.newest_version, zones.version);
    let map = found.zoned().unwrap();
    assert_eq!((map.written(0), map.is_padded(0), map.has_program_units(0)), (6, true, false));
    assert_eq!((map.written(1), map.is_padded(1), map.written(2)), (CAPACITY, false, 0));
    assert_eq!(map.lookup(8), None, "data after the gap is not mapped");
    found.zoned_mut().unwrap().reset(0);
    found.assert_consistent();
    let die_group = found.make_room(0, 0).expect("its block is to be erased");
    assert!(found.below_low(die_group));
}

/// Of two blocks with data of a zone, the one begun later is valid.
#[test]
fn a_scan_prefers_data_written_after_a_reset() {
    let mut zones = Zones::new(6);
    for _ in 0..8 {
        zones.write(0);
    }
    // Reset, and rewritten before the erase has begun.
    zones.ftl.zoned_mut().unwrap().reset(0);
    zones.next[0] = 0;
    let program_unit = zones.write(0);
    let (found, _) = zones.scan();
    let map = found.zoned().unwrap();
    assert_eq!((map.written(0), map.lookup(0).map(|at| at.0)), (2, Some(program_unit.0 * 2)));
    assert!(found.below_low(DieGroupId(0)) || found.below_low(DieGroupId(1)));
}

#[test]
fn a_failed_block_is_not_used_again() {
    let mut zones = Zones::new(6);
    let program_unit = zones.write(0);
    zones.ftl.zoned_mut().unwrap().zone_failed(0);
    zones.ftl.assert_consistent();
    assert_eq!(zones.ftl.mapped(), 0);
    for _ in 0..30 {
        let taken = zones.write(1);
        assert_ne!(block_of(taken), block_of(program_unit));
        zones.reset(1);
    }
}

#[test]
fn invalid_zones_are_refused() {
    let check = |geometry: Geometry, zones: u32, zone_units: u32| {
        Ftl::new(geometry, FtlConfig::Zoned(ZonedConfig { zones, zone_units, kept: 0 }), 1)
            .unwrap_err()
    };
    let size = check(geometry(), 4, 15);
    assert_eq!(size, ConfigError::ZoneSize { size: 15, capacity: CAPACITY });
    for zones in [0, 13] {
        let expected = ConfigError::Zones { zones, blocks: 12, max: 65_536 };
        assert_eq!(check(geometry(), zones, ZONE), expected);
    }
    let parity = check(Geometry { parity: true, ..geometry() }, 4, ZONE);
    assert_eq!(parity, ConfigError::BlockParity);
}

/// Twelve blocks, ten zones, one reserve block. Program unit 2 of zone 0 fails while program units
/// 3 and 4 are in flight: program unit 3 is on the other die and valid, program unit 4 is after the
/// failed one on the same die and is not.
#[test]
fn a_failed_program_sends_the_rest_of_a_zone_to_a_relocation_block() {
    let mut zones = Zones::over(10, config_with(10, 1));
    assert_eq!(zones.ftl.spare_blocks(), 1);
    assert_eq!([zones.write(0), zones.write(0)], [ProgramUnitId(0), ProgramUnitId(1)]);
    let [failed, other, behind] = [0; 3].map(|_| zones.begin(0));
    zones.ftl.program_failed(failed.0);
    let map = zones.ftl.zoned_mut().unwrap();
    assert_eq!((map.take_broken(), map.take_broken()), (Some(0), None));
    // The zone keeps its own block, so that the number of spare blocks is unchanged.
    assert_eq!((map.is_broken(0), map.spare_blocks(), map.shortage()), (true, 1, 0));
    assert!(!map.is_void(other.0) && map.is_void(behind.0) && map.has_failed(BlockId(0)));
    zones.ftl.commit(other.0, &other.1, &[]);
    zones.ftl.program_failed(behind.0);
    // Die group 1 has one erased block more than die group 0: its first block is the relocation
    // block.
    for (program_unit, units) in [(48, &behind.1), (49, &failed.1)] {
        assert_eq!(zones.ftl.host_place(0, 0), HostPlace::DieGroup(DieGroupId(1)));
        assert_eq!(zones.ftl.reserve_host(DieGroupId(1), 0, 0), ProgramUnitId(program_unit));
        zones.ftl.commit(ProgramUnitId(program_unit), units, &[]);
    }
    let places = [0, 3, 4, 5, 6, 7, 8, 9, 10].map(|lpn| zones.ftl.lookup(lpn).map(|at| at.0));
    let expected = [0, 3, 98, 99, 6, 7, 96, 97].map(Some);
    assert_eq!(places[..8], expected);
    assert_eq!((places[8], zones.ftl.mapped()), (None, 10));
    // The relocation block was the spare block; another broken zone shares it.
    let map = zones.ftl.zoned().unwrap();
    assert_eq!((map.spare_blocks(), map.written(0), map.relocated_units()), (0, 10, 4));
    let (program_unit, units) = zones.begin(1);
    zones.ftl.program_failed(program_unit);
    assert_eq!(zones.ftl.reserve_host(DieGroupId(1), 1, 0), ProgramUnitId(50));
    zones.ftl.commit(ProgramUnitId(50), &units, &[]);
    let map = zones.ftl.zoned().unwrap();
    assert_eq!((map.shortage(), map.spare_blocks(), map.relocated_units()), (0, 0, 6));
    assert_eq!(map.live(prism_nand::Pun(100)), Some(ZONE), "unit 0 of zone 1");
    zones.ftl.assert_consistent();
}

/// Erases of the blocks of zones 0, 1 and 2 fail: the first uses the spare block, and each of the
/// others makes the reset zone unusable.
#[test]
fn a_failed_erase_uses_a_spare_block_or_a_zone() {
    let mut zones = Zones::over(10, config_with(10, 1));
    let mut given_up = Vec::new();
    for zone in 0..3 {
        zones.write(zone);
        zones.ftl.zoned_mut().unwrap().reset(zone);
        let victim =
            (0..2).find_map(|die_group| zones.ftl.pick_victim(DieGroupId(die_group))).unwrap();
        zones.ftl.erase_failed(victim);
        let map = zones.ftl.zoned_mut().unwrap();
        if map.shortage() > 0 {
            let gone = map.zone_to_give_up(|_| true).unwrap();
            map.zone_failed(gone);
            given_up.push(gone);
        }
        assert_eq!(map.shortage(), 0);
        map.assert_consistent();
    }
    assert_eq!(given_up, [1, 2]);
    assert!(zones.ftl.zoned().unwrap().is_sound(0));
    assert_eq!(zones.ftl.zoned().unwrap().sound_zones(), 8);
}
