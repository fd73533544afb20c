//! Figure 2: the bandwidth of writes over their size on S2, a saw-tooth.
//!
//! Each write begins at a logical page of its own, one at a time. Where it ends inside a
//! logical page, the rest of that page is read and written with it, so that bandwidth is
//! highest for whole pages and falls behind each. The figure has no numbers in print but for
//! where the maximum is; beside ours stands the closed form s / ceil(s / S), which leaves the
//! read out.

use prism_base::Bytes;
use prism_ssd::{HostOp, Request};

use super::bandwidth::{Drive, megabytes};
use super::{NOT_KNOWN, line};
use crate::comparison::{Beside, Quantity};
use crate::drives::{filled, smaller};
use crate::load::closed_loop;
use crate::scale::Scale;

/// The stripe, which is the logical page.
pub const STRIPE: u64 = 1 << 20;
/// Largest write.
const LARGEST: u64 = 4 << 20;
/// Writes before those that are measured: they fill the buffer.
const BEFORE: u64 = 8;

/// One size of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of each write.
    pub size: u64,
    /// 10^6 bytes a second.
    pub ours: f64,
    /// The same by the closed form, scaled to the bandwidth of one whole stripe.
    pub closed_form: f64,
}

/// Bandwidth over size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stripes {
    /// By size, ascending.
    pub points: Vec<Point>,
}

/// Powers of two to a stripe, then quarters of stripes, and a sector more than whole ones.
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
    // In order, so that cleaning finds blocks that hold nothing.
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
    /// Bandwidth of writes of `size`, if it was measured.
    #[must_use]
    pub fn at(&self, size: u64) -> Option<f64> {
        self.points.iter().find(|point| point.size == size).map(|point| point.ours)
    }

    /// The smallest size that is within 1 % of the best: the stripe, if writes are striped.
    #[must_use]
    pub fn best(&self) -> Option<u64> {
        let most = self.points.iter().map(|point| point.ours).fold(0.0, f64::max);
        self.points.iter().find(|point| point.ours > 0.99 * most).map(|point| point.size)
    }

    pub(super) fn lines(&self) -> Vec<Beside> {
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
