//! Edges of the input become records of temporary space. Each thread that reads a part of the input
//! collects its own, with their vertices.

use crate::ids::IdSet;
use crate::ingest::{Edge, IngestOptions, Keep};
use crate::input::Parsed;

/// What a thread has read and is not in temporary space yet, and all vertices that it has seen.
#[derive(Debug)]
pub(crate) struct Collector {
    options: IngestOptions,
    pub(crate) ids: IdSet,
    /// Edges between numbers below 2^32, other edges, and vertices that may have no edges.
    pub(crate) records: [Vec<u8>; 3],
    pub(crate) negative: bool,
    pub(crate) loops_dropped: u64,
}

impl Collector {
    pub(crate) fn new(options: IngestOptions) -> Self {
        let (ids, records) = (IdSet::default(), Default::default());
        Self { options, ids, records, negative: false, loops_dropped: 0 }
    }

    /// Adds what was read.
    pub(crate) fn add_parsed(&mut self, parsed: &Parsed) {
        parsed.vertices.iter().for_each(|id| self.add_vertex(*id));
        self.add(&parsed.edges);
    }

    /// Adds a vertex, which need not have edges.
    pub(crate) fn add_vertex(&mut self, id: u64) {
        self.ids.insert(id);
        self.records[2].extend_from_slice(&id.to_le_bytes());
    }

    /// Adds edges.
    pub(crate) fn add(&mut self, edges: &[Edge]) {
        let weighted = self.options.weighted;
        let [narrow, wide, _] = &mut self.records;
        narrow.reserve(edges.len() * if weighted { 16 } else { 8 });
        let mut loops = Vec::new();
        for edge in edges {
            if edge.source == edge.target && self.options.loops == Keep::Drop {
                loops.push(edge.source);
                continue;
            }
            self.ids.insert(edge.source);
            self.ids.insert(edge.target);
            let out = if (edge.source | edge.target) >> 32 == 0 {
                narrow.extend_from_slice(&(edge.target << 32 | edge.source).to_le_bytes());
                &mut *narrow
            } else {
                wide.extend_from_slice(&edge.source.to_le_bytes());
                wide.extend_from_slice(&edge.target.to_le_bytes());
                &mut *wide
            };
            if weighted {
                self.negative |= edge.weight < 0.0;
                out.extend_from_slice(&edge.weight.to_le_bytes());
            }
        }
        self.loops_dropped += loops.len() as u64;
        loops.into_iter().for_each(|id| self.add_vertex(id));
    }
}
