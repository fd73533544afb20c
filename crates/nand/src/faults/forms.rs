//! The closed forms: failures by wear, bit errors by wear and age, and the probability that error
//! correction fails.

use prism_base::Nanos;

use crate::timing::PageTimes;

/// Beyond the rated endurance, failures grow with this power of the wear: at twice the endurance
/// they are 65,536 times as likely. Our assumption: wear-out is known to be steep, but no source
/// has the exponent.
const BEYOND: f64 = 16.0;

/// The probability that an operation fails: a power law up to the rated endurance, and a steeper
/// one beyond. Source of the form: Mielke and others (IRPS'08), for bit errors that grow with a
/// power of the cycles; we apply it to operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureLaw {
    /// The probability at the rated endurance.
    pub at_endurance: f64,
    /// The exponent of the wear up to the rated endurance.
    pub exponent: f64,
}

impl FailureLaw {
    /// The probability at `wear`.
    #[must_use]
    pub fn probability(&self, wear: f64) -> f64 {
        let power = if wear <= 1.0 { self.exponent } else { BEYOND };
        (self.at_endurance * libm::pow(wear, power)).min(1.0)
    }
}

/// The raw bit error rate:
/// `fresh + cycled * wear^wear_exponent + aged * wear^aged_exponent * years^years_exponent`,
/// times the factor of the page type. Sources of the form: Mielke and others, IRPS'08, for the
/// power law in cycles; Cai and others, DATE'12 and '13, and Grupp and others, FAST'12, for
/// retention that dominates and grows with wear and time, and for the differences between pages of
/// a cell. That the terms add up is our assumption.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitErrors {
    /// The rate of a new block that was just programmed.
    pub fresh: f64,
    /// The rate added at the rated endurance.
    pub cycled: f64,
    /// The exponent of the wear for `cycled`.
    pub wear_exponent: f64,
    /// The rate added at the rated endurance after a year.
    pub aged: f64,
    /// The exponent of the wear for `aged`.
    pub aged_exponent: f64,
    /// The exponent of the years for `aged`.
    pub years_exponent: f64,
    /// A factor for each page type, lowest first; page types repeat through the block.
    pub types: PageFactors,
}

/// A year of retention, as JESD218 counts it for client drives.
const YEAR_NS: f64 = 365.0 * 86_400.0 * 1e9;

impl BitErrors {
    /// The rate in page number `page` of a block, at `wear` and `age`.
    #[must_use]
    pub fn rate(&self, wear: f64, age: Nanos, page: u32) -> f64 {
        (self.types.of(page) * self.base(wear, age)).min(0.5)
    }

    /// The rate without the factor of the page type.
    fn base(&self, wear: f64, age: Nanos) -> f64 {
        let cycled = self.cycled * libm::pow(wear, self.wear_exponent);
        let years = libm::pow(age.0 as f64 / YEAR_NS, self.years_exponent);
        self.fresh + cycled + self.aged * libm::pow(wear, self.aged_exponent) * years
    }
}

/// A factor for each page type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageFactors {
    factors: [f64; PageTimes::TYPES_MAX],
    types: u32,
}

impl PageFactors {
    /// One factor for each type; `None` if there are none or more than
    /// [`PageTimes::TYPES_MAX`].
    #[must_use]
    pub fn by_type(factors: &[f64]) -> Option<Self> {
        let mut all = [*factors.first()?; PageTimes::TYPES_MAX];
        all.get_mut(..factors.len())?.copy_from_slice(factors);
        Some(Self { factors: all, types: factors.len() as u32 })
    }

    /// The factors, lowest page first.
    #[must_use]
    pub fn all(&self) -> &[f64] {
        &self.factors[..self.types as usize]
    }

    /// The type of page number `page`.
    pub(crate) fn type_of(&self, page: u32) -> usize {
        (page % self.types) as usize
    }

    fn of(&self, page: u32) -> f64 {
        self.factors[self.type_of(page)]
    }
}

/// Error correction: codewords with a fixed number of correctable bits, and read retries with other
/// thresholds when these are not enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecc {
    /// Data bits of a codeword, without parity.
    pub codeword_bits: u32,
    /// Correctable bits per codeword.
    pub correctable: u32,
    /// The most read retries.
    pub retries: u32,
    /// The factor by which each retry reduces the bit error rate, our simple model of read retry,
    /// whose gain Cai and others, HPCA'15, measure.
    pub retry_factor: f64,
}

impl Ecc {
    /// Codewords for a unit of `bits`.
    #[must_use]
    pub fn codewords(&self, bits: u64) -> u64 {
        bits.div_ceil(u64::from(self.codeword_bits))
    }

    /// The probability that a unit of `bits` cannot be corrected in attempt `attempt` (0 is the
    /// first) at a raw bit error rate of `rate`.
    #[must_use]
    pub fn failure(&self, rate: f64, attempt: u32, bits: u64) -> f64 {
        let rate = rate * libm::pow(self.retry_factor, f64::from(attempt));
        let one = binomial_tail(self.codeword_bits, rate, self.correctable);
        -libm::expm1(self.codewords(bits) as f64 * libm::log1p(-one.min(1.0)))
    }
}

/// The probability that more than `most` of `bits` bits are wrong, each with probability
/// `rate`: the tail of the binomial distribution, summed from its largest term outwards.
#[must_use]
pub fn binomial_tail(bits: u32, rate: f64, most: u32) -> f64 {
    if most >= bits || rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return 1.0;
    }
    let (n, odds) = (f64::from(bits), rate / (1.0 - rate));
    let term = |k: u32| {
        let k = f64::from(k);
        let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        libm::exp(choose + k * libm::log(rate) + (n - k) * libm::log1p(-rate))
    };
    // Sum the side of the distribution without the mean, so that terms fall from the first on.
    if f64::from(most) + 1.0 > n * rate {
        let (mut k, mut now, mut sum) = (most + 1, term(most + 1), 0.0);
        while now > sum * f64::EPSILON && k <= bits {
            sum += now;
            now *= f64::from(bits - k) / f64::from(k + 1) * odds;
            k += 1;
        }
        return sum.min(1.0);
    }
    let (mut k, mut now, mut sum) = (most, term(most), 0.0);
    loop {
        sum += now;
        if k == 0 || now <= sum * f64::EPSILON {
            return (1.0 - sum).clamp(0.0, 1.0);
        }
        now *= f64::from(k) / (f64::from(bits - k + 1) * odds);
        k -= 1;
    }
}
