//! Edges in any order: the edges of each vertex are counted, and edges go to buckets of consecutive
//! vertices, on several threads.

use std::io;
use std::ops::Range;
use std::sync::Mutex;

use prism_base::{prefetch, vec_in_huge_pages};

use crate::ids::{IdMap, PAGE_IDS};
use crate::ingest::{IngestOptions, extra};
use crate::pool::{Job, Pool};
use crate::scratch::{Records, u64_at};

/// Bytes for a bucket that a thread collects before it locks the bucket.
const COLLECTED: usize = 4 << 10;
/// Edges whose vertices are numbered together, after their numbers were fetched into the cache.
const TOGETHER: usize = 256;
/// Threads that count edges at most: each has four bytes for each vertex.
const COUNTING_MAX: usize = 4;
/// From how many edges on a sample of them is counted, and one of how many that is.
const SAMPLED_FROM: u64 = 1 << 20;
const SAMPLED: usize = 16;
/// Parts of the edges that are counted one after another.
const COUNTED_PARTS: usize = 16;
/// Vertices with an entry each in the table of buckets, and entries for all others at most.
const FIRST: u32 = 1 << 12;

/// The vertices of buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// The first vertex of each, and the number of vertices.
    ends: Vec<u32>,
    /// The buckets of the first vertices, which may have most edges, and after these of every
    /// 2^shift-th vertex.
    table: Vec<u16>,
    shift: u32,
}

impl Buckets {
    /// With these first vertices, of which the first one is 0.
    pub(crate) fn new(starts: Vec<u32>, vertices: u32) -> Self {
        let shift = (0..32).find(|shift| vertices >> shift < FIRST).expect("less than 2^32");
        let of = |vertex: u32| (starts.partition_point(|start| *start <= vertex) - 1) as u16;
        let others = (0..=vertices >> shift).map(|at| at << shift);
        let table = (0..FIRST).chain(others).map(of).collect();
        let mut ends = starts;
        ends.push(vertices);
        Self { ends, table, shift }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// The vertices of a bucket.
    pub(crate) fn range(&self, bucket: usize) -> Range<u32> {
        self.ends[bucket]..self.ends[bucket + 1]
    }

    /// The bucket of a vertex.
    #[inline]
    fn of(&self, vertex: u32) -> usize {
        let at = if vertex < FIRST { vertex } else { FIRST + (vertex >> self.shift) };
        let mut bucket = usize::from(self.table[at as usize]);
        while self.ends[bucket + 1] <= vertex {
            bucket += 1;
        }
        bucket
    }
}

/// The numbers of vertices in the store.
pub(crate) struct Numbers<'a> {
    ids: &'a IdMap,
    /// By rank; empty if they are the ranks.
    of_rank: &'a [u32],
    /// For pages of numbers of the input many of which are vertices, where in `table` the number
    /// of the first one is; `NO_PAGE` for others.
    pages: Vec<usize>,
    table: Vec<u32>,
}

/// A page of numbers that the table does not have.
const NO_PAGE: usize = usize::MAX;

impl<'a> Numbers<'a> {
    /// With the number of each vertex by its rank; none if the numbers are the ranks.
    pub(crate) fn new(ids: &'a IdMap, of_rank: &'a [u32]) -> Self {
        if of_rank.is_empty() {
            return Self { ids, of_rank, pages: Vec::new(), table: Vec::new() };
        }
        let mut len = 0;
        let place = |vertices: usize| {
            let place = if vertices >= PAGE_IDS / 4 { len } else { return NO_PAGE };
            len += PAGE_IDS;
            place
        };
        let pages: Vec<usize> = ids.page_lens().map(place).collect();
        let mut table = vec_in_huge_pages(len);
        table.resize(len, 0);
        for (id, number) in ids.iter().zip(of_rank) {
            match pages.get((id / PAGE_IDS as u64) as usize) {
                Some(&NO_PAGE) => {}
                Some(place) => table[place + id as usize % PAGE_IDS] = *number,
                None => break,
            }
        }
        Self { ids, of_rank, pages, table }
    }

