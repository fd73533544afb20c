//! Edges in any order go to buckets of consecutive vertices, on several threads.

use std::io;
use std::sync::Mutex;

use crate::ids::IdMap;
use crate::ingest::{IngestOptions, extra};
use crate::pool::{Job, Pool};
use crate::scratch::{Records, u64_at};

/// Bytes for a bucket that a thread collects before it locks the bucket.
const COLLECTED: usize = 4 << 10;

/// Puts edges, with dense numbers, into the buckets of their targets and, in a second set, of their
/// sources. The order within a bucket depends on threads; sorting removes that.
pub(crate) fn distribute(
    options: IngestOptions,
    (ids, edges): (&IdMap, &[Records; 2]),
    width: u32,
    sets: Vec<Vec<Records>>,
    pool: &dyn Pool,
) -> io::Result<Vec<Vec<Records>>> {
    let per_set = sets.first().map_or(0, Vec::len);
    let two_sets = sets.len() > 1;
    let buckets: Vec<Mutex<Records>> = sets.into_iter().flatten().map(Mutex::new).collect();
    let parts = pool.threads().max(1);
    let mut done: Vec<io::Result<()>> = Vec::new();
    done.resize_with(parts, || Ok(()));
    let jobs = done.iter_mut().enumerate().map(|(part, done)| {
        let buckets = &buckets;
        Box::new(move || {
            let collected = vec![Vec::with_capacity(COLLECTED + 16); buckets.len()];
            let mut thread = Thread { ids, width, two_sets, per_set, buckets, collected };
            *done = thread.run(options, edges, (part as u64, parts as u64));
        }) as Job<'_>
    });
    pool.run(jobs.collect());
    done.into_iter().collect::<io::Result<()>>()?;
    let buckets = buckets.into_iter().map(|bucket| {
        let mut bucket = bucket.into_inner().expect("no thread panics in the lock");
        bucket.flush().map(|()| bucket)
    });
    let mut all = buckets.collect::<io::Result<Vec<Records>>>()?;
    let second = all.split_off(per_set);
    Ok(if two_sets { vec![all, second] } else { vec![all] })
}

/// A thread that distributes a part of the edges.
struct Thread<'a> {
    ids: &'a IdMap,
    width: u32,
    two_sets: bool,
    per_set: usize,
    buckets: &'a [Mutex<Records>],
    collected: Vec<Vec<u8>>,
}

impl Thread<'_> {
    fn run(
        &mut self,
        options: IngestOptions,
        edges: &[Records; 2],
        part: (u64, u64),
    ) -> io::Result<()> {
        let narrow = 8 + extra(options) as usize;
        edges[0].read_part(narrow, part, |bytes| {
            bytes.chunks_exact(narrow).try_for_each(|record| {
                let pair = u64_at(record, 0);
                self.edge(pair & u64::from(u32::MAX), pair >> 32, &record[8..])
            })
        })?;
        let wide = narrow + 8;
        edges[1].read_part(wide, part, |bytes| {
            bytes.chunks_exact(wide).try_for_each(|record| {
                self.edge(u64_at(record, 0), u64_at(record, 8), &record[16..])
            })
        })?;
        (0..self.buckets.len()).try_for_each(|bucket| self.flush(bucket))
    }

    #[inline]
    fn edge(&mut self, source: u64, target: u64, weight: &[u8]) -> io::Result<()> {
        let (source, target) = (self.ids.dense(source) as u32, self.ids.dense(target) as u32);
        self.put(0, target, source, weight)?;
        if self.two_sets {
            self.put(self.per_set, source, target, weight)
        } else if source == target {
            Ok(())
        } else {
            self.put(0, source, target, weight)
        }
    }

    #[inline]
    fn put(&mut self, set: usize, key: u32, other: u32, weight: &[u8]) -> io::Result<()> {
        let bucket = set + (key / self.width) as usize;
        let collected = &mut self.collected[bucket];
        let record = u64::from(key) << 32 | u64::from(other);
        collected.extend_from_slice(&record.to_le_bytes());
        collected.extend_from_slice(weight);
        if collected.len() >= COLLECTED { self.flush(bucket) } else { Ok(()) }
    }

    fn flush(&mut self, bucket: usize) -> io::Result<()> {
        let collected = &mut self.collected[bucket];
        let appended =
            self.buckets[bucket].lock().expect("no thread panics in the lock").append(collected);
        collected.clear();
        appended
    }
}
