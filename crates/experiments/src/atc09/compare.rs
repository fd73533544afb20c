//! A published number beside ours, and why they differ.

/// A difference of less than this share of the published number needs no reason: the paper
/// prints two or three digits, and sweeps here go in steps.
pub const NEAR: f64 = 0.15;

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// 10^6 bytes a second.
    MegabytesPerSecond,
    /// Milliseconds.
    Milliseconds,
    /// One number over another.
    Ratio,
    /// Percent.
    Percent,
    /// Bytes.
    Bytes,
}

impl Quantity {
    /// The unit as it is written behind a number.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::Milliseconds => "ms",
            Self::Ratio => "",
            Self::Percent => "%",
            Self::Bytes => "bytes",
        }
    }
}

/// Why a number is not the published one, if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Known: one sentence.
    Explained(&'static str),
    /// Not known.
    Unexplained,
}

/// What is said of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is none to speak of ([`NEAR`]).
    Near,
    /// It has a reason.
    Explained(&'static str),
    /// It has none that is known.
    Unexplained,
}

/// A published number beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Table, figure or section.
    pub source: &'static str,
    /// What was measured.
    pub what: String,
    /// In what.
    pub quantity: Quantity,
    /// What the paper says.
    pub published: f64,
    /// What came out here.
    pub ours: f64,
    /// Why it is another number.
    pub why: Why,
}

impl Line {
    pub(super) fn new(
        source: &'static str,
        what: impl Into<String>,
        quantity: Quantity,
        [published, ours]: [f64; 2],
        reason: Reason,
    ) -> Self {
        let near = (ours - published).abs() <= NEAR * published.abs();
        let why = match reason {
            _ if near => Why::Near,
            Reason::Explained(reason) => Why::Explained(reason),
            Reason::Unexplained => Why::Unexplained,
        };
        Self { source, what: what.into(), quantity, published, ours, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_have_reasons() {
        let why = |published, ours, reason| {
            Line::new("Table 0", "it", Quantity::Ratio, [published, ours], reason).why
        };
        let known = Reason::Explained("because");
        assert_eq!(why(100.0, 115.0, known), Why::Near);
        assert_eq!(why(100.0, 84.0, known), Why::Explained("because"));
        assert_eq!(why(-2.0, -2.4, Reason::Unexplained), Why::Unexplained);
        assert_eq!(why(0.0, 0.0, Reason::Unexplained), Why::Near);
    }
}
