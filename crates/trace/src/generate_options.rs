//! The options of generated traces as text, and patterns with defaults for them: what
//! `prism trace generate` and the Python package take.

use prism_base::{Bytes, Nanos};

use crate::generate::{Arrival, Pattern, SizeShare, Workload};
use crate::{Capabilities, CountedFrom, TraceFacts};

/// What is generated: options that are not given have the defaults of the pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Addresses, and defaults.
    pub pattern: Preset,
    /// Number of requests, without flushes.
    pub requests: u64,
    /// Size of the address range.
    pub span: Bytes,
    /// Offsets are multiples of this.
    pub align: Bytes,
    /// Sizes with weights; none for the default.
    pub sizes: Vec<SizeShare>,
    /// Share of reads.
    pub reads: Option<f64>,
    /// Share of discards.
    pub discards: Option<f64>,
    /// Writes between two flushes.
    pub flush_every: Option<u64>,
    /// Arrival times.
    pub arrival: Option<Arrival>,
    /// Seed of everything random.
    pub seed: u64,
}

impl GenerateOptions {
    /// The workload that they describe.
    #[must_use]
    pub fn workload(&self) -> Workload {
        let preset = self.pattern;
        let sizes = if self.sizes.is_empty() { preset.sizes } else { &self.sizes };
        Workload {
            seed: self.seed,
            requests: self.requests,
            span: self.span,
            align: self.align,
            sizes: sizes.to_vec(),
            read_share: self.reads.unwrap_or(preset.reads),
            discard_share: self.discards.unwrap_or(preset.discards),
            writes_per_flush: self.flush_every.or(preset.flush_every),
            pattern: preset.pattern,
            arrival: self.arrival.unwrap_or(preset.arrival),
        }
    }
}

/// A pattern, and its defaults for the flags that are not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    pattern: Pattern,
    reads: f64,
    discards: f64,
    sizes: &'static [SizeShare],
    flush_every: Option<u64>,
    arrival: Arrival,
}

const SMALL: SizeShare = SizeShare { size: Bytes(4 << 10), weight: 4 };
const LARGE: SizeShare = SizeShare { size: Bytes(64 << 10), weight: 1 };

/// Writes of 4 KiB, one every 100 microseconds: 40 MB/s, which any drive sustains.
const PLAIN: Preset = Preset {
    pattern: Pattern::Uniform,
    reads: 0.0,
    discards: 0.0,
    sizes: &[SMALL],
    flush_every: None,
    arrival: Arrival::Fixed { interval: Nanos(100_000) },
};

const MIXED: Preset = Preset {
    pattern: Pattern::Zipf { theta: 0.99 },
    reads: 0.7,
    discards: 0.01,
    sizes: &[SMALL, LARGE],
    flush_every: Some(100),
    arrival: Arrival::Poisson { mean: Nanos(100_000) },
};

/// Bursts in a tenth of the time, with ten times the average rate.
const BURSTY: Preset = Preset {
    arrival: Arrival::Bursts {
        interval: Nanos(10_000),
        on: Nanos(100_000_000),
        off: Nanos(900_000_000),
    },
    ..PLAIN
};

/// The facts of a generated trace: it has operations, addresses and times, but no processes.
#[must_use]
pub fn generated_facts() -> TraceFacts {
    TraceFacts {
        format: "generated".into(),
        lines: 0,
        capabilities: Capabilities { discard: true, flush: true, ..Capabilities::READS_AND_WRITES },
        skipped: Vec::new(),
        phases: Vec::new(),
        unpaired: 0,
        reordered: 0,
        counted_from: CountedFrom::Issue,
        nvme_block_bytes: None,
    }
}

