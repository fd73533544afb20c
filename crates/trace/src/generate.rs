//! Generates synthetic traces from a seed, one request at a time, without storing them.
//!
//! A [`Workload`] describes the requests; [`Workload::records`] returns an iterator. Operation,
//! size, address and arrival each use a random stream of their own, so that a change in the
//! share of reads, for example, does not change the arrival times.

use prism_base::distribution::{Scatter, Zipf};
use prism_base::{Bytes, Nanos, Rng};

use crate::fields::{ADDRESS_MAX, TIME_MAX_NS};
use crate::record::{Op, Record};

/// The distribution of addresses. They are multiples of the alignment within the span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// All addresses are equally likely.
    Uniform,
    /// One after the other, starting again when the end is reached.
    Sequential,
    /// The k-th most frequent address has a probability in proportion to 1/k^theta; the
    /// frequent addresses are scattered over the span.
    Zipf {
        /// The exponent, above 0; 0.99 is YCSB's.
        theta: f64,
    },
    /// A part of the span, at its start, gets a larger share of the requests.
    HotCold {
        /// Share of the span that is hot, between 0 and 1.
        hot_space: f64,
        /// Share of the requests that go there, between 0 and 1.
        hot_requests: f64,
    },
}

/// The arrival times of requests. The first one arrives at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// One every `interval`.
    Fixed {
        /// Time from one request to the next.
        interval: Nanos,
    },
    /// Independent of each other (exponential gaps).
    Poisson {
        /// Mean time from one request to the next.
        mean: Nanos,
    },
    /// One every `interval` for `on`, then none for `off`, repeatedly.
    Bursts {
        /// Time from one request to the next within a burst.
        interval: Nanos,
        /// Length of a burst.
        on: Nanos,
        /// Length of the pause after it.
        off: Nanos,
    },
}

/// A size and its frequency relative to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeShare {
    /// Bytes of the request.
    pub size: Bytes,
    /// Its weight among the sizes.
    pub weight: u32,
}

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The seed of all random streams.
    pub seed: u64,
    /// The number of reads, writes and discards; flushes are not counted.
    pub requests: u64,
    /// Requests stay below this address.
    pub span: Bytes,
    /// Offsets are multiples of this.
    pub align: Bytes,
    /// The sizes of requests.
    pub sizes: Vec<SizeShare>,
    /// Share of reads, from 0 to 1.
    pub read_share: f64,
    /// Share of discards, from 0 to 1; the rest are writes.
    pub discard_share: f64,
    /// The number of writes after which a flush follows, at the time of the last of them.
    pub writes_per_flush: Option<u64>,
    /// The distribution of addresses.
    pub pattern: Pattern,
    /// The arrival times.
    pub arrival: Arrival,
}

/// Why a workload is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No size, a size of no bytes, or weights that sum to 0 or overflow.
    #[error("the sizes must be above 0 bytes and their weights sum to between 1 and 2^32")]
    Sizes,
    /// The alignment is zero.
    #[error("the alignment must be above 0 bytes")]
    Alignment,
    /// The largest request is larger than the span.
    #[error("a request of {size} does not fit into a span of {span}")]
    Span {
        /// The largest size.
        size: Bytes,
        /// The span.
        span: Bytes,
    },
    /// The span is larger than the address space.
    #[error("the span must be below 2^63 bytes")]
    SpanTooLarge,
    /// A share is outside 0 to 1, or the sum of reads and discards is above 1.
    #[error("read and discard share must lie between 0 and 1, also their sum")]
    Shares,
    /// A hot share is not between 0 and 1.
    #[error("hot space and hot requests must lie between 0 and 1, hot space inside")]
    Hot,
    /// The exponent is not above zero.
    #[error("the exponent of a Zipf pattern must be above 0 and at most 10")]
    Theta,
    /// Flushes after every 0 writes.
    #[error("writes per flush must be above 0")]
    Flush,
    /// A burst of no length, or more time than a trace can have.
    #[error("bursts must last longer than 0 and all requests come within 146 years")]
    Arrival,
}

impl Workload {
    /// The requests, in the order of their times.
    ///
    /// # Errors
    /// [`WorkloadError`] if a field is invalid.
    pub fn records(&self) -> Result<Records, WorkloadError> {
        let largest = self.check()?;
        // Every size fits at every slot, so that all sizes have the same pattern.
        let slots = (self.span.0 - largest.0) / self.align.0 + 1;
        let place = match self.pattern {
            Pattern::Uniform => PatternState::Uniform,
            Pattern::Sequential => PatternState::Sequential { next: 0 },
            Pattern::Zipf { theta } => PatternState::Zipf {
                zipf: Zipf::new(slots, theta),
                scatter: Scatter::new(slots, &mut Rng::stream(self.seed, "generate scatter")),
            },
            Pattern::HotCold { hot_space, hot_requests } => {
                let hot = (slots as f64 * hot_space).round() as u64;
                if hot == 0 || hot >= slots {
                    return Err(WorkloadError::Hot);
                }
                PatternState::HotCold { hot, hot_requests }
            }
        };
        let stream = |label| Rng::stream(self.seed, label);
        Ok(Records {
            left: self.requests,
            slots,
            place,
            weights: self.sizes.iter().map(|share| u64::from(share.weight)).sum(),
            next_ns: 0,
            writes: 0,
            flush_at: None,
            op_rng: stream("generate operation"),
            size_rng: stream("generate size"),
            place_rng: stream("generate place"),
            arrival_rng: stream("generate arrival"),
            workload: self.clone(),
        })
    }

