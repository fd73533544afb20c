//! Table 5: cleaning with and without knowledge of the blocks that the file system has freed.
//!
//! Postmark on ext3 writes to a drive of 8 GB that is full at the beginning, as in the paper's
//! simulator. The drive uses the file system's discards, or ignores them. The paper gives the
//! number of transactions and no sizes of files. These follow from the results of the default
//! drive: cleaning takes 225 us per moved page (copy-back) and 1.5 ms per block, so 88,159 pages in
//! 49,147 ms and 284,409 pages in 116,185 ms mean 19,540 and 34,795 blocks. They held 1.14 and
//! 1.91 M pages of host writes in addition to the moved ones: 260 pages, or 1 MiB, per transaction.
//! If file sizes are uniform up to L, a transaction writes 3/8 L, so L is 2.8 MB. (The table's "in
//! 1000s" for pages and "seconds" for times cannot be right: 88 M pages are 336 GiB.)

use prism_base::Bytes;
use prism_nand::Cause;
use prism_ssd::{Drive, HostOp, Request};

use super::ext3::{BLOCK, Step};
use super::postmark::{Options, Postmark};
use super::{closest, distances, line};
use crate::comparison::{Basis, Comparison, Quantity, Why};
use crate::drives::{filled, preset, smaller};
use crate::load::closed_loop;
use crate::scale::Scale;

/// Transactions of the table.
pub const TRANSACTIONS: [u32; 4] = [5000, 6000, 7000, 8000];
/// Pages moved, relative to the default drive.
pub const PAGES: [f64; 4] = [0.31, 0.25, 0.35, 0.50];
/// Cleaning time, relative to the default drive.
pub const TIMES: [f64; 4] = [0.69, 0.60, 0.63, 0.69];
/// Pages moved by the default drive.
pub const DEFAULT_PAGES: [f64; 4] = [88_159.0, 155_465.0, 217_130.0, 284_409.0];
/// Cleaning time of the default drive in milliseconds.
pub const DEFAULT_TIMES: [f64; 4] = [49_147.0, 71_975.0, 93_569.0, 116_185.0];

const CAPACITY: u64 = 8_000_000_000;
const LARGEST: u64 = 2_800_000;
/// Transactions between two commits of the file system: our assumption. A commit is due every 5 s,
/// and drives of the time took about 20 transactions of a megabyte a second.
const PER_COMMIT: u32 = 96;
/// Bytes of the largest request, and requests in flight, as in writeback by the block layer.
const REQUEST: u64 = 128 << 10;
const DEPTH: u32 = 32;

/// The cleaning of a drive up to a number of transactions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Transactions.
    pub transactions: u32,
    /// Pages moved by cleaning.
    pub pages: u64,
    /// Blocks erased.
    pub blocks: u64,
    /// Time of the moves and erases, in milliseconds.
    pub time: f64,
    /// Pages that the host wrote.
    pub written: u64,
    /// How many times smaller than the paper's drive the simulated one is. All numbers here are
    /// smaller by the same factor.
    pub smaller: u32,
}

/// The cleaning of both drives with one pool of files, by [`TRANSACTIONS`].
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRun {
    /// Files and directories.
    pub pool: Pool,
    /// The drive that ignores discards.
    pub default: Vec<Moved>,
    /// The drive that uses discards.
    pub informed: Vec<Moved>,
}

/// The results of all pools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cleaning {
    /// One for each pool that was tried.
    pub runs: Vec<PoolRun>,
}

/// The pool of files of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Files at the beginning.
    pub files: u32,
    /// Directories, which ext3 spreads over its block groups.
    pub directories: u32,
}

/// All pools that are tried. With fewer files, blocks die as a whole and no page is moved.
pub(super) fn pools() -> impl Iterator<Item = Pool> {
    let of = |files| [1, 4, 10, 60].map(|directories| Pool { files, directories });
    [1000, 1500, 2000].into_iter().flat_map(of)
}

/// How many times smaller the drive and all counts are. Sizes of files stay the same.
fn times_smaller(scale: Scale) -> u32 {
    match scale {
        Scale::Full => 1,
        Scale::Quarter => 8,
    }
}

pub(super) fn measure(pool: Pool, informed: bool, scale: Scale, seed: u64) -> Vec<Moved> {
    let times = times_smaller(scale);
    let capacity = Bytes(CAPACITY / u64::from(times));
    let mut device = smaller(&preset("atc08"), capacity);
    device.drive.discards = informed;
    // In the paper's simulator a discard takes effect at once and costs nothing.
    device.drive.power_loss_protection = true;
    let blocks = (device.capacity().0 / BLOCK) as u32;
    let mut drive = filled(device, seed);
    let mut steps = Vec::new();
    let options = Options {
        files: pool.files / times,
        directories: pool.directories,
        largest: LARGEST,
        per_commit: PER_COMMIT.div_ceil(times),
    };
    let mut postmark = Postmark::new(blocks, options, seed, &mut steps);
    issue(&mut drive, &mut steps);
    let mut found = Vec::new();
    for transactions in TRANSACTIONS {
        while postmark.done() * times < transactions {
            postmark.until_commit(&mut steps);
            issue(&mut drive, &mut steps);
        }
        found.push(moved(&drive, transactions, times));
    }
    drive.assert_consistent();
    found
}

