//! The neighbours of consecutive vertices, in both directions, as lists in memory: for algorithms
//! that need all neighbours of a vertex at once, while the values of all vertices do not fit.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::algorithms::windows::directions;
use crate::catalog::{Direction, Entry};
use crate::engine::{Graph, Task};
use crate::error::{GraphError, Result};
use crate::pool::{Job, Pool};

/// Bytes of a vertex: where its list begins, how long it is, a number of the caller's, and its old
/// value or a count.
const VERTEX_BYTES: u64 = 8 + 4 + 4 + 8;
/// Bytes of a neighbour.
const NEIGHBOUR_BYTES: u64 = 4;
/// Parts of the lists for each thread: some lists are much longer than others.
const PARTS_PER_THREAD: usize = 8;

/// Lists of consecutive vertices.
pub(crate) struct Lists {
    first: u32,
    /// Where each list begins, and the end of the last one.
    begins: Vec<usize>,
    lengths: Vec<u32>,
    marks: Vec<u32>,
    neighbours: Vec<u32>,
}

/// The list of a vertex.
pub(crate) struct List<'a> {
    /// The neighbours, of which the first `length` count.
    all: &'a mut [u32],
    length: &'a mut u32,
    /// A number of the caller's, 0 at first.
    pub(crate) mark: &'a mut u32,
}

impl List<'_> {
    /// The neighbours.
    pub(crate) fn neighbours(&mut self) -> &mut [u32] {
        &mut self.all[..*self.length as usize]
    }

    /// Sorts the neighbours from the `from`-th on, and leaves out those for which `keep` is false.
    fn tidy(&mut self, from: usize, keep: impl Fn(u32, Option<u32>) -> bool) {
        let kept = tidy(&mut self.all[from..*self.length as usize], keep);
        *self.length = (from + kept) as u32;
    }

    /// Leaves each neighbour once.
    pub(crate) fn make_distinct(&mut self) {
        self.tidy(0, |neighbour, before| before != Some(neighbour));
    }
}

/// Sorts a list and moves those for which `keep` is true to its front; returns how many. It is
/// called with an element and the one that was kept before.
pub(crate) fn tidy(list: &mut [u32], keep: impl Fn(u32, Option<u32>) -> bool) -> usize {
    list.sort_unstable();
    let mut kept = 0_usize;
    for at in 0..list.len() {
        if keep(list[at], kept.checked_sub(1).map(|at| list[at])) {
            list[kept] = list[at];
            kept += 1;
        }
    }
    kept
}

/// Bytes of the lists of all vertices.
pub(crate) fn bytes_of_all(graph: &Graph) -> u64 {
    let catalog = graph.catalog();
    let sides = directions(catalog).len() as u64;
    u64::from(catalog.vertices) * VERTEX_BYTES + catalog.arcs * sides * NEIGHBOUR_BYTES
}

/// Bytes of the longest list that there can be.
pub(crate) fn bytes_of_one(graph: &Graph) -> u64 {
    let sides = directions(graph.catalog()).len() as u64;
    VERTEX_BYTES + u64::from(graph.catalog().degree_max) * sides * NEIGHBOUR_BYTES
}

/// Ranges of vertices whose lists have up to `most` bytes, or are one list.
pub(crate) fn ranges(graph: &mut Graph, most: u64) -> Result<Vec<Range<u32>>> {
    let (vertices, directed) = (graph.catalog().vertices, graph.catalog().directed);
    let (mut ranges, mut first, mut sum) = (Vec::new(), 0, 0);
    graph.degrees(|vertex, degrees| {
        let bytes = VERTEX_BYTES + length(degrees, directed) as u64 * NEIGHBOUR_BYTES;
        if sum + bytes > most && vertex > first {
            ranges.push(first..vertex);
            (first, sum) = (vertex, 0);
        }
        sum += bytes;
    })?;
    ranges.push(first..vertices);
    Ok(ranges)
}

/// Neighbours in all directions that are stored.
fn length([to, from]: [u32; 2], directed: bool) -> usize {
    to as usize + if directed { from as usize } else { 0 }
}

/// Lists while segments are read into them.
struct Filling<'a> {
    range: Range<u32>,
    begins: &'a [usize],
    lengths: Vec<AtomicU32>,
    neighbours: Vec<AtomicU32>,
}

impl Filling<'_> {
    /// Reads the lists of a direction.
    fn read(&self, graph: &mut Graph, pool: &dyn Pool, direction: Direction) -> Result<()> {
        let (first, end) = (self.range.start, self.range.end);
        // `end` may be the number of all vertices.
        let overlaps =
            |entry: &Entry| entry.first < end && first < entry.first.saturating_add(entry.vertices);
        let entries = graph.catalog().neighbours(direction).into_iter().filter(overlaps);
        let tasks: Vec<Task> = entries.map(|entry| vec![entry]).collect();
        graph.stream(pool, &tasks, &|task, lists| {
            let mut fits = true;
            for list in lists {
                let whole = list.for_each(|vertex, neighbours| {
                    if self.range.contains(&vertex) {
                        let at = (vertex - first) as usize;
                        fits &= self.append(at, neighbours.len(), neighbours.iter());
                    }
                });
                fits &= whole;
            }
            let (segment, what) = (tasks[task][0].segment, "it has other degrees than the graph");
            if fits { Ok(()) } else { Err(GraphError::Damaged { segment, what }) }
        })
    }

    /// Appends to a list; false if it does not fit.
    fn append(&self, at: usize, count: usize, neighbours: impl Iterator<Item = u32>) -> bool {
        let place = self.lengths[at].fetch_add(count as u32, Ordering::Relaxed) as usize;
        let begin = self.begins[at] + place;
        if begin + count > self.begins[at + 1] {
            return false;
        }
        for (cell, neighbour) in self.neighbours[begin..begin + count].iter().zip(neighbours) {
            cell.store(neighbour, Ordering::Relaxed);
        }
        true
    }
}

