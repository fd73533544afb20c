//! The options of an algorithm.

use prism_graph::algorithms::pagerank::Form;
use prism_graph::algorithms::{Algorithm, Options};
use prism_graph::pull::Schedule;

use crate::error::StoreError;

/// An algorithm and its options.
#[derive(Clone, Copy, Debug)]
pub struct RunPlan {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Rounds.
    pub iterations: Option<u32>,
    /// The vertex at which it begins, by its number in the input.
    pub source: Option<u64>,
    /// The damping factor of PageRank; 0.85 if it is not given.
    pub damping: Option<f64>,
    /// The change at which PageRank ends.
    pub tolerance: Option<f64>,
    /// Whether PageRank is GraphChi's.
    pub graphchi_compat: bool,
    /// Whether rounds see their own changes.
    pub asynchronous: bool,
    /// Rounds after which PageRank is saved.
    pub checkpoint: Option<u32>,
}

impl RunPlan {
    /// Refuses options that the algorithm would ignore.
    ///
    /// # Errors
    /// [`StoreError::Refused`] naming the option.
    pub fn check(&self) -> Result<(), StoreError> {
        let ranks = matches!(self.algorithm, Algorithm::Pagerank | Algorithm::Ppr);
        let has_rounds = ranks || self.algorithm == Algorithm::Cdlp;
        let given = [
            ("--iterations", self.iterations.is_some(), has_rounds),
            ("--source", self.source.is_some(), self.algorithm.has_source()),
            ("--damping", self.damping.is_some(), ranks),
            ("--tolerance", self.tolerance.is_some(), ranks),
            ("--graphchi-compat", self.graphchi_compat, ranks),
            ("--async", self.asynchronous, ranks),
            ("--checkpoint", self.checkpoint.is_some(), ranks),
        ];
        match given.iter().find(|(_, given, used)| *given && !used) {
            None => Ok(()),
            Some((flag, ..)) => {
                let name = self.algorithm.name();
                Err(StoreError::Refused(format!("{name} has no use for {flag}; leave it away")))
            }
        }
    }

    /// The options of the algorithm.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            iterations: self.iterations,
            source: self.source,
            damping: self.damping.unwrap_or(0.85),
            tolerance: self.tolerance,
            form: if self.graphchi_compat { Form::GraphChi } else { Form::Normalised },
            schedule: match self.asynchronous {
                true => Schedule::Asynchronous,
                false => Schedule::Synchronous,
            },
            checkpoint: self.checkpoint,
        }
    }
}

/// Parses the name of an algorithm.
///
/// # Errors
/// The algorithms that exist.
pub fn parse_algorithm(text: &str) -> Result<Algorithm, String> {
    let found = Algorithm::ALL.into_iter().find(|(_, name)| *name == text);
    found.map(|(algorithm, _)| algorithm).ok_or_else(|| {
        let names: Vec<&str> = Algorithm::ALL.into_iter().map(|(_, name)| name).collect();
        format!("algorithms are {}", names.join(", "))
    })
}

/// Parses a number between 0 and 1.
///
/// # Errors
/// What is expected.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| format!("{text:?} is not a number between 0 and 1"))
}
