//! Breadth-first search and shortest paths: only segments of vertices that changed are read.
//!
//! A round goes from the vertices that changed along their edges. If these have more than a
//! twentieth of all edges, breadth-first search instead reads the edges to vertices that were not
//! reached, and stops at the first that leads there. Source: Beamer et al., SC'12 (direction-
//! optimizing). Shortest paths are Bellman-Ford's by rounds: the distances are the smallest sums
//! along paths, whatever the order in which edges are relaxed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::algorithms::paths::longer;
use crate::catalog::{Direction, Entry};
use crate::engine::{Graph, tasks};
use crate::error::Result;
use crate::pool::{Cell, CellF64, Pool};

/// A bit for each vertex.
pub(crate) struct Bits(Vec<AtomicU64>);

impl Bits {
    pub(crate) fn new(vertices: u32) -> Self {
        Self((0..=vertices / 64).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(crate) fn set(&self, vertex: u32) {
        self.0[vertex as usize / 64].fetch_or(1 << (vertex % 64), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has(&self, vertex: u32) -> bool {
        self.0[vertex as usize / 64].load(Ordering::Relaxed) >> (vertex % 64) & 1 == 1
    }

    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }

    /// Whether one of `count` vertices from `first` on is set.
    pub(crate) fn any(&self, first: u32, count: u32) -> bool {
        if count == 0 {
            return false;
        }
        let last = first + (count - 1);
        (first / 64..=last / 64).any(|word| {
            let mut bits = self.0[word as usize].load(Ordering::Relaxed);
            if word == first / 64 {
                bits &= u64::MAX << (first % 64);
            }
            if word == last / 64 {
                bits &= u64::MAX >> (63 - last % 64);
            }
            bits != 0
        })
    }

    /// The segments that have one of the vertices.
    pub(crate) fn active(&self, entries: &[Entry]) -> Vec<Entry> {
        let active = |entry: &&Entry| self.any(entry.first, entry.vertices);
        entries.iter().filter(active).copied().collect()
    }
}

/// The level of a vertex that is not reached.
pub const UNREACHED: u32 = u32::MAX;
/// One over the share of all edges from which on edges are followed backwards.
const DENSE: u64 = 20;

/// The fewest edges from `source` to each vertex, and the number of rounds.
///
/// # Errors
/// As [`Graph::stream`]; [`GraphError::Memory`](crate::GraphError::Memory).
pub fn bfs(graph: &mut Graph, pool: &dyn Pool, source: u32) -> Result<(Vec<u32>, u32)> {
    let vertices = graph.catalog().vertices;
    let state = u64::from(vertices) * 8 + u64::from(vertices) / 4;
    graph.reserve("the levels", state, &[Direction::Out, Direction::In], pool)?;
    let mut degrees = vec![0; vertices as usize];
    graph.degrees(|vertex, [_, from]| degrees[vertex as usize] = from)?;
    let levels: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(UNREACHED)).collect();
    levels[source as usize].set(0);
    let (mut active, mut next) = (Bits::new(vertices), Bits::new(vertices));
    active.set(source);
    let (out, into) =
        (graph.catalog().neighbours(Direction::Out), graph.catalog().neighbours(Direction::In));
    let arcs = graph.catalog().arcs;
    let (mut level, mut edges) = (0, u64::from(degrees[source as usize]));
    loop {
        let reached = AtomicU64::new(0);
        let new_edges = AtomicU64::new(0);
        let reach = |vertex: u32| {
            let cell = &levels[vertex as usize];
            let (old, new) = (UNREACHED, level + 1);
            if cell.get() == UNREACHED
                && cell.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                next.set(vertex);
                reached.fetch_add(1, Ordering::Relaxed);
                new_edges.fetch_add(degrees[vertex as usize].into(), Ordering::Relaxed);
            }
        };
        if edges * DENSE > arcs {
            graph.stream(pool, &tasks(&into), &|_, lists| {
                for list in lists {
                    list.for_each(|vertex, neighbours| {
                        let is_new = levels[vertex as usize].get() == UNREACHED;
                        if is_new && neighbours.iter().any(|neighbour| active.has(neighbour)) {
                            reach(vertex);
                        }
                    });
                }
                Ok(())
            })?;
        } else {
            graph.stream(pool, &tasks(&active.active(&out)), &|_, lists| {
                for list in lists {
                    list.for_each(|vertex, neighbours| {
                        if active.has(vertex) {
                            neighbours.iter().for_each(reach);
                        }
                    });
                }
                Ok(())
            })?;
        }
        if reached.into_inner() == 0 {
            break;
        }
        edges = new_edges.into_inner();
        level += 1;
        std::mem::swap(&mut active, &mut next);
        next.clear();
    }
    Ok((levels.into_iter().map(AtomicU32::into_inner).collect(), level + 1))
}

/// The length of the shortest path from `source` to each vertex, infinite if there is none and
/// [`f64::MAX`] if it is beyond the range of numbers, and the number of rounds.
///
/// # Errors
/// As [`Graph::stream`]; [`GraphError::Memory`](crate::GraphError::Memory).
///
/// A negative weight, of which the catalog knows, would give wrong lengths.
pub fn sssp(graph: &mut Graph, pool: &dyn Pool, source: u32) -> Result<(Vec<f64>, u32)> {
    let vertices = graph.catalog().vertices;
    let state = u64::from(vertices) * 8 + u64::from(vertices) / 4;
    graph.reserve("the distances", state, &[Direction::Out], pool)?;
    let distances: Vec<CellF64> = (0..vertices).map(|_| CellF64::new(f64::INFINITY)).collect();
    distances[source as usize].set(0.0);
    let (mut active, mut next) = (Bits::new(vertices), Bits::new(vertices));
    active.set(source);
    let out = graph.catalog().neighbours(Direction::Out);
    let mut rounds = 0;
    loop {
        let some = active.active(&out);
        if some.is_empty() {
            return Ok((distances.into_iter().map(|cell| cell.get()).collect(), rounds));
        }
        rounds += 1;
        graph.stream(pool, &tasks(&some), &|_, lists| {
            for list in lists {
                list.for_each(|vertex, neighbours| {
                    if !active.has(vertex) {
                        return;
                    }
                    let from = distances[vertex as usize].get();
                    for (neighbour, weight) in neighbours.weighted() {
                        if distances[neighbour as usize].lower(longer(from, weight)) {
                            next.set(neighbour);
                        }
                    }
                });
            }
            Ok(())
        })?;
        std::mem::swap(&mut active, &mut next);
        next.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bits_are_searched() {
        let bits = Bits::new(300);
        bits.set(130);
        for (first, count, expected) in [
            (0, 130, false),
            (0, 131, true),
            (130, 1, true),
            (131, 169, false),
            (100, 200, true),
            (129, 1, false),
            (130, 0, false),
        ] {
            assert_eq!(bits.any(first, count), expected, "{first} {count}");
        }
    }
}
