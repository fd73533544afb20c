//! Neighbours of consecutive vertices, cut into segments.

use crate::bits;
use crate::segment::{HEADER_BYTES, Header, Kind};

/// Collects the neighbours of vertices until they fill a segment. A segment ends between two
/// vertices; only the neighbours of a vertex that has more than fit are in several, with no other
/// vertex in these.
#[derive(Debug)]
pub struct SegmentBuilder {
    kind: Kind,
    capacity: usize,
    weighted: bool,
    first: u32,
    degrees: Vec<u8>,
    vertices: u32,
    neighbours: Vec<u32>,
    weights: Vec<f64>,
    least: u32,
    most: u32,
}

/// A segment that is full.
#[derive(Debug)]
pub struct Built {
    /// Its header, without generation.
    pub header: Header,
    /// What follows.
    pub payload: Vec<u8>,
    /// Whether it has some of the neighbours of one vertex, of which others follow or precede.
    pub part: bool,
}

/// Bytes of a segment of which the parts have these sizes.
fn size(degrees: usize, edges: usize, least: u32, most: u32, weighted: bool) -> usize {
    let bits = bits::width(most.saturating_sub(least));
    let weights = if weighted { edges * 8 } else { 0 };
    HEADER_BYTES + degrees + bits::packed_bytes(edges, bits) + weights
}

impl SegmentBuilder {
    /// For segments of `capacity` bytes, from `first` on.
    #[must_use]
    pub fn new(kind: Kind, capacity: usize, weighted: bool, first: u32) -> Self {
        Self {
            kind,
            capacity,
            weighted,
            first,
            degrees: Vec::new(),
            vertices: 0,
            neighbours: Vec::new(),
            weights: Vec::new(),
            least: u32::MAX,
            most: 0,
        }
    }

    /// Adds the next vertex; `weights` is as long as `neighbours` if the graph has weights. Full
    /// segments are passed to `full`.
    pub fn add(&mut self, neighbours: &[u32], weights: &[f64], full: &mut impl FnMut(Built)) {
        let (least, most) = match (neighbours.first(), neighbours.last()) {
            (Some(least), Some(most)) => (self.least.min(*least), self.most.max(*most)),
            _ => (self.least, self.most),
        };
        let degrees = self.degrees.len() + bits::varint_bytes(neighbours.len() as u64);
        let edges = self.neighbours.len() + neighbours.len();
        if size(degrees, edges, least, most, self.weighted) > self.capacity && self.vertices > 0 {
            self.flush(full);
        }
        if size(10, neighbours.len(), 0, u32::MAX, self.weighted) > self.capacity {
            return self.add_in_parts(neighbours, weights, full);
        }
        self.push(neighbours, weights);
    }

    fn push(&mut self, neighbours: &[u32], weights: &[f64]) {
        bits::put_varint(neighbours.len() as u64, &mut self.degrees);
        self.neighbours.extend_from_slice(neighbours);
        if self.weighted {
            self.weights.extend_from_slice(weights);
        }
        if let (Some(least), Some(most)) = (neighbours.first(), neighbours.last()) {
            (self.least, self.most) = (self.least.min(*least), self.most.max(*most));
        }
        self.vertices += 1;
    }

    fn add_in_parts(&mut self, neighbours: &[u32], weights: &[f64], full: &mut impl FnMut(Built)) {
        if self.vertices > 0 {
            self.flush(full);
        }
        let per_edge = if self.weighted { 12 } else { 4 };
        let most = (self.capacity - HEADER_BYTES - bits::PADDING - 10) / per_edge;
        let vertex = self.first;
        for (at, part) in neighbours.chunks(most).enumerate() {
            let weights = weights.chunks(most).nth(at).unwrap_or(&[]);
            self.first = vertex;
            self.push(part, weights);
            self.flush(&mut |built| full(Built { part: neighbours.len() > most, ..built }));
        }
        self.first = vertex + 1;
    }

