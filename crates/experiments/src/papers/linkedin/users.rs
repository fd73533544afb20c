//! Records of hot and cold users, in the same pages or in separate ones.

use prism_base::{Bytes, Rng};
use prism_ssd::{InitialState, Request};

use super::Bench;
use super::writers::{threads, wide, write};
use crate::drives::prepared;
use crate::theory::HotCold;

/// Bytes of a user's record; a page holds sixteen.
pub const RECORD: Bytes = Bytes(256);
const RECORDS: u64 = 4096 / RECORD.0;
/// 10 % of the users get 90 % of the updates. The article gives no numbers.
pub const SKEW: HotCold = HotCold { units: 0.1, writes: 0.9 };
/// Updates are gathered in memory before the pages with them are written: one update for so many
/// pages of the drive.
const PAGES_PER_UPDATE: u64 = 8;
/// Pages written before and during the measurement, as multiples of the drive.
const WARM_UP: u64 = 3;
const MEASURED: u64 = 2;

named_enum! {
    /// The placement of users in pages.
    pub enum Layout {
        /// In the order of registration, so that every page has hot users.
        Mixed = "mixed",
        /// Hot users are in separate pages.
        Apart = "apart in files",
        /// Hot users are in separate pages, and a placement handle marks hot writes, so that the
        /// drive separates them on flash as well.
        ApartOnFlash = "apart in files and on flash",
    }
}

/// The cost of a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutRow {
    /// The layout.
    pub layout: Layout,
    /// Pages written per update of a user.
    pub pages: f64,
    /// Units programmed per page written.
    pub write_amplification: f64,
    /// Bytes programmed per byte updated.
    pub flash_bytes: f64,
}

/// A generator of updates and of the page writes that they cause.
struct Users {
    layout: Layout,
    pages: u64,
    rng: Rng,
    /// The checkpoint at which each page was last updated.
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

    /// The page of the next updated user.
    fn draw(&mut self) -> u64 {
        let hot = self.rng.chance(SKEW.writes);
        let (all, some) = (self.pages * RECORDS, self.hot_pages() * RECORDS);
        let user = if hot { self.rng.below(some) } else { some + self.rng.below(all - some) };
        match self.layout {
            // Hot users are spread evenly over all pages.
            Layout::Mixed => user % self.pages,
            Layout::Apart | Layout::ApartOnFlash => user / RECORDS,
        }
    }

    /// The next page to write. When all dirty pages have been written, more users are updated.
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
        self.dirty.pop().expect("an update makes a page dirty")
    }
}

/// The cost of `layout` on a drive that is full of users.
pub(super) fn row(bench: Bench, layout: Layout) -> LayoutRow {
    let mut device = wide(Bytes(bench.bytes(4)));
    if layout == Layout::ApartOnFlash {
        device.ftl.placement_handles = 2;
        device.ftl.frontiers = prism_ftl::Frontiers::PerStream;
        // The second open block of each die takes flash from the users.
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
