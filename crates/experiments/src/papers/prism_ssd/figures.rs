//! The experiments of the figures and of Table I.

use prism_base::{Bytes, Nanos};
use prism_cache::simulate::{Design as Simulated, Simulation, SimulationCounts};
use prism_cache::workload::{Etc, EtcConfig, Op, Popularity};
use prism_segments::Level;

use super::machine::{BUFFERS, SPARE};
use super::server::{Served, Server, Times};
use super::{DATA_SET, Design, Engine, FLASH, Keys, PRELOADED, SETS, Setup};

/// Sizes of the cache in Figure 4, in percent of the data set.
pub const PERCENTS: [u32; 4] = [6, 8, 10, 12];
/// The size of the cache in Figure 5.
pub const MISS_PERCENT: u32 = 10;
/// Shares of gets in Figures 6 and 7, in percent.
pub const GETS: [u32; 5] = [0, 25, 50, 75, 100];
/// The deviation of the Normal distribution of keys in Figures 4 and 5, as a share of the keys.
/// Fitted: with it the hit ratio of Original at 6 % is the paper's.
pub const DEVIATION: f64 = 0.011_75;
/// The exponent of Zipf's law in the other runs of Figure 4, fitted in the same way.
pub const EXPONENT: f64 = 1.025;
/// The time of the backend in Figure 5. Fitted: of 50, 100, 150 and 200 us the one with which the
/// throughput of Raw over Original is closest to the paper's.
pub const BACKEND: Nanos = Nanos(100_000);
/// The CPU time of a request in the runs where the server has one: that of a set as `prism bench
/// cache` measures it.
pub const CPU: Nanos = Nanos(7_500);
/// The deviation in Figures 6 and 7 and in Table I, which the paper does not give: "following the
/// Normal distribution".
pub const SIXTH: f64 = 1.0 / 6.0;

/// A point of Figure 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitRow {
    /// The cache.
    pub engine: Engine,
    /// Its flash in percent of the data set.
    pub percent: u32,
    /// How often keys are used.
    pub keys: Keys,
    /// The share of gets that found their item.
    pub hit_ratio: f64,
}

/// A point of Figures 5 to 7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerRow {
    /// The cache.
    pub engine: Engine,
    /// The share of gets, in percent.
    pub gets: u32,
    /// Whether the server needs CPU time.
    pub cpu: bool,
    /// What was served.
    pub served: Served,
}

/// A row of Table I.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcRow {
    /// The cache.
    pub engine: Engine,
    /// What differs from the cache that is compared with the paper's.
    pub what: &'static str,
    /// Scale and seed.
    pub setup: Setup,
    /// What was served.
    pub served: Served,
}

impl GcRow {
    /// Bytes of items that cleaning copied, over those that were set.
    #[must_use]
    pub fn item_copies(&self) -> f64 {
        self.served.cache.copied_bytes as f64 / self.served.cache.insert_bytes as f64
    }

    /// Bytes of pages that were copied below the cache, over bytes of items that were set.
    #[must_use]
    pub fn page_copies(&self) -> f64 {
        (self.served.flash.copies * (16 << 10)) as f64 / self.served.cache.insert_bytes as f64
    }
}

fn etc(setup: Setup, keys: u64, requests: u64, sets: f64, popularity: Popularity) -> Etc {
    let seed = setup.seed;
    Etc::new(EtcConfig { keys, requests, sets, popularity, short_values: false, seed })
}

