//! The sums from which the charts are drawn. Their size does not depend on the length of the
//! trace.
//!
//! In a steady state every pass looks like the one before, so only one of them is drawn.

use prism_base::{Bytes, Nanos, SimTime};
use prism_report::accumulate::{
    HeatGrid, LatencySeries, LevelSeries, LogHistogram, SizeHistogram, SumSeries,
};
use prism_report::{Axis, Chart, Document, Lines, Section, Series, Unit};
use prism_ssd::HostOp;
use prism_workload::{Finished, Observer, Progress};

use super::writers::{WriterGrid, Writers};

/// Buckets of a time axis: about as many as a wide screen has distinguishable columns.
const BUCKETS: usize = 512;
/// Columns and rows of the map of addresses over time.
pub(super) const HEAT_COLUMNS: usize = 256;
pub(super) const HEAT_ROWS: usize = 48;
/// First guess of a bucket's width; it doubles as time goes on.
pub(super) const WIDTH: Nanos = Nanos(10_000);
/// Operations that move addresses, with their layer in the map.
const LAYERS: [(HostOp, &str); 3] =
    [(HostOp::Read, "read"), (HostOp::Write, "write"), (HostOp::Discard, "discard")];

/// What the charts are made of.
pub struct Charts {
    /// Measured passes that are drawn.
    shown: u32,
    /// Measured passes that have begun.
    begun: u32,
    end: SimTime,
    bytes: [SumSeries; 2],
    latency: [LatencySeries; 2],
    depth: LevelSeries,
    sizes: [SizeHistogram; 3],
    heat: HeatGrid,
    writers: Option<WriterGrid>,
}

/// Observes a run: draws its charts, passes each request on and reports progress.
pub struct Watched<'a> {
    /// The charts.
    pub charts: Charts,
    /// Called for each measured request; the run ends when it returns false.
    pub each: &'a mut dyn FnMut(&Finished) -> bool,
    /// Called with the progress of the run.
    pub reached: &'a dyn Fn(Progress),
    /// Whether `each` has returned false.
    pub interrupted: bool,
}

/// `document` with `charts` before its last section, the notes.
#[must_use]
pub fn with_charts(mut document: Document, charts: Vec<Section>) -> Document {
    let last = document.sections.pop();
    document.sections.extend(charts);
    document.sections.extend(last);
    document
}

impl Charts {
    /// Empty charts, for the first `shown` measured passes over `span` bytes of addresses;
    /// `writers` have colours of their own.
    #[must_use]
    pub fn new(span: Bytes, shown: u32, writers: Option<Writers>) -> Self {
        let start = SimTime::ZERO;
        Self {
            shown,
            begun: 0,
            end: start,
            bytes: [(); 2].map(|()| SumSeries::new(start, WIDTH, BUCKETS)),
            latency: [(); 2].map(|()| LatencySeries::new(start, WIDTH, BUCKETS)),
            depth: LevelSeries::new(start, WIDTH, BUCKETS),
            sizes: [(); 3].map(|()| SizeHistogram::default()),
            heat: HeatGrid::new(
                &LAYERS.map(|(_, name)| name),
                span,
                HEAT_ROWS,
                start,
                WIDTH,
                HEAT_COLUMNS,
            ),
            writers: writers.map(|writers| WriterGrid::new(writers, span)),
        }
    }

