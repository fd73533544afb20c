//! Verdicts: which rules are kept and which are broken.

/// Whether one rule is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The rule, in a few words.
    pub name: String,
    /// Whether it is kept.
    pub grade: Grade,
    /// How well it is kept, from 0 (not at all) to 1 (entirely); values outside are clamped.
    /// `None` or not finite if it is not known.
    pub score: Option<f64>,
    /// One sentence that says why.
    pub sentence: String,
    /// The evidence for the verdict: names with values as text.
    pub details: Vec<(String, String)>,
}

prism_base::named_enum! {
    /// Whether a rule is kept, the best first.
    pub enum Grade {
        /// The rule is kept.
        Kept = "kept",
        /// The rule is kept for the most part, or barely.
        Strained = "strained",
        /// The rule is broken.
        Broken = "broken",
        /// The data that would show it is missing.
        Unknown = "unknown",
    }
}

impl Grade {
    /// The sign before a score in a table: not every reader sees colours.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Kept | Self::Unknown => "",
            Self::Strained => "~ ",
            Self::Broken => "! ",
        }
    }
}

impl Verdict {
    /// A verdict without a score and details.
    #[must_use]
    pub fn new(name: impl Into<String>, grade: Grade, sentence: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            grade,
            score: None,
            sentence: sentence.into(),
            details: Vec::new(),
        }
    }

    /// This verdict with its score, from 0 to 1.
    #[must_use]
    pub fn score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }

    /// This verdict with one more piece of evidence.
    #[must_use]
    pub fn detail(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.details.push((name.into(), value.into()));
        self
    }

    /// The score from 0 to 1, if there is one.
    pub(crate) fn share(&self) -> Option<f64> {
        self.score.filter(|score| score.is_finite()).map(|score| score.clamp(0.0, 1.0))
    }

    /// The score as text.
    pub(crate) fn score_text(&self, missing: &str) -> String {
        self.share().map_or_else(|| missing.into(), |share| format!("{share:.2}"))
    }
}