    /// Ends the segment, if it has a vertex.
    pub fn flush(&mut self, full: &mut impl FnMut(Built)) {
        if self.vertices == 0 {
            return;
        }
        let base = if self.neighbours.is_empty() { 0 } else { self.least };
        let width = bits::width(self.most.saturating_sub(base));
        // The exact value of each weight is kept; most are as exact in half the bytes.
        let narrow = self.weights.iter().all(|weight| f64::from(*weight as f32) == *weight);
        let header = Header {
            kind: self.kind,
            payload: 0,
            generation: 0,
            first: self.first,
            vertices: self.vertices,
            edges: self.neighbours.len() as u32,
            base,
            bits: width as u8,
            weight_bytes: if !self.weighted {
                0
            } else if narrow {
                4
            } else {
                8
            },
            degree_bytes: self.degrees.len() as u32,
        };
        let mut payload = std::mem::take(&mut self.degrees);
        bits::pack(&self.neighbours, base, width, &mut payload);
        for weight in &self.weights {
            match header.weight_bytes {
                4 => payload.extend_from_slice(&(*weight as f32).to_le_bytes()),
                _ => payload.extend_from_slice(&weight.to_le_bytes()),
            }
        }
        self.first += self.vertices;
        self.vertices = 0;
        self.neighbours.clear();
        self.weights.clear();
        (self.least, self.most) = (u32::MAX, 0);
        full(Built { header, payload, part: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Adjacency;

    fn check(capacity: usize, weighted: bool, lists: &[Vec<u32>]) {
        let mut built = Vec::new();
        let mut builder = SegmentBuilder::new(Kind::In, capacity, weighted, 5);
        for list in lists {
            let weights: Vec<f64> = list.iter().map(|n| f64::from(*n) * 0.1).collect();
            builder.add(list, &weights, &mut |segment| built.push(segment));
        }
        builder.flush(&mut |segment| built.push(segment));
        let mut read = vec![Vec::new(); lists.len()];
        for segment in &built {
            let mut bytes = segment.header.encode(&segment.payload).to_vec();
            bytes.extend_from_slice(&segment.payload);
            assert!(bytes.len() <= capacity, "{} of {capacity}", bytes.len());
            assert!(Header::open(&bytes).is_some());
            let adjacency = Adjacency::new(&bytes).expect("as written");
            assert!(!segment.part || adjacency.header().vertices == 1);
            assert!(adjacency.for_each(|vertex, neighbours| {
                for (neighbour, weight) in neighbours.weighted() {
                    let expected = if weighted { f64::from(neighbour) * 0.1 } else { 1.0 };
                    assert_eq!(weight, expected);
                    read[vertex as usize - 5].push(neighbour);
                }
            }));
        }
        assert_eq!(read, lists);
    }

    #[test]
    fn segments_hold_what_was_added() {
        let list = |n: u32, step: u32| (0..n).map(|i| i * step).collect::<Vec<_>>();
        for capacity in [256, 1000, 1 << 16] {
            for weighted in [false, true] {
                check(capacity, weighted, &[]);
                check(capacity, weighted, &[vec![]]);
                check(capacity, weighted, &[vec![9], vec![], vec![u32::MAX]]);
                check(capacity, weighted, &[list(1000, 7), list(3, 1), list(2000, 100)]);
                check(capacity, weighted, &(0..500).map(|n| list(n % 9, n)).collect::<Vec<_>>());
            }
        }
    }

    /// A flipped bit is found by the hash.
    #[test]
    fn a_damaged_segment_is_not_opened() {
        let header = Header::plain(Kind::Values, 0, 3);
        let mut bytes = header.encode(b"payload").to_vec();
        bytes.extend_from_slice(b"payload");
        assert_eq!(Header::open(&bytes).expect("whole").1, b"payload");
        for at in 0..bytes.len() {
            bytes[at] ^= 4;
            assert!(Header::open(&bytes).is_none(), "byte {at}");
            bytes[at] ^= 4;
        }
        assert!(Header::open(&bytes[..70]).is_none());
    }
}
