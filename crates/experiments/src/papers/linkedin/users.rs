//! Hot users and cold ones, in the same pages or apart.

use prism_base::{Bytes, Rng};
use prism_ssd::{InitialState, Request};

use super::Bench;
use super::bed::{threads, wide, write};
use crate::drives::prepared;
use crate::theory::HotCold;

/// Bytes of a user's record, of which a page holds sixteen.
pub const RECORD: Bytes = Bytes(256);
const RECORDS: u64 = 4096 / RECORD.0;
/// One user in ten gets nine updates in ten. The article gives no numbers.
pub const SKEW: HotCold = HotCold { units: 0.1, writes: 0.9 };
/// Updates that are gathered in memory before the pages they touch are written: one for
/// eight pages of the drive.
const PAGES_PER_UPDATE: u64 = 8;
/// Pages written before and while it is measured, as multiples of the drive.
const WARM_UP: u64 = 3;
const MEASURED: u64 = 2;

/// Where users are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// By the time at which they registered: hot ones anywhere.
    Mixed,
    /// Hot ones in pages of their own.
    Apart,
    /// The same, and the drive is told which writes are hot (a placement handle), so that
    /// they are apart on flash as well.
    ApartOnFlash,
}

impl Layout {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Mixed, Self::Apart, Self::ApartOnFlash];

    /// What it is, in a few words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Apart => "apart in files",
            Self::ApartOnFlash => "apart in files and on flash",
        }
    }
}

/// What one layout costs.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutRow {
    /// The layout.
    pub layout: Layout,
    /// Pages written for each update of a user.
    pub pages: f64,
    /// Units programmed for each page written.
    pub write_amplification: f64,
    /// Bytes programmed for each byte updated.
    pub flash_bytes: f64,
}

/// The users who are updated, and the pages they are in.
struct Users {
    layout: Layout,
    pages: u64,
    rng: Rng,
    /// By page: the checkpoint at which it was last touched.
    touched: Vec<u32>,
    checkpoint: u32,
    dirty: Vec<u64>,
    updates: u64,
}

impl Users {
    fn new(layout: Layout, pages: u64, seed: u64) -> Self {
        Self {
            layout,
            pages,
            rng: Rng::stream(seed, "linkedin.users"),
            touched: vec![0; pages as usize],
            checkpoint: 0,
            dirty: Vec::new(),
            updates: 0,
        }
    }

    fn hot_pages(&self) -> u64 {
        (self.pages as f64 * SKEW.units) as u64
    }

    /// The page of the next user who is updated.
    fn draw(&mut self) -> u64 {
        let hot = self.rng.chance(SKEW.writes);
        let (all, some) = (self.pages * RECORDS, self.hot_pages() * RECORDS);
        let user = if hot { self.rng.below(some) } else { some + self.rng.below(all - some) };
        match self.layout {
            // Users of the same heat are spread by a step that meets every place once.
            Layout::Mixed => user % self.pages,
            Layout::Apart | Layout::ApartOnFlash => user / RECORDS,
        }
    }

    /// The next page to write; users are updated when all that were dirty are written.
    fn next_page(&mut self) -> u64 {
        if self.dirty.is_empty() {
            self.checkpoint += 1;
            for _ in 0..self.pages / PAGES_PER_UPDATE {
                let page = self.draw();
                let touched = &mut self.touched[page as usize];
                if *touched != self.checkpoint {
                    *touched = self.checkpoint;
                    self.dirty.push(page);
                }
                self.updates += 1;
            }
        }
        self.dirty.pop().expect("somebody was updated")
    }
}

/// What `layout` costs on a drive that is as good as full of users.
pub(super) fn row(bench: Bench, layout: Layout) -> LayoutRow {
    let mut device = wide(Bytes(bench.bytes(4)));
    if layout == Layout::ApartOnFlash {
        device.ftl.placement_handles = 2;
        device.ftl.frontiers = prism_ftl::Frontiers::PerStream;
        // The second open block of a die comes out of what the users have.
        let usable = device.usable_units();
        let spare = 1.0 + wide(Bytes(bench.bytes(4))).over_provisioning().effective;
        device.drive.capacity = Bytes((usable as f64 / spare) as u64 * device.ftl.mapping_unit.0);
    }
    let pages = device.capacity().0 / 4096;
    let mut drive = prepared(device, InitialState::Filled, bench.seed);
    let mut users = Users::new(layout, pages, bench.seed);
    let hot = users.hot_pages();
    let handle = |page: u64| u16::from(layout == Layout::ApartOnFlash && page < hot);
    let mut run = |users: &mut Users, writes| {
        threads(&mut drive, 8, writes, |_| {
            let page = users.next_page();
            Request { handle: handle(page), ..write(page * 4096, 4096) }
        })
    };
    run(&mut users, WARM_UP * pages);
    let before = users.updates - users.dirty.len() as u64;
    let stretch = run(&mut users, MEASURED * pages);
    let updates = users.updates - users.dirty.len() as u64 - before;
    let written = stretch.count as f64 / updates as f64;
    let per_update = written * 4096.0 * stretch.write_amplification;
    LayoutRow {
        layout,
        pages: written,
        write_amplification: stretch.write_amplification,
        flash_bytes: per_update / RECORD.0 as f64,
    }
}
