//! Where writes land over time, coloured by file or else by process.

use prism_base::{Bytes, SimTime};
use prism_report::accumulate::HeatGrid;
use prism_report::{Chart, Heatmap};
use prism_trace::{Op, Symbol, Symbols, Tally, TraceInfo};
use prism_workload::Issuer;

use super::charts::{HEAT_COLUMNS, HEAT_ROWS, WIDTH};

/// Files or processes with a colour of their own.
const NAMED_MAX: usize = 5;

/// The files or processes that write most, each with a colour of its own.
#[derive(Clone, Debug)]
pub struct Writers {
    /// What the colours stand for; `None` if the trace names no writers.
    by: Option<&'static str>,
    of: fn(&Issuer) -> Symbol,
    named: Vec<(Symbol, String)>,
}

impl Writers {
    /// Those of `trace`; `None` if it writes nothing.
    #[must_use]
    pub fn of(trace: &TraceInfo) -> Option<Self> {
        let symbols = &trace.symbols;
        let files = largest(trace.files.largest(symbols), symbols);
        if !files.is_empty() {
            return Some(Self { by: Some("file"), of: |issuer| issuer.file, named: files });
        }
        let named = largest(trace.processes.largest(symbols), symbols);
        let by = (!named.is_empty()).then_some("process");
        let writes = trace.summary.op(Op::Write).count > 0;
        writes.then_some(Self { by, of: |issuer| issuer.comm, named })
    }
}

/// The names that write most.
fn largest(mut tallies: Vec<Tally>, symbols: &Symbols) -> Vec<(Symbol, String)> {
    tallies.sort_by_key(|tally| std::cmp::Reverse(tally.bytes_written));
    let writing = tallies.into_iter().filter(|tally| tally.bytes_written > 0);
    let known = writing.filter_map(|tally| Some((symbols.get(&tally.name)?, tally.name)));
    known.filter(|(_, name)| !name.is_empty()).take(NAMED_MAX).collect()
}

/// The writes of a run by address, time and writer.
#[derive(Clone, Debug)]
pub(super) struct WriterGrid {
    writers: Writers,
    grid: HeatGrid,
}

impl WriterGrid {
    pub(super) fn new(writers: Writers, span: Bytes) -> Self {
        let mut names: Vec<&str> = writers.named.iter().map(|(_, name)| name.as_str()).collect();
        names.push(if names.is_empty() { "writes" } else { "others" });
        let grid = HeatGrid::new(&names, span, HEAT_ROWS, SimTime::ZERO, WIDTH, HEAT_COLUMNS);
        Self { writers, grid }
    }

    pub(super) fn record(&mut self, issuer: &Issuer, at: SimTime, offset: Bytes, len: Bytes) {
        let symbol = (self.writers.of)(issuer);
        let named = &self.writers.named;
        let layer = named.iter().position(|&(name, _)| name == symbol).unwrap_or(named.len());
        self.grid.record(layer, at, offset, len);
    }

    /// The chart, without writers of nothing; `None` if nothing is written.
    pub(super) fn chart(self, end: SimTime) -> Option<Chart> {
        let colour = self.writers.by.map_or(String::new(), |by| {
            format!(" the colour is that of the {by} that writes most there, and")
        });
        let caption = format!("Bytes written by address and time;{colour} darker is more.");
        let chart = self.grid.finish(end, "Where writes land", caption);
        let mut chart = Heatmap { overlaid: true, ..chart };
        chart.layers.retain(|layer| layer.cells.iter().any(|&cell| cell > 0));
        (!chart.layers.is_empty()).then_some(Chart::Heatmap(chart))
    }
}
