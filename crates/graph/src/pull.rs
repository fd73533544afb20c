//! Programs that pull: in each round, every vertex gathers the values of those that have an edge to
//! it, and gets a new value.

use prism_base::{prefetch, vec_in_huge_pages};

use crate::catalog::{Direction, Entry};
use crate::engine::{Graph, tasks};
use crate::error::Result;
use crate::pool::{Cell, Pool};
use crate::segment::{Adjacency, Slice};

/// The value of a vertex of a program.
pub type ValueOf<P> = <<P as VertexProgram>::Cell as Cell>::Value;
/// What a vertex of a program has gathered.
pub type SumOf<P> = <<P as VertexProgram>::Sum as Cell>::Value;
/// Two sums over all vertices in a round, for what a program needs: changes, or lost mass.
pub type Totals = [f64; 2];

/// A vertex for a program.
#[derive(Clone, Copy, Debug)]
pub struct Vertex {
    /// Its number in the store.
    pub number: u32,
    /// Edges from it, or, if the graph has no directions, edges.
    pub degree: u32,
}

/// An algorithm by rounds.
pub trait VertexProgram: Sync {
    /// Where the value of a vertex is kept.
    type Cell: Cell;
    /// Where what a vertex has gathered is kept.
    type Sum: Cell;

    /// The directions in which neighbours are gathered.
    fn directions(&self) -> Vec<Direction> {
        vec![Direction::In]
    }
    /// The value before the first round.
    fn initial(&self, vertex: Vertex) -> ValueOf<Self>;
    /// A sum of nothing.
    fn empty(&self) -> SumOf<Self>;
    /// The sum with the value of one more neighbour.
    fn gather(&self, sum: SumOf<Self>, neighbour: ValueOf<Self>, weight: f64) -> SumOf<Self>;
    /// The sum of two parts of the neighbours.
    fn merge(&self, one: SumOf<Self>, other: SumOf<Self>) -> SumOf<Self>;
    /// The new value, from what was gathered and the old value.
    fn apply(&self, vertex: Vertex, sum: SumOf<Self>, old: ValueOf<Self>) -> ValueOf<Self>;
    /// What this vertex adds to the totals of the round.
    fn totals(&self, vertex: Vertex, old: ValueOf<Self>, new: ValueOf<Self>) -> Totals;
    /// Takes the totals of a round, also of the initial values (as round 0); returns whether
    /// another round is needed.
    fn next_round(&mut self, round: u32, totals: Totals) -> bool;
}

/// When a round sees the values that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// In the next round: the result does not depend on the number of threads.
    Synchronous,
    /// At once: fewer rounds are needed, and, with more than one thread, the result of a round is
    /// not the same in each run.
    Asynchronous,
}

/// The values of all vertices, and the rounds that were made.
pub struct State<P: VertexProgram> {
    /// The values.
    pub values: Vec<P::Cell>,
    /// Rounds.
    pub rounds: u32,
}

/// Bytes of memory that a program needs for each vertex: in rounds, or at its end, when short
/// values become results of eight bytes.
#[must_use]
pub fn state_bytes<P: VertexProgram>(schedule: Schedule, intervals: u32) -> u64 {
    let values = if schedule == Schedule::Synchronous { 2 } else { 1 };
    let sums = if intervals > 1 { P::Sum::BYTES } else { 0 };
    let at_end = if P::Cell::BYTES < 8 { P::Cell::BYTES + 8 } else { 8 };
    (values * P::Cell::BYTES + sums + 4).max(at_end) as u64
}

/// What is called after each round with the number of the round, the totals and the values; an
/// error ends the program.
pub type AfterRound<'a, C> = &'a mut dyn FnMut(u32, Totals, &[C]) -> Result<()>;

