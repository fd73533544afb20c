//! Published numbers next to those measured here, with the reason where the two differ.
//!
//! Reasons are the authors' judgement: they are attached to a comparison before the run, and apply
//! to a difference of any size and sign. No experiment removes a cause to test its reason.

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
    /// The reason is known.
    Explained(&'static str),
    /// The reason is not known; the text states what was tried or ruled out.
    Unexplained(&'static str),
}

named_enum! {
    /// The result of a comparison.
    pub enum Verdict {
        /// The difference is within the tolerance.
        Agrees = "agrees",
        /// The numbers differ, and a reason is given.
        Explained = "explained",
        /// The numbers differ, and no reason is known.
        Unexplained = "unexplained",
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
        Self { what: what.into(), place, quantity, published, ours, tolerance, why }
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
            (_, Why::Explained(_)) => Verdict::Explained,
            (_, Why::Same | Why::Unexplained(_)) => Verdict::Unexplained,
        }
    }

    /// The reason for the difference; empty if there is none.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match (self.verdict(), self.why) {
            (Verdict::Agrees, _) | (_, Why::Same) => "",
            (_, Why::Explained(why) | Why::Unexplained(why)) => why,
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
            let what = "a number".into();
            let place = "there";
            let comparison =
                Comparison { what, place, quantity, published, ours, tolerance: 0.1, why };
            assert_eq!(
                (comparison.verdict(), comparison.reason()),
                (verdict, reason),
                "{comparison:?}"
            );
        };
        let known = Why::Explained("so");
        check(10.0, Some(11.0), known, Verdict::Agrees, "");
        check(10.0, Some(8.9), known, Verdict::Explained, "so");
        check(10.0, Some(11.2), Why::Unexplained("who knows"), Verdict::Unexplained, "who knows");
        check(10.0, Some(11.2), Why::Same, Verdict::Unexplained, "");
        check(0.0, Some(0.0), known, Verdict::Agrees, "");
        check(0.0, Some(1.0), known, Verdict::Explained, "so");
        check(5.0, None, known, Verdict::Explained, "so");
    }
}
