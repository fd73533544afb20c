//! A segment: one flash block that describes itself.
//!
//! A header of 64 bytes has the kind, the length and a hash of what follows, and for neighbours the
//! vertices that the segment is about. Neighbours are three parts: the degree of each vertex, the
//! neighbours of all vertices, their weights.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use crate::bits;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"PRGRAPH1";

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// The catalog of a space, and which segments belong to it.
    Root = 1,
    /// The sources of the edges to each vertex.
    In = 2,
    /// The targets of the edges from each vertex.
    Out = 3,
    /// The numbers of edges to and from each vertex.
    Degrees = 4,
    /// The numbers that vertices have in the input.
    Ids = 5,
    /// Values of vertices.
    Values = 6,
    /// The group of each vertex, a byte, if the vertices are in the order of degrees.
    Groups = 7,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Root, Self::In, Self::Out, Self::Degrees, Self::Ids, Self::Values, Self::Groups];

    /// The kind with this number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it holds.
    pub kind: Kind,
    /// Bytes after the header.
    pub payload: u32,
    /// The generation of its space when it was written.
    pub generation: u64,
    /// The first vertex.
    pub first: u32,
    /// The number of vertices.
    pub vertices: u32,
    /// The number of neighbours.
    pub edges: u32,
    /// What is subtracted from each neighbour.
    pub base: u32,
    /// Bits of a neighbour.
    pub bits: u8,
    /// Bytes of a weight: 0 for none, 4 or 8.
    pub weight_bytes: u8,
    /// Bytes of the degrees.
    pub degree_bytes: u32,
}

impl Header {
    /// That of something else than neighbours.
    #[must_use]
    pub fn plain(kind: Kind, first: u32, vertices: u32) -> Self {
        Self {
            kind,
            payload: 0,
            generation: 0,
            first,
            vertices,
            edges: 0,
            base: 0,
            bits: 0,
            weight_bytes: 0,
            degree_bytes: 0,
        }
    }

    /// The header as bytes, with the hash of `payload`.
    #[must_use]
    pub fn encode(&self, payload: &[u8]) -> [u8; HEADER_BYTES] {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        for number in [self.kind as u32, payload.len() as u32] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.generation.to_le_bytes());
        for number in [self.first, self.vertices, self.edges, self.base] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&[self.bits, self.weight_bytes, 0, 0]);
        out.extend_from_slice(&self.degree_bytes.to_le_bytes());
        out.extend_from_slice(&XxHash3_64::oneshot(payload).to_le_bytes());
        let hash = XxHash3_64::oneshot(&out);
        out.extend_from_slice(&hash.to_le_bytes());
        out.try_into().expect("the fields are 64 bytes")
    }

    /// The header at the beginning of `bytes`; `None` if there is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        if bytes[..8] != MAGIC || u64_at(56) != XxHash3_64::oneshot(&bytes[..56]) {
            return None;
        }
        Some(Self {
            kind: Kind::of(u32_at(8))?,
            payload: u32_at(12),
            generation: u64_at(16),
            first: u32_at(24),
            vertices: u32_at(28),
            edges: u32_at(32),
            base: u32_at(36),
            bits: bytes[40],
            weight_bytes: bytes[41],
            degree_bytes: u32_at(44),
        })
    }

    /// The hash of the payload, in the bytes of a header.
    pub(crate) fn hash(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes[48..56].try_into().expect("eight"))
    }

    /// The header and what follows it, if both are as they were written.
    #[must_use]
    pub fn open(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let header = Self::decode(bytes)?;
        let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + header.payload as usize)?;
        let hash = Self::hash(bytes);
        (hash == XxHash3_64::oneshot(payload)).then_some((header, payload))
    }
}

/// The neighbours of consecutive vertices.
#[derive(Clone, Copy, Debug)]
pub struct Adjacency<'a> {
    header: Header,
    degrees: &'a [u8],
    packed: &'a [u8],
    weights: &'a [u8],
}

/// Whether a slice of the neighbours of a vertex is its last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    Last,
    Other,
}

/// The neighbours of one vertex.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<'a> {
    packed: &'a [u8],
    weights: &'a [u8],
    weight_bytes: u8,
    base: u32,
    bits: u32,
    from: usize,
    to: usize,
}

