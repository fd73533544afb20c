//! A plausible report that uses every kind of block, for the example and the tests. Its numbers
//! are invented, but go through the accumulators like those of a simulation.

use prism_base::{Bytes, Nanos, SimTime};
use prism_report::accumulate::{HeatGrid, LatencySeries, LevelSeries, SizeHistogram, SumSeries};
use prism_report::{
    Axis, BarLayout, Bars, Block, Chart, Column, Curve, CurveShape, Curves, Document, Figure,
    Grade, Lines, Mark, Section, Segment, Series, Stacked, Table, Unit, Value, Verdict,
};

const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;
const END: SimTime = SimTime(600 * SECOND);
const WIDTH: Nanos = Nanos(1_000_000);
const BUCKETS: usize = 512;

/// The accumulated run that the sample reports on.
struct Run {
    bytes: [SumSeries; 2],
    latency: [LatencySeries; 2],
    depth: LevelSeries,
    sizes: [SizeHistogram; 2],
    heat: HeatGrid,
}

/// A fixed sequence of pseudo-random numbers.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Ten minutes of a database: small random writes, a scan, checkpoints, a big discard.
fn run() -> Run {
    let pair = || [(); 2].map(|()| SumSeries::new(SimTime::ZERO, WIDTH, BUCKETS));
    let latency = || [(); 2].map(|()| LatencySeries::new(SimTime::ZERO, WIDTH, BUCKETS));
    let layers = ["read", "write", "discard"];
    let mut run = Run {
        bytes: pair(),
        latency: latency(),
        depth: LevelSeries::new(SimTime::ZERO, WIDTH, BUCKETS),
        sizes: [(); 2].map(|()| SizeHistogram::default()),
        heat: HeatGrid::new(&layers, Bytes(64 * GIB), 48, SimTime::ZERO, WIDTH, 256),
    };
    let mut noise = Noise(7);
    let mut now = 0;
    while now < END.0 {
        let second = now / SECOND;
        let checkpoint = second % 120 >= 95;
        let scan = (200..290).contains(&second);
        let write = noise.below(10) < if checkpoint { 9 } else { 6 };
        let busy = if checkpoint { 8 } else { 1 };
        let size = match noise.below(20) {
            0 => 4096 * (1 + noise.below(60)),
            1..=4 => 16_384,
            5..=6 if scan || checkpoint => 262_144,
            _ => 4096,
        };
        let offset = match (write, scan) {
            (true, _) if checkpoint => (second % 120 - 95) * 3 * GIB / 2 / 4096 * 4096,
            (false, true) => (second - 200) * 7 * GIB / 10,
            (true, _) => 8 * GIB + noise.below(1 << 12) * noise.below(1 << 10) * 4096,
            _ => noise.below(40 * 1024) * 1_048_576,
        };
        let base = if write { 18_000 } else { 70_000 };
        let tail = if noise.below(100) < 3 { 40 } else { 1 };
        let latency = (base + noise.below(30_000)) * busy * tail / 2;
        let side = usize::from(write);
        run.bytes[side].record(SimTime(now), size);
        run.latency[side].record(SimTime(now), Nanos(latency));
        run.depth.set(SimTime(now), busy * (1 + noise.below(6)));
        run.sizes[side].record(Bytes(size));
        run.heat.record(side, SimTime(now), Bytes(offset), Bytes(size));
        if second % 150 == 149 && noise.below(30) == 0 {
            run.heat.record(2, SimTime(now), Bytes(40 * GIB), Bytes(9 * GIB));
        }
        now += 2_000_000 + noise.below(9_000_000) / busy;
    }
    run
}

/// The whole sample.
pub fn document() -> Document {
    let run = run();
    let sizes = run.sizes.clone();
    Document::new("orders-db.blk.parquet", "600 s, 153,214 requests on a simulated 64 GiB drive")
        .with(summary())
        .with(rules())
        .with(over_time(run))
        .with(requests(&sizes))
        .with(limits())
}