    /// Checks all fields; returns the largest size.
    fn check(&self) -> Result<Bytes, WorkloadError> {
        let largest = self.sizes.iter().map(|share| share.size).max();
        let largest = largest.ok_or(WorkloadError::Sizes)?;
        let weights: u64 = self.sizes.iter().map(|share| u64::from(share.weight)).sum();
        let no_bytes = self.sizes.iter().any(|share| share.size == Bytes::ZERO);
        if no_bytes || !(1..=1 << 32).contains(&weights) {
            return Err(WorkloadError::Sizes);
        }
        if self.align == Bytes::ZERO {
            return Err(WorkloadError::Alignment);
        }
        if self.span.0 > ADDRESS_MAX {
            return Err(WorkloadError::SpanTooLarge);
        }
        if largest > self.span {
            return Err(WorkloadError::Span { size: largest, span: self.span });
        }
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let shares = [self.read_share, self.discard_share, self.read_share + self.discard_share];
        if !shares.into_iter().all(is_share) {
            return Err(WorkloadError::Shares);
        }
        match self.pattern {
            Pattern::Zipf { theta } if !(theta > 0.0 && theta <= 10.0) => {
                return Err(WorkloadError::Theta);
            }
            Pattern::HotCold { hot_space, hot_requests }
                if !(is_share(hot_space) && is_share(hot_requests)) =>
            {
                return Err(WorkloadError::Hot);
            }
            _ => {}
        }
        if self.writes_per_flush == Some(0) {
            return Err(WorkloadError::Flush);
        }
        if self.lasts_too_long() { Err(WorkloadError::Arrival) } else { Ok(largest) }
    }

    fn lasts_too_long(&self) -> bool {
        let gap = match self.arrival {
            Arrival::Fixed { interval } => u128::from(interval.0),
            // No exponential gap of 53 random bits exceeds 37 times the mean.
            Arrival::Poisson { mean } => 37 * u128::from(mean.0),
            Arrival::Bursts { on, .. } if !(1..=TIME_MAX_NS as u64).contains(&on.0) => {
                return true;
            }
            Arrival::Bursts { interval, on, off } => {
                // A gap contains as many pauses as bursts fit into it, and one more.
                let silences = u128::from(interval.0 / on.0) + 1;
                u128::from(interval.0) + silences * u128::from(off.0)
            }
        };
        gap.saturating_mul(u128::from(self.requests)) > TIME_MAX_NS as u128
    }
}

#[derive(Clone, Debug)]
enum PatternState {
    Uniform,
    Sequential { next: u64 },
    Zipf { zipf: Zipf, scatter: Scatter },
    HotCold { hot: u64, hot_requests: f64 },
}

/// The requests of a [`Workload`].
#[derive(Clone, Debug)]
pub struct Records {
    workload: Workload,
    left: u64,
    slots: u64,
    place: PatternState,
    weights: u64,
    /// When the next request arrives. With bursts, pauses are not counted in this time.
    next_ns: i64,
    writes: u64,
    flush_at: Option<i64>,
    op_rng: Rng,
    size_rng: Rng,
    place_rng: Rng,
    arrival_rng: Rng,
}

impl Records {
    fn op(&mut self) -> Op {
        let draw = self.op_rng.unit();
        if draw < self.workload.read_share {
            Op::Read
        } else if draw < self.workload.read_share + self.workload.discard_share {
            Op::Discard
        } else {
            Op::Write
        }
    }

    fn size(&mut self) -> u64 {
        let mut draw = self.size_rng.below(self.weights);
        for share in &self.workload.sizes {
            match draw.checked_sub(u64::from(share.weight)) {
                Some(rest) => draw = rest,
                None => return share.size.0,
            }
        }
        unreachable!("the draw lies below the sum of the weights")
    }

    fn offset(&mut self, size: u64) -> u64 {
        let align = self.workload.align.0;
        let rng = &mut self.place_rng;
        match &mut self.place {
            PatternState::Uniform => rng.below(self.slots) * align,
            PatternState::Zipf { zipf, scatter } => scatter.place(zipf.draw(rng)) * align,
            PatternState::HotCold { hot, hot_requests } => {
                let slot = if rng.chance(*hot_requests) {
                    rng.below(*hot)
                } else {
                    *hot + rng.below(self.slots - *hot)
                };
                slot * align
            }
            PatternState::Sequential { next } => {
                let offset = if *next > self.workload.span.0 - size { 0 } else { *next };
                *next = (offset + size).next_multiple_of(align);
                offset
            }
        }
    }

    /// The time of this request; advances to the next.
    fn arrive(&mut self) -> i64 {
        let now = self.next_ns;
        match self.workload.arrival {
            Arrival::Fixed { interval } => {
                self.next_ns += interval.0 as i64;
                now
            }
            Arrival::Poisson { mean } => {
                let gap = -libm::log1p(-self.arrival_rng.unit()) * mean.0 as f64;
                self.next_ns += gap.round() as i64;
                now
            }
            Arrival::Bursts { interval, on, off } => {
                self.next_ns += interval.0 as i64;
                now + now / on.0 as i64 * off.0 as i64
            }
        }
    }
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if let Some(at) = self.flush_at.take() {
            return Some(Record::new(Op::Flush, at, 0, 0));
        }
        self.left = self.left.checked_sub(1)?;
        let issue_ns = self.arrive();
        let op = self.op();
        let size = self.size();
        let offset = self.offset(size);
        if op == Op::Write {
            self.writes += 1;
            let every = self.workload.writes_per_flush;
            let is_due = every.is_some_and(|every| self.writes.is_multiple_of(every));
            self.flush_at = is_due.then_some(issue_ns);
        }
        Some(Record::new(op, issue_ns, offset, size))
    }
}

#[cfg(test)]
mod tests;
