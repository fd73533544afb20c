//! Reading all of a graph: to check it, and to write it out.

use std::sync::Mutex;

use crate::catalog::{Catalog, Direction};
use crate::engine::{Graph, tasks};
use crate::error::{GraphError, Result};
use crate::pool::Pool;
use crate::segment::Kind;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments that were read.
    pub segments: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Everything that is wrong, a sentence each.
    pub damage: Vec<String>,
}

/// Reads every segment: the hashes, and that vertices, neighbours and degrees agree.
///
/// # Errors
/// [`GraphError::Memory`] if eight bytes a vertex are too much. Damage is no error.
pub fn verify(graph: &mut Graph, pool: &dyn Pool) -> Result<Report> {
    let catalog = graph.catalog().clone();
    let mut report = Report::default();
    let state = u64::from(catalog.vertices) * 8;
    graph.reserve("the degrees", state, &[], pool)?;
    let mut degrees = vec![[0_u32; 2]; catalog.vertices as usize];
    let read = graph.degrees(|vertex, both| degrees[vertex as usize] = both);
    report.note(read);
    let mut last = None;
    let mut count = 0_u64;
    let read = graph.ids(|_, id| {
        let ascends = last.is_none_or(|last| last < id);
        (last, count) = (Some(id), count + 1);
        if ascends { Ok(()) } else { Err(GraphError::Refused("ids do not ascend".into())) }
    });
    report.note(read);
    if count != u64::from(catalog.vertices) && report.damage.is_empty() {
        report.damage.push(format!("{count} ids of {} vertices", catalog.vertices));
    }
    let directions = [Direction::In, Direction::Out];
    for (side, direction) in directions.into_iter().enumerate() {
        if side == 0 || catalog.directed {
            let degrees: Vec<u32> = degrees.iter().map(|both| both[side]).collect();
            lists(graph, pool, &catalog, direction, degrees, &mut report);
        }
    }
    report.segments = catalog.entries.len() as u64;
    report.bytes = catalog.entries.iter().map(|entry| entry.bytes() as u64).sum();
    Ok(report)
}

impl Report {
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.damage.push(error.to_string());
        }
    }
}

/// Checks the lists of one direction; every damaged segment is named.
fn lists(
    graph: &mut Graph,
    pool: &dyn Pool,
    catalog: &Catalog,
    direction: Direction,
    mut degrees: Vec<u32>,
    report: &mut Report,
) {
    let entries = catalog.neighbours(direction);
    let arcs: u64 = entries.iter().map(|entry| u64::from(entry.edges)).sum();
    if arcs != catalog.arcs {
        report.damage.push(format!("{arcs} edges in segments, {} in all", catalog.arcs));
    }
    let left = Mutex::new(&mut degrees);
    for task in tasks(&entries) {
        let segment = task[0].segment;
        let checked = graph.stream(pool, &[task], &|_, lists| {
            let mut left = left.lock().expect("no thread panics in the lock");
            for list in lists {
                let mut right = true;
                let whole = list.for_each(|vertex, neighbours| {
                    let mut before = None;
                    for neighbour in neighbours.iter() {
                        right &= neighbour < catalog.vertices;
                        right &= before.is_none_or(|before| before <= neighbour);
                        before = Some(neighbour);
                    }
                    let degree = left.get_mut(vertex as usize);
                    let rest = degree.as_ref().and_then(|d| d.checked_sub(neighbours.len() as u32));
                    match (degree, rest) {
                        (Some(degree), Some(rest)) => *degree = rest,
                        _ => right = false,
                    }
                });
                if !(right && whole) {
                    let what = "its lists do not agree with the rest of the graph";
                    return Err(GraphError::Damaged { segment, what });
                }
            }
            Ok(())
        });
        report.note(checked);
    }
    if report.damage.is_empty() && degrees.iter().any(|left| *left > 0) {
        report.damage.push("vertices have fewer neighbours than their degrees".into());
    }
}

/// Passes each edge to `take`, with the numbers of the input; an undirected edge once. With one
/// interval they are in the order of source and target.
///
/// # Errors
/// [`GraphError::Memory`] if eight bytes a vertex are too much; as [`Graph::stream`]; that of
/// `take`.
pub fn edges(
    graph: &mut Graph,
    take: &mut (dyn FnMut(u64, u64, f64) -> Result<()> + Send),
) -> Result<()> {
    let catalog = graph.catalog().clone();
    let state = u64::from(catalog.vertices) * 8;
    graph.reserve("the numbers of the vertices", state, &[], &crate::Serial)?;
    let mut ids = Vec::with_capacity(catalog.vertices as usize);
    graph.ids(|_, id| {
        ids.push(id);
        Ok(())
    })?;
    let take = Mutex::new(take);
    // One task at a time keeps the order.
    for task in tasks(&catalog.neighbours(Direction::Out)) {
        graph.stream(&crate::Serial, &[task], &|_, lists| {
            let mut take = take.lock().expect("no thread panics in the lock");
            let mut result = Ok(());
            for list in lists {
                list.for_each(|source, neighbours| {
                    for (target, weight) in neighbours.weighted() {
                        if result.is_ok() && (catalog.directed || source <= target) {
                            result = take(ids[source as usize], ids[target as usize], weight);
                        }
                    }
                });
            }
            result
        })?;
    }
    Ok(())
}

/// Vertices without any edge, for [`edges`], which does not name them.
///
/// # Errors
/// As [`Graph::degrees`].
pub fn isolated(graph: &mut Graph) -> Result<u64> {
    let mut count = 0;
    graph.degrees(|_, [to, from]| count += u64::from(to == 0 && from == 0))?;
    Ok(count)
}

/// Bytes of segments of each kind.
#[must_use]
pub fn bytes_of(catalog: &Catalog, kind: Kind) -> u64 {
    catalog.of_kind(kind).iter().map(|entry| entry.bytes() as u64).sum()
}