    /// Where the number of a vertex is: in the table, from which it is fetched into the cache, or,
    /// if it is not there, its number after the end of the table.
    #[inline]
    fn place(&self, id: u64) -> usize {
        match self.pages.get((id / PAGE_IDS as u64) as usize) {
            Some(&page) if page != NO_PAGE => {
                let place = page + id as usize % PAGE_IDS;
                prefetch(&self.table, place);
                place
            }
            _ => {
                let rank = self.ids.rank(id) as usize;
                self.table.len() + self.of_rank.get(rank).map_or(rank, |number| *number as usize)
            }
        }
    }

    /// The number at a place.
    #[inline]
    fn number(&self, place: usize) -> u32 {
        let number = self.table.get(place).copied();
        number.unwrap_or_else(|| (place - self.table.len()) as u32)
    }
}

/// Calls `take` with source, target and the bytes of the weight of every `step`-th edge of a part
/// of all.
fn for_each(
    options: IngestOptions,
    edges: &[Records; 2],
    part: (u64, u64),
    step: usize,
    mut take: impl FnMut(u64, u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let narrow = 8 + extra(options) as usize;
    edges[0].read_part(narrow, part, |bytes| {
        bytes.chunks_exact(narrow).step_by(step).try_for_each(|record| {
            let pair = u64_at(record, 0);
            take(pair & u64::from(u32::MAX), pair >> 32, &record[8..])
        })
    })?;
    let wide = narrow + 8;
    edges[1].read_part(wide, part, |bytes| {
        let mut records = bytes.chunks_exact(wide).step_by(step);
        records.try_for_each(|record| take(u64_at(record, 0), u64_at(record, 8), &record[16..]))
    })
}

/// About how many edges there are from and to each vertex, by rank.
pub(crate) fn degrees(
    options: IngestOptions,
    ids: &IdMap,
    edges: &[Records; 2],
    pool: &dyn Pool,
) -> io::Result<Vec<u32>> {
    let all = edges[0].len() / (8 + extra(options)) + edges[1].len() / (16 + extra(options));
    let step = if all < SAMPLED_FROM { 1 } else { SAMPLED };
    let threads = pool.threads().clamp(1, COUNTING_MAX);
    let mut counts: Vec<io::Result<Vec<u32>>> = Vec::new();
    counts.resize_with(threads, || Ok(Vec::new()));
    let jobs = counts.iter_mut().enumerate().map(|(thread, counts)| {
        Box::new(move || {
            let mut of_thread = vec![0_u32; ids.len() as usize];
            // What is in the sample does not depend on the number of threads.
            let read = (thread..COUNTED_PARTS).step_by(threads).try_for_each(|part| {
                let part = (part as u64, COUNTED_PARTS as u64);
                for_each(options, edges, part, step, |source, target, _| {
                    for id in [source, target] {
                        let count = &mut of_thread[ids.rank(id) as usize];
                        *count = count.saturating_add(1);
                    }
                    Ok(())
                })
            });
            *counts = read.map(|()| of_thread);
        }) as Job<'_>
    });
    pool.run(jobs.collect());
    let mut counts = counts.into_iter();
    let mut all = counts.next().expect("there is a part")?;
    for some in counts {
        all.iter_mut().zip(some?).for_each(|(all, some)| *all = all.saturating_add(some));
    }
    all.iter_mut().for_each(|count| *count = count.saturating_mul(step as u32));
    Ok(all)
}

/// Puts edges, with the numbers of the store, into the buckets of their targets and, in a second
/// set, of their sources. The order within a bucket depends on threads; sorting removes that.
pub(crate) fn distribute(
    options: IngestOptions,
    (numbers, edges): (&Numbers<'_>, &[Records; 2]),
    buckets: &Buckets,
    sets: Vec<Vec<Records>>,
    pool: &dyn Pool,
) -> io::Result<Vec<Vec<Records>>> {
    let two_sets = sets.len() > 1;
    let records: Vec<Mutex<Records>> = sets.into_iter().flatten().map(Mutex::new).collect();
    let parts = pool.threads().max(1);
    let mut done: Vec<io::Result<()>> = Vec::new();
    done.resize_with(parts, || Ok(()));
    let jobs = done.iter_mut().enumerate().map(|(part, done)| {
        let records = &records;
        Box::new(move || {
            let collected = vec![Vec::with_capacity(COLLECTED + 16); records.len()];
            let weight_bytes = extra(options) as usize;
            let mut thread = Thread {
                numbers,
                two_sets,
                buckets,
                records,
                collected,
                weight_bytes,
                pairs: Vec::with_capacity(TOGETHER),
                weights: Vec::with_capacity(TOGETHER * weight_bytes),
            };
            *done = thread.run(options, edges, (part as u64, parts as u64));
        }) as Job<'_>
    });
    pool.run(jobs.collect());
    done.into_iter().collect::<io::Result<()>>()?;
    let records = records.into_iter().map(|records| {
        let mut records = records.into_inner().expect("no thread panics in the lock");
        records.flush().map(|()| records)
    });
    let mut all = records.collect::<io::Result<Vec<Records>>>()?;
    let second = all.split_off(buckets.len());
    Ok(if two_sets { vec![all, second] } else { vec![all] })
}

/// A thread that distributes a part of the edges.
struct Thread<'a> {
    numbers: &'a Numbers<'a>,
    two_sets: bool,
    buckets: &'a Buckets,
    records: &'a [Mutex<Records>],
    collected: Vec<Vec<u8>>,
    weight_bytes: usize,
    /// Edges that are not in a bucket yet, by the places of the numbers of their vertices, and
    /// their weights.
    pairs: Vec<(usize, usize)>,
    weights: Vec<u8>,
}

impl Thread<'_> {
    fn run(
        &mut self,
        options: IngestOptions,
        edges: &[Records; 2],
        part: (u64, u64),
    ) -> io::Result<()> {
        for_each(options, edges, part, 1, |source, target, weight| {
            self.pairs.push((self.numbers.place(source), self.numbers.place(target)));
            if !weight.is_empty() {
                self.weights.extend_from_slice(weight);
            }
            if self.pairs.len() == TOGETHER { self.put_pairs() } else { Ok(()) }
        })?;
        self.put_pairs()?;
        (0..self.records.len()).try_for_each(|bucket| self.flush(bucket))
    }

    fn put_pairs(&mut self) -> io::Result<()> {
        let (mut pairs, mut weights) =
            (std::mem::take(&mut self.pairs), std::mem::take(&mut self.weights));
        for (at, (source, target)) in pairs.iter().copied().enumerate() {
            let (source, target) = (self.numbers.number(source), self.numbers.number(target));
            let weight = &weights[at * self.weight_bytes..(at + 1) * self.weight_bytes];
            self.put(0, target, source, weight)?;
            if self.two_sets {
                self.put(self.buckets.len(), source, target, weight)?;
            } else if source != target {
                self.put(0, source, target, weight)?;
            }
        }
        pairs.clear();
        weights.clear();
        (self.pairs, self.weights) = (pairs, weights);
        Ok(())
    }

    #[inline]
    fn put(&mut self, set: usize, key: u32, other: u32, weight: &[u8]) -> io::Result<()> {
        let bucket = set + self.buckets.of(key);
        let collected = &mut self.collected[bucket];
        let record = u64::from(key) << 32 | u64::from(other);
        collected.extend_from_slice(&record.to_le_bytes());
        if !weight.is_empty() {
            collected.extend_from_slice(weight);
        }
        if collected.len() >= COLLECTED { self.flush(bucket) } else { Ok(()) }
    }

    fn flush(&mut self, bucket: usize) -> io::Result<()> {
        let collected = &mut self.collected[bucket];
        let appended =
            self.records[bucket].lock().expect("no thread panics in the lock").append(collected);
        collected.clear();
        appended
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use super::*;

    #[test]
    fn a_random_vertex_is_in_the_bucket_that_has_it() {
        for seed in prism_testkit::seeds(0..50) {
            let mut rng = Rng::stream(seed, "buckets");
            let vertices = 1 + rng.below(200_000) as u32;
            let mut starts: Vec<u32> =
                (0..rng.below(40)).map(|_| rng.below(vertices.into()) as u32).collect();
            starts.push(0);
            starts.sort_unstable();
            starts.dedup();
            let buckets = Buckets::new(starts, vertices);
            assert_eq!(buckets.range(buckets.len() - 1).end, vertices);
            for bucket in 0..buckets.len() {
                let range = buckets.range(bucket);
                for vertex in [range.start, range.end - 1, range.start + range.len() as u32 / 2] {
                    assert_eq!(buckets.of(vertex), bucket, "{vertex}");
                }
            }
        }
    }
}
