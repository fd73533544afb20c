//! Table 5: cleaning that knows which blocks the file system has freed.
//!
//! Postmark on ext3 writes a drive of 8 GB that is full at the beginning, as in the paper's
//! simulator; the drive listens to frees or does not. The paper gives the number of
//! transactions and nothing of their files. What it prints of the default drive tells their
//! size: cleaning takes 225 us a page moved (copy-back) and 1.5 ms a block, so 88,159 pages in
//! 49,147 ms and 284,409 in 116,185 ms mean 19,540 and 34,795 blocks, which were written with
//! 1.14 and 1.91 M pages beside those moved: 260 pages, or 1 MiB, a transaction. A transaction
//! of files uniform up to L writes 3/8 L, so that L is 2.8 MB. (The table's "in 1000s" for pages
//! and "seconds" for times cannot be: 88 M pages are 336 GiB.)

use prism_base::Bytes;
use prism_nand::Cause;
use prism_ssd::{Drive, HostOp, Request};

use super::ext3::{BLOCK, Step};
use super::line;
use super::postmark::{Options, Postmark};
use crate::comparison::{Beside, Quantity, Why};
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
/// Transactions between two commits of the file system: ours. A commit is due every 5 s, and
/// 20 transactions of a megabyte a second are what a drive of the time takes.
const PER_COMMIT: u32 = 96;
/// Largest request, and how many are in flight: as the block layer sends writeback.
const REQUEST: u64 = 128 << 10;
const DEPTH: u32 = 32;

/// What a drive cleaned until so many transactions were done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Transactions.
    pub transactions: u32,
    /// Pages moved by cleaning.
    pub pages: u64,
    /// Blocks erased.
    pub blocks: u64,
    /// Time that both take, in milliseconds.
    pub time: f64,
    /// Pages that the host wrote.
    pub written: u64,
    /// How many times smaller than the paper's the drive is, and with it all of these.
    pub smaller: u32,
}

/// Both drives with one pool, by [`TRANSACTIONS`].
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRun {
    /// Files and directories.
    pub pool: Pool,
    /// The drive that does not listen to frees.
    pub default: Vec<Moved>,
    /// The drive that does.
    pub informed: Vec<Moved>,
}

/// All pools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cleaning {
    /// One for each of those that are tried.
    pub runs: Vec<PoolRun>,
}

/// Files and directories of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Files at the beginning.
    pub files: u32,
    /// Directories, which ext3 spreads over the drive.
    pub directories: u32,
}

/// Those that are tried: fewer files leave nothing to be moved, as whole blocks of them die.
pub(super) fn pools() -> impl Iterator<Item = Pool> {
    let of = |files| [1, 4, 10, 60].map(|directories| Pool { files, directories });
    [1000, 1500, 2000].into_iter().flat_map(of)
}

/// How many times smaller the drive and all counts are; sizes of files stay.
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
    // Frees are known at once and cost nothing there: the map survives.
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

/// Hands the drive what the file system did.
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
    /// Default and informed drive after the same transactions.
    pub fn pairs(&self) -> impl Iterator<Item = (&Moved, &Moved)> {
        self.default.iter().zip(&self.informed)
    }

    /// Of default and informed drive, by [`TRANSACTIONS`].
    fn of(&self, ours: fn(&Moved, &Moved) -> f64) -> [f64; 4] {
        std::array::from_fn(|n| ours(&self.default[n], &self.informed[n]))
    }

    /// Pages moved, informed over default; what is not moved at all counts as one page.
    #[must_use]
    pub fn pages(&self) -> [f64; 4] {
        self.of(|default, informed| informed.pages.max(1) as f64 / default.pages.max(1) as f64)
    }

    /// Cleaning time, informed over default.
    #[must_use]
    pub fn times(&self) -> [f64; 4] {
        self.of(|default, informed| informed.time / default.time)
    }

    /// The sum over the table's ratios of the factors to ours, in logarithms.
    fn distance(&self) -> f64 {
        let off = |ours: [f64; 4], published: [f64; 4]| -> f64 {
            ours.iter().zip(published).map(|(ours, p)| (ours / p).ln().abs()).sum()
        };
        off(self.pages(), PAGES) + off(self.times(), TIMES)
    }
}

impl Cleaning {
    pub(super) fn add(&mut self, pool: Pool, informed: bool, moved: Vec<Moved>) {
        if informed {
            let run = self.runs.last_mut().expect("the default drive comes first");
            assert_eq!(run.pool, pool, "both drives of a pool come after each other");
            run.informed = moved;
        } else {
            self.runs.push(PoolRun { pool, default: moved, informed: Vec::new() });
        }
    }

    /// The pool whose ratios come nearest to the table.
    #[must_use]
    pub fn closest(&self) -> Option<&PoolRun> {
        self.runs.iter().min_by(|a, b| a.distance().total_cmp(&b.distance()))
    }

    pub(super) fn lines(&self) -> Vec<Beside> {
        let reason = Why::Explained(
            "files, directories, memory and rate of the runs are not given; sizes of files are \
             inferred from what the default drive cleaned, the others are swept",
        );
        let Some(run) = self.closest() else { return Vec::new() };
        let mut lines = Vec::new();
        let mut add = |what: &str, quantity, published: [f64; 4], ours: [f64; 4]| {
            for (n, transactions) in TRANSACTIONS.into_iter().enumerate() {
                let what = format!("{what}, {transactions} transactions");
                let both = [published[n], ours[n]];
                lines.push(line("Table 5", what, quantity, both, reason));
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
