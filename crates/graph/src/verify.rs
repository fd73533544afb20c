//! Reading all of a graph: to check it, and to write it out.

use std::ops::Range;
use std::sync::Mutex;

use twox_hash::XxHash3_64;

use crate::catalog::{Catalog, Direction};
use crate::engine::{Graph, Task, tasks};
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

/// What [`verify`] reports of a graph whose segments are whole and agree with each other, but are
/// not those with which it was made.
pub const OTHER_CONTENT: &str = "the segments together have another hash than the catalog says";

/// Reads every segment: the hashes, and that vertices, numbers, neighbours, degrees and counts
/// agree with each other, and both directions of the edges. If so, the hash of all segments, in the
/// order in which they were written.
///
/// # Errors
/// [`GraphError::Memory`] if four bytes for each vertex of an interval are too much. Damage is no
/// error.
pub fn verify(graph: &mut Graph, pool: &dyn Pool) -> Result<Report> {
    let catalog = graph.catalog().clone();
    let mut report = Report::default();
    let state = catalog.interval(0).len() as u64 * size_of::<u32>() as u64;
    graph.reserve("the degrees", state, &[], pool)?;
    for entry in catalog.of_kind(Kind::Degrees) {
        report.note(graph.degrees_in(&entry, |_, _| Ok(())));
    }
    if report.damage.is_empty() {
        report.note(graph.degrees(|_, _| ()));
    }
    let mut last = None;
    for entry in catalog.of_kind(Kind::Ids) {
        match graph.ids_in(&entry, last, &mut |_, _, _| Ok(())) {
            Ok(id) => last = id,
            Err(error) => report.note(Err(error)),
        }
    }
    report.note(graph.ranked(|_| ()));
    let (mut sums, mut negative, mut content) = (Vec::new(), false, 0);
    let directions = [Direction::In, Direction::Out];
    for (side, direction) in directions.into_iter().enumerate() {
        if side == 0 || catalog.directed {
            let found = lists(graph, pool, &catalog, direction, &mut content, &mut report);
            negative |= found.negative;
            sums.extend(found.sums);
        }
    }
    if report.damage.is_empty() {
        if sums[0] != sums[1] {
            report.damage.push("some edges are in the lists of one of their ends only".into());
        }
        if catalog.weighted && catalog.negative && !negative {
            report.damage.push("the catalog knows of negative weights, and there are none".into());
        }
    }
    if report.damage.is_empty() {
        let found = content_of_vertices(graph, &catalog, content);
        if found.as_ref().is_ok_and(|content| *content != catalog.content) {
            report.damage.push(OTHER_CONTENT.into());
        }
        report.note(found.map(drop));
    }
    report.segments = catalog.entries.len() as u64;
    report.bytes = catalog.entries.iter().map(|entry| entry.bytes() as u64).sum();
    Ok(report)
}

/// The hash of the content after the segments that have no neighbours; `content` is that of those
/// before.
fn content_of_vertices(graph: &mut Graph, catalog: &Catalog, mut content: u64) -> Result<u64> {
    for kind in [Kind::Degrees, Kind::Ids, Kind::Groups] {
        for entry in catalog.of_kind(kind) {
            let payload = graph.space.read(entry.segment, entry.header(kind))?;
            content = XxHash3_64::oneshot_with_seed(content, &payload);
        }
    }
    Ok(content)
}

/// The segments of a direction in the order in which they were written: one with whole lists when
/// the vertex after it came, one with a part of a list at its vertex, and the intervals of
/// neighbours of a vertex one after another.
fn as_written(catalog: &Catalog, direction: Direction) -> Vec<Task> {
    let mut tasks = tasks(&catalog.neighbours(direction));
    tasks.sort_by_key(|task| {
        let entry = &task[0];
        let vertex = if entry.part { entry.first } else { entry.first + entry.vertices };
        (entry.first / catalog.interval_vertices, vertex, entry.column, entry.part)
    });
    tasks
}

impl Report {
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.damage.push(error.to_string());
        }
    }
}

/// What is known of lists after they were read.
#[derive(Default)]
struct EdgeSums {
    /// Sums of hashes of edges: in a directed graph of all, else of those towards larger and those
    /// towards smaller vertices. Each edge is in two of them.
    sums: Vec<u64>,
    loops: u64,
    negative: bool,
}

/// A hash of an edge from one vertex to another.
fn hash(from: u32, to: u32, weight: f64) -> u64 {
    let pair = (u64::from(from) << 32 | u64::from(to)).to_le_bytes();
    XxHash3_64::oneshot_with_seed(weight.to_bits(), &pair)
}

