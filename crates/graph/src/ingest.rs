//! Edges in any order become sorted segments.
//!
//! Edges are collected in temporary space while the set of their vertices grows. Then vertices get
//! numbers, edges go to buckets of consecutive vertices, each bucket is sorted in memory by
//! counting, and its lists are cut into segments.

use std::io;
use std::ops::Range;

use borsh::{BorshDeserialize, BorshSerialize};
use twox_hash::XxHash3_64;

use crate::bits;
use crate::builder::{Built, SegmentBuilder};
use crate::catalog::{Catalog, Entry, VERSION, VERSION_OF_INPUT};
use crate::distribute::{Buckets, Numbers, degrees, distribute};
use crate::error::{GraphError, Result};
use crate::ids::{IdMap, IdSet};
use crate::order::{self, Order, Ordered};
use crate::pool::{Job, Pool};
use crate::scratch::{NewScratch, Records, Scratch, u64_at};
use crate::segment::{HEADER_BYTES, Header, Kind};
use crate::sort::{Bucket, Sorted};
use crate::space::Space;

/// An edge of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Where it begins.
    pub source: u64,
    /// Where it ends.
    pub target: u64,
    /// Its weight; not used in a graph without weights.
    pub weight: f64,
}

/// Whether something in the input is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is.
    Keep,
    /// It is left out.
    Drop,
}

/// How edges become a graph.
#[derive(Clone, Copy, Debug)]
pub struct IngestOptions {
    /// Whether edges have a direction.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// Edges between vertices that have one; of dropped ones the smallest weight is kept.
    pub duplicates: Keep,
    /// Edges from a vertex to itself.
    pub loops: Keep,
    /// Bytes of memory for the state of vertices in computations: the graph is made of as many
    /// intervals that the state of two of them fits. `None` for one interval.
    pub state_memory: Option<u64>,
    /// The order of vertices.
    pub order: Order,
}

/// Bytes of state of a vertex in computations by intervals, for [`IngestOptions::state_memory`]:
/// value and degree of a source, value, degree and sum of a target, twice for read-ahead.
const STATE_BYTES: u64 = 48;
/// Intervals at most: each needs a segment in memory while the graph is made.
pub(crate) const INTERVALS_MAX: u64 = 64;
/// Bytes of records of a bucket that are aimed at: they are sorted within a core's cache.
const BUCKET_BYTES: u64 = 4 << 20;
/// Buckets at most: each has a buffer.
const BUCKETS_MAX: u64 = 256;
/// Vertices that numbers of 32 bits allow.
pub const VERTICES_MAX: u64 = u32::MAX as u64;

/// Collects edges.
pub struct Ingest<'a> {
    options: IngestOptions,
    new_scratch: NewScratch<'a>,
    ids: IdSet,
    /// Edges between numbers below 2^32, and others.
    edges: [Records; 2],
    /// Vertices that may have no edges, to find them again.
    alone: Records,
    saved: Saved,
}

/// What was collected, as far as it is in temporary space, so that an ingest that is interrupted
/// can go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Saved {
    /// Bytes of each part of the temporary space: edges between numbers below 2^32, other edges,
    /// vertices.
    pub bytes: [u64; 3],
    /// Vertices from 1 up to this number are there.
    up_to: u64,
    negative: bool,
    loops_dropped: u64,
}

impl Saved {
    /// The number of edges.
    #[must_use]
    pub fn edges(&self, weighted: bool) -> u64 {
        let extra = if weighted { 8 } else { 0 };
        self.bytes[0] / (8 + extra) + self.bytes[1] / (16 + extra)
    }
}

impl<'a> Ingest<'a> {
    /// Without edges.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if there is no temporary space.
    pub fn new(options: IngestOptions, new_scratch: NewScratch<'a>) -> Result<Self> {
        let new = || new_scratch().map_err(GraphError::Scratch);
        Self::resume(options, new_scratch, [new()?, new()?, new()?], Saved::default())
    }

    /// With the edges that are in `parts` of temporary space, which are as long as `saved` says.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if they cannot be read.
    pub fn resume(
        options: IngestOptions,
        new_scratch: NewScratch<'a>,
        parts: [Box<dyn Scratch>; 3],
        saved: Saved,
    ) -> Result<Self> {
        let [narrow, wide, alone] = parts.map(Records::of);
        let (edges, ids) = ([narrow, wide], IdSet::default());
        let mut ingest = Self { options, new_scratch, ids, edges, alone, saved };
        ingest.find_ids().map_err(GraphError::Scratch)?;
        Ok(ingest)
    }

