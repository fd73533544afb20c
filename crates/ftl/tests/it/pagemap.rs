//! Page-level mapping under random operations with many program units in flight: after every
//! operation it is consistent, and no block is cleaned while a program unit of it is in flight.

#![allow(clippy::print_stdout, reason = "a test that fails says how to run it again")]

use prism_testkit::seeds;
use std::collections::{BTreeMap, VecDeque};

use prism_base::{Bytes, Rng};
use prism_ftl::{
    Benefit, Frontiers, PageConfig, PageMap, TrimRange, UnitWrite, Units, VictimPolicy,
};
use prism_nand::{BlockId, DieGroupId, Geometry, Layout, ProgramUnitId, Pun};

const LOGICAL: u32 = 150;

/// Every kind, with parameters that make a difference for a dozen blocks.
const POLICIES: [VictimPolicy; 9] = [
    VictimPolicy::Greedy,
    VictimPolicy::Fifo,
    VictimPolicy::Lru,
    VictimPolicy::Random,
    VictimPolicy::DChoices { d: 2 },
    VictimPolicy::WindowedGreedy { window: 3 },
    VictimPolicy::WindowedGreedy { window: 100 },
    VictimPolicy::CostBenefit(Benefit::Kawaguchi),
    VictimPolicy::CostBenefit(Benefit::Rosenblum),
];

fn geometry() -> Geometry {
    Geometry {
        dies_per_channel: 2,
        blocks_per_plane: 12,
        pages_per_block: 6,
        page: Bytes(8192),
        ..Geometry::SMALLEST
    }
}

/// The cleaning of one die.
#[derive(Default)]
struct Cleaning {
    victim: Option<BlockId>,
    cursor: u32,
    copies: u32,
}

struct Run {
    map: PageMap,
    rng: Rng,
    version: u64,
    /// Program units in flight, each with its units. Any die may be the next to end one, but
    /// program units of one die end in order.
    in_flight: Vec<VecDeque<(ProgramUnitId, Vec<UnitWrite>, bool)>>,
    cleaning: Vec<Cleaning>,
    open_trims: Vec<TrimRange>,
    /// The version to be read once nothing is in flight; 0 for none.
    newest: BTreeMap<u32, u64>,
    /// Where each version was programmed.
    placed: BTreeMap<Pun, u64>,
}

