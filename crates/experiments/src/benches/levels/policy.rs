//! The store at the policy level: a range with page-level mapping and greedy cleaning.

use std::collections::VecDeque;

use prism_flash::Result;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, RangeConfig};

use super::{Done, Store};

pub(super) struct PolicyStore {
    pub(super) policy: Policy,
    page_size: u64,
    done: VecDeque<Done>,
}

impl PolicyStore {
    pub(super) fn new(policy: Policy, pages: usize) -> Result<Self> {
        let page_size = u64::from(policy.share().geometry()?.page_size);
        let mut config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        config.over_provisioning = OverProvisioning::Rest;
        policy.configure(0, pages as u64 * page_size, config)?;
        Ok(Self { policy, page_size, done: VecDeque::new() })
    }

    fn put_done(&mut self, tag: u64, data: Vec<u8>) -> Result<()> {
        let end = self.policy.share().now()?;
        self.done.push_back(Done { tag, end, data });
        Ok(())
    }
}

impl Store for PolicyStore {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        self.policy.write(page as u64 * self.page_size, &data)?;
        self.put_done(tag, data)
    }

    fn read(&mut self, page: usize, mut data: Vec<u8>, tag: u64) -> Result<()> {
        self.policy.read(page as u64 * self.page_size, &mut data)?;
        self.put_done(tag, data)
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        Ok(self.done.pop_front())
    }

    fn flush(&mut self) -> Result<()> {
        self.policy.flush()
    }
}
