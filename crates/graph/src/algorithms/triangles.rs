//! Triangles, and the local clustering coefficient.
//!
//! Every edge is directed from the vertex with fewer edges to the one with more; each triangle is
//! then found once, by intersecting the lists of two vertices. The lists of as many vertices as fit
//! into the memory are kept, and all others are streamed along them: as many passes as these parts.
//! Source: Chu and Cheng, KDD'11 (external); Schank and Wagner, WEA'05 (by degree).

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::algorithms::windows::{Windows, directions};
use crate::catalog::Catalog;
use crate::engine::Graph;
use crate::error::Result;
use crate::pool::{Cell, Pool};

/// What is counted at each vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Triangles.
    Triangles,
    /// Edges between neighbours; in a directed graph two if they go both ways.
    Arcs,
}

/// Counts and, for each vertex, the number of different neighbours.
pub struct Counted {
    /// The counts.
    pub counts: Vec<u64>,
    /// Neighbours, in either direction, without the vertex itself.
    pub neighbours: Vec<u32>,
    /// Passes over the graph.
    pub passes: u32,
}

/// A list towards vertices with more edges: a vertex, and how many edges go to it or from it, 1 or
/// 2.
type List = Vec<(u32, u8)>;

/// The part of the lists that is in memory.
struct Part {
    first: u32,
    ends: Vec<u64>,
    lists: List,
}

/// Bytes of an element of a list.
const ELEMENT: u64 = size_of::<(u32, u8)>() as u64;

/// Bytes next to lists: counts, neighbours, lengths and ends of lists; for each thread a window,
/// and the lists of it.
fn fixed_bytes(graph: &Graph, windows: &Windows, pool: &dyn Pool) -> u64 {
    let threads = pool.threads() as u64;
    // The lists of a window grow: their new memory, of up to twice their length, is there together
    // with the old one, of half of it.
    let window = windows.bytes_max(graph, 3 * ELEMENT);
    u64::from(graph.catalog().vertices) * (8 + 4 + 4 + 8) + threads * window
}

/// Bytes of the longest list that there can be.
fn least_bytes(catalog: &Catalog) -> u64 {
    u64::from(catalog.degree_max) * 2 * ELEMENT
}

/// The least memory that [`count`] needs next to buffers.
pub(crate) fn bytes_min(graph: &Graph, pool: &dyn Pool) -> u64 {
    let windows = Windows::new(graph.catalog());
    fixed_bytes(graph, &windows, pool) + least_bytes(graph.catalog())
}

/// Counts at each vertex.
///
/// # Errors
/// As [`Graph::stream`]; [`GraphError::Memory`](crate::GraphError::Memory).
pub fn count(graph: &mut Graph, pool: &dyn Pool, what: Count) -> Result<Counted> {
    let catalog = graph.catalog().clone();
    let vertices = catalog.vertices;
    let windows = Windows::new(&catalog).single();
    let (fixed, least) = (fixed_bytes(graph, &windows, pool), least_bytes(&catalog));
    let left = graph.state_max(pool).saturating_sub(fixed);
    // An undirected graph has each edge twice, and a list has it once.
    let most = if catalog.directed { catalog.arcs } else { catalog.arcs / 2 } * ELEMENT;
    let lists = most.min(left / 2).max(least);
    graph.reserve("the counts", fixed + lists, &directions(&catalog), pool)?;
    let neighbours = distinct_neighbours(graph, pool, &windows, vertices)?;
    let lengths = lengths(graph, pool, &windows, &neighbours)?;
    let parts = parts(&lengths, lists / ELEMENT);
    let counts: Vec<AtomicU64> = (0..vertices).map(|_| AtomicU64::new(0)).collect();
    let passes = parts.len() as u32;
    for (first, last) in parts {
        let part = load(graph, pool, &windows, &neighbours, &lengths, (first, last))?;
        windows.stream(graph, pool, &|window| {
            window.for_each(|vertex, list| {
                let list = forward(vertex, list, &neighbours);
                for (other, multiplicity) in &list {
                    if let Some(of_other) = part.list(*other) {
                        let between = (vertex, *other, *multiplicity);
                        add_triangles(&counts, what, between, &list, of_other);
                    }
                }
            });
            Ok(())
        })?;
    }
    let counts = counts.into_iter().map(AtomicU64::into_inner).collect();
    Ok(Counted { counts, neighbours, passes })
}

/// The order by which edges are directed: the number of neighbours, then the vertex.
fn rank(neighbours: &[u32], vertex: u32) -> (u32, u32) {
    (neighbours[vertex as usize], vertex)
}

/// The neighbours with a higher rank, in ascending order, each once.
fn forward(vertex: u32, list: &mut [u32], neighbours: &[u32]) -> List {
    let own = rank(neighbours, vertex);
    list.sort_unstable();
    let runs = list.chunk_by(|a, b| a == b);
    let higher = runs.filter(|run| rank(neighbours, run[0]) > own);
    higher.map(|run| (run[0], run.len().min(2) as u8)).collect()
}

