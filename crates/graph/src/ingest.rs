//! Edges in any order become sorted segments.
//!
//! Edges are collected in temporary space while the set of their vertices grows. Then vertices get
//! numbers, edges go to buckets of consecutive vertices, each bucket is sorted in memory by
//! counting, and its lists are cut into segments.

use std::io;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::bits;
use crate::catalog::Catalog;
use crate::collect::Collector;
use crate::distribute::{Buckets, Numbers, degrees, distribute};
use crate::error::{GraphError, Result};
use crate::ids::{IdMap, IdSet};
use crate::order::{Order, Ordered};
use crate::pool::Pool;
use crate::scratch::{NewScratch, Records, Scratch, u64_at};
use crate::segment::Kind;
use crate::space::Space;
use crate::write::Writer;

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
/// Edges or vertices that are collected before they go to temporary space.
const TOGETHER: usize = 1 << 14;
/// Vertices that numbers of 32 bits allow.
pub const VERTICES_MAX: u64 = u32::MAX as u64;

/// Collects edges.
pub struct Ingest<'a> {
    options: IngestOptions,
    new_scratch: NewScratch<'a>,
    /// One for each thread that reads, and at least one.
    collectors: Vec<Collector>,
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
        let (edges, collectors) = ([narrow, wide], vec![Collector::new(options)]);
        let mut ingest = Self { options, new_scratch, collectors, edges, alone, saved };
        ingest.find_ids().map_err(GraphError::Scratch)?;
        Ok(ingest)
    }

    /// Adds the vertices of what is in temporary space.
    fn find_ids(&mut self) -> io::Result<()> {
        let Self { collectors, edges, alone, saved, .. } = self;
        let ids = &mut collectors[0].ids;
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
        for some in ids.chunks(TOGETHER) {
            some.iter().for_each(|id| self.collectors[0].add_vertex(*id));
            self.take_collected()?;
        }
        Ok(())
    }

    /// Adds all vertices from 1 up to this number.
    pub fn add_vertices_up_to(&mut self, last: u64) {
        self.saved.up_to = self.saved.up_to.max(last);
        (1..=last).for_each(|id| self.collectors[0].ids.insert(id));
    }

    /// Adds edges.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if temporary space is full.
    pub fn add(&mut self, edges: &[Edge]) -> Result<()> {
        for some in edges.chunks(TOGETHER) {
            self.collectors[0].add(some);
            self.take_collected()?;
        }
        Ok(())
    }

    /// Collectors for `count` threads, at least one. [`Ingest::take_collected`] takes what is in
    /// them.
    pub(crate) fn collectors(&mut self, count: usize) -> &mut [Collector] {
        while self.collectors.len() < count {
            self.collectors.push(Collector::new(self.options));
        }
        &mut self.collectors
    }

    /// Moves what was collected to temporary space, in the order of the collectors.
    ///
    /// # Errors
    /// [`GraphError::Scratch`] if temporary space is full.
    pub(crate) fn take_collected(&mut self) -> Result<()> {
        let [narrow, wide] = &mut self.edges;
        let mut parts = [narrow, wide, &mut self.alone];
        for collector in &mut self.collectors {
            for (part, records) in parts.iter_mut().zip(&mut collector.records) {
                part.append(records).map_err(GraphError::Scratch)?;
                records.clear();
            }
            self.saved.negative |= collector.negative;
            self.saved.loops_dropped += std::mem::take(&mut collector.loops_dropped);
        }
        Ok(())
    }

    /// Sorts edges into buckets, after the last one, on several threads.
    ///
    /// # Errors
    /// [`GraphError::Unusable`] if there are no vertices, or more than 2^32 - 1;
    /// [`GraphError::Scratch`].
    pub fn prepare(self, pool: &dyn Pool) -> Result<Prepared> {
        let Self { options, new_scratch, collectors, mut edges, saved, .. } = self;
        let Saved { negative, loops_dropped, .. } = saved;
        edges.iter_mut().try_for_each(Records::flush).map_err(GraphError::Scratch)?;
        let sets = collectors.into_iter().map(|collector| collector.ids);
        let ids = sets.reduce(IdSet::union).expect("there is a collector").into_map();
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
pub(crate) struct Plan {
    pub(crate) buckets: Buckets,
    /// In the order of degrees, the number of vertices of each group, and the group of each vertex
    /// by its rank.
    pub(crate) groups: Option<(Vec<u32>, Vec<u8>)>,
    pub(crate) intervals: u32,
    pub(crate) interval_vertices: u32,
}

/// Edges that are ready to be written.
pub struct Prepared {
    pub(crate) options: IngestOptions,
    pub(crate) ids: IdMap,
    pub(crate) sets: Vec<(Kind, Vec<Records>)>,
    pub(crate) plan: Plan,
    pub(crate) negative: bool,
    pub(crate) loops_dropped: u64,
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
