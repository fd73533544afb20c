//! PageRank by parallel sliding windows: the value of an edge is the share of its source's rank,
//! and is rewritten in each iteration.

use std::ops::Range;

use prism_flash::FlashError;

use super::sharder::{decode, word};
use super::volume::{Pages, Volume};
use super::{BASE, Config, InEdges, Sharded, get, set};

/// Runs all iterations.
///
/// # Errors
/// [`FlashError`] if the device fails.
pub(in super::super) fn run(
    volume: &mut Volume,
    graph: &Sharded,
    config: &Config,
) -> Result<(), FlashError> {
    for iteration in 0..config.iterations {
        for interval in 0..graph.shards.len() {
            volume.wait_for_writes()?;
            let mut loaded = Loaded::read(volume, graph, interval)?;
            if iteration > 0 {
                let edges = graph.shards[interval].edges;
                volume.pass(config.cpu.of(config.cpu.iterate, edges));
            }
            loaded.update(iteration == 0);
            loaded.write(volume, graph)?;
        }
    }
    volume.sync()
}

/// What one interval needs, in memory.
struct Loaded {
    interval: usize,
    /// Edges to the vertices of the interval.
    to: InEdges,
    /// The values of all edges of the own shard.
    own: Pages,
    /// Edges from the vertices, by the shard they are in.
    windows: Vec<Window>,
    degrees: Pages,
    values: Pages,
}

/// The edges of a shard from the vertices of an interval.
struct Window {
    /// Their values; none for the own shard, which is in memory as a whole.
    values: Pages,
    /// The first edge of the window in what is in memory.
    first: usize,
    /// Where the edges of each vertex begin in the window, and the end.
    begins: Vec<u32>,
}

/// Where the edges of each source begin.
fn begins(adjacency: &[u8], sources: Range<u32>) -> Vec<u32> {
    let mut begins = vec![0; sources.len() + 1];
    decode(adjacency, sources.clone(), |source, targets| {
        begins[(source - sources.start) as usize + 1] = targets.len() as u32 / 4;
    });
    for vertex in 0..sources.len() {
        begins[vertex + 1] += begins[vertex];
    }
    begins
}

impl Loaded {
    /// Reads the memory shard, the windows of all others, degrees and values.
    fn read(volume: &mut Volume, graph: &Sharded, interval: usize) -> Result<Self, FlashError> {
        let vertices = graph.bounds[interval]..graph.bounds[interval + 1];
        let all = *graph.bounds.last().expect("the end");
        let mut requests = Vec::new();
        for (number, shard) in graph.shards.iter().enumerate() {
            let [begin, end] = [shard.begins[interval], shard.begins[interval + 1]];
            let own = number == interval;
            let bytes = if own { 0..shard.adjacency.bytes() } else { begin.0..end.0 };
            let edges = if own { 0..shard.edges } else { begin.1..end.1 };
            requests.push((&shard.adjacency, bytes));
            requests.push((&shard.values, edges.start * 4..edges.end * 4));
        }
        let of = |bytes| u64::from(vertices.start) * bytes..u64::from(vertices.end) * bytes;
        requests.push((&graph.degrees, of(8)));
        requests.push((&graph.values, of(4)));
        let mut read = volume.read(&requests)?.into_iter();
        let mut next = || read.next().expect("as many as were asked for");
        let (mut windows, mut to, mut own) = (Vec::new(), None, Pages::default());
        for (number, shard) in graph.shards.iter().enumerate() {
            let (adjacency, mut values) = (next(), next());
            let (mut part, mut first) = (adjacency.content(), 0);
            if number == interval {
                to = Some(InEdges::new(part, &vertices, all));
                let [begin, end] = [shard.begins[interval], shard.begins[interval + 1]];
                part = &part[begin.0 as usize..end.0 as usize];
                first = begin.1 as usize;
                own = std::mem::take(&mut values);
            }
            windows.push(Window { values, first, begins: begins(part, vertices.clone()) });
        }
        let (degrees, values) = (next(), next());
        let to = to.expect("the interval has a shard");
        Ok(Self { interval, to, own, windows, degrees, values })
    }

    /// Computes the vertices in their order: each sees what those before it have written.
    fn update(&mut self, first: bool) {
        let vertices = self.degrees.content().len() / 8;
        for vertex in 0..vertices {
            let own = self.own.content();
            let sum: f32 =
                self.to.of(vertex).iter().map(|[edge, _]| get(own, *edge as usize)).sum();
            let rank = if first { BASE } else { BASE + (1.0 - BASE) * sum };
            set(self.values.content_mut(), vertex, rank);
            let degree = word(self.degrees.content(), vertex * 8 + 4) as f32;
            let share = if first { 1.0 / degree } else { rank / degree };
            for (number, window) in self.windows.iter_mut().enumerate() {
                let values = match number == self.interval {
                    true => self.own.content_mut(),
                    false => window.values.content_mut(),
                };
                for edge in window.begins[vertex]..window.begins[vertex + 1] {
                    set(values, window.first + edge as usize, share);
                }
            }
        }
    }

    /// Writes the values of vertices, and of the edges from them.
    fn write(self, volume: &mut Volume, graph: &Sharded) -> Result<(), FlashError> {
        volume.write(&graph.values, &self.values, 0..self.values.content().len())?;
        for (number, (window, shard)) in self.windows.iter().zip(&graph.shards).enumerate() {
            let pages = if number == self.interval { &self.own } else { &window.values };
            let edges = *window.begins.last().expect("the end") as usize;
            let bytes = window.first * 4..(window.first + edges) * 4;
            volume.write(&shard.values, pages, bytes)?;
        }
        Ok(())
    }
}
