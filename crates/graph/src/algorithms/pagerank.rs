//! PageRank, and with a source personalised PageRank.
//!
//! Source: Graphalytics specification 1.0.5, section 2.3.2 (PR); Page et al. 1999. The mass of
//! vertices without edges from them is given to all vertices, or back to the source.

use std::marker::PhantomData;

use crate::pool::{Cell, CellF64};
use crate::pull::{Totals, Vertex, VertexProgram};

/// Which PageRank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ranks are a distribution: their sum is 1.
    Normalised,
    /// As GraphChi's: `0.15 + 0.85 sum`, beginning with 1; the mass of vertices without edges from
    /// them is lost.
    GraphChi,
}

/// How long it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// This many rounds.
    Rounds(u32),
    /// Until a round changes the ranks, summed over all vertices, by less than this times their
    /// sum, at most for a number of rounds.
    Change(f64, u32),
}

/// PageRank as a program. A value is the rank that a vertex gives along each edge from it; without
/// such edges it is the rank. Values are kept in cells of the type `C`; sums are always `f64`.
#[derive(Clone, Debug)]
pub struct PageRank<C = CellF64> {
    vertices: f64,
    damping: f64,
    form: Form,
    source: Option<u32>,
    until: Until,
    /// What each vertex, or the source, gets next to its sum.
    base: f64,
    /// The change of the last round.
    change: f64,
    cell: PhantomData<fn() -> C>,
}

impl<C> PageRank<C> {
    /// For a graph of this many vertices.
    #[must_use]
    pub fn new(vertices: u32, damping: f64, form: Form, source: Option<u32>, until: Until) -> Self {
        let vertices = f64::from(vertices);
        Self {
            vertices,
            damping,
            form,
            source,
            until,
            base: 0.0,
            change: f64::INFINITY,
            cell: PhantomData,
        }
    }

    /// Rounds at most.
    #[must_use]
    pub fn rounds_max(&self) -> u32 {
        match self.until {
            Until::Rounds(rounds) | Until::Change(_, rounds) => rounds,
        }
    }

    /// The rank of a vertex with this value.
    #[must_use]
    pub fn rank(vertex: Vertex, value: f64) -> f64 {
        value * f64::from(vertex.degree.max(1))
    }

    /// The sum of all changes of the last round.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.change
    }
}

impl<C: Cell<Value = f64>> VertexProgram for PageRank<C> {
    type Cell = C;
    type Sum = CellF64;

    fn initial(&self, vertex: Vertex) -> f64 {
        let rank = match (self.form, self.source) {
            (Form::GraphChi, None) => 1.0,
            (_, Some(source)) => f64::from(u8::from(source == vertex.number)),
            (Form::Normalised, None) => 1.0 / self.vertices,
        };
        rank / f64::from(vertex.degree.max(1))
    }

    #[inline]
    fn empty(&self) -> f64 {
        0.0
    }

    #[inline]
    fn gather(&self, sum: f64, neighbour: f64, _weight: f64) -> f64 {
        sum + neighbour
    }

    fn merge(&self, one: f64, other: f64) -> f64 {
        one + other
    }

    #[inline]
    fn apply(&self, vertex: Vertex, sum: f64, _old: f64) -> f64 {
        let base = match self.source {
            Some(source) if source != vertex.number => 0.0,
            _ => self.base,
        };
        (base + self.damping * sum) / f64::from(vertex.degree.max(1))
    }

    #[inline]
    fn totals(&self, vertex: Vertex, old: f64, new: f64) -> Totals {
        let dangling = if vertex.degree == 0 { new } else { 0.0 };
        [(new - old).abs() * f64::from(vertex.degree.max(1)), dangling]
    }

    fn next_round(&mut self, round: u32, [change, dangling]: Totals) -> bool {
        // With a source all of the base is the source's.
        let shares = if self.source.is_some() { 1.0 } else { self.vertices };
        self.base = match self.form {
            Form::Normalised => (1.0 - self.damping + self.damping * dangling) / shares,
            Form::GraphChi => 1.0 - self.damping,
        };
        if round > 0 {
            self.change = change;
        }
        let sum = if self.form == Form::GraphChi { self.vertices } else { 1.0 };
        match self.until {
            Until::Rounds(rounds) => round < rounds,
            Until::Change(least, rounds) => round < rounds && self.change >= least * sum,
        }
    }
}