/// Issues the writes and discards of the file system to the drive.
fn issue(drive: &mut Drive, steps: &mut Vec<Step>) {
    let mut requests = Vec::new();
    for step in steps.drain(..) {
        let (op, extent) = match step {
            Step::Write(extent) => (HostOp::Write, extent),
            Step::Free(extent) => (HostOp::Discard, extent),
        };
        let (mut begin, end) =
            (u64::from(extent.start) * BLOCK, u64::from(extent.start + extent.len) * BLOCK);
        while begin < end {
            let len = if op == HostOp::Write { REQUEST.min(end - begin) } else { end - begin };
            requests.push(Request::new(op, begin, len, 0));
            begin += len;
        }
    }
    closed_loop(drive, DEPTH, requests.len() as u64, |number| requests[number as usize]);
}

fn moved(drive: &Drive, transactions: u32, smaller: u32) -> Moved {
    let (counts, flash) = (drive.flash_counts(), &drive.device().flash);
    let (pages, blocks) = (counts.programs[Cause::Gc], counts.erases.total());
    let copy = flash.t_read.mean().0 + flash.t_program.mean().0;
    let time = (pages * copy + blocks * flash.t_erase.0) as f64 / 1e6;
    let written = counts.programs[Cause::Host];
    Moved { transactions, pages, blocks, time, written, smaller }
}

impl PoolRun {
    /// The cleaning of the default and of the informed drive after the same transactions.
    pub fn pairs(&self) -> impl Iterator<Item = (&Moved, &Moved)> {
        self.default.iter().zip(&self.informed)
    }

    /// A number computed from both drives, by [`TRANSACTIONS`].
    fn of(&self, ours: fn(&Moved, &Moved) -> f64) -> [f64; 4] {
        std::array::from_fn(|n| ours(&self.default[n], &self.informed[n]))
    }

    /// Pages moved, informed over default; 0 pages count as 1.
    #[must_use]
    pub fn pages(&self) -> [f64; 4] {
        self.of(|default, informed| informed.pages.max(1) as f64 / default.pages.max(1) as f64)
    }

    /// Cleaning time, informed over default.
    #[must_use]
    pub fn times(&self) -> [f64; 4] {
        self.of(|default, informed| informed.time / default.time)
    }

    /// The distance from the table: the sum of the logarithms of ours over published.
    fn distance(&self) -> f64 {
        distances(self.pages(), PAGES) + distances(self.times(), TIMES)
    }
}

impl Cleaning {
    pub(super) fn add(&mut self, pool: Pool, informed: bool, moved: Vec<Moved>) {
        if informed {
            let run = self.runs.last_mut().expect("the default drive runs first");
            assert_eq!(run.pool, pool, "the two drives of a pool run one after the other");
            run.informed = moved;
        } else {
            self.runs.push(PoolRun { pool, default: moved, informed: Vec::new() });
        }
    }

    /// The pool whose ratios are closest to the table.
    #[must_use]
    pub fn closest(&self) -> Option<&PoolRun> {
        closest(&self.runs, |run| run.distance())
    }

    pub(super) fn lines(&self) -> Vec<Comparison> {
        let reason = Why::NotGiven(
            "files, directories, memory and rate of the runs are not given; sizes of files are \
             inferred from the cleaning of the default drive, the others are swept",
        );
        let Some(run) = self.closest() else { return Vec::new() };
        let mut lines = Vec::new();
        let mut add = |what: &str, quantity, published: [f64; 4], ours: [f64; 4]| {
            for (n, transactions) in TRANSACTIONS.into_iter().enumerate() {
                let what = format!("{what}, {transactions} transactions");
                let both = [published[n], ours[n]];
                lines.push(line("Table 5", what, quantity, both, reason).on(Basis::Closest));
            }
        };
        add("relative pages moved", Quantity::Ratio, PAGES, run.pages());
        add("relative cleaning time", Quantity::Ratio, TIMES, run.times());
        let full = run.of(|default, _| (default.pages * u64::from(default.smaller)) as f64);
        add("default, pages moved", Quantity::Count, DEFAULT_PAGES, full);
        let full = run.of(|default, _| default.time * f64::from(default.smaller));
        add("default, cleaning time", Quantity::Milliseconds, DEFAULT_TIMES, full);
        let each: [f64; 4] = std::array::from_fn(|n| DEFAULT_TIMES[n] / DEFAULT_PAGES[n]);
        let ours = run.of(|default, _| default.time / default.pages.max(1) as f64);
        add("default, time for a page moved", Quantity::Milliseconds, each, ours);
        lines
    }
}