    /// Adds the vertices of what is in temporary space.
    fn find_ids(&mut self) -> io::Result<()> {
        let Self { ids, edges, alone, saved, .. } = self;
        (1..=saved.up_to).for_each(|id| ids.insert(id));
        let record = 8 + extra(self.options) as usize;
        edges[0].read(record, |bytes| {
            for record in bytes.chunks_exact(record) {
                let pair = u64_at(record, 0);
                ids.insert(pair & u64::from(u32::MAX));
                ids.insert(pair >> 32);
            }
            Ok(())
        })?;
        edges[1].read(record + 8, |bytes| {
            for record in bytes.chunks_exact(record + 8) {
                ids.insert(u64_at(record, 0));
                ids.insert(u64_at(record, 8));
            }
            Ok(())
        })?;
        alone.read(8, |bytes| {
            bytes.chunks_exact(8).for_each(|id| ids.insert(u64_at(id, 0)));
            Ok(())
        })
    }

    /// Moves everything to temporary space; returns what [`Ingest::resume`] needs.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if temporary space is full.
    pub fn save(&mut self) -> Result<Saved> {
        let [narrow, wide] = &mut self.edges;
        for (records, bytes) in
            [narrow, wide, &mut self.alone].into_iter().zip(&mut self.saved.bytes)
        {
            records.flush().map_err(GraphError::Scratch)?;
            *bytes = records.len();
        }
        Ok(self.saved)
    }

    /// Adds vertices, which need not have edges.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if temporary space is full.
    pub fn add_vertices(&mut self, ids: &[u64]) -> Result<()> {
        ids.iter().try_for_each(|id| self.add_alone(*id)).map_err(GraphError::Scratch)
    }

    fn add_alone(&mut self, id: u64) -> io::Result<()> {
        self.ids.insert(id);
        self.alone.push(id.to_le_bytes())
    }

    /// Adds all vertices from 1 up to this number.
    pub fn add_vertices_up_to(&mut self, last: u64) {
        self.saved.up_to = self.saved.up_to.max(last);
        (1..=last).for_each(|id| self.ids.insert(id));
    }

