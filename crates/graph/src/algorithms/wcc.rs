//! Weakly connected components, by union-find in one pass over the edges.
//!
//! A tree's root is its smallest vertex, in whatever order edges arrive. The label of a component
//! is its vertex with the smallest number in the input. Source: Anderson and Woll, STOC'91
//! (concurrent union-find).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::algorithms::frontier::Bits;
use crate::catalog::Direction;
use crate::engine::{Graph, tasks};
use crate::error::Result;
use crate::pool::Pool;

/// The root of a vertex; halves the path to it.
fn root(parents: &[AtomicU32], mut vertex: u32) -> u32 {
    loop {
        let parent = parents[vertex as usize].load(Ordering::Relaxed);
        if parent == vertex {
            return vertex;
        }
        let above = parents[parent as usize].load(Ordering::Relaxed);
        // A parent is only ever replaced by one of its ancestors, which are smaller.
        parents[vertex as usize].fetch_min(above, Ordering::Relaxed);
        vertex = above;
    }
}

/// Joins the components of two vertices.
fn join(parents: &[AtomicU32], mut one: u32, mut other: u32) {
    loop {
        (one, other) = (root(parents, one), root(parents, other));
        if one == other {
            return;
        }
        let (low, high) = (one.min(other), one.max(other));
        let cell = &parents[high as usize];
        if cell.compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// For each vertex the smallest rank of a vertex of its component.
///
/// # Errors
/// As [`Graph::stream`]; [`GraphError::Memory`](crate::GraphError::Memory) if four bytes and
/// two bits a vertex are too much.
pub fn wcc(graph: &mut Graph, pool: &dyn Pool) -> Result<Vec<u32>> {
    let vertices = graph.catalog().vertices;
    graph.reserve("the components", state_bytes(vertices), &[Direction::In], pool)?;
    let parents: Vec<AtomicU32> = (0..vertices).map(AtomicU32::new).collect();
    let tasks = tasks(&graph.catalog().neighbours(Direction::In));
    graph.stream(pool, &tasks, &|_, lists| {
        for list in lists {
            list.for_each(|vertex, neighbours| {
                neighbours.iter().for_each(|other| join(&parents, vertex, other));
            });
        }
        Ok(())
    })?;
    // A parent is smaller than its child, so its label is final before.
    for vertex in 0..vertices as usize {
        let parent = parents[vertex].load(Ordering::Relaxed) as usize;
        let label = parents[parent].load(Ordering::Relaxed);
        parents[vertex].store(label, Ordering::Relaxed);
    }
    let mut labels = parents.into_iter().map(AtomicU32::into_inner).collect();
    rank_labels(graph, &mut labels)?;
    Ok(labels)
}

/// Bytes of memory that [`wcc`] needs next to buffers.
pub(crate) fn state_bytes(vertices: u32) -> u64 {
    u64::from(vertices) * 4 + u64::from(vertices) / 4 + 16
}

/// Replaces the smallest vertex of each component by the smallest rank.
fn rank_labels(graph: &mut Graph, labels: &mut Vec<u32>) -> Result<()> {
    let vertices = labels.len() as u32;
    let (roots, found) = (Bits::new(vertices), Bits::new(vertices));
    (0..).zip(&*labels).filter(|(vertex, label)| vertex == *label).for_each(|(v, _)| roots.set(v));
    let mut rank = 0;
    graph.ranked(|vertex| {
        let root = if roots.has(vertex) { vertex } else { labels[vertex as usize] };
        if !found.has(root) {
            found.set(root);
            labels[root as usize] = rank;
        }
        rank += 1;
    })?;
    for vertex in (0..vertices).filter(|vertex| !roots.has(*vertex)) {
        labels[vertex as usize] = labels[labels[vertex as usize] as usize];
    }
    Ok(())
}
