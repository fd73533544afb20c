//! The store on a conventional drive, whose firmware maps, cleans and erases.

use std::collections::VecDeque;

use prism_flash::Result;
use prism_ssd::{Drive, HostOp, Request};

use super::{Done, Store};

pub(super) struct DriveStore {
    pub(super) drive: Drive,
    done: VecDeque<Done>,
}

impl DriveStore {
    pub(super) fn new(drive: Drive) -> Self {
        Self { drive, done: VecDeque::new() }
    }

    fn submit(&mut self, op: HostOp, page: usize, tag: u64) {
        let size = self.drive.device().ftl.mapping_unit.0;
        let request = Request::new(op, page as u64 * size, size, tag);
        self.drive.submit(request, self.drive.now()).expect("a page of the drive");
    }
}

impl Store for DriveStore {
    /// The drive keeps a version number for each page instead of bytes.
    fn write(&mut self, page: usize, _data: Vec<u8>, tag: u64) -> Result<()> {
        self.submit(HostOp::Write, page, tag);
        Ok(())
    }

    fn read(&mut self, page: usize, _data: Vec<u8>, tag: u64) -> Result<()> {
        self.submit(HostOp::Read, page, tag);
        Ok(())
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        let mut done = Vec::new();
        while self.done.is_empty() && self.drive.in_flight() > 0 {
            self.drive.step(&mut done);
            let ended =
                |c: prism_ssd::Completion| Done { tag: c.tag, end: c.completed, data: Vec::new() };
            self.done.extend(done.drain(..).map(ended));
        }
        Ok(self.done.pop_front())
    }

    fn flush(&mut self) -> Result<()> {
        let flush = Request::new(HostOp::Flush, 0, 0, 0);
        self.drive.submit(flush, self.drive.now()).expect("a flush has no address");
        self.complete().map(drop)
    }
}
