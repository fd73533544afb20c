//! Random graphs with few vertices of many edges: R-MAT with the parameters of Graph500.
//!
//! Source: Chakrabarti, Zhan, Faloutsos, SDM'04; Graph500 specification 2.0 (a, b, c = 0.57, 0.19,
//! 0.19, 16 edges a vertex, vertices renumbered). Differs: the renumbering is an own permutation.

use prism_base::Rng;

use crate::ingest::Edge;

/// Edges a vertex, as Graph500 has.
pub const EDGE_FACTOR: u64 = 16;
/// The largest scale.
pub const SCALE_MAX: u32 = 32;

/// The edges of a random graph of `2^scale` vertices.
#[derive(Clone, Debug)]
pub struct Rmat {
    scale: u32,
    left: u64,
    rng: Rng,
    keys: [u64; 2],
}

/// The shares of the quadrants, of 2^32, as sums.
const SUMS: [u64; 3] = {
    const UNIT: u64 = 1 << 32;
    [UNIT * 57 / 100, UNIT * 76 / 100, UNIT * 95 / 100]
};

impl Rmat {
    /// A graph of `2^scale` vertices and [`EDGE_FACTOR`] edges for each.
    ///
    /// # Panics
    /// If `scale` is more than [`SCALE_MAX`].
    #[must_use]
    pub fn new(scale: u32, seed: u64) -> Self {
        assert!(scale <= SCALE_MAX, "2^{scale} vertices");
        let mut rng = Rng::stream(seed, "rmat");
        let keys = [rng.next_u64() | 1, rng.next_u64() | 1];
        Self { scale, left: EDGE_FACTOR << scale, rng, keys }
    }

    /// Edges that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// A permutation of the vertices: each step can be undone.
    fn renumber(&self, vertex: u64) -> u64 {
        let mask = (1 << self.scale) - 1;
        self.keys.iter().fold(vertex, |vertex, key| {
            let mixed = vertex.wrapping_mul(*key) & mask;
            mixed ^ mixed >> self.scale.div_ceil(2)
        })
    }
}

impl Iterator for Rmat {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        self.left = self.left.checked_sub(1)?;
        let (mut source, mut target) = (0_u64, 0_u64);
        let mut random = 0;
        for level in 0..self.scale {
            random = if level % 2 == 0 { self.rng.next_u64() } else { random >> 32 };
            let at = random & 0xffff_ffff;
            let quadrant = SUMS.iter().filter(|sum| at >= **sum).count() as u64;
            source = source << 1 | quadrant >> 1;
            target = target << 1 | quadrant & 1;
        }
        let (source, target) = (self.renumber(source), self.renumber(target));
        Some(Edge { source, target, weight: 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn edges_depend_on_the_seed_only_and_are_skewed() {
        let edges = |seed| Rmat::new(10, seed).collect::<Vec<_>>();
        assert_eq!(edges(1), edges(1));
        assert_ne!(edges(1), edges(2));
        assert_eq!(edges(1).len(), 16 << 10);
        let mut degrees = BTreeMap::new();
        edges(1).iter().for_each(|edge| *degrees.entry(edge.source).or_insert(0) += 1);
        let most = *degrees.values().max().expect("edges");
        // The first vertex before renumbering has (0.76)^10 of all edges, 1,053.
        assert!((900..1200).contains(&most), "{most}");
        assert!(degrees.len() < 900, "{} vertices have edges", degrees.len());
    }

    #[test]
    fn vertices_are_renumbered_one_to_one() {
        for scale in [1, 2, 7, 16] {
            let rmat = Rmat::new(scale, 5);
            let all: BTreeSet<u64> = (0..1 << scale).map(|v| rmat.renumber(v)).collect();
            assert_eq!(all.len(), 1 << scale);
            assert!(all.iter().all(|v| *v < 1 << scale));
        }
    }
}