    /// Adds edges.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if temporary space is full.
    pub fn add(&mut self, edges: &[Edge]) -> Result<()> {
        for edge in edges {
            if edge.source == edge.target && self.options.loops == Keep::Drop {
                self.saved.loops_dropped += 1;
                self.add_alone(edge.source).map_err(GraphError::Scratch)?;
                continue;
            }
            self.ids.insert(edge.source);
            self.ids.insert(edge.target);
            self.saved.negative |= self.options.weighted && edge.weight < 0.0;
            self.push(edge).map_err(GraphError::Scratch)?;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, edge: &Edge) -> io::Result<()> {
        let weight = edge.weight.to_le_bytes();
        if (edge.source | edge.target) >> 32 == 0 {
            let pair = (edge.target << 32 | edge.source).to_le_bytes();
            self.edges[0].push(pair)?;
            return if self.options.weighted { self.edges[0].push(weight) } else { Ok(()) };
        }
        self.edges[1].push(edge.source.to_le_bytes())?;
        self.edges[1].push(edge.target.to_le_bytes())?;
        if self.options.weighted { self.edges[1].push(weight) } else { Ok(()) }
    }

    /// Sorts edges into buckets, after the last one, on several threads.
    ///
    /// # Errors
    /// [`GraphError::Unusable`] if there are no vertices, or more than 2^32 - 1;
    /// [`GraphError::Scratch`].
    pub fn prepare(self, pool: &dyn Pool) -> Result<Prepared> {
        let Self { options, new_scratch, ids, mut edges, saved, .. } = self;
        let Saved { negative, loops_dropped, .. } = saved;
        edges.iter_mut().try_for_each(Records::flush).map_err(GraphError::Scratch)?;
        let ids = ids.into_map();
        let vertices = ids.len();
        if vertices == 0 {
            let what = "the input has no vertices; check that it is the right file and --format";
            return Err(GraphError::Unusable(what.into()));
        }
        if vertices > VERTICES_MAX {
            let what = format!("the input has {vertices} vertices; Prism stores up to 2^32 - 1");
            return Err(GraphError::Unusable(what));
        }
        let arcs = edges[0].len() / (8 + extra(options)) + edges[1].len() / (16 + extra(options));
        let sides = if options.directed { 1 } else { 2 };
        let (plan, of_rank) = plan(options, &ids, &edges, arcs * sides, pool)?;
        let kinds = if options.directed { vec![Kind::In, Kind::Out] } else { vec![Kind::In] };
        let mut sets = Vec::new();
        for _ in &kinds {
            let new = || Records::new(new_scratch).map_err(GraphError::Scratch);
            sets.push((0..plan.buckets.len()).map(|_| new()).collect::<Result<Vec<_>>>()?);
        }
        let numbers = Numbers::new(&ids, &of_rank);
        let sets = distribute(options, (&numbers, &edges), &plan.buckets, sets, pool)
            .map_err(GraphError::Scratch)?;
        let sets = kinds.into_iter().zip(sets).collect();
        Ok(Prepared { options, ids, sets, plan, negative, loops_dropped, arcs: arcs * sides })
    }
}

/// Puts the vertices in order, and divides them into buckets: the plan, and the number of each
/// vertex by its rank; none if the numbers are the ranks.
fn plan(
    options: IngestOptions,
    ids: &IdMap,
    edges: &[Records; 2],
    arcs: u64,
    pool: &dyn Pool,
) -> Result<(Plan, Vec<u32>)> {
    let vertices = ids.len();
    let record = 8 + extra(options);
    let buckets = (arcs * record).div_ceil(BUCKET_BYTES).clamp(1, BUCKETS_MAX);
    let state = options
        .state_memory
        .map_or(1, |memory| (vertices * STATE_BYTES).div_ceil(memory.max(1)).min(INTERVALS_MAX));
    let (width, per_interval) = widths(vertices, buckets, state.max(1).min(vertices));
    let interval_vertices = width * per_interval;
    let intervals = vertices.div_ceil(interval_vertices);
    // Values of several intervals are on flash, and are read in the order of the input.
    let (starts, groups, of_rank) = if options.order == Order::Degree && intervals == 1 {
        let degrees = degrees(options, ids, edges, pool).map_err(GraphError::Scratch)?;
        let ordered = Ordered::by_degree(degrees, buckets);
        (ordered.starts, Some((ordered.groups, ordered.of_rank)), ordered.numbers)
    } else {
        let starts = (0..vertices.div_ceil(width)).map(|at| (at * width) as u32);
        (starts.collect(), None, Vec::new())
    };
    let plan = Plan {
        buckets: Buckets::new(starts, vertices as u32),
        groups,
        intervals: intervals as u32,
        interval_vertices: interval_vertices.min(VERTICES_MAX) as u32,
    };
    Ok((plan, of_rank))
}

/// Vertices of a bucket, and buckets of an interval: a bucket has vertices of one interval.
fn widths(vertices: u64, buckets: u64, intervals: u64) -> (u64, u64) {
    let interval = vertices.div_ceil(intervals);
    let per_interval = buckets.div_ceil(intervals).clamp(1, interval);
    (interval.div_ceil(per_interval), per_interval)
}

/// Bytes of the weight of a record.
pub(crate) fn extra(options: IngestOptions) -> u64 {
    if options.weighted { 8 } else { 0 }
}

#[derive(Debug)]
struct Plan {
    buckets: Buckets,
    /// In the order of degrees, the number of vertices of each group, and the group of each vertex
    /// by its rank.
    groups: Option<(Vec<u32>, Vec<u8>)>,
    intervals: u32,
    interval_vertices: u32,
}

/// Edges that are ready to be written.
pub struct Prepared {
    options: IngestOptions,
    ids: IdMap,
    sets: Vec<(Kind, Vec<Records>)>,
    plan: Plan,
    negative: bool,
    loops_dropped: u64,
    arcs: u64,
}

impl Prepared {
    /// The number of vertices.
    #[must_use]
    pub fn vertices(&self) -> u64 {
        self.ids.len()
    }

    /// Bytes of segments that the graph needs at most, in blocks of `block` bytes.
    #[must_use]
    pub fn bytes_max(&self, block: u64) -> u64 {
        let (vertices, sets) = (self.ids.len(), self.sets.len() as u64);
        let bits = u64::from(bits::width(vertices as u32));
        let of_edges = self.arcs * (bits + 8 * extra(self.options)) / 8;
        let intervals = u64::from(self.plan.intervals);
        let of_vertices = vertices * (5 * sets * intervals + 5 * sets + 10);
        // Segments end at vertices and at intervals, and their parts have padding.
        let of_groups = if self.plan.groups.is_some() { vertices } else { 0 };
        let whole = sets * of_edges + of_vertices + of_groups;
        whole + whole / 8 + block * (8 + sets * intervals * intervals)
    }

