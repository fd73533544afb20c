//! The catalog of a graph: what the graph is, and which segment has which vertices.

use std::ops::Range;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::order::Order;
use crate::segment::Kind;

/// The version of the format of catalogs: vertices are in groups.
pub const VERSION: u32 = 2;
/// The version of the format of catalogs of graphs in the order of the input, which end before the
/// groups.
pub const VERSION_OF_INPUT: u32 = 1;

/// A graph, as its root segment describes it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Catalog {
    /// The version of the format.
    pub version: u32,
    /// Whether edges have a direction.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// Whether a weight is negative.
    pub negative: bool,
    /// The number of vertices.
    pub vertices: u32,
    /// The number of edges; an undirected edge is one.
    pub edges: u64,
    /// Those of them from a vertex to itself.
    pub loops: u64,
    /// Entries of neighbour lists of one direction: edges, or twice that without loops.
    pub arcs: u64,
    /// Edges of the input that were left out as duplicates.
    pub duplicates: u64,
    /// Loops of the input that were left out.
    pub loops_dropped: u64,
    /// The most edges to or from one vertex.
    pub degree_max: u32,
    /// Intervals of vertices: each segment of neighbours has sources of one interval only.
    pub intervals: u32,
    /// Vertices of an interval; the last one may have fewer.
    pub interval_vertices: u32,
    /// A hash of all neighbours, by which checkpoints know their graph.
    pub content: u64,
    /// The segments, ordered by kind, interval of vertices, interval of sources, vertex.
    pub entries: Vec<Entry>,
    /// The number of vertices of each group; none if the vertices are in the order of the input.
    #[borsh(skip)]
    pub groups: Vec<u32>,
}

/// A segment of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Entry {
    /// [`Kind`], as a number.
    pub kind: u32,
    /// Its number on the device.
    pub segment: u32,
    /// Bytes after its header.
    pub payload: u32,
    /// Its first vertex.
    pub first: u32,
    /// Its number of vertices.
    pub vertices: u32,
    /// Its number of neighbours.
    pub edges: u32,
    /// The interval of its neighbours.
    pub column: u32,
    /// Whether it has some neighbours of one vertex, of which other segments have the others.
    pub part: bool,
}

/// In which direction edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From targets to sources.
    In,
    /// From sources to targets.
    Out,
}

impl Catalog {
    /// The segments of a kind, in order.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> Vec<Entry> {
        self.entries.iter().filter(|entry| entry.kind == kind as u32).copied().collect()
    }

    /// The segments of neighbours in one direction. An undirected graph has each edge in the lists
    /// of both its ends, which are the same for both directions.
    #[must_use]
    pub fn neighbours(&self, direction: Direction) -> Vec<Entry> {
        match direction {
            Direction::Out if self.directed => self.of_kind(Kind::Out),
            _ => self.of_kind(Kind::In),
        }
    }

    /// The order of the vertices.
    #[must_use]
    pub fn order(&self) -> Order {
        if self.groups.is_empty() { Order::Input } else { Order::Degree }
    }

    /// The vertices of an interval.
    #[must_use]
    pub fn interval(&self, number: u32) -> Range<u32> {
        let first = number.saturating_mul(self.interval_vertices).min(self.vertices);
        first..first.saturating_add(self.interval_vertices).min(self.vertices)
    }

    /// The catalog as bytes.
    ///
    /// # Panics
    /// Never: memory takes any bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = borsh::to_vec(self).expect("memory takes any bytes");
        if self.version == VERSION {
            self.groups.serialize(&mut bytes).expect("memory takes any bytes");
        }
        bytes
    }

    /// The catalog that these bytes are; `None` if they are none. What it says is not checked.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut catalog = Self::deserialize(&mut rest).ok()?;
        if catalog.version == VERSION {
            catalog.groups = Vec::deserialize(&mut rest).ok()?;
        }
        rest.is_empty().then_some(catalog)
    }

    /// The version of the format of these bytes.
    #[must_use]
    pub fn version(bytes: &[u8]) -> Option<u32> {
        bytes.first_chunk().map(|version| u32::from_le_bytes(*version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(version: u32, groups: Vec<u32>) -> Catalog {
        Catalog {
            version,
            directed: true,
            weighted: false,
            negative: false,
            vertices: 3,
            edges: 4,
            loops: 1,
            arcs: 4,
            duplicates: 0,
            loops_dropped: 0,
            degree_max: 2,
            intervals: 1,
            interval_vertices: 3,
            content: 7,
            entries: Vec::new(),
            groups,
        }
    }

    /// Stores of earlier versions of Prism have no groups in their catalogs.
    #[test]
    fn catalogs_of_both_versions_are_read_as_written() {
        let old = catalog(VERSION_OF_INPUT, Vec::new());
        let fields = 4 + 3 + 4 + 3 * 8 + 2 * 8 + 4 + 2 * 4 + 8 + 4;
        assert_eq!(old.encode().len(), fields);
        assert_eq!(Catalog::decode(&old.encode()), Some(old));
        let new = catalog(VERSION, vec![1, 2]);
        assert_eq!(new.encode().len(), fields + 4 + 2 * 4);
        assert_eq!(Catalog::decode(&new.encode()), Some(new.clone()));
        // Nothing follows.
        let longer: Vec<u8> = new.encode().into_iter().chain([0]).collect();
        assert_eq!(Catalog::decode(&longer), None);
        let cut = new.encode();
        assert_eq!(Catalog::decode(&cut[..cut.len() - 1]), None);
    }
}
