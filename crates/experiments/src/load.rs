//! Requests in a closed or an open loop, and what their latencies add up to.

use prism_base::Nanos;
use prism_ssd::{Completion, Drive, Request};

/// Sums over the latencies of completed requests, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests completed.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// From the first submission to the last completion.
    pub span: Nanos,
    /// The longest latency.
    pub max: Nanos,
    sum: u128,
    squares: u128,
}

impl Tally {
    /// Adds one completion.
    pub fn add(&mut self, completion: &Completion) {
        let latency = completion.completed.since(completion.submitted);
        self.count += 1;
        self.bytes += completion.len;
        self.max = self.max.max(latency);
        self.sum += u128::from(latency.0);
        self.squares += u128::from(latency.0) * u128::from(latency.0);
    }

    /// Mean latency in nanoseconds; 0 if nothing was completed.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Standard deviation of the latency in nanoseconds.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let count = u128::from(self.count.max(1));
        // n * sum of squares - square of the sum, in integers: no cancellation.
        ((self.squares * count - self.sum * self.sum) as f64).sqrt() / count as f64
    }

    /// Bytes completed in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.span.as_secs_f64()
    }
}

/// Keeps `depth` requests in flight until `count` are done; `next` is told the number of
/// the request.
///
/// # Panics
/// If the drive refuses a request.
pub fn closed_loop(
    drive: &mut Drive,
    depth: u32,
    count: u64,
    mut next: impl FnMut(u64) -> Request,
) -> Tally {
    let start = drive.now();
    let mut tally = Tally::default();
    let mut submitted = 0;
    let mut done = Vec::new();
    while tally.count < count {
        while submitted < count && drive.in_flight() < depth {
            drive.submit(next(submitted), drive.now()).expect("within the drive");
            submitted += 1;
        }
        let any = drive.next_completion(&mut done);
        assert!(any, "what was asked for completes");
        done.drain(..).for_each(|completion| tally.add(&completion));
    }
    tally.span = drive.now().since(start);
    drive.assert_conserved();
    tally
}

/// Submits `count` requests at times of their own, however many are in flight; `next`
/// gives the time since the one before and the request.
///
/// # Panics
/// If the drive refuses a request, as one does whose queue is full.
pub fn open_loop(
    drive: &mut Drive,
    count: u64,
    mut next: impl FnMut(u64) -> (Nanos, Request),
) -> Tally {
    let start = drive.now();
    let mut at = start;
    let mut tally = Tally::default();
    let mut done = Vec::new();
    for number in 0..count {
        let (gap, request) = next(number);
        at += gap;
        drive.advance(at, &mut done);
        drive.submit(request, at).expect("within the drive, and its queue is not full");
        done.drain(..).for_each(|completion| tally.add(&completion));
    }
    while tally.count < count {
        let any = drive.next_completion(&mut done);
        assert!(any, "what was asked for completes");
        done.drain(..).for_each(|completion| tally.add(&completion));
    }
    tally.span = drive.now().since(start);
    drive.assert_conserved();
    tally
}
