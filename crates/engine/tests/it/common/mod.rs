//! Random operations of an FTL over flash that loses power, and a model of the data allowed after
//! it.

pub mod flash;

use prism_base::{Bytes, Rng, SimTime};
use prism_engine::device::FlashDevice;
use prism_engine::{Cleaning, CleaningMode, Controller, Done, HostUnit};
use prism_ftl::{
    Benefit, ConfigError, Frontiers, Ftl, FtlConfig, HybridConfig, Logs, PageConfig, Placement,
    RangeConfig, RangesConfig, TrimRange, UnitWrite, VictimPolicy,
};
use prism_nand::{Geometry, Nand, UnitTag};

use flash::{Cache, Fragile};

/// The power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLost;

/// The random setup of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    pub geometry: Geometry,
    pub config: FtlConfig,
    pub mode: CleaningMode,
    /// Operations that end after each write; the rest is in flight meanwhile.
    pub progress: u32,
    pub cache: Cache,
    /// Fraction of program units that continue where the last one ended.
    pub in_order: f64,
}

fn one_of<T: Copy>(rng: &mut Rng, items: &[T]) -> T {
    items[rng.below(items.len() as u64) as usize]
}

fn geometry(rng: &mut Rng) -> Geometry {
    let (channels, superblock) = one_of(rng, &[(1, 1), (2, 1), (2, 1), (3, 1), (2, 2)]);
    Geometry {
        channels,
        blocks_per_plane: 6 + rng.below(8) as u32,
        pages_per_block: one_of(rng, &[2, 4, 8]),
        dies_per_superblock: superblock,
        page: Bytes(16 * one_of(rng, &[1, 2, 4])),
        unit: Bytes(16),
        ..Geometry::SMALLEST
    }
}

/// Page-level mapping with any policy.
pub fn page(rng: &mut Rng) -> Setup {
    let mut geometry = geometry(rng);
    geometry.parity = geometry.dies_per_superblock > 1 && rng.chance(0.5);
    let low = 2 + rng.below(2) as u32;
    let config = PageConfig {
        free_blocks_low: low,
        free_blocks_high: low + rng.below(2) as u32,
        placement: one_of(rng, &[Placement::Any, Placement::Handles(2)]),
        ..PageConfig::simple(
            u32::MAX >> 1,
            one_of(rng, &VictimPolicy::EXAMPLES),
            one_of(rng, &Frontiers::ALL),
        )
    };
    finish(geometry, FtlConfig::Page(config), rng).unwrap_or_else(|| page(rng))
}

/// Victim policies of block-level and hybrid mapping; merging the oldest is the most demanding.
const HYBRID_VICTIMS: [VictimPolicy; 4] = [
    VictimPolicy::Fifo,
    VictimPolicy::Greedy,
    VictimPolicy::Lru,
    VictimPolicy::CostBenefit(Benefit::Kawaguchi),
];