/// Runs a program with the values of all vertices in memory. `begin` has the round and the values
/// from which it goes on, if it was interrupted.
///
/// # Errors
/// [`GraphError::Memory`](crate::GraphError::Memory) if they do not fit; others of
/// [`Graph::stream`].
pub fn run<P: VertexProgram>(
    graph: &mut Graph,
    pool: &dyn Pool,
    program: &mut P,
    schedule: Schedule,
    begin: Option<(u32, Totals, Vec<P::Cell>)>,
    after: AfterRound<'_, P::Cell>,
) -> Result<State<P>> {
    let (vertices, intervals) = (graph.catalog().vertices, graph.catalog().intervals);
    let directions = program.directions();
    let state = u64::from(vertices) * state_bytes::<P>(schedule, intervals);
    graph.reserve("the state of the vertices", state, &directions, pool)?;
    let mut degrees = vec![0; vertices as usize];
    graph.degrees(|vertex, [_, from]| degrees[vertex as usize] = from)?;
    let vertex = |number: u32| Vertex { number, degree: degrees[number as usize] };
    let (mut rounds, mut go_on, mut values) = match begin {
        Some((round, totals, values)) => (round, program.next_round(round, totals), values),
        None => {
            let initial = (0..vertices).map(|v| P::Cell::new(program.initial(vertex(v))));
            let mut values = vec_in_huge_pages(vertices as usize);
            values.extend(initial);
            let totals = totals_of(program, vertices, &vertex, &values, &values);
            (0, program.next_round(0, totals), values)
        }
    };
    let synchronous = schedule == Schedule::Synchronous;
    let mut next = vec_in_huge_pages(if synchronous { vertices as usize } else { 0 });
    if synchronous {
        next.extend(values.iter().map(|value| P::Cell::new(value.get())));
    }
    let mut sums: Vec<P::Sum> = Vec::new();
    let pieces = directions.len() as u32 * intervals;
    if pieces > 1 {
        sums.extend((0..vertices).map(|_| P::Sum::new(program.empty())));
    }
    let streams: Vec<Vec<Entry>> =
        directions.iter().map(|d| graph.catalog().neighbours(*d)).collect();
    while go_on {
        let new = if synchronous { &next } else { &values };
        let round =
            Round { program: &*program, degrees: &degrees, values: &values, new, sums: &sums };
        let totals = round.run(graph, pool, &streams)?;
        if synchronous {
            std::mem::swap(&mut values, &mut next);
        }
        rounds += 1;
        go_on = program.next_round(rounds, totals);
        after(rounds, totals, &values)?;
    }
    Ok(State { values, rounds })
}

/// The totals of all vertices, in the order of vertices.
fn totals_of<P: VertexProgram>(
    program: &P,
    vertices: u32,
    vertex: &dyn Fn(u32) -> Vertex,
    old: &[P::Cell],
    new: &[P::Cell],
) -> Totals {
    let mut totals = [0.0; 2];
    for number in 0..vertices {
        let (old, new) = (old[number as usize].get(), new[number as usize].get());
        let [a, b] = program.totals(vertex(number), old, new);
        totals = [totals[0] + a, totals[1] + b];
    }
    totals
}

struct Round<'a, P: VertexProgram> {
    program: &'a P,
    degrees: &'a [u32],
    values: &'a [P::Cell],
    new: &'a [P::Cell],
    /// Empty if each vertex has all of its neighbours in one task.
    sums: &'a [P::Sum],
}

