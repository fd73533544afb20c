//! Community detection by label propagation.
//!
//! In each round a vertex takes the label that most of its neighbours have, of several the
//! smallest. A neighbour that is linked both ways counts twice. Source: Graphalytics specification
//! 1.0.5, section 2.3.4; rounds are synchronous.

use std::sync::atomic::AtomicU32;

use crate::algorithms::by_lists::ListProgram;
use crate::algorithms::windows::{Windows, directions};
use crate::engine::Graph;
use crate::error::Result;
use crate::pool::{Cell, Pool};

/// Bytes of memory that [`cdlp`] needs next to buffers: labels, and a window for each thread.
pub(crate) fn state_bytes(graph: &Graph, pool: &dyn Pool) -> u64 {
    let windows = Windows::new(graph.catalog());
    u64::from(graph.catalog().vertices) * 8 + pool.threads() as u64 * windows.bytes_max(graph, 0)
}

/// Label propagation with labels on flash: a vertex takes the label of most of its neighbours.
pub(crate) struct Propagation;

impl ListProgram for Propagation {
    const DISTINCT: bool = false;

    fn initial(&self, vertex: u32) -> u32 {
        vertex
    }

    fn apply(&self, old: u32, neighbours: &mut [u32]) -> u32 {
        most_frequent(neighbours).unwrap_or(old)
    }
}

/// The label of each vertex, the rank of one, after `rounds` rounds; it ends early if nothing
/// changes.
///
/// # Errors
/// As [`Graph::stream`]; [`GraphError::Memory`](crate::GraphError::Memory).
pub fn cdlp(graph: &mut Graph, pool: &dyn Pool, rounds: u32) -> Result<(Vec<u32>, u32)> {
    let vertices = graph.catalog().vertices;
    let windows = Windows::new(graph.catalog());
    let state = state_bytes(graph, pool);
    graph.reserve("the labels", state, &directions(graph.catalog()), pool)?;
    let zeros = || (0..vertices).map(|_| AtomicU32::new(0)).collect();
    let (mut labels, mut next): (Vec<AtomicU32>, Vec<AtomicU32>) = (zeros(), zeros());
    let mut rank = 0;
    graph.ranked(|vertex| {
        labels[vertex as usize].set(rank);
        rank += 1;
    })?;
    for round in 0..rounds {
        let changed = AtomicU32::new(0);
        windows.stream(graph, pool, &|window| {
            window.for_each(|vertex, neighbours| {
                for neighbour in neighbours.iter_mut() {
                    *neighbour = labels[*neighbour as usize].get();
                }
                let old = labels[vertex as usize].get();
                let new = most_frequent(neighbours).unwrap_or(old);
                next[vertex as usize].set(new);
                if new != old {
                    changed.set(1);
                }
            });
            Ok(())
        })?;
        std::mem::swap(&mut labels, &mut next);
        if changed.get() == 0 {
            return Ok((labels.into_iter().map(AtomicU32::into_inner).collect(), round + 1));
        }
    }
    Ok((labels.into_iter().map(AtomicU32::into_inner).collect(), rounds))
}

/// The smallest of the labels that occur most often.
fn most_frequent(labels: &mut [u32]) -> Option<u32> {
    labels.sort_unstable();
    let runs = labels.chunk_by(|a, b| a == b);
    // Of equals the first is kept.
    let longest = runs.reduce(|best, run| if run.len() > best.len() { run } else { best });
    longest.map(|run| run[0])
}

#[cfg(test)]
mod tests {
    use super::most_frequent;

    #[test]
    fn of_labels_as_frequent_the_smallest_wins() {
        let check = |labels: &[u32], expected| {
            assert_eq!(most_frequent(&mut labels.to_vec()), expected, "{labels:?}");
        };
        check(&[], None);
        check(&[7], Some(7));
        check(&[7, 3], Some(3));
        check(&[7, 3, 7], Some(7));
        check(&[9, 3, 9, 3, 1], Some(3));
    }
}
