//! Algorithms that need all neighbours of a vertex at once, with values on flash.
//!
//! The lists of as many consecutive vertices as fit into the memory are a batch. In a round the
//! lists of each batch are read, which is every edge once; then the values of one interval of
//! vertices after another are, and take the places of the neighbours in the lists. So a round reads
//! all values as many times as there are batches, and writes all values once. Triangles have no
//! values: for each batch, all lists are read along it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::algorithms::triangles::Count;
use crate::engine::Graph;
use crate::error::Result;
use crate::external::SEGMENTS;
use crate::lists::{Lists, bytes_of_all, bytes_of_one, ranges};
use crate::pool::Pool;
use crate::results::Results;

/// Batches at most: each costs a pass over all values, or over the graph.
const BATCHES_MAX: u64 = 64;

/// How the value of a vertex changes in a round.
pub(crate) trait ListProgram: Sync {
    /// Whether a neighbour counts once, however many edges there are to it and from it.
    const DISTINCT: bool;

    /// The value before the first round.
    fn initial(&self, vertex: u32) -> u32;

    /// The new value, from those of the neighbours, which may be sorted, and the old value.
    fn apply(&self, old: u32, neighbours: &mut [u32]) -> u32;
}

/// Bytes next to the lists of a batch: the values of an interval.
fn fixed_bytes(graph: &Graph) -> u64 {
    let values = u64::from(graph.catalog().interval_vertices) * 4;
    values + SEGMENTS * u64::from(graph.shape().segment_bytes)
}

/// The least bytes of a batch of lists.
fn batch_min(graph: &Graph) -> u64 {
    bytes_of_one(graph).max(bytes_of_all(graph).div_ceil(BATCHES_MAX))
}

/// The least memory of [`run`].
pub(crate) fn bytes_min(graph: &Graph) -> u64 {
    fixed_bytes(graph) + batch_min(graph)
}

/// The least memory of [`triangles`], which has lists of two batches.
pub(crate) fn triangles_bytes_min(graph: &Graph) -> u64 {
    SEGMENTS * u64::from(graph.shape().segment_bytes) + 2 * batch_min(graph)
}

/// Runs a program for up to `last` rounds, or until nothing changes; its values are in `results`
/// then. It goes on after the last round that is there of the same `key`. Returns the number of
/// rounds.
///
/// # Errors
/// [`GraphError::Memory`](crate::GraphError::Memory); as [`Graph::stream`] and [`Results::commit`].
pub(crate) fn run<P: ListProgram>(
    graph: &mut Graph,
    results: &mut Results,
    pool: &dyn Pool,
    program: &P,
    (key, last): (&str, u32),
) -> Result<u32> {
    let fixed = fixed_bytes(graph);
    let room = graph.state_max(pool).saturating_sub(fixed).min(bytes_of_all(graph));
    graph.reserve("lists of neighbours", fixed + room.max(batch_min(graph)), &[], pool)?;
    let batches = ranges(graph, room)?;
    let (content, vertices) = (graph.catalog().content, graph.catalog().vertices);
    let (mut round, [mut changed, _]) = match results.round(content, key, last) {
        Some(begun) => begun,
        None => {
            (0..vertices).try_for_each(|v| results.push(program.initial(v).into()))?;
            results.commit(content, key, 0, [1.0, 0.0])?;
            (0, [1.0, 0.0])
        }
    };
    while changed > 0.0 && round < last {
        changed = 0.0;
        for batch in &batches {
            changed += make_batch(graph, results, pool, program, batch.clone())? as f64;
        }
        round += 1;
        results.commit(content, key, round, [changed, 0.0])?;
    }
    Ok(round)
}

/// Pushes the new values of a batch; returns how many changed.
fn make_batch<P: ListProgram>(
    graph: &mut Graph,
    results: &mut Results,
    pool: &dyn Pool,
    program: &P,
    batch: Range<u32>,
) -> Result<u64> {
    let mut lists = Lists::load(graph, pool, batch.clone(), false)?;
    if P::DISTINCT {
        lists.for_each(pool, &|_, list| list.make_distinct());
    }
    for interval in 0..graph.catalog().intervals {
        let range = graph.catalog().interval(interval);
        let values = values(results, range.clone())?;
        lists.replace(pool, range.start, &values);
    }
    let old = values(results, batch.clone())?;
    let changed = AtomicU64::new(0);
    lists.for_each(pool, &|vertex, list| {
        let old = old[(vertex - batch.start) as usize];
        let new = program.apply(old, list.neighbours());
        *list.mark = new;
        if new != old {
            changed.fetch_add(1, Ordering::Relaxed);
        }
    });
    lists.marks().iter().try_for_each(|value| results.push((*value).into()))?;
    Ok(changed.into_inner())
}

