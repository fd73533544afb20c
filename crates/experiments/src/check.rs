//! One check of a simulation against something known, and simulations that give checks.

/// What kind of thing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A closed form, or a published simulation of the same model.
    Theory,
    /// What another simulator gives for a drive of the same parameters.
    Oracle,
    /// What the maker says.
    DataSheet,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What kind of thing is known.
    pub group: Group,
    /// What is compared.
    pub what: String,
    /// What theory, or the data sheet, says.
    pub expected: f64,
    /// What the simulation says.
    pub ours: f64,
    /// Largest relative difference at which they agree; `None` where the two are shown
    /// side by side without a claim.
    pub tolerance: Option<f64>,
    /// Where the expected value comes from.
    pub source: String,
    /// What both count, for display.
    pub unit: &'static str,
}

impl Check {
    /// Ours against the expected value of theory, for numbers without a unit.
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

    /// Whether the two agree within the tolerance; true where nothing is claimed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tolerance.is_none_or(|t| self.difference().abs() <= t)
    }
}

/// Checks that one simulation gives, to be run later, with a name to show meanwhile.
pub struct Pending {
    /// What it will compare.
    pub what: String,
    run: Box<dyn FnOnce() -> Vec<Check> + Send>,
}

impl Pending {
    /// One check to be run later.
    pub fn new(what: String, run: impl FnOnce() -> Check + Send + 'static) -> Self {
        Self::several(what, move || vec![run()])
    }

    /// Several checks of one simulation, to be run later.
    pub fn several(what: String, run: impl FnOnce() -> Vec<Check> + Send + 'static) -> Self {
        Self { what, run: Box::new(run) }
    }

    /// Runs it.
    #[must_use]
    pub fn run(self) -> Vec<Check> {
        (self.run)()
    }
}