impl<P: VertexProgram> Round<'_, P> {
    fn run(&self, graph: &mut Graph, pool: &dyn Pool, streams: &[Vec<Entry>]) -> Result<Totals> {
        if self.sums.is_empty() {
            let tasks = tasks(&streams[0]);
            let totals = totals_of_tasks(tasks.len());
            graph.stream(pool, &tasks, &|task, lists| {
                totals[task].add(self.apply_lists(lists));
                Ok(())
            })?;
            return Ok(merge_totals(&totals));
        }
        let mut all = [0.0; 2];
        for interval in 0..graph.catalog().intervals {
            let range = graph.catalog().interval(interval);
            range.clone().for_each(|v| self.sums[v as usize].set(self.program.empty()));
            for entries in streams {
                for column in 0..graph.catalog().intervals {
                    let of =
                        |entry: &&Entry| range.contains(&entry.first) && entry.column == column;
                    let entries: Vec<Entry> = entries.iter().filter(of).copied().collect();
                    graph.stream(pool, &tasks(&entries), &|_, lists| {
                        self.gather_lists(lists);
                        Ok(())
                    })?;
                }
            }
            for number in range {
                let [a, b] = self.apply_one(number, self.sums[number as usize].get());
                all = [all[0] + a, all[1] + b];
            }
        }
        Ok(all)
    }

    #[inline]
    fn apply_one(&self, number: u32, sum: SumOf<P>) -> Totals {
        let at = number as usize;
        let vertex = Vertex { number, degree: self.degrees[at] };
        let old = self.values[at].get();
        let new = self.program.apply(vertex, sum, old);
        self.new[at].set(new);
        self.program.totals(vertex, old, new)
    }

    /// The value of a vertex, and what moves it to the cache.
    #[inline]
    fn values_of(&self) -> (impl Fn(u32) -> ValueOf<P>, impl Fn(u32)) {
        let values = self.values;
        (move |v| values[v as usize].get(), move |v| prefetch(values, v as usize))
    }

    /// New values of the vertices of a task.
    fn apply_lists(&self, lists: &[Adjacency<'_>]) -> Totals {
        let mut totals = [0.0; 2];
        let mut add = |[a, b]: Totals| totals = [totals[0] + a, totals[1] + b];
        if let [list] = lists {
            gather(self.program, *list, self.values_of(), |number, sum| {
                add(self.apply_one(number, sum));
            });
            return totals;
        }
        let mut all = self.program.empty();
        for list in lists {
            gather(self.program, *list, self.values_of(), |_, sum| {
                all = self.program.merge(all, sum);
            });
        }
        add(self.apply_one(lists[0].header().first, all));
        totals
    }

    /// Adds to the sums of the vertices of a task.
    fn gather_lists(&self, lists: &[Adjacency<'_>]) {
        for list in lists {
            gather(self.program, *list, self.values_of(), |number, sum| {
                let cell = &self.sums[number as usize];
                cell.set(self.program.merge(cell.get(), sum));
            });
        }
    }
}

/// Gathers the neighbours of each vertex of a segment: `value` has the value of one, and `fetch`,
/// which is called before, moves it to the cache.
#[inline]
pub(crate) fn gather<P: VertexProgram>(
    program: &P,
    list: Adjacency<'_>,
    (value, fetch): (impl Fn(u32) -> ValueOf<P>, impl Fn(u32)),
    mut take: impl FnMut(u32, SumOf<P>),
) {
    let whole = if list.header().weight_bytes == 0 {
        let mut sum = program.empty();
        let ahead = |neighbours: &[u32]| neighbours.iter().for_each(|other| fetch(*other));
        list.for_each_slice(ahead, |number, neighbours, slice| {
            for neighbour in neighbours {
                sum = program.gather(sum, value(*neighbour), 1.0);
            }
            if slice == Slice::Last {
                take(number, std::mem::replace(&mut sum, program.empty()));
            }
        })
    } else {
        list.for_each(|number, neighbours| {
            let mut sum = program.empty();
            for (neighbour, weight) in neighbours.weighted() {
                sum = program.gather(sum, value(neighbour), weight);
            }
            take(number, sum);
        })
    };
    assert!(whole, "a segment with the right hash has degrees that fit it");
}

/// The totals of a task, which one thread adds to.
struct TaskTotals([crate::pool::CellF64; 2]);

impl TaskTotals {
    fn add(&self, totals: Totals) {
        self.0.iter().zip(totals).for_each(|(cell, total)| cell.set(cell.get() + total));
    }
}

fn totals_of_tasks(tasks: usize) -> Vec<TaskTotals> {
    let zero = || crate::pool::CellF64::new(0.0);
    (0..tasks).map(|_| TaskTotals([zero(), zero()])).collect()
}

/// The sum in the order of tasks, which does not depend on threads.
fn merge_totals(totals: &[TaskTotals]) -> Totals {
    totals.iter().fold([0.0; 2], |[a, b], totals| [a + totals.0[0].get(), b + totals.0[1].get()])
}
