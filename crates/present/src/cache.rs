//! Simulated caches as a document and as JSON.

use prism_base::Bytes;
use prism_cache::simulate::{Design, ENGINES, Simulation, SimulationCounts};
use prism_cache::workload::{Etc, EtcConfig, Request, Traces};
use prism_report::{Axis, Block, Chart, Curve, CurveShape, Curves, Document, Section, Table, Unit};
use serde_json::{Value as Json, json};

use crate::error::PresentError;

/// Caches of several engines and sizes, which get the same requests.
#[derive(Clone, Debug)]
pub struct Study {
    /// Names of [`ENGINES`].
    pub engines: Vec<String>,
    /// Bytes of flash, over-provisioning included.
    pub sizes: Vec<Bytes>,
    /// The share of flash that is spare where over-provisioning is static, in percent.
    pub spare: u32,
    /// Bytes of flash that may be programmed a second.
    pub max_writes: Option<Bytes>,
    /// Bytes of a slab, which is a flash block.
    pub slab: Bytes,
    /// Channels.
    pub channels: u32,
    /// Bytes of memory for slabs.
    pub memory: Bytes,
    /// Items that there is an index for; `None` for one for 64 bytes of flash.
    pub items: Option<u64>,
    /// Erases that a block endures.
    pub cycles: u32,
}

/// The caches of a study while they get requests.
pub struct Running {
    caches: Vec<(String, Design, Simulation)>,
    cycles: u32,
    /// Requests so far, and the time of the last.
    count: u64,
    last: u32,
    requests: Vec<Request>,
}

/// Requests that are generated at once.
const GENERATED: usize = 1 << 16;

/// The first of `values` that was there before.
fn duplicate<T: PartialEq>(values: &[T]) -> Option<&T> {
    let mut rest = values.iter().enumerate();
    rest.find(|(at, value)| values[..*at].contains(value)).map(|(_, value)| value)
}

impl Study {
    /// Makes the caches, which are empty.
    ///
    /// # Errors
    /// [`PresentError`] naming the option that is out of range.
    pub fn begin(&self) -> Result<Running, PresentError> {
        let slab = u32::try_from(self.slab.0).ok().filter(|slab| slab.is_power_of_two());
        let slab = slab.filter(|slab| (32 << 10..=64 << 20).contains(slab)).ok_or_else(|| {
            let slab = self.slab;
            PresentError::refused(format!("--slab {slab}: give a power of two from 32KiB to 64MiB"))
        })?;
        if self.engines.is_empty() || self.sizes.is_empty() {
            let what = "--engine, --size: give at least one engine and one size";
            return Err(PresentError::refused(what));
        }
        let twice = |text: String| {
            PresentError::refused(format!("{text} is given twice; give each one once"))
        };
        if let Some(size) = duplicate(&self.sizes) {
            return Err(twice(format!("--size {size}")));
        }
        if let Some(name) = duplicate(&self.engines) {
            return Err(twice(format!("--engine {name}")));
        }
        let &Self { channels, memory, spare, max_writes, .. } = self;
        let mut caches = Vec::new();
        for &flash in &self.sizes {
            for name in &self.engines {
                let (_, level, eviction) =
                    *ENGINES.iter().find(|(other, ..)| other == name).ok_or_else(|| {
                        let names = ENGINES.map(|(name, ..)| name).join(", ");
                        PresentError::refused(format!("--engine {name}: engines are {names}"))
                    })?;
                let design =
                    Design { level, eviction, flash, spare, slab, channels, memory, max_writes };
                let items = self.items.unwrap_or(flash.0 / 64);
                caches.push((name.clone(), design, self.simulation(name, &design, items)?));
            }
        }
        let (count, last, requests) = (0, 0, Vec::new());
        Ok(Running { caches, cycles: self.cycles, count, last, requests })
    }

    fn simulation(
        &self,
        name: &str,
        design: &Design,
        items: u64,
    ) -> Result<Simulation, PresentError> {
        let (flash, channels, slab) = (design.flash, design.channels, self.slab);
        Simulation::new(design, items).map_err(|error| {
            let least = design.smallest();
            PresentError::refused(match flash < least {
                true => format!(
                    "--size {flash} is too small for engine {name} with slabs of {slab} on \
                     {channels} channels: give at least {least}, or smaller slabs by --slab"
                ),
                false => format!("--size {flash}, engine {name}: {error}"),
            })
        })
    }
}

impl Running {
    /// Passes requests to every cache.
    fn take(&mut self, requests: &[Request]) {
        for (.., simulation) in &mut self.caches {
            requests.iter().for_each(|request| simulation.request(request));
        }
        self.last = requests.last().map_or(self.last, |request| request.time.max(self.last));
        self.count += requests.len() as u64;
    }

    /// Passes the requests of the next bytes of a trace to every cache. Returns the number of
    /// requests so far.
    ///
    /// # Errors
    /// What is wrong with the trace.
    pub fn read(
        &mut self,
        traces: &mut Traces,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<u64, String> {
        let mut requests = std::mem::take(&mut self.requests);
        let read = traces.read(bytes, is_last, &mut requests);
        read.map_err(|error| error.to_string())?;
        self.take(&requests);
        requests.clear();
        self.requests = requests;
        Ok(self.count)
    }

    /// Passes generated requests to every cache. `reached` is called with the number so far.
    pub fn generate(&mut self, config: EtcConfig, reached: impl Fn(u64)) {
        let mut requests = Etc::new(config);
        loop {
            let some: Vec<Request> = requests.by_ref().take(GENERATED).collect();
            if some.is_empty() {
                return;
            }
            self.take(&some);
            reached(self.count);
        }
    }

    /// The results, by size and engine.
    #[must_use]
    pub fn finish(self) -> Vec<Simulated> {
        let (cycles, seconds) = (self.cycles, self.last);
        let done = |(engine, design, simulation): (String, Design, Simulation)| {
            let outcome = simulation.outcome();
            Simulated { engine, design, outcome, cycles, seconds }
        };
        self.caches.into_iter().map(done).collect()
    }
}

/// A design with its name and its result.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The name of the engine.
    pub engine: String,
    /// What was simulated.
    pub design: Design,
    /// The result.
    pub outcome: SimulationCounts,
    /// Erases that a block endures.
    pub cycles: u32,
    /// Seconds of the trace.
    pub seconds: u32,
}