impl EdgeSums {
    /// Adds an edge of the list of `vertex`.
    fn add(&mut self, direction: Direction, directed: bool, vertex: u32, other: u32, weight: f64) {
        self.loops += u64::from(vertex == other);
        self.negative |= weight < 0.0;
        let (low, high) = (vertex.min(other), vertex.max(other));
        let (side, hash) = match direction {
            Direction::In if directed => (0, hash(other, vertex, weight)),
            Direction::Out if directed => (0, hash(vertex, other, weight)),
            _ if vertex == other => return,
            _ => (usize::from(vertex > other), hash(low, high, weight)),
        };
        self.sums[side] = self.sums[side].wrapping_add(hash);
    }
}

/// The degrees in one direction of the vertices of an interval; 0 where they cannot be read, which
/// the report says.
fn degrees(graph: &mut Graph, interval: &Range<u32>, direction: Direction) -> Vec<u32> {
    let mut degrees = vec![0; interval.len()];
    for entry in graph.catalog().of_kind(Kind::Degrees) {
        if entry.first + entry.vertices <= interval.start || interval.end <= entry.first {
            continue;
        }
        let _ = graph.degrees_in(&entry, |vertex, [to, from]| {
            if interval.contains(&vertex) {
                degrees[(vertex - interval.start) as usize] = match direction {
                    Direction::In => to,
                    Direction::Out => from,
                };
            }
            Ok(())
        });
    }
    degrees
}

/// Checks the lists of one direction; every damaged segment is named.
fn lists(
    graph: &mut Graph,
    pool: &dyn Pool,
    catalog: &Catalog,
    direction: Direction,
    content: &mut u64,
    report: &mut Report,
) -> EdgeSums {
    let sums = vec![0; if catalog.directed { 1 } else { 2 }];
    let mut found = EdgeSums { sums, ..EdgeSums::default() };
    // The lists of an interval follow each other.
    let mut tasks = as_written(catalog, direction).into_iter().peekable();
    let mut some_missing = false;
    for interval in (0..catalog.intervals).map(|number| catalog.interval(number)) {
        let tasks = std::iter::from_fn(|| tasks.next_if(|task| interval.contains(&task[0].first)));
        let left = degrees(graph, &interval, direction);
        let part = Part { direction, interval: interval.clone(), left };
        some_missing |= part.check(graph, pool, tasks, (&mut found, content), report);
    }
    if report.damage.is_empty() && some_missing {
        report.damage.push("vertices have fewer neighbours than their degrees".into());
    }
    if report.damage.is_empty() && found.loops != catalog.loops {
        let (found, said) = (found.loops, catalog.loops);
        report.damage.push(format!("{found} edges from a vertex to itself, and {said} in all"));
    }
    found
}

/// The lists of an interval of vertices in one direction.
struct Part {
    direction: Direction,
    interval: Range<u32>,
    /// Neighbours of each vertex that were not read yet.
    left: Vec<u32>,
}

impl Part {
    /// Checks the lists of `tasks`, which are all of the part; returns whether some are shorter
    /// than the degrees of their vertices.
    fn check(
        self,
        graph: &mut Graph,
        pool: &dyn Pool,
        tasks: impl Iterator<Item = Task>,
        (found, content): (&mut EdgeSums, &mut u64),
        report: &mut Report,
    ) -> bool {
        let Self { direction, interval, mut left } = self;
        let directed = graph.catalog().directed;
        let all = Mutex::new((&mut left, found, content));
        for task in tasks {
            let segment = task[0].segment;
            let checked = graph.stream(pool, &[task], &|_, lists| {
                let (left, found, content) =
                    &mut *all.lock().expect("no thread panics in the lock");
                let mut right = true;
                for list in lists {
                    **content = list.content(**content);
                    list.for_each(|vertex, neighbours| {
                        for (neighbour, weight) in neighbours.weighted() {
                            found.add(direction, directed, vertex, neighbour, weight);
                        }
                        let degree = &mut left[(vertex - interval.start) as usize];
                        let rest = degree.checked_sub(neighbours.len() as u32);
                        right &= rest.is_some();
                        *degree = rest.unwrap_or(0);
                    });
                }
                let what = "its lists are longer than the degrees of their vertices";
                if right { Ok(()) } else { Err(GraphError::Damaged { segment, what }) }
            });
            report.note(checked);
        }
        left.iter().any(|left| *left > 0)
    }
}

/// Passes each edge to `take`, with the numbers of the input; an undirected edge once, from the
/// vertex with the smaller number. With one interval they are in the order of the vertices of the
/// store: of the sources and, for each source, of the targets.
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
    let mut ids = vec![0; catalog.vertices as usize];
    graph.ids(|vertex, id| {
        ids[vertex as usize] = id;
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
                    let source = ids[source as usize];
                    for (target, weight) in neighbours.weighted() {
                        let target = ids[target as usize];
                        if result.is_ok() && (catalog.directed || source <= target) {
                            result = take(source, target, weight);
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
