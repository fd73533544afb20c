//! The positions and labels of the ticks of an axis: round numbers in the axis's unit.

use crate::chart::Scale;
use crate::unit::{Unit, trim_zeros};

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value in the axis's base unit.
    pub value: f64,
    /// The value as text.
    pub label: String,
}

/// An axis whose range is known: it maps values to positions.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub scale: Scale,
    pub low: f64,
    pub high: f64,
    /// Ticks from low to high, all within the range.
    pub ticks: Vec<Tick>,
}

impl Range {
    /// A value axis that shows every finite value of `values`: from zero on a linear
    /// scale, from the round number below the smallest positive one on a log scale.
    pub fn covering(
        values: impl Iterator<Item = f64>,
        unit: Unit,
        scale: Scale,
        ticks_max: usize,
    ) -> Self {
        let positive = values.filter(|v| v.is_finite() && *v > 0.0);
        let (smallest, largest) =
            positive.fold((f64::INFINITY, 0.0_f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
        let largest = if largest > 0.0 { largest } else { 1.0 };
        match scale {
            Scale::Linear => {
                let step = linear_step(largest, unit, ticks_max);
                let count = (largest / step - 1e-9).ceil().max(1.0);
                let high = step * count;
                Self { scale, low: 0.0, high, ticks: ticks_between(0.0, high, step, unit) }
            }
            Scale::Log => Self::logarithmic(smallest.min(largest), largest, unit, ticks_max),
        }
    }

    /// An axis from exactly `low` to exactly `high`, with round ticks between.
    pub fn exactly(low: f64, high: f64, unit: Unit, ticks_max: usize) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = linear_step(high - low, unit, ticks_max);
        let ticks = ticks_between(low, high, step, unit);
        Self { scale: Scale::Linear, low, high, ticks }
    }

    /// A horizontal axis that shows every finite value of `values`. A linear one ends at the
    /// largest value and begins at zero, unless all values are in its upper half.
    pub fn spanning(
        values: impl Iterator<Item = f64>,
        unit: Unit,
        scale: Scale,
        ticks_max: usize,
    ) -> Self {
        if scale == Scale::Log {
            return Self::covering(values, unit, scale, ticks_max);
        }
        let finite = values.filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        match low > high {
            true => Self::exactly(0.0, 1.0, unit, ticks_max),
            false if (0.0..=high / 2.0).contains(&low) => Self::exactly(0.0, high, unit, ticks_max),
            false => Self::exactly(low, high, unit, ticks_max),
        }
    }

    fn logarithmic(smallest: f64, largest: f64, unit: Unit, ticks_max: usize) -> Self {
        let base: f64 = if unit.is_binary() { 2.0 } else { 10.0 };
        let first = (smallest.ln() / base.ln() + 1e-9).floor() as i32;
        let last = ((largest.ln() / base.ln() - 1e-9).ceil() as i32).max(first + 1);
        let stride = (last - first).div_euclid(ticks_max.max(1) as i32) + 1;
        let ticks: Vec<Tick> = (first..=last)
            .step_by(stride as usize)
            .map(|power| base.powi(power))
            .map(|value| Tick { value, label: unit.format(value) })
            .collect();
        Self { scale: Scale::Log, low: base.powi(first), high: base.powi(last), ticks }
    }

    /// The position of `value` between 0 (low end) and 1 (high end), clamped to the axis.
    /// `None` if the value is not finite, or not positive on a log scale.
    pub fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.scale == Scale::Log && value <= 0.0) {
            return None;
        }
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        Some(place.clamp(0.0, 1.0))
    }
}

/// The smallest round step that crosses `span` in at most `ticks_max` steps.
fn linear_step(span: f64, unit: Unit, ticks_max: usize) -> f64 {
    let wanted = span / ticks_max.max(1) as f64;
    if unit.is_binary() {
        return wanted.log2().ceil().exp2().max(1.0);
    }
    // Above a minute, round times are not decimal.
    const CLOCK_SECONDS: [f64; 16] = [
        10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 10_800.0,
        21_600.0, 43_200.0, 86_400.0, 172_800.0,
    ];
    if unit == Unit::Nanos && wanted > 5e9 && wanted <= 172_800e9 {
        let steps = CLOCK_SECONDS.iter().map(|seconds| seconds * 1e9);
        return steps.clone().find(|step| *step >= wanted).unwrap_or(172_800e9);
    }
    // Beyond that a day is the unit; below, the second.
    let base = if unit == Unit::Nanos && wanted > 172_800e9 { 86_400e9 } else { 1.0 };
    let wanted = wanted / base;
    let decade = 10f64.powf(wanted.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * decade)
        .find(|step| *step >= wanted * (1.0 - 1e-9));
    let step = step.unwrap_or(10.0 * decade) * base;
    if unit == Unit::Nanos { step.max(1.0) } else { step }
}

/// A time within `range`, both in nanoseconds, rounded to about a thousandth of the range.
pub(crate) fn fine_time(time: f64, range: &std::ops::Range<u64>) -> String {
    let span = range.end.saturating_sub(range.start) as f64;
    let step = linear_step(span.max(1.0), Unit::Nanos, 1000);
    tick_label((time / step).round() * step, step, range.end as f64, Unit::Nanos)
}

