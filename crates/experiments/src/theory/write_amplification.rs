//! Write amplification of a page map under synthetic writes, without time.

use prism_base::Rng;
use prism_engine::FlashCounts;
use prism_ftl::{ConfigError, Frontiers, Ftl, PageConfig, PageMap, VictimPolicy};
use prism_nand::{Geometry, Nand};

use super::closed_forms::HotCold;
use crate::untimed::{Untimed, geometry};

/// A drive and its writes.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Blocks. All are on one die, so that victims are chosen among all of them.
    pub blocks: u32,
    /// Units per block.
    pub units_per_block: u32,
    /// Effective over-provisioning.
    pub op: f64,
    /// Victim policy.
    pub victim: VictimPolicy,
    /// Whether copies have an open block of their own.
    pub frontiers: Frontiers,
    /// Hot and cold units; `None` if all units are written equally often.
    pub hot: Option<HotCold>,
    /// Share of the requests that trim a random live unit.
    pub trims: f64,
    /// Writes before the measurement, as a multiple of the flash.
    pub warm_up: f64,
    /// Writes measured, as a multiple of the flash.
    pub measured: f64,
}

impl Setup {
    /// Uniform writes to `blocks` blocks of `units_per_block` units with one frontier and no
    /// trims: twice the flash before the measurement, and twice the flash during it.
    #[must_use]
    pub fn uniform(blocks: u32, units_per_block: u32, op: f64, victim: VictimPolicy) -> Self {
        let (frontiers, hot, trims) = (Frontiers::Shared, None, 0.0);
        let (warm_up, measured) = (2.0, 2.0);
        Self { blocks, units_per_block, op, victim, frontiers, hot, trims, warm_up, measured }
    }

    fn geometry(&self) -> Geometry {
        geometry(1, self.blocks, self.units_per_block)
    }

    /// The configuration with the effective over-provisioning `op`.
    fn config(&self, geometry: &Geometry) -> PageConfig {
        let mut config = PageConfig::simple(1, self.victim, self.frontiers);
        config.logical_units = (config.usable_units(geometry) as f64 / (1.0 + self.op)) as u32;
        config
    }
}

/// Fills the drive, writes and trims random units until the end of the warm-up, and measures from
/// there on. Returns the write amplification and the flash operations of the measured part.
///
/// # Errors
/// [`ConfigError`] if the flash is too small for the over-provisioning.
pub fn measure(setup: &Setup, seed: u64) -> Result<(f64, FlashCounts), ConfigError> {
    let geometry = setup.geometry();
    let config = setup.config(&geometry);
    let logical = config.logical_units;
    let units = f64::from(geometry.units());
    let nand = Nand::new(geometry.clone());
    let mut flash = Untimed::new(nand, Ftl::from(PageMap::new(geometry, config, seed)?));
    let mut rng = Rng::stream(seed, "wa.address");
    let mut kind = Rng::stream(seed, "wa.kind");
    let address = Addresses::new(logical, setup.hot);
    let mut live = LiveSet::new(logical);
    flash.fill(logical);
    let mut before = flash.counts();
    let mut writes = 0u64;
    let warm_up = (units * setup.warm_up) as u64;
    let end = warm_up + (units * setup.measured) as u64;
    for request in 0..end {
        if request == warm_up {
            before = flash.counts();
            writes = 0;
        }
        if setup.trims > 0.0 && kind.chance(setup.trims) && live.len() > 0 {
            flash.trim(live.remove_random(&mut rng));
        } else {
            let lpn = address.draw(&mut rng);
            if setup.trims > 0.0 {
                live.insert(lpn);
            }
            flash.write(lpn);
            writes += 1;
        }
    }
    let counts = flash.finish(&before);
    Ok((counts.units.total() as f64 / writes as f64, counts))
}

/// The distribution of the addresses of writes.
struct Addresses {
    logical: u64,
    /// The number of hot units, which are the first ones, and their share of the writes.
    hot: Option<(u64, f64)>,
}

impl Addresses {
    fn new(logical: u32, hot: Option<HotCold>) -> Self {
        let split = |hot: HotCold| ((f64::from(logical) * hot.units) as u64, hot.writes);
        Self { logical: u64::from(logical), hot: hot.map(split) }
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        let lpn = match self.hot {
            None => rng.below(self.logical),
            Some((hot, writes)) if rng.chance(writes) => rng.below(hot),
            Some((hot, _)) => hot + rng.below(self.logical - hot),
        };
        lpn as u32
    }
}

/// The set of live units, from which a random one is removed in constant time.
struct LiveSet {
    members: Vec<u32>,
    /// Index of each unit in `members`, or [`LiveSet::ABSENT`].
    place: Vec<u32>,
}

impl LiveSet {
    const ABSENT: u32 = u32::MAX;

    fn new(units: u32) -> Self {
        Self { members: (0..units).collect(), place: (0..units).collect() }
    }

    fn len(&self) -> usize {
        self.members.len()
    }

    fn insert(&mut self, unit: u32) {
        if self.place[unit as usize] == Self::ABSENT {
            self.place[unit as usize] = self.members.len() as u32;
            self.members.push(unit);
        }
    }

    fn remove_random(&mut self, rng: &mut Rng) -> u32 {
        let at = rng.below(self.members.len() as u64) as usize;
        let unit = self.members.swap_remove(at);
        if let Some(&moved) = self.members.get(at) {
            self.place[moved as usize] = at as u32;
        }
        self.place[unit as usize] = Self::ABSENT;
        unit
    }
}