fn summary() -> Section {
    let lead = "Cleaning moves almost as much data as the host writes; discards come too late.";
    let mut section = Section::new("Summary", lead);
    section.push(Block::KeyFigures(vec![
        Figure::new("Write amplification", Unit::Ratio, 1.834)
            .note("bytes programmed to flash / bytes the host wrote"),
        Figure::new("Lifetime at this rate", Unit::Nanos, 4.2 * 3.155_76e16)
            .note("3,000 P/E cycles, 24 hours a day"),
        Figure::new("Host writes", Unit::Bytes, 212 * GIB),
        Figure::new("Read latency p99", Unit::Nanos, Nanos(1_910_000)),
        Figure::new("Mean throughput", Unit::BytesPerSec, 361.0 * 1_048_576.0),
        Figure::new("Discarded", Unit::Percent, 0.071).note("of the bytes written"),
        Figure::new("Over-provisioning", Unit::Percent, 0.123).note("effective; 7.37% nominal"),
        Figure::new("Trace clock", Unit::Nanos, Value::Missing).note("the trace has no wall clock"),
    ]));
    let segment = |name: &str, gib: f64| Segment { name: name.into(), value: gib * GIB as f64 };
    section.push(Block::Chart(Chart::Stacked(Stacked {
        title: "Flash programs by cause".into(),
        caption: "Garbage collection is the second largest cause.".into(),
        unit: Unit::Bytes,
        segments: vec![
            segment("host", 212.0),
            segment("gc", 139.5),
            segment("wear", 21.2),
            segment("map", 14.1),
            segment("pad", 2.0),
        ],
    })));
    section
}

fn rules() -> Section {
    let lead = "Two rules are kept, one is strained and one is broken.";
    let mut section = Section::new("The rules", lead);
    let sentence = "Half of the writes are 4 KiB and wait for each other: the drive serves one \
                    die where it has eight.";
    section.push(Block::Verdicts(vec![
        Verdict::new("Request scale", Grade::Broken, sentence)
            .score(0.03)
            .detail("median write", "4 KiB")
            .detail("median requests in flight", "1")
            .detail("dies of the drive", "8"),
        Verdict::new("Locality", Grade::Strained, "The map in memory misses one page in nine.")
            .score(0.52)
            .detail("miss ratio with a tenth of the map", "11.2%"),
        Verdict::new("Grouping by death time", Grade::Kept, "Blocks die as a whole.").score(0.94),
        Verdict::new("Aligned sequentiality", Grade::Kept, "Merges copy almost nothing.")
            .score(1.0),
        Verdict::new("Uniform lifetime", Grade::Unknown, "The trace is too short for a verdict."),
    ]));
    let zombies = |share: f64| {
        let block = |i: u32| (f64::from(i) * 0.25 * GIB as f64, f64::from(i));
        let valid = |i: f64| (1.0 - (i / (400.0 * share)).powi(3)).max(0.0);
        (0..=400).map(block).map(|(x, i)| (x, valid(i))).filter(|&(_, y)| y > 0.0).collect()
    };
    section.push(Block::Chart(Chart::Curves(Curves {
        title: "Zombie curve".into(),
        caption: "Valid data should not need the space to the right of the dashed line.".into(),
        x: Axis::linear("flash space, blocks sorted by valid data", Unit::Bytes),
        y: Axis::linear("valid data in a block", Unit::Percent),
        series: vec![
            Curve::new("one log for all", CurveShape::Steps, zombies(0.98)),
            Curve::new("a log for each range", CurveShape::Steps, zombies(0.7)),
        ],
        marks: vec![Mark { x: 64.0 * GIB as f64, label: "size of the drive".into() }],
    })));
    let misses = |reach: f64| {
        let at = |i: u32| 4096.0 * f64::from(1 << i);
        (0..=24).map(|i| (at(i), 1.0 / (1.0 + (at(i) / reach).powf(0.6)))).collect()
    };
    section.push(Block::Chart(Chart::Curves(Curves {
        title: "Misses by the size of the map cache".into(),
        caption: "Discards look up as many pages as reads, and find fewer of them.".into(),
        x: Axis::log("map kept in memory", Unit::Bytes),
        y: Axis::linear("misses of all look-ups", Unit::Percent),
        series: vec![
            Curve::new("read", CurveShape::Line, misses(4e6)),
            Curve::new("write", CurveShape::Line, misses(1e6)),
            Curve::new("discard", CurveShape::Dots, misses(9e7)),
        ],
        marks: vec![
            Mark { x: 64.0 * 1_048_576.0, label: "the whole map".into() },
            Mark { x: 65_536.0, label: "one page".into() },
        ],
    })));
    section
}

