//! Table 3: writes of 4 KiB, issued as they arrive, or merged and aligned to logical pages of
//! 32 KiB.
//!
//! The paper gives the drive and the probability that a write is sequential to the one before. It
//! does not say how requests arrive, nor how long a write may wait for its neighbours. Both are
//! swept, and the setting whose results are closest to the ten numbers of the table is compared
//! with it.

use prism_base::{Bytes, Nanos, Rng};
use prism_ssd::{Drive, HostOp, Request};

use super::host_queue::{Arrivals, Io, Scheme, mean_response};
use super::{closest, distances, line};
use crate::comparison::{Basis, Comparison, Quantity, Why};
use crate::drives::{filled, preset, smaller};
use crate::load::closed_loop;
use crate::scale::Scale;

/// The probabilities that a write is sequential.
pub const SEQUENTIAL: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// Published mean response in milliseconds of writes issued as they arrive.
pub const UNALIGNED: [f64; 5] = [10.6, 10.6, 10.5, 10.2, 10.5];
/// Published mean response in milliseconds of merged and aligned writes.
pub const ALIGNED: [f64; 5] = [10.6, 10.4, 8.9, 7.6, 5.6];

/// How requests may arrive: in a closed loop with one of `DEPTHS` in flight, or in an open loop at
/// a rate that is one of `LOADS` times the drive's rate of random writes.
const DEPTHS: [u32; 5] = [4, 5, 6, 7, 8];
const LOADS: [f64; 4] = [0.8, 0.9, 0.95, 0.98];
/// How long a write may wait for its neighbours, in milliseconds.
const WAITS: [u64; 6] = [0, 1, 2, 3, 5, 10];
const WRITE: u64 = 4096;
/// Bytes between writes that never share a logical page.
const STRIDE: u64 = 1 << 20;

/// Mean responses in milliseconds, by [`SEQUENTIAL`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// How long a write may wait for its neighbours.
    pub wait: Nanos,
    /// Of writes issued as they arrive.
    pub unaligned: [f64; 5],
    /// Of merged and aligned writes.
    pub aligned: [f64; 5],
}

/// The results of all settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alignment {
    /// In the order in which they were tried.
    pub settings: Vec<Setting>,
}

/// The drive of Tables 3 and 4, filled. At the smaller scale the spare flash is just enough for the
/// writes of the shorter run.
pub(super) fn gang(scale: Scale, seed: u64) -> Drive {
    let mut device = preset("atc09-gang");
    if scale == Scale::Quarter {
        device = smaller(&device, Bytes(2 << 30));
    }
    filled(device, seed)
}

/// Requests of a run.
pub(super) fn count(scale: Scale) -> u64 {
    match scale {
        Scale::Full => 20_000,
        Scale::Quarter => 2_000,
    }
}

/// Latency of a random write of 4 KiB on an idle drive, in nanoseconds.
fn service(seed: u64) -> f64 {
    let mut drive = gang(Scale::Quarter, seed);
    let write = |number: u64| Request::new(HostOp::Write, number * STRIDE, WRITE, number);
    closed_loop(&mut drive, 1, 16, write).mean()
}

fn mean(arrivals: Arrivals, scheme: Scheme, sequential: f64, scale: Scale, seed: u64) -> f64 {
    let drive = gang(scale, seed);
    let places = drive.device().capacity().0 / WRITE;
    let mut rng = Rng::stream(seed, "atc09.alignment");
    let mut last = 0;
    mean_response(drive, scheme, arrivals, count(scale), seed, || {
        let follows = rng.chance(sequential) && last + 1 < places;
        last = if follows { last + 1 } else { rng.below(places) };
        Io { op: HostOp::Write, offset: last * WRITE, len: WRITE }
    })
}

/// All tried ways in which requests arrive.
pub(super) fn all_arrivals(seed: u64) -> Vec<Arrivals> {
    let closed = DEPTHS.into_iter().map(|depth| Arrivals::Closed { depth });
    let service = service(seed);
    let open = LOADS.map(|load| Arrivals::Open { gap_max: Nanos((2.0 * service / load) as u64) });
    closed.chain(open).collect()
}

pub(super) fn measure(arrivals: Arrivals, scale: Scale, seed: u64) -> Vec<Setting> {
    let row = |scheme| SEQUENTIAL.map(|p| mean(arrivals, scheme, p, scale, seed));
    let unaligned = row(Scheme::AsTheyArrive);
    let setting = |wait| {
        let wait = Nanos(wait * 1_000_000);
        Setting { arrivals, wait, unaligned, aligned: row(Scheme::Aligned { wait }) }
    };
    WAITS.into_iter().map(setting).collect()
}

impl Setting {
    /// Percent by which aligned writes are faster, by [`SEQUENTIAL`].
    #[must_use]
    pub fn gains(&self) -> [f64; 5] {
        std::array::from_fn(|i| 100.0 * (1.0 - self.aligned[i] / self.unaligned[i]))
    }

    /// The distance from the table: the sum of the logarithms of ours over published.
    fn distance(&self) -> f64 {
        distances(self.unaligned, UNALIGNED) + distances(self.aligned, ALIGNED)
    }
}

impl Alignment {
    /// The setting closest to the table.
    #[must_use]
    pub fn closest(&self) -> Option<&Setting> {
        closest(&self.settings, |setting| setting.distance())
    }

    /// The smallest and the largest gain by alignment over all settings, in percent, by
    /// [`SEQUENTIAL`].
    #[must_use]
    pub fn range(&self) -> [(f64, f64); 5] {
        std::array::from_fn(|i| {
            let gains = self.settings.iter().map(|setting| setting.gains()[i]);
            let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
            gains.fold((least, most), |(low, high), gain| (low.min(gain), high.max(gain)))
        })
    }

    pub(super) fn lines(&self) -> Vec<Comparison> {
        let reason = Why::NotGiven(
            "how writes arrive, how many are looked at to be merged and how long they wait is \
             not given; one setting has to serve all probabilities",
        );
        let Some(setting) = self.closest() else { return Vec::new() };
        let mut lines = Vec::new();
        let schemes =
            [("unaligned", UNALIGNED, setting.unaligned), ("aligned", ALIGNED, setting.aligned)];
        for (scheme, published, ours) in schemes {
            for (i, p) in SEQUENTIAL.into_iter().enumerate() {
                let what = format!("{scheme}, P(sequential) = {p}");
                let both = [published[i], ours[i]];
                lines.push(
                    line("Table 3", what, Quantity::Milliseconds, both, reason).on(Basis::Closest),
                );
            }
        }
        lines
    }
}
