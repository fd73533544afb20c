//! The names of the five rules.

/// A rule of the unwritten contract (He et al., EuroSys'17, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Requests are large, or many are in flight.
    RequestScale,
    /// Accesses close in time are close in address, so that a part of the map serves them.
    Locality,
    /// Writes begin at aligned addresses and go on in order.
    AlignedSequentiality,
    /// Data that dies together lies together.
    DeathTime,
    /// All data lives about as long.
    UniformLifetime,
}

impl Rule {
    /// Every rule, in the order of the paper.
    pub const ALL: [Self; 5] = [
        Self::RequestScale,
        Self::Locality,
        Self::AlignedSequentiality,
        Self::DeathTime,
        Self::UniformLifetime,
    ];

    /// What it is called in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestScale => "request scale",
            Self::Locality => "locality",
            Self::AlignedSequentiality => "aligned sequentiality",
            Self::DeathTime => "grouping by death time",
            Self::UniformLifetime => "uniform data lifetime",
        }
    }

    /// What it is called in JSON and on the command line.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::RequestScale => "request-scale",
            Self::Locality => "locality",
            Self::AlignedSequentiality => "alignment",
            Self::DeathTime => "death-time",
            Self::UniformLifetime => "lifetime",
        }
    }
}
