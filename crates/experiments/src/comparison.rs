//! Published numbers next to those measured here.
//!
//! Only published numbers that are independent of each other and of our settings count; the others
//! are shown and marked ([`Basis`]). A difference is explained if a run without its cause closes
//! it. Where the source leaves out parameters, that is no explanation but a verdict of its own.

/// The quantity that a number measures, from which its unit follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Megabytes (10^6) a second, as the sources give rates.
    MegabytesPerSecond,
    /// Milliseconds.
    Milliseconds,
    /// Days.
    Days,
    /// A plain count.
    Count,
    /// Events a second.
    PerSecond,
    /// One number over another.
    Ratio,
    /// Percent, as the sources give shares.
    Percent,
    /// Bytes.
    Bytes,
}

/// The reason that is given if the numbers differ, written before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Both numbers are computed in the same way, so that no difference is expected.
    Same,
    /// A run without this cause closes the difference.
    Removed(&'static str),
    /// The source does not give these parameters, on which the number depends.
    NotGiven(&'static str),
    /// The reason is not known; the text states what was tried or ruled out.
    Unexplained(&'static str),
}

named_enum! {
    /// The result of a comparison.
    pub enum Verdict {
        /// The difference is within the tolerance.
        Agrees = "agrees",
        /// The numbers differ, and a run without the cause closes the difference.
        Explained = "explained",
        /// The numbers differ, and depend on parameters that the source does not give.
        NotGiven = "not given",
        /// The numbers differ, and no reason is known.
        Unexplained = "unexplained",
    }
}

named_enum! {
    /// Whether a number proves anything: of all comparisons only independent ones count.
    pub enum Basis {
        /// Published, and neither used for the settings of the simulation nor a function of other
        /// numbers that are compared.
        Independent = "independent",
        /// The settings were chosen so that this number comes out.
        Fitted = "fitted",
        /// Of several settings, the run that is closest to this number and its like is compared.
        Closest = "closest run",
        /// It follows from other numbers that are compared.
        Derived = "derived",
        /// Not published: what arithmetic expects.
        Arithmetic = "arithmetic",
        /// The same sentence of the source, for another drive.
        Repeated = "repeated",
    }
}

/// A published number and the one measured here.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What is compared.
    pub what: String,
    /// The part of the source that gives the number.
    pub place: &'static str,
    /// The quantity of both numbers.
    pub quantity: Quantity,
    /// The published number.
    pub published: f64,
    /// The number measured here; `None` if the run had nothing to measure.
    pub ours: Option<f64>,
    /// Largest difference, as a share of the published number, at which the two agree.
    pub tolerance: f64,
    /// The reason to be given if they do not agree.
    pub why: Why,
    /// Whether the comparison counts.
    pub basis: Basis,
}

impl Comparison {
    /// Compares a published number with ours, which is not finite if nothing was measured.
    pub(crate) fn new(
        place: &'static str,
        what: impl Into<String>,
        quantity: Quantity,
        [published, ours]: [f64; 2],
        tolerance: f64,
        why: Why,
    ) -> Self {
        let ours = ours.is_finite().then_some(ours);
        let basis = Basis::Independent;
        Self { what: what.into(), place, quantity, published, ours, tolerance, why, basis }
    }

    /// The same comparison with another basis.
    pub(crate) fn on(self, basis: Basis) -> Self {
        Self { basis, ..self }
    }

    /// Whether it counts.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.basis == Basis::Independent
    }

    /// The difference as a share of the published number; `None` if nothing was measured, or if
    /// the published number is 0 and the measured one is not.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let ours = self.ours?;
        if ours == self.published {
            return Some(0.0);
        }
        (self.published != 0.0).then(|| (ours - self.published) / self.published)
    }

    /// Whether the two agree, and if not, whether the reason is known.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.difference(), self.why) {
            (Some(difference), _) if difference.abs() <= self.tolerance => Verdict::Agrees,
            (_, Why::Removed(_)) => Verdict::Explained,
            (_, Why::NotGiven(_)) => Verdict::NotGiven,
            (_, Why::Same | Why::Unexplained(_)) => Verdict::Unexplained,
        }
    }

    /// The reason for the difference; empty if there is none.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match (self.verdict(), self.why) {
            (Verdict::Agrees, _) | (_, Why::Same) => "",
            (_, Why::Removed(why) | Why::NotGiven(why) | Why::Unexplained(why)) => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_by_hand() {
        let check = |published, ours, why, verdict, reason: &str| {
            let quantity = Quantity::Ratio;
            let what = "a number";
            let place = "there";
            let comparison = Comparison::new(place, what, quantity, [published, ours], 0.1, why);
            assert_eq!(
                (comparison.verdict(), comparison.reason()),
                (verdict, reason),
                "{comparison:?}"
            );
        };
        let known = Why::Removed("so");
        check(10.0, 11.0, known, Verdict::Agrees, "");
        check(10.0, 8.9, known, Verdict::Explained, "so");
        check(10.0, 11.2, Why::Unexplained("who knows"), Verdict::Unexplained, "who knows");
        check(10.0, 11.2, Why::NotGiven("load"), Verdict::NotGiven, "load");
        check(10.0, 11.2, Why::Same, Verdict::Unexplained, "");
        check(0.0, 0.0, known, Verdict::Agrees, "");
        check(0.0, 1.0, known, Verdict::Explained, "so");
        check(5.0, f64::NAN, known, Verdict::Explained, "so");
    }
}
