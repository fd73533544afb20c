//! The edges of a bucket, sorted by counting and within each list.

use std::io;

use prism_base::vec_in_huge_pages;

use crate::ingest::{IngestOptions, Keep};
use crate::scratch::{Records, u64_at};

/// Edges of consecutive vertices, in any order.
pub(crate) struct Bucket<'a> {
    pub(crate) records: &'a Records,
    pub(crate) first: u32,
    pub(crate) vertices: u32,
    pub(crate) options: IngestOptions,
}

/// The lists of a bucket's vertices, one after another, each in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) degrees: Vec<u32>,
    pub(crate) neighbours: Vec<u32>,
    /// As long as the neighbours, or empty.
    pub(crate) weights: Vec<f64>,
    pub(crate) loops: u64,
    pub(crate) duplicates: u64,
}

/// Memory of a thread that sorts, which one bucket after another uses.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    records: Vec<u64>,
    ends: Vec<u32>,
}

impl Sorter {
    /// The sorted lists of a bucket, in the memory of `sorted`.
    pub(crate) fn sort(&mut self, bucket: &Bucket<'_>, mut sorted: Sorted) -> io::Result<Sorted> {
        self.ends.clear();
        self.ends.resize(bucket.vertices as usize + 1, 0);
        (sorted.loops, sorted.duplicates) = (0, 0);
        sorted.weights.clear();
        match bucket.options.weighted {
            true => self.sort_weighted(bucket, &mut sorted)?,
            false => self.sort_plain(bucket, &mut sorted)?,
        }
        // Each begin has moved to the end of its list.
        bucket.tidy(&self.ends, &mut sorted);
        Ok(sorted)
    }

    /// Puts edges into the lists of their vertices by counting, and sorts each list.
    fn sort_plain(&mut self, bucket: &Bucket<'_>, sorted: &mut Sorted) -> io::Result<()> {
        let Self { records, ends } = self;
        let count = (bucket.records.len() / 8) as usize;
        let neighbours = &mut sorted.neighbours;
        records.clear();
        neighbours.clear();
        if records.capacity() < count {
            *records = vec_in_huge_pages(count);
        }
        if neighbours.capacity() < count {
            *neighbours = vec_in_huge_pages(count);
        }
        bucket.records.read(8, |bytes| {
            records.extend(bytes.chunks_exact(8).map(|bytes| {
                let record = u64_at(bytes, 0);
                ends[bucket.place(record) + 1] += 1;
                record
            }));
            Ok(())
        })?;
        begins(ends);
        neighbours.resize(count, 0);
        for record in &*records {
            let next = &mut ends[bucket.place(*record)];
            neighbours[*next as usize] = *record as u32;
            *next += 1;
        }
        let mut from = 0;
        for to in &ends[..bucket.vertices as usize] {
            neighbours[from..*to as usize].sort_unstable();
            from = *to as usize;
        }
        Ok(())
    }

    /// The same, with weights: of the same neighbours the one with the smallest weight is first.
    fn sort_weighted(&mut self, bucket: &Bucket<'_>, sorted: &mut Sorted) -> io::Result<()> {
        let ends = &mut self.ends;
        bucket.records.read(16, |bytes| {
            let keys = bytes.chunks_exact(16).map(|bytes| u64_at(bytes, 0));
            keys.for_each(|key| ends[bucket.place(key) + 1] += 1);
            Ok(())
        })?;
        begins(ends);
        let count = (bucket.records.len() / 16) as usize;
        let Sorted { neighbours, weights, .. } = sorted;
        neighbours.clear();
        neighbours.resize(count, 0);
        weights.resize(count, 0.0);
        bucket.records.read(16, |bytes| {
            for bytes in bytes.chunks_exact(16) {
                let key = u64_at(bytes, 0);
                let next = &mut ends[bucket.place(key)];
                neighbours[*next as usize] = key as u32;
                weights[*next as usize] = f64::from_bits(u64_at(bytes, 8));
                *next += 1;
            }
            Ok(())
        })?;
        let (mut from, mut pairs) = (0, Vec::new());
        for to in &ends[..bucket.vertices as usize] {
            let list = from..*to as usize;
            pairs.clear();
            pairs.extend(list.clone().map(|at| (neighbours[at], weights[at])));
            pairs.sort_unstable_by(|a: &(u32, f64), b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            for (at, (neighbour, weight)) in list.zip(&pairs) {
                (neighbours[at], weights[at]) = (*neighbour, *weight);
            }
            from = *to as usize;
        }
        Ok(())
    }
}

/// Makes counts, each in the cell after its own, the sums of those before.
fn begins(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
}

impl Bucket<'_> {
    /// Which of the bucket's vertices the edge with this key is of.
    #[inline]
    fn place(&self, key: u64) -> usize {
        (key >> 32) as usize - self.first as usize
    }

    /// Counts loops, and leaves out duplicates, in sorted lists with these ends.
    fn tidy(&self, ends: &[u32], sorted: &mut Sorted) {
        let Sorted { degrees, neighbours, weights, loops, duplicates } = sorted;
        degrees.clear();
        degrees.reserve(self.vertices as usize);
        let (mut from, mut kept) = (0, 0);
        for (to, vertex) in ends[..self.vertices as usize].iter().zip(self.first..) {
            let list = from..*to as usize;
            from = list.end;
            if self.options.duplicates == Keep::Keep {
                let same = neighbours[list.clone()].iter().filter(|other| **other == vertex);
                *loops += same.count() as u64;
                degrees.push(list.len() as u32);
                continue;
            }
            let begin = kept;
            for at in list {
                let neighbour = neighbours[at];
                if kept > begin && neighbours[kept - 1] == neighbour {
                    // An undirected edge is in two lists, a loop in one.
                    let is_loop = neighbour == vertex && !self.options.directed;
                    *duplicates += 1 + u64::from(is_loop);
                    continue;
                }
                *loops += u64::from(neighbour == vertex);
                neighbours[kept] = neighbour;
                if self.options.weighted {
                    weights[kept] = weights[at];
                }
                kept += 1;
            }
            degrees.push((kept - begin) as u32);
        }
        if self.options.duplicates == Keep::Drop {
            neighbours.truncate(kept);
            weights.truncate(kept);
        }
    }
}
