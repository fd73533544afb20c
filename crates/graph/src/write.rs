//! The segments of a graph are written: some buckets of edges are sorted while the lists of those
//! before are cut into segments.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use twox_hash::XxHash3_64;

use crate::bits;
use crate::builder::{Built, SegmentBuilder};
use crate::catalog::{Catalog, Entry, VERSION, VERSION_OF_INPUT};
use crate::error::{GraphError, Result};
use crate::ingest::{Plan, Prepared};
use crate::order;
use crate::pool::{Job, Pool};
use crate::scratch::Records;
use crate::segment::{HEADER_BYTES, Header, Kind};
use crate::sort::{Bucket, Sorted, Sorter};
use crate::space::Space;

/// Sorted buckets that wait for their turn at most, for each thread.
const AHEAD_PER_THREAD: usize = 2;

/// What a thread does next.
enum Step {
    /// Sorts a bucket, in the memory of one that was written.
    Sort(usize, Sorted),
    /// Cuts the lists of a bucket into segments.
    Write(usize, Sorted),
}

/// Whose turn it is: buckets are sorted in any order and written one after another.
struct Turns {
    state: Mutex<Progress>,
    changed: Condvar,
    /// The number of buckets.
    count: usize,
    ahead: usize,
}

struct Progress {
    /// The next bucket to be sorted, and to be written.
    sort: usize,
    write: usize,
    is_writing: bool,
    ready: Vec<Option<Sorted>>,
    /// Memory of buckets that were written.
    spare: Vec<Sorted>,
    failed: Option<GraphError>,
    /// Whether nothing more is done: after a failure, or a panic.
    has_ended: bool,
}

impl Turns {
    fn new(count: usize, ahead: usize) -> Self {
        let state = Progress {
            sort: 0,
            write: 0,
            is_writing: false,
            ready: (0..count).map(|_| None).collect(),
            spare: Vec::new(),
            failed: None,
            has_ended: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), count, ahead }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the calling thread does next; it waits if that depends on others. `None` if nothing is
    /// left to begin.
    fn next(&self) -> Option<Step> {
        let mut state = self.lock();
        loop {
            let Progress { sort, write, .. } = *state;
            if state.has_ended || write == self.count {
                return None;
            }
            if !state.is_writing
                && let Some(sorted) = state.ready[write].take()
            {
                state.is_writing = true;
                return Some(Step::Write(write, sorted));
            }
            if sort < self.count && sort < write + self.ahead {
                state.sort += 1;
                return Some(Step::Sort(sort, state.spare.pop().unwrap_or_default()));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn sorted(&self, at: usize, sorted: Result<Sorted>) {
        let mut state = self.lock();
        match sorted {
            Ok(sorted) => state.ready[at] = Some(sorted),
            Err(error) => state.fail(error),
        }
        drop(state);
        self.changed.notify_all();
    }

    fn written(&self, written: Result<Sorted>) {
        let mut state = self.lock();
        (state.write, state.is_writing) = (state.write + 1, false);
        match written {
            Ok(memory) => state.spare.push(memory),
            Err(error) => state.fail(error),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The failure that ended the work, if one did.
    fn end(self) -> Result<()> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), Err)
    }
}

impl Progress {
    fn fail(&mut self, error: GraphError) {
        self.has_ended = true;
        self.failed.get_or_insert(error);
    }
}

/// Ends the work of all threads if the one that has it panics; the others would wait for it.
struct Working<'a> {
    turns: &'a Turns,
    is_done: bool,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.turns.lock().has_ended = true;
            self.turns.changed.notify_all();
        }
    }
}

