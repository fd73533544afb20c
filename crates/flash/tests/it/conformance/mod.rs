//! What every medium promises, checked for each: the tests of this crate and those of crates with
//! media of their own include this module.
//!
//! A check is a function of fresh media. What a medium does not have (a queue, a descriptor, an
//! erase count) is left out.

mod calls;
mod queues;

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use prism_flash::{DeviceGeometry, Medium, PageState};

/// Lets every program of a block fail from now on.
pub type WearOut<'a> = &'a dyn Fn(&Arc<dyn Medium>, u32);

/// A medium to be checked.
pub struct Candidate<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// Makes an erased one.
    pub make: &'a dyn Fn(DeviceGeometry) -> Arc<dyn Medium>,
    /// Whether a descriptor becomes readable within so many milliseconds.
    pub readable: &'a dyn Fn(BorrowedFd<'_>, u32) -> bool,
    /// On media that can fail.
    pub wear_out: Option<WearOut<'a>>,
}

const PAGE: usize = 4096;
const PAGES: u32 = 4;
const OOB: usize = 24;

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 2,
    luns_per_channel: 1,
    blocks_per_lun: 6,
    pages_per_block: PAGES,
    page_size: PAGE as u32,
    oob_size: OOB as u32,
    max_open_blocks: None,
};

/// Checks everything.
pub fn check(candidate: &Candidate) {
    let has_queue = (candidate.make)(GEOMETRY).queue(1).is_some();
    let of_queues = queues::CHECKS.iter().filter(|_| has_queue);
    for (what, check) in calls::CHECKS.iter().chain(of_queues) {
        let passed = catch_unwind(AssertUnwindSafe(|| check(candidate)));
        assert!(passed.is_ok(), "{}: {what}: see the message before", candidate.name);
    }
}

/// The content of a page: bytes that differ by page and position.
fn content(stamp: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u32 * 7 + at as u32 / 251 + stamp * 31) as u8).collect()
}

fn page(stamp: u32) -> Vec<u8> {
    content(stamp, PAGE)
}

/// Programs the pages `from..to` of a block, page by page, with contents of `stamp` plus the page.
fn program(medium: &dyn Medium, block: u32, pages: std::ops::Range<u32>, stamp: u32) {
    for number in pages {
        medium.program(block, number, &page(stamp + number), &[]).expect("the next page");
    }
}

/// The bytes from `offset` of a page on.
fn read(medium: &dyn Medium, block: u32, page: u32, offset: u32, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    let state = medium.read(block, page, offset, &mut data, &mut []);
    assert_eq!(state, Ok(PageState::Written), "block {block}, page {page}, offset {offset}");
    data
}

fn state(medium: &dyn Medium, block: u32, page: u32) -> PageState {
    medium.read(block, page, 0, &mut [], &mut []).expect("a state")
}

/// Checks the pages of a block, which have the content of `stamp` plus the page.
fn assert_holds(medium: &dyn Medium, block: u32, pages: std::ops::Range<u32>, stamp: u32) {
    for number in pages.clone() {
        assert!(read(medium, block, number, 0, PAGE) == page(stamp + number), "page {number}");
    }
    if pages.end < PAGES {
        assert_eq!(state(medium, block, pages.end), PageState::Erased);
    }
}
