//! The store at the policy level: a range with page-level mapping and greedy cleaning.

use std::collections::VecDeque;
use std::sync::Arc;

use prism_flash::Result;
use prism_flash::policy::{Cleaning, Mapping, OverProvisioning, Policy, Queue, RangeConfig};

use super::{DEPTH, Done, Store};

pub(super) struct PolicyStore {
    pub(super) policy: Arc<Policy>,
    reads: Queue<Arc<Policy>>,
    page_size: u64,
    /// Writes, which complete when their LUN has taken them.
    done: VecDeque<Done>,
}

impl PolicyStore {
    pub(super) fn new(policy: Policy, pages: usize) -> Result<Self> {
        let page_size = u64::from(policy.share().geometry()?.page_size);
        let mut config = RangeConfig::new(Mapping::Page, Cleaning::Greedy);
        config.over_provisioning = OverProvisioning::Rest;
        policy.configure(0, pages as u64 * page_size, config)?;
        let policy = Arc::new(policy);
        let reads = Queue::new(Arc::clone(&policy), DEPTH as usize);
        Ok(Self { policy, reads, page_size, done: VecDeque::new() })
    }
}

impl Store for PolicyStore {
    fn write(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        self.policy.write(page as u64 * self.page_size, &data)?;
        let end = self.policy.share().now()?;
        self.done.push_back(Done { tag, end, data });
        Ok(())
    }

    fn read(&mut self, page: usize, data: Vec<u8>, tag: u64) -> Result<()> {
        let submitted = self.reads.submit(page as u64 * self.page_size, data, tag);
        submitted.expect("no more requests than the queue is long");
        Ok(())
    }

    fn complete(&mut self) -> Result<Option<Done>> {
        if let Some(done) = self.done.pop_front() {
            return Ok(Some(done));
        }
        let Some(done) = self.reads.complete() else { return Ok(None) };
        done.result?;
        Ok(Some(Done { tag: done.tag, end: done.end, data: done.data.into_vec() }))
    }

    fn flush(&mut self) -> Result<()> {
        self.policy.flush()
    }
}
