//! The order of the vertices of a store: which number each vertex has there.
//!
//! The rank of a vertex is how many vertices have smaller numbers in the input. In the order of
//! degrees vertices are in groups, those with the most edges first, and in the order of their ranks
//! within a group. Most edges of many graphs are at a tenth of the vertices; the values of these
//! are next to each other then, and stay in a core's cache while neighbours are gathered. The
//! groups are so few that neighbours whose numbers in the input are close stay so.
//!
//! Source: Faldu, Diamond, Grot, "A closer look at lightweight graph reordering", IISWC'19
//! (degree-based grouping). Differs: edges in both directions count.

use std::ops::Range;

use crate::catalog::{Catalog, Entry};
use crate::error::{GraphError, Result};
use crate::segment::{Header, Kind};
use crate::space::Space;

prism_base::named_enum! {
    /// The order of the vertices of a store.
    pub enum Order {
        /// Groups of vertices by their numbers of edges, the most first; a graph of several
        /// intervals has the order of the input
        Degree = "degree",
        /// As in the input
        Input = "input",
    }
}

/// Groups of vertices: one for those with up to half the mean number of edges, and one for each
/// time that this is doubled.
pub(crate) const GROUPS: usize = 8;

/// The least numbers of edges of vertices of all groups but the last one, from the last on, in a
/// graph of this many vertices that have so many edges together.
fn limits(vertices: u64, edges: u64) -> [u32; GROUPS - 1] {
    std::array::from_fn(|level| {
        let least = (u128::from(edges) << level).div_ceil(2 * u128::from(vertices.max(1)));
        least.clamp(1, u32::MAX.into()) as u32
    })
}

/// The group of a vertex with this many edges.
#[inline]
fn group(limits: &[u32; GROUPS - 1], degree: u32) -> u8 {
    (GROUPS - 1 - limits.iter().filter(|least| degree >= **least).count()) as u8
}

/// Vertices that were put in order.
pub(crate) struct Ordered {
    /// The number of each vertex, by its rank.
    pub(crate) numbers: Vec<u32>,
    /// The group of each vertex, by its rank.
    pub(crate) of_rank: Vec<u8>,
    /// The vertices of each group.
    pub(crate) groups: Vec<u32>,
    /// The first vertices of parts of the order with about as many edges each.
    pub(crate) starts: Vec<u32>,
}

impl Ordered {
    /// Puts vertices in order that have so many edges, by rank, and divides them into at most
    /// `parts` parts and the number of groups.
    pub(crate) fn by_degree(degrees: Vec<u32>, parts: u64) -> Self {
        let edges: u64 = degrees.iter().map(|degree| u64::from(*degree)).sum();
        let limits = limits(degrees.len() as u64, edges);
        let of_rank: Vec<u8> = degrees.iter().map(|degree| group(&limits, *degree)).collect();
        let mut groups = vec![0; GROUPS];
        of_rank.iter().for_each(|group| groups[usize::from(*group)] += 1);
        // A vertex without edges counts as well: a part has a list for each of its vertices.
        let most = (edges + degrees.len() as u64).div_ceil(parts.max(1));
        let mut next = firsts(&groups);
        let mut sums = [u64::MAX; GROUPS];
        let mut starts = vec![Vec::new(); GROUPS];
        let mut numbers = degrees;
        for (group, cell) in of_rank.iter().zip(&mut numbers) {
            let group = usize::from(*group);
            let size = u64::from(*cell) + 1;
            *cell = next[group];
            next[group] += 1;
            if sums[group].checked_add(size).is_none_or(|sum| sum > most) {
                starts[group].push(*cell);
                sums[group] = 0;
            }
            sums[group] += size;
        }
        Self { numbers, of_rank, groups, starts: starts.concat() }
    }
}

/// The first vertex of each group.
fn firsts(groups: &[u32]) -> Vec<u32> {
    let mut end = 0;
    let first = |group: &u32| {
        let first = end;
        end += *group;
        first
    };
    groups.iter().map(first).collect()
}

/// Walks over the vertices of a graph in the order of their ranks.
pub(crate) struct Walk {
    /// For each group the vertex that comes next, and the end.
    groups: Vec<Range<u32>>,
    /// Segments of groups that were not read.
    rest: std::vec::IntoIter<Entry>,
    segment: u32,
    bytes: Vec<u8>,
    at: usize,
}

