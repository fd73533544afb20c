//! The algorithms with values on flash.

use std::ops::Range;

use crate::algorithms::by_lists::{self, values};
use crate::algorithms::cdlp::Propagation;
use crate::algorithms::frontier::Bits;
use crate::algorithms::kcore::Bounds;
use crate::algorithms::pagerank::PageRank;
use crate::algorithms::paths::{Paths, Smallest, refuse_overflow};
use crate::algorithms::run::Computed;
use crate::algorithms::triangles::{Count, coefficient};
use crate::algorithms::{Column, Stored, StoredKind};
use crate::engine::Graph;
use crate::error::Result;
use crate::external;
use crate::pool::{CellF64, Pool};
use crate::pull::Vertex;
use crate::results::Results;

/// The ranges of the intervals.
fn intervals(graph: &Graph) -> impl Iterator<Item = Range<u32>> + use<> {
    pieces(graph, graph.catalog().interval_vertices)
}

/// Ranges of up to `len` vertices.
fn pieces(graph: &Graph, len: u32) -> impl Iterator<Item = Range<u32>> + use<> {
    let vertices = graph.catalog().vertices;
    let range = move |first: u32| first..first.saturating_add(len).min(vertices);
    (0..vertices).step_by(len as usize).map(range)
}

fn computed(
    results: Results,
    kind: StoredKind,
    rounds: u32,
    facts: Vec<(&'static str, f64)>,
) -> Computed {
    let resumed_after = results.resumed_after();
    let column = Column::Stored(Box::new(Stored::new(results, kind)));
    Computed { resumed_after, ..Computed::new(column, rounds, facts) }
}

/// Levels or distances.
pub(crate) fn paths(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    mut program: Paths,
    key: &str,
) -> Result<Computed> {
    // No path has more edges than there are vertices.
    let until = (key, graph.catalog().vertices);
    let rounds = external::run(graph, &mut results, pool, &mut program, until)?;
    let (mut reached, mut largest) = (0_u64, 0.0);
    results.values(0..graph.catalog().vertices, |_, bits| {
        let length = f64::from_bits(bits);
        if length.is_finite() {
            reached += 1;
            largest = length.max(largest);
        }
    })?;
    refuse_overflow(largest)?;
    let facts = vec![("vertices reached", reached as f64)];
    let kind = if program.weighted { StoredKind::Reals } else { StoredKind::Levels };
    Ok(computed(results, kind, rounds, facts))
}

/// Ranks.
pub(crate) fn pagerank(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    program: &mut PageRank,
    key: &str,
) -> Result<Computed> {
    let until = (key, program.rounds_max());
    let rounds = external::run(graph, &mut results, pool, program, until)?;
    // Ranks replace what vertices give along edges.
    let mut sum = 0.0;
    for range in intervals(graph) {
        let values = results.collect(range.clone(), f64::from_bits)?;
        graph.degrees_of(range.clone(), |number, [_, degree]| {
            let value = values[(number - range.start) as usize];
            let rank = PageRank::<CellF64>::rank(Vertex { number, degree }, value);
            sum += rank;
            results.push(rank.to_bits())
        })?;
    }
    end(graph, &mut results, key, rounds)?;
    let facts = vec![("sum of ranks", sum), ("last change", program.change())];
    Ok(computed(results, StoredKind::Reals, rounds, facts))
}

/// Commits values that are not those with which rounds go on.
fn end(graph: &Graph, results: &mut Results, key: &str, rounds: u32) -> Result<()> {
    results.commit(graph.catalog().content, &format!("{key} done"), rounds, [0.0; 2])
}

/// The smallest vertex of each component. Of three rounds the first is along edges and finds the
/// smallest label next to each vertex; in the second, a vertex that is the label of others takes
/// the smallest of what these found; in the third, each vertex takes what its label has. Labels
/// cross a component in a number of rounds that grows with the logarithm of its size, not with its
/// diameter. Source: Liu and Tarjan, "Simple concurrent labeling algorithms for connected
/// components", SOSA'19 (parent-connect and shortcut).
pub(crate) fn components(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    key: &str,
) -> Result<Computed> {
    let program = Smallest { directed: graph.catalog().directed };
    let content = graph.catalog().content;
    // There are fewer rounds; a saved result that says more is none.
    let last = graph.catalog().vertices.clamp(1000, u32::MAX - 3);
    let begun = external::begin(graph, &mut results, pool, &program, (key, last))?;
    let (mut round, mut totals) = begun;
    // If nothing changes along edges, nothing will.
    while round % 3 != 1 || totals[0] > 0.0 {
        match round % 3 {
            0 => totals = external::make_round(graph, &mut results, pool, &program)?,
            1 => gather_at_labels(graph, &mut results)?,
            _ => follow_labels(graph, &mut results)?,
        }
        round += 1;
        results.commit(content, key, round, totals)?;
    }
    let mut roots = 0_u64;
    results.values(0..graph.catalog().vertices, |vertex, label| {
        roots += u64::from(label as u32 == vertex);
    })?;
    labels_of_input(graph, &mut results, key, round)?;
    Ok(computed(results, StoredKind::Labels, round, vec![("components", roots as f64)]))
}

/// The label of a vertex, in the upper half of its value.
fn label_of(value: u64) -> u32 {
    (value >> 32) as u32
}

/// Pushes, for each vertex, its label in the upper half and, in the lower half, the smallest of
/// what it and the vertices with this label found along their edges.
fn gather_at_labels(graph: &Graph, results: &mut Results) -> Result<()> {
    for own in intervals(graph) {
        let mut least = values(results, own.clone())?;
        let labels = results.collect(own.clone(), label_of)?;
        results.values(0..graph.catalog().vertices, |_, value| {
            let label = label_of(value);
            if own.contains(&label) {
                let least = &mut least[(label - own.start) as usize];
                *least = (*least).min(value as u32);
            }
        })?;
        let pairs = labels.into_iter().zip(least);
        let mut pairs = pairs.map(|(label, least)| u64::from(label) << 32 | u64::from(least));
        pairs.try_for_each(|pair| results.push(pair))?;
    }
    Ok(())
}

/// Pushes, for each vertex, the smaller of what it and its label have.
fn follow_labels(graph: &Graph, results: &mut Results) -> Result<()> {
    for own in intervals(graph) {
        let mut new = values(results, own.clone())?;
        let labels = results.collect(own.clone(), label_of)?;
        // A label is not larger than its vertex.
        for range in intervals(graph).take_while(|range| range.start < own.end) {
            let least = values(results, range.clone())?;
            for (label, new) in labels.iter().zip(&mut new) {
                if range.contains(label) {
                    *new = (*new).min(least[(*label - range.start) as usize]);
                }
            }
        }
        new.into_iter().try_for_each(|label| results.push(label.into()))?;
    }
    Ok(())
}

/// Replaces labels by the numbers that these vertices have in the input, and commits. A quarter of
/// an interval's labels and an eighth of its numbers are in memory: four bytes a vertex of it.
fn labels_of_input(graph: &mut Graph, results: &mut Results, key: &str, rounds: u32) -> Result<()> {
    let per = graph.catalog().interval_vertices;
    for own in pieces(graph, per.div_ceil(4)) {
        let labels = values(results, own)?;
        let mut ids_of_labels = vec![0_u64; labels.len()];
        for range in pieces(graph, per.div_ceil(8)) {
            let mut ids = Vec::with_capacity(range.len());
            // With several intervals the vertices are in the order of the input.
            graph.ids_of(range.clone(), |id| ids.push(id))?;
            for (label, id) in labels.iter().zip(&mut ids_of_labels) {
                if range.contains(label) {
                    *id = ids[(*label - range.start) as usize];
                }
            }
        }
        ids_of_labels.into_iter().try_for_each(|id| results.push(id))?;
    }
    end(graph, results, key, rounds)
}

/// Labels of communities.
pub(crate) fn communities(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    (key, last): (&str, u32),
) -> Result<Computed> {
    let rounds = by_lists::run(graph, &mut results, pool, &Propagation, (key, last))?;
    let vertices = graph.catalog().vertices;
    let mut used = 0;
    for range in intervals(graph) {
        let seen = Bits::new(range.len() as u32);
        results.values(0..vertices, |_, label| {
            if range.contains(&(label as u32)) {
                seen.set(label as u32 - range.start);
            }
        })?;
        used += seen.count();
    }
    labels_of_input(graph, &mut results, key, rounds)?;
    Ok(computed(results, StoredKind::Labels, rounds, vec![("communities", used as f64)]))
}

/// Core numbers.
pub(crate) fn cores(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    key: &str,
) -> Result<Computed> {
    let rounds = by_lists::run(graph, &mut results, pool, &Bounds, (key, u32::MAX))?;
    let mut most = 0;
    results.values(0..graph.catalog().vertices, |_, core| most = most.max(core))?;
    let facts = vec![("largest core number", most as f64)];
    Ok(computed(results, StoredKind::Counts, rounds, facts))
}

/// Clustering coefficients.
pub(crate) fn coefficients(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    key: &str,
) -> Result<Computed> {
    let (directed, vertices) = (graph.catalog().directed, graph.catalog().vertices);
    let mut sum = 0.0;
    let passes = by_lists::triangles(graph, pool, Count::Arcs, |count, neighbours| {
        let value = coefficient(count, neighbours, directed);
        sum += value;
        results.push(value.to_bits())
    })?;
    end(graph, &mut results, key, 1)?;
    let facts = vec![("mean coefficient", sum / f64::from(vertices.max(1)))];
    Ok(computed(results, StoredKind::Reals, passes, facts))
}

/// Triangles at each vertex.
pub(crate) fn triangles(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    key: &str,
) -> Result<Computed> {
    let mut sum = 0;
    let passes = by_lists::triangles(graph, pool, Count::Triangles, |count, _| {
        sum += count;
        results.push(count)
    })?;
    end(graph, &mut results, key, 1)?;
    let facts = vec![("triangles", (sum / 3) as f64)];
    Ok(computed(results, StoredKind::Counts, passes, facts))
}

/// Edges of each vertex.
pub(crate) fn degrees(
    graph: &mut Graph,
    mut results: Results,
    pool: &dyn Pool,
    key: &str,
) -> Result<Computed> {
    let state = external::SEGMENTS * graph.segment_bytes();
    graph.reserve("the degrees", state, &[], pool)?;
    let (vertices, directed) = (graph.catalog().vertices, graph.catalog().directed);
    let mut most = 0;
    graph.degrees_of(0..vertices, |_, [to, from]| {
        let both = if directed { u64::from(to) + u64::from(from) } else { to.into() };
        most = most.max(both);
        results.push(both)
    })?;
    end(graph, &mut results, key, 1)?;
    Ok(computed(results, StoredKind::Counts, 1, vec![("largest degree", most as f64)]))
}
