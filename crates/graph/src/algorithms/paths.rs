//! Levels, distances and components as programs that pull, for graphs whose vertices do not fit
//! into memory.

use crate::catalog::Direction;
use crate::error::{GraphError, Result};
use crate::pool::{CellF64, CellU32, CellU64};
use crate::pull::{Totals, Vertex, VertexProgram};

/// The lengths of shortest paths from a source: by weights, or by edges.
#[derive(Clone, Copy, Debug)]
pub struct Paths {
    /// Where they begin.
    pub source: u32,
    /// Whether the length of an edge is its weight, not 1.
    pub weighted: bool,
}

/// The length of a path with one more edge. One beyond the range of numbers is [`f64::MAX`], not
/// infinite as that of no path: [`refuse_overflow`] finds it at the end.
#[inline]
pub(crate) fn longer(length: f64, weight: f64) -> f64 {
    if length.is_infinite() { length } else { (length + weight).min(f64::MAX) }
}

/// Refuses shortest paths whose lengths [`longer`] had to limit; `largest` is the largest of those
/// that are finite.
///
/// # Errors
/// [`GraphError::Refused`].
pub(crate) fn refuse_overflow(largest: f64) -> Result<()> {
    if largest < f64::MAX {
        return Ok(());
    }
    let what = "the weights are too large: the length of a shortest path, which is their sum, \
                reaches 1.8e308, the largest number of 64 bits; divide all weights by the same \
                number and ingest again";
    Err(GraphError::Refused(what.into()))
}

impl VertexProgram for Paths {
    type Cell = CellF64;
    type Sum = CellF64;

    fn initial(&self, vertex: Vertex) -> f64 {
        if vertex.number == self.source { 0.0 } else { f64::INFINITY }
    }

    fn empty(&self) -> f64 {
        f64::INFINITY
    }

    fn gather(&self, sum: f64, neighbour: f64, weight: f64) -> f64 {
        sum.min(longer(neighbour, if self.weighted { weight } else { 1.0 }))
    }

    fn merge(&self, one: f64, other: f64) -> f64 {
        one.min(other)
    }

    fn apply(&self, _vertex: Vertex, sum: f64, old: f64) -> f64 {
        sum.min(old)
    }

    fn totals(&self, _vertex: Vertex, old: f64, new: f64) -> Totals {
        [f64::from(u8::from(old != new)), 0.0]
    }

    fn next_round(&mut self, round: u32, [changed, _]: Totals) -> bool {
        round == 0 || changed > 0.0
    }
}

/// Labels of components: a round along edges finds the smallest label next to each vertex. The old
/// label is in the upper half of the new value.
#[derive(Clone, Copy, Debug)]
pub struct Smallest {
    /// Whether edges have a direction, which does not count.
    pub directed: bool,
}

impl VertexProgram for Smallest {
    type Cell = CellU64;
    type Sum = CellU32;

    fn directions(&self) -> Vec<Direction> {
        if self.directed { vec![Direction::In, Direction::Out] } else { vec![Direction::In] }
    }

    fn initial(&self, vertex: Vertex) -> u64 {
        vertex.number.into()
    }

    fn empty(&self) -> u32 {
        u32::MAX
    }

    fn gather(&self, sum: u32, neighbour: u64, _weight: f64) -> u32 {
        sum.min(neighbour as u32)
    }

    fn merge(&self, one: u32, other: u32) -> u32 {
        one.min(other)
    }

    fn apply(&self, _vertex: Vertex, sum: u32, old: u64) -> u64 {
        old << 32 | u64::from(sum).min(old)
    }

    fn totals(&self, _vertex: Vertex, old: u64, new: u64) -> Totals {
        [f64::from(u8::from(old != new & u64::from(u32::MAX))), 0.0]
    }

    fn next_round(&mut self, round: u32, [changed, _]: Totals) -> bool {
        round == 0 || changed > 0.0
    }
}