/// The values of a range of vertices, without their upper halves.
pub(crate) fn values(results: &mut Results, range: Range<u32>) -> Result<Vec<u32>> {
    results.collect(range, |value| value as u32)
}

/// Counts triangles, or edges between neighbours, at each vertex, and calls `take` with the count
/// and the number of different neighbours, in the order of vertices. Returns the number of passes
/// over the graph.
///
/// # Errors
/// As [`run`]; that of `take`.
pub(crate) fn triangles(
    graph: &mut Graph,
    pool: &dyn Pool,
    what: Count,
    mut take: impl FnMut(u64, u32) -> Result<()>,
) -> Result<u32> {
    let fixed = SEGMENTS * u64::from(graph.shape().segment_bytes);
    let (all, one) = (bytes_of_all(graph), bytes_of_one(graph));
    let room = graph.state_max(pool).saturating_sub(fixed).min(2 * all);
    let least = 2 * batch_min(graph);
    graph.reserve("lists of neighbours", fixed + room.max(least), &[], pool)?;
    // The larger the part that is held, the fewer passes over the others.
    let along = (room / 8).clamp(one, all);
    let others = ranges(graph, along)?;
    let batches = ranges(graph, room.saturating_sub(along))?;
    for batch in &batches {
        let mut held = Lists::load(graph, pool, batch.clone(), true)?;
        held.for_each(pool, &|_, list| list.make_distinct());
        let counts: Vec<AtomicU64> = batch.clone().map(|_| AtomicU64::new(0)).collect();
        for other in &others {
            let mut along = Lists::load(graph, pool, other.clone(), true)?;
            along.for_each(pool, &|_, list| add(&counts, &held, list.neighbours(), what));
        }
        for (vertex, count) in held.range().zip(counts) {
            let neighbours = held.get(vertex).expect("it is in the range").len() as u32;
            // What is between two neighbours is found from both of them.
            take(count.into_inner() / 2, neighbours)?;
        }
    }
    Ok(batches.len() as u32)
}

/// Adds what a vertex with these neighbours has in common with those of them that are held.
fn add(counts: &[AtomicU64], held: &Lists, list: &[u32], what: Count) {
    let first = held.range().start;
    for run in list.chunk_by(|a, b| a == b) {
        let Some(set) = held.get(run[0]) else { continue };
        let common = match what {
            Count::Arcs => common::<true>(set, list),
            Count::Triangles => common::<false>(set, list),
        };
        counts[(run[0] - first) as usize].fetch_add(common, Ordering::Relaxed);
    }
}

/// From which ratio of lengths on the longer list is searched instead of read.
const SEARCH: usize = 16;

/// Elements of a list, in order, that are in a set, in order; each as often as it is in the list if
/// `ALL`, else once.
fn common<const ALL: bool>(set: &[u32], list: &[u32]) -> u64 {
    let count = |at: usize, element: u32| {
        let same = list[at..].iter().take_while(|other| **other == element).count() as u64;
        if ALL { same } else { same.min(1) }
    };
    let (mut at, mut sum) = (0, 0);
    if set.len() * SEARCH < list.len() {
        for &element in set {
            at += list[at..].partition_point(|other| *other < element);
            sum += count(at, element);
        }
        return sum;
    }
    let search = list.len() * SEARCH < set.len();
    let mut rest = set;
    while let Some(&element) = list.get(at) {
        let below = if search {
            rest.partition_point(|other| *other < element)
        } else {
            rest.iter().take_while(|other| **other < element).count()
        };
        rest = &rest[below..];
        if rest.first() == Some(&element) {
            sum += count(at, element);
        }
        at += list[at..].iter().take_while(|other| **other == element).count();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::common;

    /// Whichever of the two is longer.
    #[test]
    fn common_elements_are_counted() {
        let steps = |count: u32, step: u32| (0..count).map(|i| i * step).collect::<Vec<_>>();
        for (set, list) in [
            (steps(40, 3), steps(40, 2)),
            (steps(5, 30), steps(400, 1)),
            (steps(400, 1), vec![7, 7, 90, 399, 399, 400]),
            (vec![7, 90, 399], steps(400, 1).into_iter().flat_map(|n| [n, n]).collect()),
            (vec![], steps(9, 1)),
            (steps(9, 1), vec![]),
        ] {
            let all = list.iter().filter(|n| set.contains(n)).count() as u64;
            let mut once: Vec<u32> = list.clone();
            once.dedup();
            let once = once.iter().filter(|n| set.contains(n)).count() as u64;
            assert_eq!(common::<true>(&set, &list), all, "{set:?} {list:?}");
            assert_eq!(common::<false>(&set, &list), once, "{set:?} {list:?}");
        }
    }
}
