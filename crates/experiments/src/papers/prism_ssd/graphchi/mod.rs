//! A program of GraphChi's design, as the comparison of Prism-SSD has it: PageRank by parallel
//! sliding windows, and with vertices in memory.
//!
//! Source: Kyrola, Blelloch, Guestrin, OSDI'12; the layout of shards and the order of reads and
//! writes follow GraphChi's source (`preprocessing/sharder.hpp`, `engine/graphchi_engine.hpp`,
//! `example_apps/pagerank.cpp`). Differs: the places at which windows begin are in memory, data is
//! in segments and not in files, one thread computes and its CPU time is virtual, the values of
//! vertices are not read with vertices in memory.

mod in_memory;
mod ranges;
mod sharder;
mod volume;
mod windows;

use prism_flash::FlashError;

pub(super) use in_memory::run as run_in_memory;
pub(super) use ranges::{Ranges, open as open_ranges};
pub(super) use sharder::{Cpu, shard};
pub use volume::Traffic;
pub(super) use volume::{File, Space, Volume};
pub(super) use windows::run as run_windows;

/// The rank that each vertex gets whatever its edges are.
pub(super) const BASE: f32 = 0.15;

/// The source code of what a program needs for the policy level: segments instead of files, and the
/// ranges.
pub(super) const SOURCES: [&str; 2] = [include_str!("volume.rs"), include_str!("ranges.rs")];

/// How a graph is sharded and computed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Config {
    /// Shards.
    pub(super) shards: u32,
    /// Bytes of memory, of which a quarter is for a run of the sharder.
    pub(super) memory: u64,
    /// Where the values of edges are.
    pub(super) edge_values: Space,
    /// CPU time.
    pub(super) cpu: Cpu,
    /// Iterations, of which the first only sets values, as GraphChi's `niters`.
    pub(super) iterations: u32,
}

/// The edges to an interval of vertices, sorted by source.
#[derive(Debug)]
pub(super) struct Shard {
    adjacency: File,
    /// Four bytes an edge, in the same order.
    values: File,
    /// Where edges from each interval begin, byte and edge, and the end.
    begins: Vec<(u64, u64)>,
    edges: u64,
}

/// A graph in shards.
#[derive(Debug)]
pub(super) struct Sharded {
    /// Where intervals begin, and the end.
    bounds: Vec<u32>,
    shards: Vec<Shard>,
    /// Edges to and from each vertex, four bytes each.
    degrees: File,
    /// Four bytes a vertex.
    values: File,
}

impl Sharded {
    /// Edges.
    pub(super) fn edges(&self) -> u64 {
        self.shards.iter().map(|shard| shard.edges).sum()
    }

    /// The values of all vertices.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub(super) fn result(&self, volume: &mut Volume) -> Result<Vec<f32>, FlashError> {
        let read = volume.read(&[(&self.values, 0..self.values.bytes())])?;
        Ok(read[0].content().chunks_exact(4).map(|bytes| get(bytes, 0)).collect())
    }
}

/// The value with this number.
fn get(bytes: &[u8], number: usize) -> f32 {
    f32::from_bits(sharder::word(bytes, number * 4))
}

/// Changes the value with this number.
fn set(bytes: &mut [u8], number: usize, value: f32) {
    bytes[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
}

/// The edges to each vertex of an interval, as numbers, from a whole shard.
struct InEdges {
    /// Where those of each vertex begin, and the end.
    begins: Vec<u32>,
    /// Edge of the shard, and its source.
    edges: Vec<[u32; 2]>,
}

impl InEdges {
    fn new(adjacency: &[u8], interval: &std::ops::Range<u32>, vertices: u32) -> Self {
        let mut begins = vec![0; interval.len() + 1];
        let of = |target: &[u8]| (sharder::word(target, 0) - interval.start) as usize;
        sharder::decode(adjacency, 0..vertices, |_, targets| {
            targets.chunks_exact(4).for_each(|target| begins[of(target) + 1] += 1);
        });
        for vertex in 0..interval.len() {
            begins[vertex + 1] += begins[vertex];
        }
        let mut next = begins.clone();
        let mut edges = vec![[0; 2]; begins[interval.len()] as usize];
        let mut number = 0;
        sharder::decode(adjacency, 0..vertices, |source, targets| {
            for target in targets.chunks_exact(4) {
                let place = &mut next[of(target)];
                edges[*place as usize] = [number, source];
                *place += 1;
                number += 1;
            }
        });
        Self { begins, edges }
    }

    /// Those to the vertex with this number in the interval.
    fn of(&self, vertex: usize) -> &[[u32; 2]] {
        &self.edges[self.begins[vertex] as usize..self.begins[vertex + 1] as usize]
    }
}
