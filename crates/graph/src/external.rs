//! Programs of rounds whose values do not fit into memory: one interval of vertices at a time.
//!
//! For each interval the sums of its vertices are in memory, and the values of one interval of
//! neighbours after another; segments are arranged so that each has neighbours of one interval. A
//! round reads all edges once, all values as many times as there are intervals, and writes all
//! values once.

use prism_base::prefetch;

use crate::catalog::Entry;
use crate::engine::{Graph, tasks};
use crate::error::{GraphError, Result};
use crate::pool::{Cell, Pool};
use crate::pull::{Totals, Vertex, VertexProgram, gather};
use crate::results::Results;

/// Segments that are in memory next to values and sums: of degrees, of values read and written.
pub(crate) const SEGMENTS: u64 = 6;

/// Bytes of memory that a program needs.
#[must_use]
pub fn state_bytes<P: VertexProgram>(graph: &Graph) -> u64 {
    let per_vertex = (size_of::<crate::pull::ValueOf<P>>() + P::Sum::BYTES) as u64;
    let interval = u64::from(graph.catalog().interval_vertices) * per_vertex;
    interval + SEGMENTS * u64::from(graph.shape().segment_bytes)
}

/// Runs a program; its values are in `results` then. It goes on after the last round that is there
/// of the same `key` and not after the round `last`. Returns the number of rounds.
///
/// # Errors
/// [`GraphError::Memory`] if two intervals do not fit; others of [`Graph::stream`] and
/// [`Results::commit`].
pub fn run<P: VertexProgram>(
    graph: &mut Graph,
    results: &mut Results,
    pool: &dyn Pool,
    program: &mut P,
    (key, last): (&str, u32),
) -> Result<u32> {
    let (mut round, totals) = begin(graph, results, pool, program, (key, last))?;
    let content = graph.catalog().content;
    let mut go_on = program.next_round(round, totals);
    while go_on {
        let totals = make_round(graph, results, pool, program)?;
        round += 1;
        results.commit(content, key, round, totals)?;
        go_on = program.next_round(round, totals);
    }
    Ok(round)
}

/// Reserves the memory, and makes the initial values those of round 0, if no round is there.
/// Returns the round that is there, and its totals.
pub(crate) fn begin<P: VertexProgram>(
    graph: &mut Graph,
    results: &mut Results,
    pool: &dyn Pool,
    program: &P,
    (key, last): (&str, u32),
) -> Result<(u32, Totals)> {
    let state = state_bytes::<P>(graph);
    let directions = program.directions();
    graph.reserve("the state of two intervals of vertices", state, &directions, pool)?;
    let (content, vertices) = (graph.catalog().content, graph.catalog().vertices);
    if let Some(begun) = results.round(content, key, last) {
        return Ok(begun);
    }
    let mut totals = [0.0; 2];
    graph.degrees_of(0..vertices, |number, [_, degree]| {
        let vertex = Vertex { number, degree };
        let value = program.initial(vertex);
        add(&mut totals, program.totals(vertex, value, value));
        results.push(P::Cell::bits(value))
    })?;
    results.commit(content, key, 0, totals)?;
    Ok((0, totals))
}

fn add(totals: &mut Totals, [a, b]: Totals) {
    *totals = [totals[0] + a, totals[1] + b];
}

/// Pushes the values of a round.
pub(crate) fn make_round<P: VertexProgram>(
    graph: &mut Graph,
    results: &mut Results,
    pool: &dyn Pool,
    program: &P,
) -> Result<Totals> {
    let catalog = graph.catalog();
    let intervals = catalog.intervals;
    let directions = program.directions();
    let streams: Vec<Vec<Entry>> = directions.iter().map(|d| catalog.neighbours(*d)).collect();
    let mut totals = [0.0; 2];
    for interval in 0..intervals {
        let own = graph.catalog().interval(interval);
        let sums: Vec<P::Sum> = own.clone().map(|_| P::Sum::new(program.empty())).collect();
        for column in 0..intervals {
            let of = graph.catalog().interval(column);
            let values = results.collect(of.clone(), P::Cell::of_bits)?;
            let is = |entry: &Entry| own.contains(&entry.first) && entry.column == column;
            let entries = streams.iter().flatten().copied().filter(is).collect::<Vec<_>>();
            // Tasks of both directions have the same vertices, so one follows the other.
            for kind in [crate::segment::Kind::In, crate::segment::Kind::Out] {
                let of_kind = entries.iter().copied().filter(|entry| entry.kind == kind as u32);
                let tasks = tasks(&of_kind.collect::<Vec<_>>());
                graph.stream(pool, &tasks, &|_, lists| {
                    for list in lists {
                        let place = |neighbour: u32| (neighbour - of.start) as usize;
                        let value = |neighbour: u32| values[place(neighbour)];
                        let fetch = |neighbour: u32| prefetch(&values, place(neighbour));
                        gather(program, *list, (value, fetch), |number, sum| {
                            let cell = &sums[(number - own.start) as usize];
                            cell.set(program.merge(cell.get(), sum));
                        });
                    }
                    Ok(())
                })?;
            }
        }
        let old = results.collect(own.clone(), P::Cell::of_bits)?;
        graph.degrees_of(own.clone(), |number, [_, degree]| {
            let (vertex, at) = (Vertex { number, degree }, (number - own.start) as usize);
            let new = program.apply(vertex, sums[at].get(), old[at]);
            add(&mut totals, program.totals(vertex, old[at], new));
            results.push(P::Cell::bits(new))
        })?;
    }
    Ok(totals)
}

/// The failure of a computation that needs `whole` bytes with all values in memory, and `part`
/// bytes with values on flash.
#[must_use]
pub fn too_little(graph: &Graph, whole: u64, part: u64) -> GraphError {
    let vertices = u64::from(graph.catalog().vertices);
    let else_by = match graph.catalog().intervals {
        1 => ", or ingest the graph again with --run-memory".to_owned(),
        _ if part < whole => {
            format!(" (with values on flash {} are needed)", prism_base::Bytes(part))
        }
        _ => String::new(),
    };
    let whole = prism_base::Bytes(whole);
    GraphError::Refused(format!(
        "the state of {vertices} vertices needs {whole}, and {} are allowed; give more by \
         --memory{else_by}",
        prism_base::Bytes(graph.memory()),
    ))
}