/// Figure 4: without time, as `prism cache simulate` does.
pub(super) fn hits(setup: Setup, engine: Engine, percent: u32, keys: Keys) -> HitRow {
    let level = match engine {
        Engine::Original | Engine::Policy => Level::Policy,
        Engine::Function | Engine::Raw | Engine::Ideal => Level::Blocks,
    };
    let bytes = DATA_SET * u64::from(percent) / 100;
    let slab = setup.block_bytes();
    let design = Simulated {
        level,
        eviction: engine.eviction(),
        flash: Bytes(u64::from(setup.blocks(bytes)) * slab),
        spare: SPARE,
        slab: slab as u32,
        channels: setup.channels(),
        memory: Bytes(u64::from(BUFFERS) * slab),
        max_writes: None,
    };
    let all = setup.items(DATA_SET);
    let mut simulation = Simulation::new(&design, setup.items(bytes)).expect("thousands of blocks");
    // Until all slabs were cleaned several times, even of a cache that seldom misses.
    let warm = all * 3 / 2;
    let popularity = match keys {
        Keys::Normal => Popularity::Normal(DEVIATION),
        Keys::Zipf => Popularity::Zipf(EXPONENT),
    };
    let mut requests = etc(setup, all, warm + all / 2, 0.0, popularity);
    requests.by_ref().take(warm as usize).for_each(|request| simulation.request(&request));
    let before = simulation.outcome();
    requests.for_each(|request| simulation.request(&request));
    let after = simulation.outcome();
    let hits = |outcome: &SimulationCounts| outcome.hits.iter().sum::<u64>();
    let gets = (after.requests[0] - before.requests[0]) as f64;
    let hit_ratio = (hits(&after) - hits(&before)) as f64 / gets;
    HitRow { engine, percent, keys, hit_ratio }
}

/// Figure 5: gets in virtual time, misses cost the time of the backend.
pub(super) fn backend(setup: Setup, engine: Engine) -> ServerRow {
    let bytes = DATA_SET * u64::from(MISS_PERCENT) / 100;
    let cache = setup.cache(engine.into(), bytes).expect("the flash is large enough");
    let times = Times { cpu: Nanos::ZERO, backend: Some(BACKEND) };
    let mut server = Server::new(cache, times);
    let keys = setup.items(DATA_SET);
    let mut requests = etc(setup, keys, u64::MAX, 0.0, Popularity::Normal(DEVIATION));
    // The cache begins with the keys within four deviations, set in an order without a pattern.
    let near = (8.0 * DEVIATION * keys as f64) as u64;
    let first = keys / 2 - near / 2;
    let stride = (near * 618 / 1000) | 1;
    let shuffled = (0..near).map(|n| first + n * stride % near);
    let generator = etc(setup, keys, 0, 1.0, Popularity::Uniform);
    server.run(shuffled.map(|key| generator.request(key, Op::Set, 0)));
    let fill = setup.items(bytes) as usize;
    server.run(requests.by_ref().take(6 * fill));
    let served = server.run(requests.by_ref().take(fill));
    ServerRow { engine, gets: 100, cpu: false, served }
}

/// Figures 6 and 7: all shares of gets.
pub(super) fn server(setup: Setup, engine: Engine, cpu: bool) -> Vec<ServerRow> {
    let time = if cpu { CPU } else { Nanos::ZERO };
    GETS.map(|gets| {
        let mut server = preloaded(setup, engine.into(), time);
        let sets = f64::from(100 - gets) / 100.0;
        let keys = setup.items(PRELOADED);
        let mut requests = etc(setup, keys, u64::MAX, sets, Popularity::Normal(SIXTH));
        // The cache is full and cleans when the measurement begins.
        server.run(sets_of(setup, keys, keys / 2, SIXTH));
        let served = server.run(requests.by_ref().take(keys as usize / 2));
        ServerRow { engine, gets, cpu, served }
    })
    .into()
}

/// Sets of keys that follow the Normal distribution.
fn sets_of(setup: Setup, keys: u64, count: u64, deviation: f64) -> Etc {
    let other = Setup { seed: setup.seed ^ 1 << 32, ..setup };
    etc(other, keys, count, 1.0, Popularity::Normal(deviation))
}

/// A server with 25 GB of items, made smaller, each set once.
fn preloaded(setup: Setup, design: Design, cpu: Nanos) -> Server {
    let cache = setup.cache(design, FLASH).expect("the flash is large enough");
    let mut server = Server::new(cache, Times { cpu, backend: None });
    let keys = setup.items(PRELOADED);
    let generator = etc(setup, keys, 0, 1.0, Popularity::Uniform);
    server.run((0..keys).map(|key| generator.request(key, Op::Set, 0)));
    server
}

/// Table I.
pub(super) fn gc(setup: Setup, design: Design, what: &'static str, deviation: f64) -> GcRow {
    let mut server = preloaded(setup, design, Nanos::ZERO);
    let (keys, sets) = (setup.items(PRELOADED), SETS / setup.divisor);
    let served = server.run(sets_of(setup, keys, sets, deviation));
    GcRow { engine: design.engine, what, setup, served }
}
