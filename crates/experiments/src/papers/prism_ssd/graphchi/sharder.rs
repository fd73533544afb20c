//! From edges to shards, as GraphChi's sharder: runs sorted by destination, their merge, and shards
//! sorted by source.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use prism_base::Nanos;
use prism_flash::FlashError;

use super::volume::{File, Pages, Space, Volume};
use super::{Config, Shard, Sharded};

/// Bytes of an edge in a run: source, destination and value.
const RECORD: usize = 12;
/// The count of edges after which there are four bytes more.
const LONG: u8 = 0xff;
/// Vertices without edges that are counted together, after the first, at most.
const ZEROS: u32 = 0xfe;

/// Reads edges and makes shards of them. Edges from a vertex to itself are left out.
///
/// # Errors
/// [`FlashError`] if the device fails or is full.
pub(in super::super) fn shard(
    volume: &mut Volume,
    vertices: u32,
    edges: impl Iterator<Item = [u32; 2]>,
    config: &Config,
) -> Result<Sharded, FlashError> {
    let mut degrees = vec![[0_u32; 2]; vertices as usize];
    let most = (config.memory / 4 / RECORD as u64).max(1) as usize;
    let (mut run, mut runs) = (Vec::new(), Vec::new());
    for [source, target] in edges {
        degrees[source as usize][1] += 1;
        degrees[target as usize][0] += 1;
        if source == target {
            degrees[source as usize] = degrees[source as usize].map(|degree| degree - 1);
            continue;
        }
        run.push([target, source]);
        if run.len() == most {
            runs.push(write_run(volume, &mut run, config)?);
        }
    }
    if !run.is_empty() {
        runs.push(write_run(volume, &mut run, config)?);
    }
    let bounds = bounds(&degrees, config.shards);
    volume.wait_for_writes()?;
    let shards = merge(volume, runs, &bounds, config)?;
    let of_degrees: Vec<u8> =
        degrees.iter().flatten().flat_map(|degree| degree.to_le_bytes()).collect();
    let degrees = volume.create(Space::Shards, &of_degrees)?;
    let values = volume.create(Space::Results, &vec![0; vertices as usize * 4])?;
    volume.sync()?;
    Ok(Sharded { bounds, shards, degrees, values })
}

