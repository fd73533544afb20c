//! The edges of a bucket, sorted by counting.

use std::io;

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

impl Bucket<'_> {
    /// The sorted lists.
    pub(crate) fn sort(&self) -> io::Result<Sorted> {
        let record = if self.options.weighted { 16 } else { 8 };
        let mut ends = vec![0_u32; self.vertices as usize + 1];
        let place = |key: u64| (key >> 32) as usize - self.first as usize;
        self.records.read(record, |bytes| {
            bytes.chunks_exact(record).for_each(|bytes| ends[place(u64_at(bytes, 0)) + 1] += 1);
            Ok(())
        })?;
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let count = ends[self.vertices as usize] as usize;
        let mut neighbours = vec![0_u32; count];
        let mut weights = vec![0.0; if self.options.weighted { count } else { 0 }];
        // Each begin moves to the end of its list.
        let mut next = ends.clone();
        self.records.read(record, |bytes| {
            for bytes in bytes.chunks_exact(record) {
                let key = u64_at(bytes, 0);
                let at = &mut next[place(key)];
                neighbours[*at as usize] = key as u32;
                if record == 16 {
                    weights[*at as usize] = f64::from_bits(u64_at(bytes, 8));
                }
                *at += 1;
            }
            Ok(())
        })?;
        Ok(self.lists(&ends, neighbours, weights))
    }

    /// Sorts each list and leaves out duplicates.
    fn lists(&self, ends: &[u32], mut neighbours: Vec<u32>, mut weights: Vec<f64>) -> Sorted {
        let mut sorted = Sorted::default();
        sorted.degrees.reserve(self.vertices as usize);
        let (mut kept, mut pairs) = (0, Vec::new());
        for at in 0..self.vertices as usize {
            let list = ends[at] as usize..ends[at + 1] as usize;
            let vertex = self.first + at as u32;
            if self.options.weighted {
                pairs.clear();
                pairs.extend(list.clone().map(|at| (neighbours[at], weights[at])));
                pairs.sort_unstable_by(|a: &(u32, f64), b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
                for (at, (neighbour, weight)) in list.clone().zip(&pairs) {
                    (neighbours[at], weights[at]) = (*neighbour, *weight);
                }
            } else {
                neighbours[list.clone()].sort_unstable();
            }
            let begin = kept;
            for at in list {
                let neighbour = neighbours[at];
                let again = kept > begin && neighbours[kept - 1] == neighbour;
                if again && self.options.duplicates == Keep::Drop {
                    // An undirected edge is in two lists, a loop in one.
                    let is_loop = neighbour == vertex && !self.options.directed;
                    sorted.duplicates += 1 + u64::from(is_loop);
                    continue;
                }
                sorted.loops += u64::from(neighbour == vertex);
                neighbours[kept] = neighbour;
                if self.options.weighted {
                    weights[kept] = weights[at];
                }
                kept += 1;
            }
            sorted.degrees.push((kept - begin) as u32);
        }
        neighbours.truncate(kept);
        weights.truncate(kept);
        Sorted { neighbours, weights, ..sorted }
    }
}
