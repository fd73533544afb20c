//! All neighbours of a vertex at once, in either direction.
//!
//! A window is the neighbours, both ways, of the vertices of one segment of incoming edges, or of
//! one vertex that has several segments. In a directed graph the segments of outgoing edges that
//! overlap it are read with it; one that overlaps two windows is read for both.

use crate::catalog::{Catalog, Direction, Entry};
use crate::engine::{Graph, Task};
use crate::error::{GraphError, Result};
use crate::pool::Pool;
use crate::segment::Adjacency;

/// Bytes of a neighbour.
const NEIGHBOUR: u64 = 4;
/// Bytes of a vertex of a window: where its list begins and ends, and where the list of one
/// direction begins.
const ENDS: u64 = 12;

/// The windows of a graph: first and last vertex, and the segments.
pub(crate) struct Windows {
    pub(crate) tasks: Vec<Task>,
    ranges: Vec<(u32, u32)>,
    /// Of several edges between two vertices in one direction, one is in the lists.
    single: bool,
}

/// The neighbours of the vertices of a window, with multiplicity: in a directed graph a vertex that
/// is linked both ways is there twice. Loops are left out.
pub(crate) struct Window {
    pub(crate) first: u32,
    /// Where the list of each vertex begins, and where that of the last one would end with loops.
    begins: Vec<u32>,
    /// Where it ends.
    ends: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Windows {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        let into = catalog.neighbours(Direction::In);
        let columns = catalog.intervals;
        // Windows end where segments of the first column end.
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for entry in into.iter().filter(|entry| entry.column == 0) {
            let last = entry.first + (entry.vertices - 1);
            match ranges.last_mut() {
                Some(range) if range.0 == entry.first && entry.part => range.1 = last,
                _ => ranges.push((entry.first, last)),
            }
        }
        let mut all = into;
        if catalog.directed {
            all.extend(catalog.neighbours(Direction::Out));
        }
        let mut tasks = vec![Vec::new(); ranges.len()];
        if !catalog.directed && columns == 1 {
            // Segments and windows are the same.
            for (task, (first, _)) in tasks.iter_mut().zip(&ranges) {
                let begin = all.partition_point(|entry| entry.first < *first);
                let same = all[begin..].iter().take_while(|entry| entry.first == *first);
                task.extend(same.copied());
            }
            return Self { tasks, ranges, single: false };
        }
        for entry in all {
            let last = entry.first + (entry.vertices - 1);
            let begin = ranges.partition_point(|range| range.1 < entry.first);
            let end = ranges.partition_point(|range| range.0 <= last);
            tasks[begin..end].iter_mut().for_each(|task: &mut Vec<Entry>| task.push(entry));
        }
        Self { tasks, ranges, single: false }
    }

    /// The same, with one edge of several between two vertices in one direction.
    pub(crate) fn single(self) -> Self {
        Self { single: true, ..self }
    }

    /// Windows with an active vertex.
    pub(crate) fn chosen(&self, active: impl Fn(u32, u32) -> bool) -> Self {
        let pairs = self.tasks.iter().zip(&self.ranges);
        let chosen = pairs.filter(|(_, (first, last))| active(*first, *last - *first + 1));
        let (tasks, ranges) = chosen.map(|(task, range)| (task.clone(), *range)).unzip();
        Self { tasks, ranges, single: self.single }
    }

    /// Calls `work` with each window, on several threads.
    pub(crate) fn stream(
        &self,
        graph: &mut Graph,
        pool: &dyn Pool,
        work: &(dyn Fn(&mut Window) -> Result<()> + Sync),
    ) -> Result<()> {
        let edges = |task: &Task| task.iter().map(|entry| u64::from(entry.edges)).sum::<u64>();
        if self.tasks.iter().any(|task| edges(task) > u32::MAX.into()) {
            let what = "some vertices have more than 2^32 edges together, which is too much for it";
            return Err(GraphError::Refused(what.into()));
        }
        graph.stream(pool, &self.tasks, &|task, lists| {
            work(&mut Window::new(self.ranges[task], lists, self.single))
        })
    }

    /// Bytes of the largest window in memory, of which each thread has one, with `for_edge` bytes
    /// that the algorithm needs for each edge of it, and of the buffers that its segments need
    /// beyond those of [`Graph::buffers_min`].
    pub(crate) fn bytes_max(&self, graph: &Graph, for_edge: u64) -> u64 {
        let bytes = |(task, range): (&Task, &(u32, u32))| {
            let edges: u64 = task.iter().map(|entry| u64::from(entry.edges)).sum();
            let vertices = u64::from(range.1 - range.0 + 2);
            let segments = (task.len() as u64).saturating_sub(graph.parts_max());
            (NEIGHBOUR + for_edge) * edges + ENDS * vertices + segments * graph.segment_bytes()
        };
        self.tasks.iter().zip(&self.ranges).map(bytes).max().unwrap_or(0)
    }
}

impl Window {
    fn new((first, last): (u32, u32), lists: &[Adjacency<'_>], single: bool) -> Self {
        let count = (last - first + 1) as usize;
        let mut begins = vec![0_u32; count + 1];
        let of = |vertex: u32| (first..=last).contains(&vertex).then(|| (vertex - first) as usize);
        for list in lists {
            list.for_each(|vertex, neighbours| {
                if let Some(at) = of(vertex) {
                    begins[at + 1] += neighbours.len() as u32;
                }
            });
        }
        for at in 0..count {
            begins[at + 1] += begins[at];
        }
        let mut neighbours = vec![0; begins[count] as usize];
        // Without loops lists end before the next one begins.
        let mut ends = begins.clone();
        // Where the lists of this direction begin. In one direction neighbours are in order.
        let (mut of_direction, mut kind) = (Vec::new(), None);
        for list in lists {
            if single && kind.replace(list.kind()) != Some(list.kind()) {
                of_direction.clone_from(&ends);
            }
            // A loop is in both directions, and in neither of interest.
            list.for_each(|vertex, list| {
                let Some(at) = of(vertex) else { return };
                for neighbour in list.iter().filter(|neighbour| *neighbour != vertex) {
                    let end = ends[at];
                    let is_again = single
                        && end > of_direction[at]
                        && neighbours[end as usize - 1] == neighbour;
                    if !is_again {
                        neighbours[end as usize] = neighbour;
                        ends[at] = end + 1;
                    }
                }
            });
        }
        Self { first, begins, ends, neighbours }
    }

    /// Calls `take` with each vertex and its neighbours, which it may sort.
    pub(crate) fn for_each(&mut self, mut take: impl FnMut(u32, &mut [u32])) {
        let vertices = self.begins.len() - 1;
        for at in 0..vertices {
            let list = &mut self.neighbours[self.begins[at] as usize..self.ends[at] as usize];
            take(self.first + at as u32, list);
        }
    }
}

/// The directions of which a window reads segments.
pub(crate) fn directions(catalog: &Catalog) -> Vec<Direction> {
    if catalog.directed { vec![Direction::In, Direction::Out] } else { vec![Direction::In] }
}
