//! One way to write each kind of number, shared by every renderer.

prism_base::named_enum! {
    /// What kind of number a value is: it decides the base unit, whose name in JSON it has, and how
    /// the value is written.
    pub enum Unit {
        /// A span of time in nanoseconds.
        Nanos = "ns",
        /// An amount of data in bytes, shown in binary units.
        Bytes = "bytes",
        /// A rate of data in bytes per second, shown in binary units.
        BytesPerSec = "bytes_per_sec",
        /// A count.
        Count = "count",
        /// Events per second.
        PerSec = "per_sec",
        /// A plain ratio, such as write amplification.
        Ratio = "ratio",
        /// A fraction of one, shown as a percentage: 0.25 is written `25%`.
        Percent = "fraction",
    }
}

/// A unit's prefixes from small to large: the factor and the name of each.
type Ladder = &'static [(f64, &'static str)];

const TIME: Ladder = &[
    (1.0, " ns"),
    (1e3, " us"),
    (1e6, " ms"),
    (1e9, " s"),
    (6e10, " min"),
    (3.6e12, " h"),
    (8.64e13, " d"),
    (3.155_76e16, " years"),
];
const BYTES: Ladder = &[
    (1.0, " B"),
    (1024.0, " KiB"),
    (1_048_576.0, " MiB"),
    (1_073_741_824.0, " GiB"),
    (1_099_511_627_776.0, " TiB"),
    (1_125_899_906_842_624.0, " PiB"),
];
const BYTES_PER_SEC: Ladder = &[
    (1.0, " B/s"),
    (1024.0, " KiB/s"),
    (1_048_576.0, " MiB/s"),
    (1_073_741_824.0, " GiB/s"),
    (1_099_511_627_776.0, " TiB/s"),
];
const COUNT: Ladder = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
const PER_SEC: Ladder = &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")];
const RATIO: Ladder = &[(1.0, "")];
const PERCENT: Ladder = &[(0.01, "%")];

impl Unit {
    /// `value`, given in the base unit, as readers expect it: three significant digits and a
    /// suitable unit. Whole counts are written in full, with commas. A value that is not finite
    /// is written as `n/a`.
    ///
    /// ```
    /// use prism_report::Unit;
    /// assert_eq!(Unit::Nanos.format(1_234_567.0), "1.23 ms");
    /// assert_eq!(Unit::Count.format(1_234_567.0), "1,234,567");
    /// assert_eq!(Unit::Percent.format(0.25), "25%");
    /// ```
    #[must_use]
    pub fn format(self, value: f64) -> String {
        if !value.is_finite() {
            return "n/a".into();
        }
        if self == Self::Count && value.fract() == 0.0 && value.abs() < 1e15 {
            return with_commas(value as i64);
        }
        let ladder = match self {
            // A fraction of a count, such as a mean queue depth, has no prefix.
            Self::Count if value.abs() < 1e6 => RATIO,
            _ => self.ladder(),
        };
        let mut rung = ladder.iter().rposition(|&(scale, _)| value.abs() >= scale).unwrap_or(0);
        // Rounding can reach the next unit: 1023.9 KiB is 1 MiB.
        if let Some(&(next, _)) = ladder.get(rung + 1) {
            let scale = ladder[rung].0;
            if round_to_three_digits(value.abs() / scale) * scale >= next {
                rung += 1;
            }
        }
        let (scale, name) = ladder[rung];
        format!("{}{name}", three_digits(value / scale))
    }

    /// The prefixes of this unit, from small to large.
    pub(crate) fn ladder(self) -> Ladder {
        match self {
            Self::Nanos => TIME,
            Self::Bytes => BYTES,
            Self::BytesPerSec => BYTES_PER_SEC,
            Self::Count => COUNT,
            Self::PerSec => PER_SEC,
            Self::Ratio => RATIO,
            Self::Percent => PERCENT,
        }
    }

    /// Whether round numbers of this unit are powers of two.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Bytes | Self::BytesPerSec)
    }
}

/// `value` rounded to three significant digits; more digits stay before the point.
fn round_to_three_digits(value: f64) -> f64 {
    let scale = 10f64.powi(decimals(value) as i32);
    (value * scale).round() / scale
}

/// How many decimals leave three significant digits of `value`.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v == 0.0 || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        _ => 5,
    }
}

fn three_digits(value: f64) -> String {
    let digits = decimals(value);
    trim_zeros(&format!("{value:.digits$}")).to_owned()
}

/// Drops zeros after a decimal point, and the point with them.
pub(crate) fn trim_zeros(text: &str) -> &str {
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text == "-0" { "0" } else { text }
}

fn with_commas(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::from(if value < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, value: f64, expected: &str) {
        assert_eq!(unit.format(value), expected, "{unit:?} {value}");
    }

    #[test]
    fn values_are_short_and_carry_their_unit() {
        check(Unit::Nanos, 0.0, "0 ns");
        check(Unit::Nanos, 999.6, "1 us");
        check(Unit::Nanos, 75_000.0, "75 us");
        check(Unit::Nanos, 90e9, "1.5 min");
        check(Unit::Nanos, 7.3 * 3.155_76e16, "7.3 years");
        check(Unit::Bytes, 4096.0, "4 KiB");
        check(Unit::Bytes, 1_048_575.0, "1 MiB");
        check(Unit::Bytes, 1000.0, "1000 B");
        check(Unit::BytesPerSec, 1.5 * 1_073_741_824.0, "1.5 GiB/s");
        check(Unit::Count, 0.0, "0");
        check(Unit::Count, -1234.0, "-1,234");
        check(Unit::Count, 12.345, "12.3");
        check(Unit::PerSec, 45_200.0, "45.2k/s");
        check(Unit::Ratio, 1.0 / 3.0, "0.333");
        check(Unit::Percent, 0.0712, "7.12%");
        check(Unit::Percent, 0.0001, "0.01%");
        check(Unit::Ratio, f64::NAN, "n/a");
        check(Unit::Ratio, -0.000_000_1, "0");
    }
}
