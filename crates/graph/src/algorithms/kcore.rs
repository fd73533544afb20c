//! Core numbers: the largest k such that the vertex is in a part of the graph where each vertex has
//! k neighbours.
//!
//! Each vertex has an upper bound, at first its number of neighbours. A bound is lowered to the
//! largest h for which h neighbours have bounds of h or more, until none changes; only vertices
//! next to a change are looked at again. Directions and loops do not count. Source: Montresor, De
//! Pellegrini, Miorandi, PODC'11.

use std::sync::atomic::AtomicU32;

use crate::algorithms::by_lists::ListProgram;
use crate::algorithms::frontier::Bits;
use crate::algorithms::windows::{Windows, directions};
use crate::engine::Graph;
use crate::error::Result;
use crate::lists::tidy;
use crate::pool::{Cell, Pool};

/// Bytes for a neighbour of which the bound is counted.
const COUNT: u64 = 4;

/// Bytes of memory that [`kcore`] needs next to buffers: bounds, two bits, and a window for each
/// thread.
pub(crate) fn state_bytes(graph: &Graph, pool: &dyn Pool) -> u64 {
    let windows = Windows::new(graph.catalog());
    let vertices = u64::from(graph.catalog().vertices);
    vertices * 4 + vertices / 4 + pool.threads() as u64 * windows.bytes_max(graph, COUNT)
}

/// Core numbers with bounds on flash.
pub(crate) struct Bounds;

impl ListProgram for Bounds {
    const DISTINCT: bool = true;

    fn initial(&self, _vertex: u32) -> u32 {
        u32::MAX
    }

    fn apply(&self, old: u32, neighbours: &mut [u32]) -> u32 {
        neighbours.sort_unstable_by(|a, b| b.cmp(a));
        // The bounds fall while h grows.
        let reach = (1..).zip(&*neighbours).take_while(|(h, bound)| h <= *bound).count() as u32;
        reach.min(old)
    }
}

/// The core number of each vertex, and the rounds.
///
/// # Errors
/// As [`Graph::stream`]; [`GraphError::Memory`](crate::GraphError::Memory).
pub fn kcore(graph: &mut Graph, pool: &dyn Pool) -> Result<(Vec<u32>, u32)> {
    let vertices = graph.catalog().vertices;
    let windows = Windows::new(graph.catalog());
    let state = state_bytes(graph, pool);
    graph.reserve("the core numbers", state, &directions(graph.catalog()), pool)?;
    let bounds: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(u32::MAX)).collect();
    let (mut active, mut next) = (Bits::new(vertices), Bits::new(vertices));
    (0..vertices).for_each(|vertex| active.set(vertex));
    let mut rounds = 0;
    loop {
        let some = windows.chosen(|first, count| active.any(first, count));
        if some.tasks.is_empty() {
            return Ok((bounds.into_iter().map(AtomicU32::into_inner).collect(), rounds));
        }
        rounds += 1;
        some.stream(graph, pool, &|window| {
            let mut counts = Vec::new();
            window.for_each(|vertex, list| {
                if !active.has(vertex) {
                    return;
                }
                let count = tidy(list, |other, before| before != Some(other));
                let list = &list[..count];
                let old = bounds[vertex as usize].get();
                let new = h_index(list, old, &bounds, &mut counts);
                if new < old {
                    bounds[vertex as usize].set(new);
                    let above = |other: &&u32| bounds[**other as usize].get() > new;
                    list.iter().filter(above).for_each(|other| next.set(*other));
                }
            });
            Ok(())
        })?;
        std::mem::swap(&mut active, &mut next);
        next.clear();
    }
}

/// The largest h, at most `limit`, for which h neighbours have bounds of h or more.
fn h_index(list: &[u32], limit: u32, bounds: &[AtomicU32], counts: &mut Vec<u32>) -> u32 {
    let most = (list.len() as u32).min(limit) as usize;
    counts.clear();
    counts.resize(most + 1, 0);
    for neighbour in list {
        counts[(bounds[*neighbour as usize].get() as usize).min(most)] += 1;
    }
    let mut reached = 0;
    for h in (0..=most).rev() {
        reached += counts[h] as usize;
        if reached >= h {
            return h as u32;
        }
    }
    0
}
