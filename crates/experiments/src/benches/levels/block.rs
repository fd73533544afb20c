//! The store on a block device, which maps, cleans and erases: the policy level of the library, or
//! a conventional drive.

use std::collections::VecDeque;

use prism_engine::block::{BlockDevice, HostOp, Request, Status};
use prism_flash::Result;

use super::{Done, Store};

pub(super) struct BlockStore<D> {
    pub(super) device: D,
    page_size: u64,
    done: VecDeque<Done>,
}

impl<D: BlockDevice> BlockStore<D> {
    pub(super) fn new(device: D, page_size: u64) -> Self {
        Self { device, page_size, done: VecDeque::new() }
    }

    fn submit(&mut self, op: HostOp, page: usize, data: Vec<u8>, tag: u64) {
        let request = Request::new(op, page as u64 * self.page_size, data.len() as u64, tag);
        let submitted = self.device.submit_bytes(request, data, self.device.now());
        submitted.expect("a page of the device, and no more requests than it takes");
    }
}

impl<D: BlockDevice> Store for BlockStore<D> {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        self.submit(HostOp::Write, page, data, tag);
        Ok(())
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        self.submit(HostOp::Read, page, data, tag);
        Ok(())
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        let mut done = Vec::new();
        if self.done.is_empty() && self.device.in_flight() > 0 {
            self.device.next_completion(&mut done);
            for completion in done {
                assert!(completion.status == Status::Done, "{completion:?}");
                let (tag, data) = self.device.take_bytes().expect("every request has a buffer");
                self.done.push_back(Done { tag, end: completion.completed, data });
            }
        }
        Ok(self.done.pop_front())
    }

    fn flush(&mut self) -> Result<()> {
        self.submit(HostOp::Flush, 0, Vec::new(), 0);
        self.complete().map(drop)
    }
}