    /// The charts over time, and of request sizes and addresses; and the two of them that a reader
    /// looks at first: latency, and where writes land.
    #[must_use]
    pub fn sections(mut self) -> (Vec<Section>, Vec<Chart>) {
        let writers = self.writers.take();
        let end = self.end + Nanos(1);
        let [reads, writes] = self.bytes.map(|series| series.finish(end));
        let lead = match self.shown {
            1 => "One pass through the trace, in simulated time.".to_owned(),
            n => format!("{n} passes through the trace, in simulated time."),
        };
        let mut time = Section::new("Over time", lead);
        time.push(Chart::Lines(Lines {
            title: "Throughput".into(),
            caption: "Data of completed requests, by time of completion.".into(),
            time_range: reads.time_range(),
            times: reads.midpoints(),
            y: Axis::linear("bytes per second", Unit::BytesPerSec),
            series: vec![Series::new("read", reads.rates()), Series::new("write", writes.rates())],
        }));
        let [reads, writes] = self.latency.map(|series| series.finish(end));
        let banded = |name: &str, series: &prism_report::accumulate::Finished<LogHistogram>| {
            Series::new(name, series.percentiles(500)).band(
                "up to p99",
                series.percentiles(500),
                series.percentiles(990),
            )
        };
        let latency = Chart::Lines(Lines {
            title: "Latency".into(),
            caption: "The line is the median; the band extends to the 99th percentile.".into(),
            time_range: reads.time_range(),
            times: reads.midpoints(),
            y: Axis::log("latency", Unit::Nanos),
            series: vec![banded("read", &reads), banded("write", &writes)],
        });
        let depth = self.depth.finish(end);
        time.push(Chart::Lines(Lines {
            title: "Queue depth".into(),
            caption: "Requests in flight: mean and most in each interval.".into(),
            time_range: depth.time_range(),
            times: depth.midpoints(),
            y: Axis::linear("requests in flight", Unit::Count),
            series: vec![Series::new("mean", depth.means()), Series::new("most", depth.maxima())],
        }));
        let mut requests = Section::new("Requests", "What the host requested, and where.");
        let [reads, writes, discards] = &self.sizes;
        let sizes = [("read", reads), ("write", writes), ("discard", discards)];
        requests.push(Chart::Bars(SizeHistogram::chart(
            &sizes,
            "Request sizes",
            "Requests by size.",
        )));
        requests.push(Chart::Heatmap(self.heat.finish(
            end,
            "Addresses over time",
            "Bytes by address and time. A horizontal line is an address that is accessed again \
             and again, a slope is a scan.",
        )));
        let first = [Some(latency), writers.and_then(|writers| writers.chart(end))];
        (vec![time, requests], first.into_iter().flatten().collect())
    }
}

impl Charts {
    fn finished(&mut self, finished: &Finished) {
        if finished.pass >= self.shown {
            return;
        }
        let completion = &finished.completion;
        let at = SimTime(completion.completed.since(finished.origin).0);
        self.end = at;
        let Some(layer) = LAYERS.iter().position(|&(op, _)| op == completion.op) else { return };
        let len = Bytes(completion.len);
        self.sizes[layer].record(len);
        self.heat.record(layer, at, Bytes(finished.offset), len);
        if completion.op == HostOp::Write
            && let Some(writers) = &mut self.writers
        {
            writers.record(&finished.issuer, at, Bytes(finished.offset), len);
        }
        if layer < 2 {
            self.bytes[layer].record(at, completion.len);
            self.latency[layer].record(at, completion.completed.since(finished.arrival));
        }
    }
}

impl Observer for Watched<'_> {
    fn finished(&mut self, finished: &Finished) {
        self.interrupted |= !(self.each)(finished);
        self.charts.finished(finished);
    }

    fn in_flight(&mut self, at: SimTime, requests: u32) {
        if self.charts.begun <= self.charts.shown {
            self.charts.depth.set(at, u64::from(requests));
        }
    }

    fn keep_going(&mut self, progress: Progress) -> bool {
        self.charts.begun += u32::from(progress.measuring && progress.submitted == 0);
        (self.reached)(progress);
        !self.interrupted
    }
}

/// Reports the progress of a run and ignores its requests.
pub struct Unwatched<'a> {
    /// Called with the progress of the run; whether that goes on.
    pub reached: &'a dyn Fn(Progress) -> bool,
}

impl Observer for Unwatched<'_> {
    fn needs_requests(&self) -> bool {
        false
    }

    fn finished(&mut self, _: &Finished) {}

    fn in_flight(&mut self, _: SimTime, _: u32) {}

    fn keep_going(&mut self, progress: Progress) -> bool {
        (self.reached)(progress)
    }
}