impl Run {
    fn new(victim: VictimPolicy, frontiers: Frontiers, seed: u64) -> Self {
        let geometry = geometry();
        let simple = PageConfig::simple(LOGICAL, victim, frontiers);
        let config = PageConfig { free_blocks_high: 3, ..simple };
        Self {
            map: PageMap::new(geometry.clone(), config, seed).unwrap(),
            rng: Rng::stream(seed, "pagemap"),
            version: 0,
            in_flight: vec![VecDeque::new(); geometry.dies() as usize],
            cleaning: (0..geometry.dies()).map(|_| Cleaning::default()).collect(),
            open_trims: Vec::new(),
            newest: BTreeMap::new(),
            placed: BTreeMap::new(),
        }
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// A host program unit of one or two units, sometimes with a tombstone in it.
    fn write(&mut self) {
        let die = DieGroupId(self.rng.below(2) as u32);
        let waiting = self.in_flight[die.0 as usize].len();
        if waiting > 3 || !self.map.host_may_write(die, 0) || !self.map.balanced(die, 0) {
            return;
        }
        let program_unit = self.map.reserve_host(die, 0);
        let mut units = Vec::new();
        if !self.open_trims.is_empty() && self.rng.chance(0.7) {
            let number = self.next_version();
            self.map.tombstone_begin(number, std::mem::take(&mut self.open_trims));
            units.push(UnitWrite { lpn: UnitWrite::TOMBSTONE, source: None, version: number });
        }
        while units.is_empty() || units.len() < 2 && self.rng.chance(0.8) {
            let lpn = self.rng.below(u64::from(LOGICAL)) as u32;
            let version = self.next_version();
            self.map.write_begin(lpn);
            self.newest.insert(lpn, version);
            units.push(UnitWrite { lpn, source: None, version });
        }
        self.in_flight[die.0 as usize].push_back((program_unit, units, false));
    }

    fn trim(&mut self) {
        let start = self.rng.below(u64::from(LOGICAL)) as u32;
        let count = (1 + self.rng.below(9) as u32).min(LOGICAL - start);
        let version = self.next_version();
        self.map.trim_later(start, start + count, version);
        self.open_trims.push(TrimRange { start, count, version });
        for lpn in start..start + count {
            self.newest.insert(lpn, 0);
        }
    }

    /// The oldest program of a die ends.
    fn end_program(&mut self, die: usize) {
        let Some((program_unit, units, is_copy)) = self.in_flight[die].pop_front() else { return };
        let first = self.map.layout().first_unit(program_unit).0;
        for (i, write) in units.iter().enumerate() {
            let at = Pun(first + i as u32);
            let version = write.source.map_or(write.version, |source| self.placed[&source]);
            self.placed.insert(at, version);
            self.map.commit(write, at);
        }
        self.map.program_unit_done(program_unit);
        if is_copy {
            self.cleaning[die].copies -= 1;
        }
    }

    /// One step of the cleaning of a die.
    fn clean(&mut self, die: usize) {
        let id = DieGroupId(die as u32);
        let Some(victim) = self.cleaning[die].victim else {
            if !self.map.reached_high(id) {
                let victim = self.map.pick_victim(id);
                if let Some(victim) = victim {
                    let program_units =
                        self.in_flight.iter().flatten().map(|(program_unit, ..)| *program_unit);
                    let blocks: Vec<_> = program_units
                        .map(|program_unit| self.map.layout().block_of(program_unit))
                        .collect();
                    assert!(!blocks.contains(&victim), "{victim:?} has program units in flight");
                }
                self.cleaning[die] = Cleaning { victim, ..Cleaning::default() };
            }
            return;
        };
        let cleaning = &mut self.cleaning[die];
        if cleaning.copies >= 2 {
            return;
        }
        let (mut units, mut reads) = (Units::new(), Vec::new());
        self.map.gather(victim, &mut cleaning.cursor, &mut units, &mut reads);
        if !units.is_empty() {
            cleaning.copies += 1;
            let program_unit = self.map.reserve_copy(id, victim);
            self.in_flight[die].push_back((program_unit, units.to_vec(), true));
        } else if cleaning.copies == 0 {
            cleaning.victim = None;
            self.map.erased(victim);
            assert!(self.map.is_dead(victim));
        }
    }

    /// Nothing is in flight and no trim pending: every unit has its newest version.
    fn check_at_rest(&self) {
        let mut mapped = 0;
        for (&lpn, &version) in &self.newest {
            let found = self.map.lookup(lpn).map_or(0, |at| self.placed[&at]);
            assert_eq!(found, version, "unit {lpn}");
            mapped += u64::from(version > 0);
        }
        assert_eq!(self.map.mapped(), mapped);
    }
}

#[test]
fn random_operations_leave_a_consistent_map() {
    for seed in seeds(0..80) {
        let victim = POLICIES[seed as usize % POLICIES.len()];
        let frontiers =
            [Frontiers::Shared, Frontiers::Separate][seed as usize / POLICIES.len() % 2];
        println!("seed {seed}: {victim:?}, {frontiers:?}");
        let mut run = Run::new(victim, frontiers, seed);
        let mut erased = 0;
        for _ in 0..4000 {
            let die = run.rng.below(2) as usize;
            match run.rng.below(20) {
                0..7 => run.write(),
                7 => run.trim(),
                8..13 => run.end_program(die),
                _ => {
                    let had = run.cleaning[die].victim.is_some();
                    run.clean(die);
                    erased += u32::from(had && run.cleaning[die].victim.is_none());
                }
            }
            run.map.assert_consistent();
        }
        assert!(erased > 20, "cleaning was at work: {erased}");
        // All ends, the last trims included.
        while !run.open_trims.is_empty() || run.in_flight.iter().any(|die| !die.is_empty()) {
            for die in 0..2 {
                run.end_program(die);
                run.clean(die);
            }
            if !run.open_trims.is_empty() {
                run.write();
            }
        }
        run.map.assert_consistent();
        run.check_at_rest();
    }
}

/// Programs a program unit of one unit on `die` and returns what commits it.
fn begin(map: &mut PageMap, die: u32, lpn: u32, version: u64) -> (UnitWrite, ProgramUnitId) {
    let program_unit = map.reserve_host(DieGroupId(die), 0);
    if lpn != UnitWrite::TOMBSTONE {
        map.write_begin(lpn);
    }
    (UnitWrite { lpn, source: None, version }, program_unit)
}

fn end(map: &mut PageMap, (write, program_unit): (UnitWrite, ProgramUnitId)) -> Pun {
    let at = Layout::new(&geometry()).first_unit(program_unit);
    map.commit(&write, at);
    map.program_unit_done(program_unit);
    map.assert_consistent();
    at
}

fn begin_tombstone(
    map: &mut PageMap,
    die: u32,
    lpn: u32,
    version: u64,
) -> (UnitWrite, ProgramUnitId) {
    map.trim_later(lpn, lpn + 1, version);
    let number = version + 1000;
    map.tombstone_begin(number, vec![TrimRange { start: lpn, count: 1, version }]);
    begin(map, die, UnitWrite::TOMBSTONE, number)
}

/// The map keeps the newest version on flash valid, in whatever order programs end: if it kept an
/// older one, the newest could be erased, and versions between the two would be found after a loss
/// of power.
#[test]
fn the_newest_tombstone_is_kept_in_any_order() {
    let fresh = || Run::new(VictimPolicy::Greedy, Frontiers::Shared, 1).map;

    let mut map = fresh();
    let data = begin(&mut map, 0, 7, 1);
    let trim = begin_tombstone(&mut map, 1, 7, 2);
    let trim = end(&mut map, trim);
    let data = end(&mut map, data);
    assert!(map.live(trim).is_some(), "the program in flight is on flash by now");
    assert!(map.live(data).is_none());

    let mut map = fresh();
    let old = begin_tombstone(&mut map, 0, 7, 2);
    let data = begin(&mut map, 0, 7, 3);
    let new = begin_tombstone(&mut map, 1, 7, 4);
    let new = end(&mut map, new);
    let old = end(&mut map, old);
    let data = end(&mut map, data);
    assert!(map.live(new).is_some() && map.live(old).is_none() && map.live(data).is_none());

    let mut map = fresh();
    let trim = begin_tombstone(&mut map, 0, 7, 2);
    let data = begin(&mut map, 1, 7, 3);
    let data = end(&mut map, data);
    assert_eq!(map.lookup(7), Some(data), "newer than the trim that is pending");
    let trim = end(&mut map, trim);
    assert_eq!(map.lookup(7), Some(data));
    assert!(map.live(trim).is_none());
}

#[test]
fn greedy_cleans_only_what_gains_a_program_unit() {
    let mut map = Run::new(VictimPolicy::Greedy, Frontiers::Shared, 1).map;
    let mut write = |die, lpns: [u32; 2], version| {
        let program_unit = map.reserve_host(DieGroupId(die), 0);
        let first = Layout::new(&geometry()).first_unit(program_unit).0;
        for (at, lpn) in (first..).zip(lpns) {
            map.write_begin(lpn);
            map.commit(&UnitWrite { lpn, source: None, version }, Pun(at));
        }
        map.program_unit_done(program_unit);
        map.assert_consistent();
        map.pick_victim(DieGroupId(0))
    };
    for program_unit in 0..6 {
        assert_eq!(write(0, [2 * program_unit, 2 * program_unit + 1], 1), None);
    }
    assert_eq!(
        write(1, [0, 20], 2),
        None,
        "eleven units need as many program units as the block has"
    );
    assert_eq!(write(1, [5, 21], 3), Some(BlockId(0)));
}

#[test]
fn a_read_fetches_each_page_once() {
    let geometry = Geometry { planes: 4, planes_ganged: 4, ..geometry() };
    let config = PageConfig::simple(LOGICAL, VictimPolicy::Greedy, Frontiers::Shared);
    let map = PageMap::new(geometry, config, 1).unwrap();
    // Program units of 8 units, two on each of four planes.
    let check = |units: &[u32], expected: &[(u16, u16)]| {
        let (mut planes, mut reads) = (0, Vec::new());
        for &unit in units {
            map.add_read(Pun(unit), &mut planes, &mut reads);
        }
        let found: Vec<_> = reads.iter().map(|run| (run.pages, run.units)).collect();
        assert_eq!(found, expected, "{units:?}");
    };
    check(&[0, 1, 2], &[(2, 3)]);
    check(&[0, 2, 1, 3], &[(2, 4)]);
    check(&[7, 8, 10], &[(1, 1), (2, 2)]);
    check(&[0, 8, 1], &[(1, 1), (1, 1), (1, 1)]);
}
