//! The degrees of the vertices of a graph, and their numbers in the input.

use std::ops::Range;

use crate::bits;
use crate::catalog::{Catalog, Entry};
use crate::engine::Graph;
use crate::error::{GraphError, Result};
use crate::order::Walk;
use crate::segment::Kind;

impl Graph {
    /// The degrees of all vertices: edges to each vertex, and, in a directed graph, from it.
    ///
    /// # Errors
    /// [`GraphError::Damaged`]; [`GraphError::Flash`].
    pub fn degrees(&mut self, mut take: impl FnMut(u32, [u32; 2])) -> Result<()> {
        let all = 0..self.catalog.vertices;
        self.degrees_of(all, |vertex, degrees| {
            take(vertex, degrees);
            Ok(())
        })
    }

    /// As [`Graph::degrees`], of some vertices.
    ///
    /// # Errors
    /// As [`Graph::degrees`]; that of `take`.
    pub fn degrees_of(
        &mut self,
        range: Range<u32>,
        mut take: impl FnMut(u32, [u32; 2]) -> Result<()>,
    ) -> Result<()> {
        let (mut sums, mut most) = ([0; 2], 0);
        for entry in self.catalog.of_kind(Kind::Degrees) {
            if entry.first + entry.vertices <= range.start || range.end <= entry.first {
                continue;
            }
            self.degrees_in(&entry, |vertex, both| {
                sums = [sums[0] + u64::from(both[0]), sums[1] + u64::from(both[1])];
                most = both[0].max(both[1]).max(most);
                if range.contains(&vertex) { take(vertex, both) } else { Ok(()) }
            })?;
        }
        let Catalog { vertices, arcs, degree_max, .. } = self.catalog;
        if range == (0..vertices) && (sums, most) != ([arcs; 2], degree_max) {
            let segment = self.space.root().unwrap_or(0);
            let what = "its counts of edges are not those of the degrees";
            return Err(GraphError::Damaged { segment, what });
        }
        Ok(())
    }

    /// The degrees in one segment of them.
    ///
    /// # Errors
    /// As [`Graph::degrees`]; that of `take`.
    pub(crate) fn degrees_in(
        &mut self,
        entry: &Entry,
        mut take: impl FnMut(u32, [u32; 2]) -> Result<()>,
    ) -> Result<()> {
        let bytes = self.space.read(entry.segment, entry.header(Kind::Degrees))?;
        self.counts.read += bytes.len() as u64;
        let most = u64::from(self.catalog.degree_max);
        let damaged = || {
            let what = "its degrees are not those of its vertices";
            GraphError::Damaged { segment: entry.segment, what }
        };
        let mut at = 0;
        let mut next = || {
            let degree = bits::get_varint(&bytes, &mut at).filter(|degree| *degree <= most);
            degree.map(|degree| degree as u32).ok_or_else(damaged)
        };
        for vertex in entry.first..entry.first + entry.vertices {
            let to = next()?;
            let from = if self.catalog.directed { next()? } else { to };
            take(vertex, [to, from])?;
        }
        if at == bytes.len() { Ok(()) } else { Err(damaged()) }
    }

    /// All vertices with their numbers in the input, in the order of these.
    ///
    /// # Errors
    /// [`GraphError::Damaged`]; [`GraphError::Flash`]; that of `take`.
    pub fn ids(&mut self, mut take: impl FnMut(u32, u64) -> Result<()>) -> Result<()> {
        let (mut last, mut walk) = (None, Walk::new(&self.catalog));
        for entry in self.catalog.of_kind(Kind::Ids) {
            last = self.ids_in(&entry, last, &mut |graph, _, id| {
                let vertex = walk.next(&mut graph.space)?;
                take(vertex, id)
            })?;
        }
        Ok(())
    }

    /// All vertices, in the order of their numbers in the input.
    ///
    /// # Errors
    /// As [`Graph::ids`].
    pub fn ranked(&mut self, mut take: impl FnMut(u32)) -> Result<()> {
        let mut walk = Walk::new(&self.catalog);
        (0..self.catalog.vertices).try_for_each(|_| {
            take(walk.next(&mut self.space)?);
            Ok(())
        })
    }

    /// The numbers in the input of the vertices with these ranks, in order.
    ///
    /// # Errors
    /// As [`Graph::ids`].
    pub(crate) fn ids_of(&mut self, ranks: Range<u32>, mut take: impl FnMut(u64)) -> Result<()> {
        let mut last = None;
        for entry in self.catalog.of_kind(Kind::Ids) {
            if entry.first < ranks.end && ranks.start < entry.first + entry.vertices {
                last = self.ids_in(&entry, last, &mut |_, rank, id| {
                    if ranks.contains(&rank) {
                        take(id);
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// The numbers in one segment of them, with the ranks of their vertices. They are larger than
    /// `last`; returns the last one.
    ///
    /// # Errors
    /// As [`Graph::ids`].
    pub(crate) fn ids_in(
        &mut self,
        entry: &Entry,
        mut last: Option<u64>,
        take: &mut dyn FnMut(&mut Self, u32, u64) -> Result<()>,
    ) -> Result<Option<u64>> {
        let bytes = self.space.read(entry.segment, entry.header(Kind::Ids))?;
        let damaged = || {
            let what = "its numbers are not those of its vertices, or do not ascend";
            GraphError::Damaged { segment: entry.segment, what }
        };
        let (mut at, mut id) = (0, 0);
        for rank in entry.first..entry.first + entry.vertices {
            let next = bits::get_varint(&bytes, &mut at);
            let next = next.and_then(|next| u64::checked_add(id, next));
            id = next.filter(|id| last.is_none_or(|last| last < *id)).ok_or_else(damaged)?;
            last = Some(id);
            take(self, rank, id)?;
        }
        if at == bytes.len() { Ok(last) } else { Err(damaged()) }
    }

    /// The vertex that has this number in the input.
    ///
    /// # Errors
    /// [`GraphError::NoVertex`] if there is none; as [`Graph::ids`].
    pub fn vertex(&mut self, id: u64) -> Result<u32> {
        let mut found = None;
        self.ids(|vertex, other| {
            if other == id {
                found = Some(vertex);
            }
            Ok(())
        })?;
        found.ok_or(GraphError::NoVertex(id))
    }
}