fn distinct_neighbours(
    graph: &mut Graph,
    pool: &dyn Pool,
    windows: &Windows,
    vertices: u32,
) -> Result<Vec<u32>> {
    let counts: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(0)).collect();
    windows.stream(graph, pool, &|window| {
        window.for_each(|vertex, list| {
            list.sort_unstable();
            counts[vertex as usize].set(list.chunk_by(|a, b| a == b).count() as u32);
        });
        Ok(())
    })?;
    Ok(counts.into_iter().map(AtomicU32::into_inner).collect())
}

/// The length of the list of each vertex.
fn lengths(
    graph: &mut Graph,
    pool: &dyn Pool,
    windows: &Windows,
    neighbours: &[u32],
) -> Result<Vec<u32>> {
    let lengths: Vec<AtomicU32> = neighbours.iter().map(|_| AtomicU32::new(0)).collect();
    windows.stream(graph, pool, &|window| {
        window.for_each(|vertex, list| {
            lengths[vertex as usize].set(forward(vertex, list, neighbours).len() as u32);
        });
        Ok(())
    })?;
    Ok(lengths.into_iter().map(AtomicU32::into_inner).collect())
}

/// Ranges of vertices of which the lists have up to `most` elements.
fn parts(lengths: &[u32], most: u64) -> Vec<(u32, u32)> {
    let (mut parts, mut first, mut sum) = (Vec::new(), 0, 0);
    for (vertex, length) in (0..).zip(lengths) {
        let length = u64::from(*length);
        if sum + length > most.max(1) && vertex > first {
            parts.push((first, vertex - 1));
            (first, sum) = (vertex, 0);
        }
        sum += length;
    }
    if let Some(last) = (lengths.len() as u32).checked_sub(1) {
        parts.push((first, last));
    }
    parts
}

/// The lists of the vertices `first..=last`.
fn load(
    graph: &mut Graph,
    pool: &dyn Pool,
    windows: &Windows,
    neighbours: &[u32],
    lengths: &[u32],
    (first, last): (u32, u32),
) -> Result<Part> {
    let some = windows.chosen(|begin, count| begin <= last && begin + (count - 1) >= first);
    let mut ends = vec![0_u64];
    for length in &lengths[first as usize..=last as usize] {
        ends.push(ends.last().expect("the first") + u64::from(*length));
    }
    let lists = Mutex::new(vec![(0, 0); *ends.last().expect("the first") as usize]);
    some.stream(graph, pool, &|window| {
        let (mut begin, mut found) = (None, Vec::new());
        window.for_each(|vertex, list| {
            if (first..=last).contains(&vertex) {
                begin.get_or_insert(ends[(vertex - first) as usize] as usize);
                found.extend(forward(vertex, list, neighbours));
            }
        });
        let mut lists = lists.lock().expect("no thread panics in the lock");
        let begin = begin.unwrap_or(0);
        lists[begin..begin + found.len()].copy_from_slice(&found);
        Ok(())
    })?;
    let lists = lists.into_inner().expect("no thread panics in the lock");
    Ok(Part { first, ends, lists })
}

impl Part {
    fn list(&self, vertex: u32) -> Option<&[(u32, u8)]> {
        let at = vertex.checked_sub(self.first)? as usize;
        let end = *self.ends.get(at + 1)?;
        Some(&self.lists[self.ends[at] as usize..end as usize])
    }
}

/// Adds the triangles of two vertices with an edge between them, whose lists are these.
fn add_triangles(
    counts: &[AtomicU64],
    what: Count,
    (one, other, between): (u32, u32, u8),
    of_one: &[(u32, u8)],
    of_other: &[(u32, u8)],
) {
    let add = |vertex: u32, count: u64| {
        counts[vertex as usize].fetch_add(count, Ordering::Relaxed);
    };
    // What is opposite of each corner.
    let weight = |multiplicity: u8| if what == Count::Arcs { u64::from(multiplicity) } else { 1 };
    let (mut at, mut sum_one, mut sum_other) = (0, 0, 0);
    for (third, to_other) in of_other {
        while at < of_one.len() && of_one[at].0 < *third {
            at += 1;
        }
        let Some((_, to_one)) = of_one.get(at).filter(|(vertex, _)| vertex == third) else {
            continue;
        };
        sum_one += weight(*to_other);
        sum_other += weight(*to_one);
        add(*third, weight(between));
    }
    if sum_one > 0 {
        add(one, sum_one);
        add(other, sum_other);
    }
}

/// The local clustering coefficients: edges between neighbours over those that there could be.
#[must_use]
pub fn coefficients(counted: &Counted, directed: bool) -> Vec<f64> {
    let pairs = counted.counts.iter().zip(&counted.neighbours);
    pairs.map(|(count, neighbours)| coefficient(*count, *neighbours, directed)).collect()
}

/// The coefficient of a vertex with `neighbours` different neighbours and `count` edges between
/// these.
pub(crate) fn coefficient(count: u64, neighbours: u32, directed: bool) -> f64 {
    let neighbours = f64::from(neighbours);
    let possible = neighbours * (neighbours - 1.0);
    // An undirected edge counts in both directions.
    let count = count as f64 * if directed { 1.0 } else { 2.0 };
    if possible > 0.0 { count / possible } else { 0.0 }
}