impl Walk {
    /// From the vertex with rank 0.
    pub(crate) fn new(catalog: &Catalog) -> Self {
        // In the order of the input there is one group.
        let all = [catalog.vertices];
        let groups = if catalog.groups.is_empty() { &all } else { &catalog.groups[..] };
        let groups = firsts(groups).into_iter().zip(groups).map(|(first, len)| first..first + len);
        Self {
            groups: groups.collect(),
            rest: catalog.of_kind(Kind::Groups).into_iter(),
            segment: 0,
            bytes: Vec::new(),
            at: 0,
        }
    }

    /// The next vertex.
    ///
    /// # Errors
    /// [`GraphError::Damaged`]; [`GraphError::Flash`].
    #[inline]
    pub(crate) fn next(&mut self, space: &mut Space) -> Result<u32> {
        let group = if self.groups.len() == 1 { 0 } else { self.group(space)? };
        match self.groups.get_mut(group).and_then(Iterator::next) {
            Some(vertex) => Ok(vertex),
            None => {
                let what = "its groups are not those of the catalog";
                Err(GraphError::Damaged { segment: self.segment, what })
            }
        }
    }

    /// The group of the next vertex.
    fn group(&mut self, space: &mut Space) -> Result<usize> {
        if self.at == self.bytes.len()
            && let Some(entry) = self.rest.next()
        {
            (self.segment, self.at) = (entry.segment, 0);
            self.bytes = space.read(entry.segment, entry.header(Kind::Groups))?;
            if self.bytes.len() != entry.vertices as usize {
                let what = "its groups are not as many as its vertices";
                return Err(GraphError::Damaged { segment: self.segment, what });
            }
        }
        let group = self.bytes.get(self.at).copied();
        self.at += 1;
        // There is a byte for each vertex; without one there is no such group.
        Ok(group.map_or(usize::MAX, usize::from))
    }
}

/// The segments of groups: a byte for each vertex, in the order of ranks.
pub(crate) fn segments(of_rank: &[u8], capacity: usize) -> impl Iterator<Item = (Header, Vec<u8>)> {
    let mut first = 0;
    of_rank.chunks(capacity).map(move |groups| {
        let header = Header::plain(Kind::Groups, first, groups.len() as u32);
        first += groups.len() as u32;
        (header, groups.to_vec())
    })
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use super::*;

    #[test]
    fn groups_double_from_half_the_mean_on() {
        let limits_of_ten = limits(7, 70);
        let check =
            |degree, expected| assert_eq!(group(&limits_of_ten, degree), expected, "{degree}");
        for (degree, expected) in [(0, 7), (4, 7), (5, 6), (9, 6), (10, 5), (19, 5), (20, 4)] {
            check(degree, expected);
        }
        for (degree, expected) in [(159, 2), (160, 1), (319, 1), (320, 0), (u32::MAX, 0)] {
            check(degree, expected);
        }
        // Without edges all are in one group.
        assert_eq!(group(&limits(3, 0), 0), 7);
    }

    #[test]
    fn random_vertices_are_ordered_by_group_and_rank_in_parts_of_as_many_edges() {
        for seed in prism_testkit::seeds(0..50) {
            let mut rng = Rng::stream(seed, "order");
            let count = 1 + rng.below(3000);
            let most = 1 + rng.below(40);
            let degree = |rng: &mut Rng| match rng.below(10) {
                0 => rng.below(most * most) as u32,
                _ => rng.below(most) as u32,
            };
            let degrees: Vec<u32> = (0..count).map(|_| degree(&mut rng)).collect();
            let parts = 1 + rng.below(30);
            let ordered = Ordered::by_degree(degrees.clone(), parts);
            let mut wanted: Vec<u32> = (0..count as u32).collect();
            wanted.sort_by_key(|rank| (ordered.of_rank[*rank as usize], *rank));
            for (number, rank) in (0..).zip(&wanted) {
                assert_eq!(ordered.numbers[*rank as usize], number);
            }
            assert!(ordered.starts.is_sorted() && ordered.starts[0] == 0);
            assert!(ordered.starts.len() as u64 <= 2 * parts + GROUPS as u64);
            let all: u64 = degrees.iter().map(|degree| u64::from(*degree) + 1).sum();
            let ends = ordered.starts[1..].iter().copied().chain([count as u32]);
            for (start, end) in ordered.starts.iter().zip(ends) {
                let size = |number: u32| u64::from(degrees[wanted[number as usize] as usize]) + 1;
                let sum: u64 = (*start..end).map(size).sum();
                assert!(sum <= all.div_ceil(parts) || end - start == 1, "{sum} of {all}");
            }
        }
    }
}
