//! Figure 2: the bandwidth of writes on S2 over their size, which is a saw-tooth.
//!
//! There is one write at a time, and each begins at the boundary of a new logical page. If a write
//! ends inside a logical page, the rest of that page is read and written again. So the bandwidth is
//! highest for whole pages and drops just above each multiple. The paper prints no numbers of the
//! figure except the position of the maximum. The simulation is compared with the closed form
//! s / ceil(s / S), which leaves out the reads.

use prism_base::Bytes;
use prism_ssd::{HostOp, Request};

use super::bandwidth::{Drive, megabytes};
use super::{NOT_KNOWN, line};
use crate::comparison::{Comparison, Quantity};
use crate::drives::{filled, smaller};
use crate::load::closed_loop;
use crate::scale::Scale;

/// The stripe, which is the logical page, in bytes.
pub const STRIPE: u64 = 1 << 20;
/// The largest write in bytes.
const LARGEST: u64 = 4 << 20;
/// Writes before the measured ones, which fill the buffer.
const BEFORE: u64 = 8;

/// The bandwidth of one size of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of each write.
    pub size: u64,
    /// The simulated bandwidth in 10^6 bytes a second.
    pub ours: f64,
    /// The closed form, scaled to the simulated bandwidth of one whole stripe.
    pub closed_form: f64,
}

/// The bandwidth over the size of writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stripes {
    /// By size, ascending.
    pub points: Vec<Point>,
}

/// The measured sizes: powers of two below a stripe, multiples of a quarter stripe, and whole
/// stripes plus a sector.
fn sizes() -> Vec<u64> {
    let powers = (9..20).map(|shift| 1 << shift);
    let quarters = (1..=LARGEST / STRIPE * 4).map(|n| n * STRIPE / 4);
    let beyond = (1..LARGEST / STRIPE).map(|n| n * STRIPE + 512);
    let mut all: Vec<u64> = powers.chain(quarters).chain(beyond).collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn measure(scale: Scale, seed: u64) -> Stripes {
    let count = scale.of(128);
    let device = smaller(&Drive::S2.device(), Bytes(2 << 30));
    let end = device.capacity().0 / STRIPE - LARGEST / STRIPE;
    let mut drive = filled(device, seed);
    // Writes are sequential, so that cleaning finds blocks without valid data.
    let mut stripe = 0;
    let mut rate = |size: u64| {
        let mut write = |number| {
            let begin = stripe % end;
            stripe = begin + size.div_ceil(STRIPE);
            Request::new(HostOp::Write, begin * STRIPE, size, number)
        };
        closed_loop(&mut drive, 1, BEFORE, &mut write);
        megabytes(&closed_loop(&mut drive, 1, count, &mut write))
    };
    let peak = rate(STRIPE);
    let point = |size: u64| {
        let share = size as f64 / (size.div_ceil(STRIPE) * STRIPE) as f64;
        Point { size, ours: rate(size), closed_form: peak * share }
    };
    Stripes { points: sizes().into_iter().map(point).collect() }
}

impl Stripes {
    /// The bandwidth of writes of `size`, if it was measured.
    #[must_use]
    pub fn at(&self, size: u64) -> Option<f64> {
        self.points.iter().find(|point| point.size == size).map(|point| point.ours)
    }

    /// The smallest size whose bandwidth is within 1 % of the highest: the stripe, if writes are
    /// striped.
    #[must_use]
    pub fn best(&self) -> Option<u64> {
        let most = self.points.iter().map(|point| point.ours).fold(0.0, f64::max);
        self.points.iter().find(|point| point.ours > 0.99 * most).map(|point| point.size)
    }

    pub(super) fn lines(&self) -> Vec<Comparison> {
        let size = |best| {
            let both = [STRIPE as f64, best as f64];
            let what = "S2: smallest write of highest bandwidth";
            line("Figure 2", what, Quantity::Bytes, both, NOT_KNOWN)
        };
        let rate = |ours| {
            let both = [Drive::S2.published().write[0], ours];
            let what = "S2: bandwidth of writes of 1 MiB (Table 2: sequential)";
            line("Figure 2", what, Quantity::MegabytesPerSecond, both, NOT_KNOWN)
        };
        self.best().map(size).into_iter().chain(self.at(STRIPE).map(rate)).collect()
    }
}