    /// Writes the graph to a space, which has it, and nothing else, when this returns.
    ///
    /// # Errors
    /// [`GraphError`]; then the space is as it was before.
    pub fn write(self, space: &mut Space, pool: &dyn Pool) -> Result<Catalog> {
        let written = Writer::new(&self, space).write(pool);
        if written.is_err() {
            // The first failure is what counts.
            let _ = space.abandon();
        }
        written
    }
}

/// Writes the segments of a graph.
struct Writer<'a> {
    prepared: &'a Prepared,
    space: &'a mut Space,
    entries: Vec<Entry>,
    failed: Option<GraphError>,
    content: u64,
}

impl<'a> Writer<'a> {
    fn new(prepared: &'a Prepared, space: &'a mut Space) -> Self {
        Self { prepared, space, entries: Vec::new(), failed: None, content: 0 }
    }

    fn write(mut self, pool: &dyn Pool) -> Result<Catalog> {
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

    /// Writes the neighbours of a direction.
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
        let mut builders: Vec<_> = (0..intervals).map(|_| builder(0)).collect();
        let threads = pool.threads().max(1);
        // Some buckets are sorted while the lists of those before are written.
        let mut ready: Vec<(u32, Sorted)> = Vec::new();
        let mut rest = buckets.iter().enumerate().map(|(at, bucket)| (ranges.range(at), bucket));
        loop {
            let some: Vec<(Range<u32>, &Records)> = rest.by_ref().take(threads).collect();
            if some.is_empty() && ready.is_empty() {
                return self.flush(&mut builders);
            }
            let mut sorted: Vec<io::Result<Sorted>> = Vec::new();
            sorted.resize_with(some.len(), || Ok(Sorted::default()));
            let mut written = Ok(());
            let of_before = std::mem::take(&mut ready);
            let write = || {
                written = of_before.into_iter().try_for_each(|(first, sorted)| {
                    count(&sorted);
                    if first > 0 && first.is_multiple_of(interval_vertices) {
                        self.flush(&mut builders)?;
                        builders = (0..intervals).map(|_| builder(first)).collect();
                    }
                    self.add(&sorted, &mut builders)
                });
            };
            let mut jobs: Vec<Job<'_>> = vec![Box::new(write)];
            jobs.extend(some.iter().zip(&mut sorted).map(|((range, records), sorted)| {
                let (first, vertices) = (range.start, range.len() as u32);
                let bucket = Bucket { records, first, vertices, options };
                Box::new(move || *sorted = bucket.sort()) as Job<'_>
            }));
            pool.run(jobs);
            written?;
            for ((range, _), sorted) in some.iter().zip(sorted) {
                ready.push((range.start, sorted.map_err(GraphError::Scratch)?));
            }
        }
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
        let capacity = self.space.capacity() - HEADER_BYTES - 10;
        let vertices = self.prepared.ids.len() as usize;
        let (mut payload, mut first) = (Vec::new(), 0);
        for vertex in 0..vertices {
            degrees.iter().for_each(|of| bits::put_varint(of[vertex].into(), &mut payload));
            if payload.len() > capacity || vertex + 1 == vertices {
                let header = Header::plain(Kind::Degrees, first, vertex as u32 + 1 - first);
                let payload = std::mem::take(&mut payload);
                self.put(Built { header, payload, part: false }, 0);
                first = vertex as u32 + 1;
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes the numbers of the input.
    fn ids(&mut self) -> Result<()> {
        let capacity = self.space.capacity() - HEADER_BYTES - 10;
        let (mut payload, mut first, mut before) = (Vec::new(), 0, 0);
        let last = self.prepared.ids.len() - 1;
        for (vertex, id) in (0..).zip(self.prepared.ids.iter()) {
            // The first of a segment is the whole number, the others are differences.
            bits::put_varint(if payload.is_empty() { id } else { id - before }, &mut payload);
            before = id;
            if payload.len() > capacity || vertex == last {
                let header = Header::plain(Kind::Ids, first, vertex as u32 + 1 - first);
                let payload = std::mem::take(&mut payload);
                self.put(Built { header, payload, part: false }, 0);
                first = vertex as u32 + 1;
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }
}
