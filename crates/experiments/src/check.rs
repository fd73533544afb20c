//! Checks of simulated numbers against known ones, and the simulations that give them.

/// Where the known number of a check comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A closed form, or a published simulation of the same model.
    Theory,
    /// Another simulator, for a drive of the same parameters.
    Oracle,
    /// The data sheet of the drive.
    DataSheet,
}

/// A simulated number and the known one that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Where the known number comes from.
    pub group: Group,
    /// What is compared.
    pub what: String,
    /// The known number.
    pub expected: f64,
    /// The simulated number.
    pub ours: f64,
    /// Largest relative difference at which the two agree; `None` if no agreement is claimed.
    pub tolerance: Option<f64>,
    /// The source of the known number.
    pub source: String,
    /// The unit of both numbers, for display.
    pub unit: &'static str,
}

impl Check {
    /// A check against theory of a number without a unit.
    pub(crate) fn theory(
        what: impl Into<String>,
        [expected, ours]: [f64; 2],
        tolerance: f64,
        source: &str,
    ) -> Self {
        let (what, source, tolerance) = (what.into(), source.into(), Some(tolerance));
        Self { group: Group::Theory, what, expected, ours, tolerance, source, unit: "" }
    }

    /// (ours - expected) / expected; 0 where both are 0.
    #[must_use]
    pub fn difference(&self) -> f64 {
        if self.ours == self.expected { 0.0 } else { (self.ours - self.expected) / self.expected }
    }

    /// Whether the two agree within the tolerance; true if no agreement is claimed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tolerance.is_none_or(|t| self.difference().abs() <= t)
    }
}

/// A simulation that can be run on any thread, and the checks that it gives.
pub struct Simulation {
    /// The name of its checks, to be shown before it has run.
    pub what: String,
    run: Box<dyn FnOnce() -> Vec<Check> + Send>,
}

impl Simulation {
    /// A simulation that gives one check.
    pub fn new(what: String, run: impl FnOnce() -> Check + Send + 'static) -> Self {
        Self::several(what, move || vec![run()])
    }

    /// A simulation that gives several checks.
    pub fn several(what: String, run: impl FnOnce() -> Vec<Check> + Send + 'static) -> Self {
        Self { what, run: Box::new(run) }
    }

    /// Runs the simulation.
    #[must_use]
    pub fn run(self) -> Vec<Check> {
        (self.run)()
    }
}