fn over_time(run: Run) -> Section {
    let mut section =
        Section::new("Over time", "Checkpoints every two minutes set the tail of the latency.");
    let [reads, writes] = run.bytes.map(|series| series.finish(END));
    section.push(Block::Chart(Chart::Lines(Lines {
        title: "Throughput".into(),
        caption: "Peaks are checkpoints; the plateau of reads is one sequential scan.".into(),
        time_range: reads.time_range(),
        times: reads.midpoints(),
        y: Axis::linear("bytes per second", Unit::BytesPerSec),
        series: vec![Series::new("read", reads.rates()), Series::new("write", writes.rates())],
    })));
    let [reads, writes] = run.latency.map(|series| series.finish(END));
    let banded = |name: &str, finished: &prism_report::accumulate::Finished<_>| {
        let p = |per_mille| finished.percentiles(per_mille);
        Series::new(name, p(500)).band("p50 to p99", p(500), p(990))
    };
    section.push(Block::Chart(Chart::Lines(Lines {
        title: "Latency".into(),
        caption: "The median holds, while the slowest percent waits behind checkpoints.".into(),
        time_range: reads.time_range(),
        times: reads.midpoints(),
        y: Axis::log("median latency", Unit::Nanos),
        series: vec![banded("read", &reads), banded("write", &writes)],
    })));
    let depth = run.depth.finish(END);
    section.push(Block::Chart(Chart::Lines(Lines {
        title: "Queue depth".into(),
        caption: "Requests in flight, averaged over the time that each depth held.".into(),
        time_range: depth.time_range(),
        times: depth.midpoints(),
        y: Axis::linear("requests in flight", Unit::Count),
        series: vec![Series::new("mean", depth.means()), Series::new("highest", depth.maxima())],
    })));
    let caption = "Writes are hot at the front, checkpoints sweep, discards clear one range.";
    let map = run.heat.finish(END, "Addresses over time", caption);
    section.push(Block::Chart(Chart::Heatmap(map)));
    section
}

fn requests(sizes: &[SizeHistogram; 2]) -> Section {
    let mut section = Section::new("Requests", "Three quarters of all requests are 4 KiB.");
    let chart = SizeHistogram::chart(
        &[("read", &sizes[0]), ("write", &sizes[1])],
        "Request sizes",
        "Exact powers of two are separate from sizes between them.",
    );
    section.push(Block::Chart(Chart::Bars(chart)));
    let percentile = |name| Column::number(name, Unit::Nanos);
    let mut table = Table::new(
        "Latency by operation.",
        vec![
            Column::text("operation"),
            Column::number("requests", Unit::Count),
            percentile("p50"),
            percentile("p90"),
            percentile("p99"),
            percentile("p99.9"),
            percentile("max"),
        ],
    );
    let mut row = |name: &str, count: u64, latencies: [u64; 5]| {
        let mut row: Vec<Value> = vec![name.into(), count.into()];
        row.extend(latencies.map(|latency| Value::from(Nanos(latency))));
        table.rows.push(row);
    };
    row("read", 61_004, [84_000, 161_000, 1_910_000, 4_400_000, 12_800_000]);
    row("write", 92_198, [31_000, 92_000, 1_204_000, 3_100_000, 18_450_000]);
    row("discard", 12, [55_000, 60_000, 61_000, 61_000, 61_200]);
    table.rows.push(vec!["flush".into(), Value::Int(0)]);
    section.push(Block::Table(table));
    section.push(Block::Chart(Chart::Bars(Bars {
        title: "Writes by process".into(),
        caption: "One process issues most of what is written.".into(),
        layout: BarLayout::Rows,
        label_name: "process".into(),
        labels: ["postgres: checkpointer", "postgres: walwriter", "<script>alert(1)</script>"]
            .map(String::from)
            .into(),
        y: Axis::linear("bytes written", Unit::Bytes),
        series: vec![Series::new(
            "write",
            [151.0, 52.5, 8.5].map(|gib| Some(gib * GIB as f64)).into(),
        )],
    })));
    section
}

fn limits() -> Section {
    let mut section = Section::new("What this rests on", "");
    let columns = vec![
        Column::text("change"),
        Column::number("write amplification", Unit::Ratio),
        Column::text("what it would mean"),
    ];
    let mut table = Table::new("What would help, by how much.", columns);
    let mut row = |change: &str, amplification: f64, meaning: &str| {
        table.rows.push(vec![change.into(), amplification.into(), meaning.into()]);
    };
    row("discards at once", 1.41, "Files that are gone give their space back before cleaning.");
    row(
        "two streams",
        1.12,
        "The log and the tables no longer share blocks, so that the space \
                              of the log is free as a whole when it is cut.",
    );
    section.push(Block::Table(table));
    section.push(Block::Notes(vec![
        "The trace has no completion times; latencies are those of the simulated drive.".into(),
        "The drive was filled once in order before the trace began.".into(),
        "41 records had no size and were skipped.".into(),
    ]));
    section.push(Block::Text("The numbers are invented, to show what a report looks like.".into()));
    section
}