fn ticks_between(low: f64, high: f64, step: f64, unit: Unit) -> Vec<Tick> {
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|n| n as f64 * step)
        .map(|value| Tick { value, label: tick_label(value, step, high, unit) })
        .collect()
}

/// All ticks of an axis use one unit: the largest that writes the step with at most one
/// decimal and is not larger than the axis.
fn tick_label(value: f64, step: f64, high: f64, unit: Unit) -> String {
    let fits = |scale: f64| {
        let tenths = step / scale * 10.0;
        scale <= high && (tenths - tenths.round()).abs() < 1e-6 && tenths.round() >= 1.0
    };
    let ladder = unit.ladder();
    let (scale, name) =
        ladder.iter().rev().copied().find(|&(scale, _)| fits(scale)).unwrap_or(ladder[0]);
    let text = format!("{:.6}", value / scale);
    let text = trim_zeros(&text);
    // Zero needs no prefix such as k.
    let name = if value == 0.0 && !name.starts_with(' ') { ladder[0].1 } else { name };
    format!("{text}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(high: f64, unit: Unit, expected: &[&str]) {
        let range = Range::covering([high].into_iter(), unit, Scale::Linear, 5);
        let labels: Vec<&str> = range.ticks.iter().map(|t| t.label.as_str()).collect();
        assert_eq!(labels, expected, "{unit:?} up to {high}");
        assert!(high == 0.0 || range.place(high) > Some(0.5), "most of the axis is used");
    }

    #[test]
    fn steps_are_round_in_the_unit_of_the_axis() {
        check(8.7, Unit::Count, &["0", "2", "4", "6", "8", "10"]);
        check(4300.0, Unit::PerSec, &["0/s", "1k/s", "2k/s", "3k/s", "4k/s", "5k/s"]);
        check(
            700.0 * 1_048_576.0,
            Unit::BytesPerSec,
            &["0 MiB/s", "256 MiB/s", "512 MiB/s", "768 MiB/s"],
        );
        check(100e9, Unit::Nanos, &["0 s", "20 s", "40 s", "60 s", "80 s", "100 s"]);
        check(2.2e9, Unit::Nanos, &["0 s", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s"]);
        check(5.0 * 3600e9, Unit::Nanos, &["0 h", "1 h", "2 h", "3 h", "4 h", "5 h"]);
        check(86_400e9 * 40.0, Unit::Nanos, &["0 d", "10 d", "20 d", "30 d", "40 d"]);
        check(0.9, Unit::Percent, &["0%", "20%", "40%", "60%", "80%", "100%"]);
        check(0.0, Unit::Ratio, &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    }

    #[test]
    fn fine_times_distinguish_neighbours() {
        let ten_minutes = 0..600_000_000_000;
        assert_eq!(fine_time(230_412_345_678.0, &ten_minutes), "230 s");
        assert_eq!(fine_time(231_000_000_000.0, &ten_minutes), "231 s");
        assert_eq!(fine_time(1_234_567.0, &(0..2_000_000)), "1234 us");
        assert_eq!(fine_time(7.0, &(7..7)), "7 ns");
    }

    #[test]
    fn a_log_axis_covers_its_values_in_decades() {
        let values = [25_000.0, 3e6, f64::NAN, 0.0];
        let range = Range::covering(values.into_iter(), Unit::Nanos, Scale::Log, 5);
        let labels: Vec<&str> = range.ticks.iter().map(|t| t.label.as_str()).collect();
        assert_eq!(labels, ["10 us", "100 us", "1 ms", "10 ms"]);
        assert_eq!(range.place(0.0), None);
        assert_eq!(range.place(f64::NAN), None);
        assert!((range.place(1e6).expect("on the axis") - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn an_exact_axis_keeps_its_ends() {
        let range = Range::exactly(0.0, 95e9, Unit::Nanos, 6);
        assert_eq!(range.place(95e9), Some(1.0));
        assert_eq!(range.ticks.last().expect("has ticks").label, "80 s");
        let empty = Range::exactly(5.0, 5.0, Unit::Count, 4);
        assert_eq!(empty.place(5.0), Some(0.0));
    }

    #[test]
    fn a_horizontal_axis_begins_at_zero_if_that_is_near() {
        let ends = |values: &[f64], scale| {
            let range = Range::spanning(values.iter().copied(), Unit::Count, scale, 6);
            (range.low, range.high)
        };
        assert_eq!(ends(&[4.0, f64::NAN, 95.0], Scale::Linear), (0.0, 95.0));
        assert_eq!(ends(&[50.0, 95.0], Scale::Linear), (50.0, 95.0));
        assert_eq!(ends(&[-5.0, 95.0], Scale::Linear), (-5.0, 95.0));
        assert_eq!(ends(&[7.0], Scale::Linear), (7.0, 8.0));
        assert_eq!(ends(&[], Scale::Linear), (0.0, 1.0));
        assert_eq!(ends(&[0.0, 3.0, 95.0], Scale::Log), (1.0, 100.0));
    }
}
