//! A published number beside ours, and what is to be said where the two differ.

/// What a number counts, so that it can be written with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Megabytes (10^6) a second, as the sources give rates.
    MegabytesPerSecond,
    /// Milliseconds.
    Milliseconds,
    /// Days.
    Days,
    /// A number of things.
    Count,
    /// A number of things a second.
    PerSecond,
    /// One number over another.
    Ratio,
    /// Percent, as the sources give shares.
    Percent,
    /// Bytes.
    Bytes,
}

/// Why ours is another number than the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Both are computed the same way: there is nothing to explain.
    Same,
    /// Known.
    Explained(&'static str),
    /// Not known.
    Unexplained(&'static str),
}

/// How the two lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance.
    Agrees,
    /// Not so, and it is known why.
    Explained,
    /// Not so, and it is not known why.
    Unexplained,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Agrees, Self::Explained, Self::Unexplained];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Explained => "explained",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A published number beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// What is compared.
    pub what: String,
    /// Where the source says so.
    pub place: &'static str,
    /// What both count.
    pub quantity: Quantity,
    /// The source's number.
    pub published: f64,
    /// Ours; none where the run had nothing to measure.
    pub ours: Option<f64>,
    /// Largest difference, as a share of the published number, at which both agree.
    pub tolerance: f64,
    /// What is said where they do not.
    pub why: Why,
}

impl Beside {
    /// Ours less the published one, as a share of it; none without ours, or where the
    /// published one is 0 and ours is not.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let ours = self.ours?;
        if ours == self.published {
            return Some(0.0);
        }
        (self.published != 0.0).then(|| (ours - self.published) / self.published)
    }

    /// How the two lie to each other.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.difference(), self.why) {
            (Some(difference), _) if difference.abs() <= self.tolerance => Verdict::Agrees,
            (_, Why::Explained(_)) => Verdict::Explained,
            (_, Why::Same | Why::Unexplained(_)) => Verdict::Unexplained,
        }
    }

    /// What is said about the difference; nothing where there is none.
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
            let beside = Beside { what, place, quantity, published, ours, tolerance: 0.1, why };
            assert_eq!((beside.verdict(), beside.reason()), (verdict, reason), "{beside:?}");
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