/// Writes the segments of a graph.
pub(crate) struct Writer<'a> {
    prepared: &'a Prepared,
    space: &'a mut Space,
    entries: Vec<Entry>,
    failed: Option<GraphError>,
    content: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(prepared: &'a Prepared, space: &'a mut Space) -> Self {
        Self { prepared, space, entries: Vec::new(), failed: None, content: 0 }
    }

    pub(crate) fn write(mut self, pool: &dyn Pool) -> Result<Catalog> {
        let prepared = self.prepared;
        let mut degrees: Vec<Vec<u32>> = Vec::new();
        let (mut arcs, mut loops, mut duplicates) = (0, 0, 0);
        for (kind, buckets) in &prepared.sets {
            let mut of_kind = Vec::new();
            (arcs, loops, duplicates) = (0, 0, 0);
            self.lists(*kind, buckets, pool, &mut |sorted| {
                arcs += sorted.neighbours.len() as u64;
                loops += sorted.loops;
                duplicates += sorted.duplicates;
                of_kind.extend_from_slice(&sorted.degrees);
            })?;
            degrees.push(of_kind);
        }
        self.degrees(&degrees)?;
        self.ids()?;
        let groups = self.groups()?;
        let Plan { intervals, interval_vertices, .. } = prepared.plan;
        let of = |entry: &Entry| {
            let interval = entry.first / interval_vertices;
            (entry.kind, interval, entry.column)
        };
        self.entries.sort_by_key(of);
        let directed = prepared.options.directed;
        let catalog = Catalog {
            version: if groups.is_empty() { VERSION_OF_INPUT } else { VERSION },
            directed,
            weighted: prepared.options.weighted,
            negative: prepared.negative,
            vertices: prepared.ids.len() as u32,
            edges: if directed { arcs } else { (arcs + loops) / 2 },
            loops,
            arcs,
            duplicates: if directed { duplicates } else { duplicates / 2 },
            loops_dropped: prepared.loops_dropped,
            degree_max: degrees.iter().flatten().copied().max().unwrap_or(0),
            intervals,
            interval_vertices,
            content: self.content,
            entries: self.entries,
            groups,
        };
        let live: Vec<u32> = catalog.entries.iter().map(|entry| entry.segment).collect();
        self.space.commit(&catalog.encode(), &live)?;
        Ok(catalog)
    }

    /// Writes the neighbours of a direction: each thread sorts a bucket, or, if the next one is
    /// sorted and no other thread does it, cuts its lists into segments.
    fn lists(
        &mut self,
        kind: Kind,
        buckets: &[Records],
        pool: &dyn Pool,
        count: &mut (dyn FnMut(&Sorted) + Send),
    ) -> Result<()> {
        let Plan { intervals, interval_vertices, .. } = self.prepared.plan;
        let ranges = &self.prepared.plan.buckets;
        let options = self.prepared.options;
        let capacity = self.space.capacity();
        let builder = |first| SegmentBuilder::new(kind, capacity, options.weighted, first);
        let builders: Vec<_> = (0..intervals).map(|_| builder(0)).collect();
        let threads = pool.threads().max(1);
        let turns = Turns::new(buckets.len(), AHEAD_PER_THREAD * threads);
        let writing = Mutex::new((self, builders, count));
        let run = || {
            let mut sorter = Sorter::default();
            while let Some(step) = turns.next() {
                match step {
                    Step::Sort(at, memory) => {
                        let (range, records) = (ranges.range(at), &buckets[at]);
                        let (first, vertices) = (range.start, range.len() as u32);
                        let bucket = Bucket { records, first, vertices, options };
                        let sorted = sorter.sort(&bucket, memory).map_err(GraphError::Scratch);
                        turns.sorted(at, sorted);
                    }
                    Step::Write(at, sorted) => {
                        let first = ranges.range(at).start;
                        let mut writing = writing.lock().expect("no thread panics in the lock");
                        let (writer, builders, count) = &mut *writing;
                        count(&sorted);
                        let mut written = Ok(());
                        if first > 0 && first.is_multiple_of(interval_vertices) {
                            written = writer.flush(builders);
                            *builders = (0..intervals).map(|_| builder(first)).collect();
                        }
                        let written = written.and_then(|()| writer.add(&sorted, builders));
                        turns.written(written.map(|()| sorted));
                    }
                }
            }
        };
        let jobs = (0..threads).map(|_| {
            let (turns, run) = (&turns, &run);
            Box::new(move || {
                let mut working = Working { turns, is_done: false };
                run();
                working.is_done = true;
            }) as Job<'_>
        });
        pool.run(jobs.collect());
        turns.end()?;
        let (writer, mut builders, _) = writing.into_inner().expect("no thread panics in the lock");
        writer.flush(&mut builders)
    }

    /// Adds the lists of a bucket.
    fn add(&mut self, sorted: &Sorted, builders: &mut [SegmentBuilder]) -> Result<()> {
        let per = self.prepared.plan.interval_vertices;
        let mut from = 0;
        for degree in &sorted.degrees {
            let to = from + *degree as usize;
            let list = &sorted.neighbours[from..to];
            let weights = sorted.weights.get(from..to).unwrap_or(&[]);
            let mut begin = 0;
            let last = builders.len() - 1;
            for (column, builder) in (0..).zip(builders.iter_mut()) {
                let end = if column as usize == last {
                    list.len()
                } else {
                    list.partition_point(|source| *source < (column + 1) * per)
                };
                let weights = weights.get(begin..end).unwrap_or(&[]);
                builder.add(&list[begin..end], weights, &mut |built| self.put(built, column));
                begin = end;
            }
            from = to;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    fn flush(&mut self, builders: &mut [SegmentBuilder]) -> Result<()> {
        for (column, builder) in (0..).zip(builders) {
            builder.flush(&mut |built| self.put(built, column));
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes a segment; the first failure is kept.
    fn put(&mut self, built: Built, column: u32) {
        if self.failed.is_some() {
            return;
        }
        self.content = XxHash3_64::oneshot_with_seed(self.content, &built.payload);
        match self.space.write(built.header, &built.payload) {
            Ok(segment) => self.entries.push(Entry {
                kind: built.header.kind as u32,
                segment,
                payload: built.payload.len() as u32,
                first: built.header.first,
                vertices: built.header.vertices,
                edges: built.header.edges,
                column,
                part: built.part,
            }),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Writes the groups, if the vertices have them; returns their sizes.
    fn groups(&mut self) -> Result<Vec<u32>> {
        let Some((sizes, of_rank)) = &self.prepared.plan.groups else { return Ok(Vec::new()) };
        let capacity = self.space.capacity() - HEADER_BYTES;
        for (header, payload) in order::segments(of_rank, capacity) {
            self.put(Built { header, payload, part: false }, 0);
        }
        self.failed.take().map_or(Ok(sizes.clone()), Err)
    }

    /// Writes the degrees of all vertices.
    fn degrees(&mut self, degrees: &[Vec<u32>]) -> Result<()> {
        self.of_vertices(Kind::Degrees, 0..self.prepared.ids.len(), |vertex, payload| {
            degrees.iter().for_each(|of| bits::put_varint(of[vertex as usize].into(), payload));
        })
    }

    /// Writes the numbers of the input.
    fn ids(&mut self) -> Result<()> {
        let mut before = 0;
        self.of_vertices(Kind::Ids, self.prepared.ids.iter(), |id, payload| {
            // The first of a segment is the whole number, the others are differences.
            bits::put_varint(if payload.is_empty() { id } else { id - before }, payload);
            before = id;
        })
    }

    /// Writes one item for each vertex, in segments; `put` appends an item to the payload of a
    /// segment.
    fn of_vertices<T>(
        &mut self,
        kind: Kind,
        items: impl Iterator<Item = T>,
        mut put: impl FnMut(T, &mut Vec<u8>),
    ) -> Result<()> {
        let capacity = self.space.capacity() - HEADER_BYTES - 10;
        let last = self.prepared.ids.len() as u32 - 1;
        let (mut payload, mut first) = (Vec::new(), 0);
        for (vertex, item) in (0..=last).zip(items) {
            put(item, &mut payload);
            if payload.len() > capacity || vertex == last {
                let header = Header::plain(kind, first, vertex + 1 - first);
                let payload = std::mem::take(&mut payload);
                self.put(Built { header, payload, part: false }, 0);
                first = vertex + 1;
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }
}