/// Reads a pattern: `zipf:1.2`.
///
/// # Errors
/// What is expected.
pub fn parse_pattern(text: &str) -> Result<Preset, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(n, v)| (n, Some(v)));
    let plain = |pattern| Preset { pattern, ..PLAIN };
    match (name, value) {
        ("uniform", None) => Ok(PLAIN),
        ("sequential", None) => Ok(plain(Pattern::Sequential)),
        ("mixed", None) => Ok(MIXED),
        ("bursty", None) => Ok(BURSTY),
        ("zipf", Some(theta)) => {
            let theta = theta.parse().map_err(|_| format!("{theta:?} is not an exponent"))?;
            Ok(plain(Pattern::Zipf { theta }))
        }
        ("hotcold", Some(shares)) => {
            let percent = |text: &str| text.parse::<f64>().ok().map(|value| value / 100.0);
            let shares = shares.split_once('/').and_then(|(s, r)| percent(s).zip(percent(r)));
            let (hot_space, hot_requests) = shares
                .ok_or("write hotcold:20/80 for 80 % of the requests to 20 % of the addresses")?;
            Ok(plain(Pattern::HotCold { hot_space, hot_requests }))
        }
        _ => {
            Err("the patterns are: uniform, sequential, zipf:1.2, hotcold:20/80, mixed, bursty"
                .into())
        }
    }
}

/// Reads a size with a weight: `64KiB:3`.
///
/// # Errors
/// What is expected.
pub fn parse_size(text: &str) -> Result<SizeShare, String> {
    let (size, weight) = text.split_once(':').unwrap_or((text, "1"));
    let weight = weight.parse().map_err(|_| format!("{weight:?} is not a whole number"))?;
    Ok(SizeShare { size: Bytes::parse(size).map_err(|error| error.to_string())?, weight })
}

/// Reads arrival times: `poisson:100us`.
///
/// # Errors
/// What is expected.
pub fn parse_arrival(text: &str) -> Result<Arrival, String> {
    let wrong = || "write fixed:100us, poisson:100us or bursts:10us/100ms/900ms".to_owned();
    let (name, spans) = text.split_once(':').ok_or_else(wrong)?;
    let spans: Result<Vec<Nanos>, _> = spans.split('/').map(Nanos::parse).collect();
    let spans = spans.map_err(|error| error.to_string())?;
    match (name, spans.as_slice()) {
        ("fixed", &[interval]) => Ok(Arrival::Fixed { interval }),
        ("poisson", &[mean]) => Ok(Arrival::Poisson { mean }),
        ("bursts", &[interval, on, off]) => Ok(Arrival::Bursts { interval, on, off }),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read() {
        let pattern = |text| parse_pattern(text).map(|preset| preset.pattern).ok();
        assert_eq!(pattern("uniform"), Some(Pattern::Uniform));
        assert_eq!(pattern("zipf:1.2"), Some(Pattern::Zipf { theta: 1.2 }));
        let hot = Pattern::HotCold { hot_space: 0.2, hot_requests: 0.8 };
        assert_eq!(pattern("hotcold:20/80"), Some(hot));
        for wrong in ["", "zipf", "zipf:x", "uniform:1", "hotcold:20", "hotcold:a/b", "mixed:2"] {
            assert_eq!(pattern(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_and_arrivals_carry_units() {
        let share = |size, weight| Ok(SizeShare { size: Bytes(size), weight });
        assert_eq!(parse_size("4KiB"), share(4096, 1));
        assert_eq!(parse_size("64KiB:3"), share(65536, 3));
        assert!(parse_size("4096").is_err() && parse_size("4KiB:x").is_err());
        let bursts = Arrival::Bursts { interval: Nanos(10), on: Nanos(20), off: Nanos(30) };
        assert_eq!(parse_arrival("bursts:10ns/20ns/30ns"), Ok(bursts));
        assert_eq!(parse_arrival("fixed:1us"), Ok(Arrival::Fixed { interval: Nanos(1000) }));
        for wrong in ["fixed", "fixed:1", "fixed:1us/2us", "bursts:1us", "often:1us"] {
            assert!(parse_arrival(wrong).is_err(), "{wrong}");
        }
    }
}