impl Lists {
    /// Reads the lists of a range of vertices. They are sorted, and without loops. A neighbour is
    /// there as many times as there are edges; if `single`, once for each direction.
    ///
    /// # Errors
    /// As [`Graph::stream`]; [`GraphError::Damaged`] if lists are longer than degrees say.
    pub(crate) fn load(
        graph: &mut Graph,
        pool: &dyn Pool,
        range: Range<u32>,
        single: bool,
    ) -> Result<Self> {
        let directed = graph.catalog().directed;
        let mut begins = Vec::with_capacity(range.len() + 1);
        let mut end = 0;
        begins.push(end);
        graph.degrees_of(range.clone(), |_, degrees| {
            let length = length(degrees, directed);
            if length > u32::MAX as usize {
                let what = "a vertex has more than 2^32 - 1 neighbours in both directions";
                return Err(GraphError::Refused(what.into()));
            }
            end += length;
            begins.push(end);
            Ok(())
        })?;
        let first = range.start;
        let count = begins.len() - 1;
        let mut lists = Self {
            first,
            begins,
            lengths: vec![0; count],
            marks: vec![0; count],
            neighbours: vec![0; end],
        };
        for direction in directions(graph.catalog()) {
            let marks = std::mem::take(&mut lists.marks);
            let cells = |numbers: Vec<u32>| numbers.into_iter().map(AtomicU32::new).collect();
            let filling = Filling {
                range: range.clone(),
                begins: &lists.begins,
                lengths: cells(std::mem::take(&mut lists.lengths)),
                neighbours: cells(std::mem::take(&mut lists.neighbours)),
            };
            filling.read(graph, pool, direction)?;
            let numbers = |cells: Vec<AtomicU32>| cells.into_iter().map(AtomicU32::into_inner);
            let (lengths, neighbours) = (filling.lengths, filling.neighbours);
            lists.lengths = numbers(lengths).collect();
            lists.neighbours = numbers(neighbours).collect();
            lists.marks = marks;
            lists.for_each(pool, &|_, list| {
                if single {
                    let from = *list.mark as usize;
                    list.tidy(from, |neighbour, before| before != Some(neighbour));
                }
                *list.mark = *list.length;
            });
        }
        lists.for_each(pool, &|vertex, list| {
            list.tidy(0, |neighbour, _| neighbour != vertex);
            *list.mark = 0;
        });
        Ok(lists)
    }

    /// The vertices.
    pub(crate) fn range(&self) -> Range<u32> {
        self.first..self.first + self.lengths.len() as u32
    }

    /// The neighbours of a vertex; `None` if it is not in the range.
    pub(crate) fn get(&self, vertex: u32) -> Option<&[u32]> {
        let at = vertex.checked_sub(self.first)? as usize;
        let length = *self.lengths.get(at)? as usize;
        Some(&self.neighbours[self.begins[at]..self.begins[at] + length])
    }

    /// The numbers of the caller's, in the order of vertices.
    pub(crate) fn marks(&self) -> &[u32] {
        &self.marks
    }

    /// Replaces the neighbours in a range of vertices by their values. Those of lower vertices were
    /// replaced before; the mark of a list counts them.
    pub(crate) fn replace(&mut self, pool: &dyn Pool, first: u32, values: &[u32]) {
        self.for_each(pool, &|_, list| {
            let mut at = *list.mark as usize;
            let neighbours = list.neighbours();
            while let Some(neighbour) = neighbours.get_mut(at) {
                let Some(value) = values.get((*neighbour - first) as usize) else { break };
                *neighbour = *value;
                at += 1;
            }
            *list.mark = at as u32;
        });
    }

    /// Calls `work` with each vertex and its list, on several threads.
    pub(crate) fn for_each(&mut self, pool: &dyn Pool, work: &(dyn Fn(u32, &mut List<'_>) + Sync)) {
        let per = self.lengths.len().div_ceil(pool.threads().max(1) * PARTS_PER_THREAD).max(1);
        let mut rest = &mut self.neighbours[..];
        let lengths = self.lengths.chunks_mut(per);
        let parts = lengths.zip(self.marks.chunks_mut(per)).enumerate();
        let parts: Vec<_> = parts
            .map(|(part, (lengths, marks))| {
                let begins = &self.begins[part * per..part * per + lengths.len() + 1];
                let (own, after) =
                    std::mem::take(&mut rest).split_at_mut(begins[lengths.len()] - begins[0]);
                rest = after;
                let first = self.first + (part * per) as u32;
                Mutex::new(Some((first, begins, lengths, marks, own)))
            })
            .collect();
        let next = AtomicUsize::new(0);
        let run = || {
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let part = part.lock().expect("each part is taken once").take();
                let (first, begins, lengths, marks, own) = part.expect("each part is taken once");
                let vertices = lengths.iter_mut().zip(marks).zip(begins.windows(2));
                for (vertex, ((length, mark), ends)) in (first..).zip(vertices) {
                    let all = &mut own[ends[0] - begins[0]..ends[1] - begins[0]];
                    work(vertex, &mut List { all, length, mark });
                }
            }
        };
        let jobs =
            (0..pool.threads().clamp(1, parts.len().max(1))).map(|_| Box::new(run) as Job<'_>);
        pool.run(jobs.collect());
    }
}