impl<'a> Adjacency<'a> {
    /// Whether these are sources or targets.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// Those of a segment; `None` if its parts do not have the lengths that its header says. The
    /// hash was checked when the segment was read.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::decode(bytes)?;
        let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + header.payload as usize)?;
        let (degrees, rest) = payload.split_at_checked(header.degree_bytes as usize)?;
        let edges = header.edges as usize;
        let packed = bits::packed_bytes(edges, header.bits.into());
        let (packed, weights) = rest.split_at_checked(packed)?;
        let right = header.bits <= 32
            && matches!(header.weight_bytes, 0 | 4 | 8)
            && weights.len() == edges * usize::from(header.weight_bytes);
        right.then_some(Self { header, degrees, packed, weights })
    }

    /// Its header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Calls `take` with each vertex and its neighbours, in order; false if the degrees do not fit
    /// the neighbours.
    #[inline]
    pub fn for_each(&self, mut take: impl FnMut(u32, Neighbours<'a>)) -> bool {
        let (mut at, mut from) = (0, 0);
        for vertex in 0..self.header.vertices {
            let Some(degree) = bits::get_varint(self.degrees, &mut at) else { return false };
            if degree > (self.header.edges as usize - from) as u64 {
                return false;
            }
            let to = from + degree as usize;
            take(self.header.first + vertex, self.neighbours(from, to));
            from = to;
        }
        from == self.header.edges as usize && at == self.degrees.len()
    }

    /// Calls `take` with each vertex and its neighbours in one or several slices, of which the last
    /// one is marked, as [`Adjacency::for_each`] does with lists. Values are unpacked in blocks;
    /// `ahead` is called with each block before `take` is with the block before it.
    #[inline]
    pub(crate) fn for_each_slice(
        &self,
        mut ahead: impl FnMut(&[u32]),
        mut take: impl FnMut(u32, &[u32], Slice),
    ) -> bool {
        let mut blocks = [[0; bits::BLOCK]; 2];
        let (edges, mut end) = (self.header.edges as usize, 0);
        let mut unpack = |block: usize, out: &mut [u32; bits::BLOCK]| {
            let left = edges.saturating_sub(block * bits::BLOCK);
            if left > 0 {
                let Header { base, bits, .. } = self.header;
                bits::unpack(self.packed, (block, edges), base, bits.into(), out);
                ahead(&out[..left.min(bits::BLOCK)]);
            }
        };
        unpack(0, &mut blocks[0]);
        self.for_each(|vertex, neighbours| {
            let (mut from, to) = (neighbours.from, neighbours.to);
            loop {
                if from == end && from < to {
                    let next = from / bits::BLOCK + 1;
                    unpack(next, &mut blocks[next % 2]);
                    end += bits::BLOCK;
                }
                let until = to.min(end);
                let begin = from % bits::BLOCK;
                let block = &blocks[(end / bits::BLOCK + 1) % 2];
                let slice = &block[begin..begin + (until - from)];
                if until == to {
                    return take(vertex, slice, Slice::Last);
                }
                take(vertex, slice, Slice::Other);
                from = until;
            }
        })
    }

    /// The hash of the content of a graph with this segment; `before` is that without it.
    pub(crate) fn content(&self, before: u64) -> u64 {
        let mut hasher = XxHash3_64::with_seed(before);
        [self.degrees, self.packed, self.weights].iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }

    /// The weights of all edges, in the order of the neighbours; none in a graph without weights.
    pub(crate) fn weights(&self) -> impl Iterator<Item = f64> + use<'a> {
        let edges = if self.header.weight_bytes == 0 { 0 } else { self.header.edges as usize };
        let all = self.neighbours(0, edges);
        (0..edges).map(move |at| all.weight(at))
    }

    #[inline]
    fn neighbours(&self, from: usize, to: usize) -> Neighbours<'a> {
        Neighbours {
            packed: self.packed,
            weights: self.weights,
            weight_bytes: self.header.weight_bytes,
            base: self.header.base,
            bits: self.header.bits.into(),
            from,
            to,
        }
    }
}

impl<'a> Neighbours<'a> {
    /// How many there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The neighbours, in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        let Self { packed, base, bits, .. } = *self;
        (self.from..self.to).map(move |at| bits::get(packed, at, base, bits))
    }

    /// The neighbours with the weights of their edges, 1 in a graph without weights.
    #[inline]
    pub fn weighted(&self) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        let this = *self;
        (self.from..self.to)
            .map(move |at| (bits::get(this.packed, at, this.base, this.bits), this.weight(at)))
    }

    #[inline]
    fn weight(&self, at: usize) -> f64 {
        let bytes = |len: usize| &self.weights[at * len..(at + 1) * len];
        match self.weight_bytes {
            0 => 1.0,
            4 => f32::from_le_bytes(bytes(4).try_into().expect("four")).into(),
            _ => f64::from_le_bytes(bytes(8).try_into().expect("eight")),
        }
    }
}