impl Simulated {
    /// Seconds until blocks are worn out on average, at the rate of the trace; infinite without
    /// erases.
    #[must_use]
    pub fn life(&self) -> f64 {
        f64::from(self.cycles) / self.outcome.wear() * f64::from(self.seconds)
    }
}

/// The results as JSON.
#[must_use]
pub fn json(trace: &str, done: &[Simulated]) -> Json {
    let row = |simulated: &Simulated| {
        let Simulated { engine, design, outcome, cycles, seconds } = simulated;
        json!({
            "engine": engine,
            "flash_bytes": design.flash.0,
            "slab_bytes": design.slab,
            "gets": outcome.requests[0],
            "sets": outcome.requests[1],
            "deletes": outcome.requests[2],
            "hit_ratio": outcome.hit_ratio(),
            "hit_ratio_memory": outcome.hit_ratios()[0],
            "hit_ratio_flash": outcome.hit_ratios()[1],
            "items": outcome.items,
            "inserted_bytes": outcome.cache.insert_bytes,
            "written_item_bytes": outcome.cache.written_bytes,
            "cleaning_copied_bytes": outcome.cache.copied_bytes,
            "cleaning_dropped_items": outcome.cache.dropped,
            "programmed_bytes": outcome.programmed[0],
            "copied_by_the_drive_bytes": outcome.programmed[1],
            "write_amplification": outcome.write_amplification(),
            "erases": outcome.flash.erases,
            "erases_per_block": outcome.wear(),
            "too_large": outcome.too_large,
            "endurance_cycles": cycles,
            "trace_seconds": seconds,
            "life_seconds": Some(simulated.life()).filter(|life| life.is_finite()),
        })
    };
    let rows: Vec<Json> = done.iter().map(row).collect();
    json!({"trace": trace, "rows": rows})
}

/// The results as a document.
#[must_use]
pub fn document(trace: &str, done: &[Simulated]) -> Document {
    let requests = done.first().map_or([0; 3], |first| first.outcome.requests);
    let lead = format!(
        "{} gets, {} sets, {} deletes. A miss is followed by an insertion, as clients do. Write \
         amplification is bytes programmed, by cleaning and the drive too, for a byte of items in \
         what was programmed; lifetime is that of blocks with the mean number of erases.",
        requests[0], requests[1], requests[2]
    );
    let mut section = Section::new("Caches", lead);
    let table = Table::listing(done)
        .text("engine", |one: &Simulated| one.engine.clone())
        .number("flash", Unit::Bytes, |one| one.design.flash.0 as f64)
        .number("hits", Unit::Percent, |one| one.outcome.hit_ratio())
        .number("in memory", Unit::Percent, |one| one.outcome.hit_ratios()[0])
        .number("WA", Unit::Ratio, |one| one.outcome.write_amplification())
        .number("copied", Unit::Bytes, |one| one.outcome.cache.copied_bytes as f64)
        .number("by drive", Unit::Bytes, |one| one.outcome.programmed[1] as f64)
        .number("erases", Unit::Count, |one| one.outcome.flash.erases as f64)
        .number("lifetime", Unit::Nanos, |one| one.life() * 1e9)
        .number("too large", Unit::Count, |one| one.outcome.too_large);
    section.push(Block::Table(table.whole("By engine and size.")));
    Document::new("prism cache simulate", trace).with(section)
}

/// As [`document`], with charts of what depends on the size.
#[must_use]
pub fn page(trace: &str, done: &[Simulated]) -> Document {
    let chart = |title: &str, caption: &str, y: Axis, of: &dyn Fn(&Simulated) -> Option<f64>| {
        let mut series: Vec<Curve> = Vec::new();
        for one in done {
            let Some(value) = of(one) else { continue };
            let point = (one.design.flash.0 as f64, value);
            match series.iter_mut().find(|curve| curve.name == one.engine) {
                Some(curve) => curve.points.push(point),
                None => series.push(Curve::new(&one.engine, CurveShape::Line, vec![point])),
            }
        }
        for curve in &mut series {
            curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if curve.points.len() == 1 {
                curve.shape = CurveShape::Dots;
            }
        }
        let x = Axis::log("bytes of flash", Unit::Bytes);
        let (title, caption) = (title.to_owned(), caption.to_owned());
        Chart::Curves(Curves { title, caption, x, y, series, marks: Vec::new() })
    };
    let mut section = Section::new("By size", "");
    section.push(chart(
        "Hit ratio",
        "Share of the gets that found their item, for each engine.",
        Axis::linear("of gets", Unit::Percent),
        &|one| one.outcome.hit_ratio(),
    ));
    section.push(chart(
        "Write amplification",
        "Bytes programmed, by cleaning and the drive too, for a byte of items in what was \
         programmed.",
        Axis::linear("write amplification", Unit::Ratio),
        &|one| one.outcome.write_amplification(),
    ));
    document(trace, done).with(section)
}