/// Hybrid mapping, often with a single log block per logical block, often with the largest possible
/// capacity.
pub fn hybrid(rng: &mut Rng) -> Setup {
    let geometry = geometry(rng);
    let (n, k) = one_of(rng, &[(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (4, 4)]);
    let low = rng.below(3) as u32;
    let config = HybridConfig {
        logs: Logs::Groups,
        gaps: false,
        logical_units: u32::MAX >> 1,
        group_blocks: n,
        group_log_blocks: k,
        log_blocks: one_of(rng, &[1, 2, 3, geometry.blocks()]).min(geometry.blocks()),
        victim: one_of(rng, &HYBRID_VICTIMS),
        free_blocks_low: low,
        free_blocks_high: low + rng.below(2) as u32,
        reserve_blocks: 0,
    };
    finish(geometry, FtlConfig::Hybrid(config), rng).unwrap_or_else(|| hybrid(rng))
}

/// A mapping with units at their own offsets, in replacement blocks or as in FAST, often with the
/// largest possible capacity.
pub fn at_offsets(rng: &mut Rng) -> Setup {
    let mut geometry = geometry(rng);
    geometry.page = geometry.unit;
    let low = rng.below(3) as u32;
    let gaps = rng.chance(0.5);
    let log_blocks = one_of(rng, &[2, 2, 3, geometry.blocks()]).min(geometry.blocks());
    let config = match rng.chance(0.5) {
        true => HybridConfig::fast(u32::MAX >> 1, log_blocks, gaps),
        false => HybridConfig::block(u32::MAX >> 1, log_blocks - 1, gaps),
    };
    let config = HybridConfig {
        victim: one_of(rng, &HYBRID_VICTIMS),
        free_blocks_low: low,
        free_blocks_high: low + rng.below(2) as u32,
        ..config
    };
    finish(geometry, FtlConfig::Hybrid(config), rng).unwrap_or_else(|| at_offsets(rng))
}

fn set_units(config: &mut FtlConfig, units: u32) {
    match config {
        FtlConfig::Page(config) => config.logical_units = units,
        FtlConfig::Hybrid(config) => config.logical_units = units,
        other => unreachable!("units are not set in {other:?}"),
    }
}

/// Two or three ranges, each with any mapping.
pub fn ranges(rng: &mut Rng) -> Setup {
    let mut all = Vec::new();
    let mut whole: Option<Setup> = None;
    for _ in 0..2 + rng.below(2) {
        let draw = one_of(rng, &[page, hybrid, at_offsets] as &[fn(&mut Rng) -> Setup]);
        let mut part = draw(rng);
        if let Some(whole) = &whole {
            // The geometry of the first, with a different number of blocks.
            let blocks_per_plane = part.geometry.blocks_per_plane;
            part.geometry = Geometry { blocks_per_plane, ..whole.geometry.clone() };
            set_units(&mut part.config, u32::MAX >> 1);
            let geometry = part.geometry.clone();
            let Some(again) = finish(geometry, part.config, rng) else { return ranges(rng) };
            part = again;
        } else {
            // Program units of one unit, which every mapping supports.
            part = at_offsets(rng);
            whole = Some(part.clone());
        }
        let blocks_per_plane = part.geometry.blocks_per_plane;
        if let FtlConfig::Hybrid(config) = &mut part.config {
            config.gaps = false;
        }
        all.push(RangeConfig { blocks_per_plane, ftl: part.config });
    }
    let mut setup = whole.expect("there is a first range");
    setup.geometry.blocks_per_plane = all.iter().map(|range| range.blocks_per_plane).sum();
    setup.config = FtlConfig::Ranges(RangesConfig { ranges: all });
    setup.config.check(&setup.geometry).expect("each range was checked");
    setup
}

/// Sets a capacity; `None` if the flash is too small.
fn finish(geometry: Geometry, mut config: FtlConfig, rng: &mut Rng) -> Option<Setup> {
    let Err(ConfigError::NoSpare { usable, .. }) = config.check(&geometry) else { return None };
    let units = usable * one_of(rng, &[10, 10, 9, 6]) / 10;
    set_units(&mut config, units as u32);
    config.check(&geometry).ok()?;
    Some(Setup {
        geometry,
        config,
        mode: one_of(rng, &CleaningMode::ALL),
        progress: one_of(rng, &[0, 1, 3, u32::MAX]),
        cache: one_of(rng, &[Cache::None, Cache::Volatile]),
        in_order: one_of(rng, &[0.0, 0.5, 0.95]),
    })
}

/// Versions that a unit may have after a cut: the durable one or any newer one that was written.
#[derive(Clone, Debug, Default)]
struct Unit {
    /// The version that is known to be durable; 0 for a trim or no data.
    promised: u64,
    /// Versions written since, durable or not.
    tried: Vec<u64>,
    /// The version of the last trim, which is durable at once.
    trimmed: u64,
}

/// An FTL, its flash, and a model of the data.
pub struct Life {
    setup: Setup,
    engine: Controller<Fragile>,
    units: Vec<Unit>,
    /// Host program units in flight: the versions of their units.
    in_flight: Vec<Vec<(u32, u64)>>,
    version: u64,
    next: u32,
    name: String,
    cuts: u64,
}

impl Life {
    pub fn new(setup: Setup, name: String) -> Self {
        let gaps = matches!(&setup.config, FtlConfig::Hybrid(config) if config.gaps);
        let nand = Nand::with_content(setup.geometry.clone()).with_gaps(gaps);
        let ftl = Ftl::new(setup.geometry.clone(), setup.config.clone(), 1).unwrap();
        let units = vec![Unit::default(); ftl.logical_units() as usize];
        let engine = controller(nand, ftl, &setup);
        let in_flight = Vec::new();
        Self { setup, engine, units, in_flight, version: 0, next: 0, name, cuts: 0 }
    }

    pub fn engine(&mut self) -> &mut Controller<Fragile> {
        &mut self.engine
    }

    /// Number of power cuts so far.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Performs random actions until the power is cut, `operations` from now.
    pub fn until_cut(&mut self, operations: u64, rng: &mut Rng) {
        self.engine.device_mut().left = operations;
        while self.act(rng).is_ok() {}
        self.cuts += 1;
    }

    /// Performs `count` random actions with power on.
    pub fn act_with_power(&mut self, count: u32, rng: &mut Rng) {
        self.engine.device_mut().left = u64::MAX;
        for _ in 0..count {
            self.act(rng).expect("the power is on");
        }
    }

    fn act(&mut self, rng: &mut Rng) -> Result<(), PowerLost> {
        match rng.below(20) {
            0 => self.trim(rng),
            1 => {
                self.engine.clean_to_high(SimTime::ZERO);
                self.proceed(rng.below(12) as u32)?;
            }
            2 => {
                self.settle()?;
                self.engine.device_mut().sync();
                self.promise();
            }
            _ => self.write(rng)?,
        }
        if rng.chance(0.05) {
            self.settle()?;
            self.engine.ftl().assert_consistent();
        }
        Ok(())
    }

    fn check_power(&self) -> Result<(), PowerLost> {
        if self.engine.device().lost { Err(PowerLost) } else { Ok(()) }
    }

    /// Ends at most `count` operations.
    fn proceed(&mut self, count: u32) -> Result<(), PowerLost> {
        let mut done = Vec::new();
        for _ in 0..count {
            if self.engine.is_idle() {
                break;
            }
            self.engine.step(&mut done);
            self.check_power()?;
        }
        for event in done {
            let Done::Wrote { tag } = event else { unreachable!("nothing is read") };
            self.written(tag);
        }
        self.check_power()
    }

    /// A unit of a host program unit is on flash.
    fn written(&mut self, tag: u32) {
        let units = &mut self.in_flight[tag as usize];
        let Some((lpn, version)) = units.pop() else { panic!("a unit was written twice") };
        let unit = &mut self.units[lpn as usize];
        if self.setup.cache == Cache::None && version > unit.trimmed {
            unit.promised = unit.promised.max(version);
            let promised = unit.promised;
            unit.tried.retain(|&tried| tried > promised);
        }
    }

    /// Ends all operations.
    fn settle(&mut self) -> Result<(), PowerLost> {
        while !self.engine.is_idle() {
            self.proceed(1)?;
        }
        self.in_flight.clear();
        self.check_power()
    }

    /// Everything done so far is durable.
    fn promise(&mut self) {
        for unit in &mut self.units {
            if let Some(&last) = unit.tried.last() {
                unit.promised = last;
                unit.tried.clear();
            }
            if unit.trimmed > unit.promised {
                unit.promised = 0;
            }
        }
    }

    fn trim(&mut self, rng: &mut Rng) {
        let count = 1 + rng.below(self.units.len().min(30) as u64) as u32;
        let start = rng.below(self.units.len() as u64 - u64::from(count) + 1) as u32;
        self.version += 1;
        for unit in &mut self.units[start as usize..(start + count) as usize] {
            *unit = Unit { trimmed: self.version, ..Unit::default() };
        }
        self.engine.ftl_mut().trim_now(start, start + count, self.version);
    }

    fn write(&mut self, rng: &mut Rng) -> Result<(), PowerLost> {
        let logical = self.units.len() as u64;
        let in_order = rng.chance(self.setup.in_order);
        let first = if in_order { self.next } else { rng.below(logical) as u32 };
        let handle = rng.below(2) as u32;
        let stream = self.engine.ftl().stream_of(first, handle);
        let most = u64::from(self.engine.device().layout().units_per_program_unit());
        let count = if rng.chance(0.8) { most } else { 1 + rng.below(most) };
        let mut program_unit: Vec<UnitWrite> = Vec::new();
        for i in 0..count as u32 {
            let any = if in_order { first + i } else { rng.below(logical) as u32 };
            let lpn = if i == 0 { first } else { any };
            let fits = u64::from(lpn) < logical
                && self.engine.ftl().stream_of(lpn, handle) == stream
                && program_unit.iter().all(|write| write.lpn != lpn);
            if fits {
                self.version += 1;
                program_unit.push(UnitWrite { lpn, source: None, version: self.version });
            }
        }
        self.next = (program_unit.last().unwrap().lpn + 1) % logical as u32;
        for write in &program_unit {
            self.units[write.lpn as usize].tried.push(write.version);
        }
        self.engine.set_urgent(rng.chance(0.1), SimTime::ZERO);
        let die_group = loop {
            let found = self.engine.writable_die_group(stream, first, SimTime::ZERO);
            self.check_power()?;
            match found {
                Some(die_group) => break die_group,
                None if !self.engine.is_idle() => self.proceed(1)?,
                None => {
                    self.engine.set_urgent(false, SimTime::ZERO);
                    let cleans = self.engine.begin_cleaning(SimTime::ZERO)
                        || self.engine.clean_to_high(SimTime::ZERO);
                    self.check_power()?;
                    assert!(cleans, "{}: no die group accepts a program unit", self.name);
                }
            }
        };
        let tag = self.in_flight.len() as u32;
        let units = program_unit.iter().map(|write| (write.lpn, write.version));
        self.in_flight.push(units.collect());
        let host = |&write: &UnitWrite| HostUnit { write, tag, lost: false };
        let units: Vec<HostUnit> = program_unit.iter().map(host).collect();
        let bytes = program_unit.iter().map(|write| bytes_of(write.lpn, write.version).into());
        self.engine.write_bytes(die_group, stream, &units, bytes.collect(), SimTime::ZERO);
        self.check_power()?;
        self.proceed(self.setup.progress)
    }

    /// Power is back: recovers, checks, and continues with the recovered state.
    pub fn recover(&mut self, rng: &mut Rng) {
        let empty = Fragile::new(Nand::new(self.setup.geometry.clone()), Cache::None, 0);
        let nand = std::mem::replace(self.engine.device_mut(), empty).after_cut(rng);
        let trims: Vec<_> = (0..)
            .zip(&self.units)
            .filter(|(_, unit)| unit.trimmed > 0)
            .map(|(start, unit)| TrimRange { start, count: 1, version: unit.trimmed })
            .collect();
        let config = self.setup.config.clone();
        let found = Ftl::recover(&mut &nand, config, self.version, &trims);
        let (ftl, found) = found.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        ftl.assert_consistent();
        if let (Ftl::Hybrid(map), FtlConfig::Hybrid(config)) = (&ftl, &self.setup.config) {
            let most = config.log_blocks_max(&self.setup.geometry);
            assert!(map.log_blocks() <= most, "{}: {} log blocks", self.name, map.log_blocks());
        }
        assert!(found.newest_version <= self.version, "{}", self.name);
        for (lpn, unit) in (0..).zip(&mut self.units) {
            let held = ftl.lookup(lpn).map_or(0, |at| {
                let held = nand.read(at).unwrap().expect("the map points to data");
                let expected = bytes_of(lpn, held.version);
                assert_eq!(held.tag, UnitTag::Data(lpn), "{}", self.name);
                assert_eq!(held.payload.as_deref(), Some(&expected[..]), "{}", self.name);
                held.version
            });
            let allowed = held == unit.promised || unit.tried.contains(&held);
            assert!(
                allowed && (held == 0 || held > unit.trimmed),
                "{}: unit {lpn} has version {held}: {unit:?}",
                self.name
            );
            unit.promised = held;
            unit.tried.clear();
        }
        self.engine = controller(nand, ftl, &self.setup);
        self.in_flight.clear();
    }
}

fn controller(nand: Nand, ftl: Ftl, setup: &Setup) -> Controller<Fragile> {
    let cleaning = Cleaning { mode: setup.mode, free_blocks_critical: 2, free_blocks_idle: 0 };
    Controller::at_rest(Fragile::new(nand, setup.cache, u64::MAX), ftl, cleaning)
}

fn bytes_of(lpn: u32, version: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&u64::from(lpn).to_le_bytes());
    bytes[8..].copy_from_slice(&version.to_le_bytes());
    bytes
}