fn write_run(
    volume: &mut Volume,
    run: &mut Vec<[u32; 2]>,
    config: &Config,
) -> Result<File, FlashError> {
    volume.pass(config.cpu.of(config.cpu.parse, run.len() as u64));
    run.sort_unstable();
    let mut bytes = Vec::with_capacity(run.len() * RECORD);
    for [target, source] in run.drain(..) {
        for word in [source, target, 0] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    volume.create(Space::Shards, &bytes)
}

/// Where intervals of destinations begin, and the end: each has about as many edges.
fn bounds(degrees: &[[u32; 2]], shards: u32) -> Vec<u32> {
    let edges: u64 = degrees.iter().map(|[to, _]| u64::from(*to)).sum();
    let each = edges / u64::from(shards) + 1;
    let (mut bounds, mut sum) = (vec![0], 0);
    for (vertex, [to, _]) in (0..).zip(degrees) {
        sum += u64::from(*to);
        if sum >= each && (bounds.len() as u32) < shards {
            bounds.push(vertex + 1);
            sum = 0;
        }
    }
    bounds.resize(shards as usize + 1, degrees.len() as u32);
    bounds
}

/// A run that is read in pieces.
struct Run {
    file: File,
    next: u64,
    piece: Pages,
    at: usize,
}

impl Run {
    /// The next edge as target and source.
    fn next(&mut self, volume: &mut Volume, most: u64) -> Result<Option<[u32; 2]>, FlashError> {
        if self.at == self.piece.content().len() {
            let end = (self.next + most).min(self.file.bytes());
            if self.next == end {
                return Ok(None);
            }
            let mut read = volume.read(&[(&self.file, self.next..end)])?;
            (self.piece, self.at, self.next) = (read.remove(0), 0, end);
        }
        let record = &self.piece.content()[self.at..self.at + RECORD];
        self.at += RECORD;
        Ok(Some([4, 0].map(|at| word(record, at))))
    }
}

/// The number at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Merges runs by destination, and writes the shard of each interval.
fn merge(
    volume: &mut Volume,
    files: Vec<File>,
    bounds: &[u32],
    config: &Config,
) -> Result<Vec<Shard>, FlashError> {
    // As much memory as a run, in whole records and pages.
    let piece = config.memory / 4 / files.len().max(1) as u64;
    let piece = piece.next_multiple_of(volume.page() * 3);
    let run = |file| Run { file, next: 0, piece: Pages::default(), at: 0 };
    let mut runs: Vec<Run> = files.into_iter().map(run).collect();
    let mut heap = BinaryHeap::new();
    for (number, run) in runs.iter_mut().enumerate() {
        heap.extend(run.next(volume, piece)?.map(|edge| Reverse((edge, number))));
    }
    let mut shards = Vec::new();
    let mut edges: Vec<[u32; 2]> = Vec::new();
    for interval in bounds.windows(2) {
        while let Some(&Reverse(([target, source], number))) = heap.peek()
            && target < interval[1]
        {
            edges.push([source, target]);
            heap.pop();
            heap.extend(runs[number].next(volume, piece)?.map(|edge| Reverse((edge, number))));
        }
        shards.push(write_shard(volume, &mut edges, bounds, config)?);
    }
    volume.wait_for_writes()?;
    runs.into_iter().try_for_each(|run| volume.remove(run.file))?;
    Ok(shards)
}

fn write_shard(
    volume: &mut Volume,
    edges: &mut Vec<[u32; 2]>,
    bounds: &[u32],
    config: &Config,
) -> Result<Shard, FlashError> {
    volume.pass(config.cpu.of(config.cpu.shard, edges.len() as u64));
    edges.sort_unstable();
    let (bytes, begins) = encode(edges, bounds);
    let adjacency = volume.create(Space::Shards, &bytes)?;
    let values = volume.create(config.edge_values, &vec![0; edges.len() * 4])?;
    let count = edges.len() as u64;
    edges.clear();
    Ok(Shard { adjacency, values, begins, edges: count })
}

/// Edges sorted by source as bytes, and where those of the sources of each interval begin: the byte
/// and the edge.
fn encode(edges: &[[u32; 2]], bounds: &[u32]) -> (Vec<u8>, Vec<(u64, u64)>) {
    let (mut bytes, mut begins, mut edge) = (Vec::with_capacity(edges.len() * 5), Vec::new(), 0);
    for interval in bounds.windows(2) {
        begins.push((bytes.len() as u64, edge as u64));
        let mut zeros = 0;
        for source in interval[0]..interval[1] {
            let count = edges[edge..].iter().take_while(|one| one[0] == source).count();
            if count == 0 {
                zeros += 1;
                continue;
            }
            put_zeros(&mut bytes, std::mem::take(&mut zeros));
            match u8::try_from(count) {
                Ok(short) if short < LONG => bytes.push(short),
                _ => {
                    bytes.push(LONG);
                    bytes.extend_from_slice(&(count as u32).to_le_bytes());
                }
            }
            for [_, target] in &edges[edge..edge + count] {
                bytes.extend_from_slice(&target.to_le_bytes());
            }
            edge += count;
        }
        put_zeros(&mut bytes, zeros);
    }
    begins.push((bytes.len() as u64, edge as u64));
    (bytes, begins)
}

/// Vertices without edges: a zero, and how many follow it.
fn put_zeros(bytes: &mut Vec<u8>, mut zeros: u32) {
    while zeros > 0 {
        let more = (zeros - 1).min(ZEROS);
        bytes.extend_from_slice(&[0, more as u8]);
        zeros -= more + 1;
    }
}

/// Calls `take` with each of `sources` that has edges, and the bytes of its destinations.
pub(super) fn decode(bytes: &[u8], sources: Range<u32>, mut take: impl FnMut(u32, &[u8])) {
    let (mut at, mut source) = (0, sources.start);
    while source < sources.end {
        let count = match bytes[at] {
            0 => {
                source += u32::from(bytes[at + 1]) + 1;
                at += 2;
                continue;
            }
            LONG => {
                at += 5;
                word(bytes, at - 4)
            }
            short => {
                at += 1;
                short.into()
            }
        };
        let end = at + count as usize * 4;
        take(source, &bytes[at..end]);
        (at, source) = (end, source + 1);
    }
}

/// Nanoseconds of CPU time for each edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Cpu {
    /// Reading it from text.
    pub(in super::super) parse: f64,
    /// Putting it into a shard.
    pub(in super::super) shard: f64,
    /// An iteration.
    pub(in super::super) iterate: f64,
}

impl Cpu {
    /// The time of this many edges.
    pub(super) fn of(self, each: f64, edges: u64) -> Nanos {
        Nanos((each * edges as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut edges: Vec<[u32; 2]> = (0..600).map(|n| [7, n]).collect();
        edges.extend((0..255).map(|n| [8, n]));
        edges.extend((0..254).map(|n| [600, n]));
        edges.push([999, 1]);
        for bounds in [vec![0, 1000], vec![0, 7, 8, 300, 600, 1000], vec![0, 1000, 1000]] {
            let (bytes, begins) = encode(&edges, &bounds);
            let mut found = Vec::new();
            for (interval, at) in bounds.windows(2).zip(begins.windows(2)) {
                let part = &bytes[at[0].0 as usize..at[1].0 as usize];
                let before = found.len() as u64;
                decode(part, interval[0]..interval[1], |source, targets| {
                    found.extend(targets.chunks(4).map(|target| [source, word(target, 0)]));
                });
                assert_eq!((before, found.len() as u64), (at[0].1, at[1].1));
            }
            assert_eq!(found, edges);
        }
        // A source of more than 254 edges has four bytes more, 400 vertices without take 4.
        let (bytes, _) = encode(&edges, &[0, 1000]);
        let zeros = 2 + 2 * 591_usize.div_ceil(255) + 2 * 398_usize.div_ceil(255);
        assert_eq!(bytes.len(), 4 * edges.len() + 5 + 5 + 1 + 1 + zeros);
    }

    #[test]
    fn intervals_have_as_many_edges() {
        let degrees = vec![[2, 0]; 30];
        assert_eq!(bounds(&degrees, 3), [0, 11, 22, 30]);
        assert_eq!(bounds(&[[5, 5]], 3), [0, 1, 1, 1], "more intervals than vertices");
    }
}
