//! A store whose completions come late and in any order, as those of a disk do. Devices in memory
//! complete every command at once, so that nothing would ever happen between two of them.

use prism_base::{Nanos, Rng};
use prism_segments::{Done, Store, Wrapper};

pub struct Late {
    store: Box<dyn Store>,
    held: Vec<Done>,
    rng: Rng,
    /// A caller waits, so the next completion comes.
    waited: bool,
}

impl Late {
    pub fn new(store: Box<dyn Store>, rng: Rng) -> Self {
        Self { store, held: Vec::new(), rng, waited: false }
    }
}

impl Wrapper for Late {
    type Inner = Box<dyn Store>;

    fn inner(&self) -> &Self::Inner {
        &self.store
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.store
    }

    fn next_done(&mut self) -> Option<Done> {
        while let Some(done) = self.store.poll() {
            self.held.push(done);
        }
        let now = std::mem::take(&mut self.waited) || self.rng.below(8) == 0;
        if self.held.is_empty() || !now {
            return None;
        }
        let which = self.rng.below(self.held.len() as u64) as usize;
        Some(self.held.swap_remove(which))
    }

    fn wait_for(&mut self, timeout: Option<Nanos>) -> bool {
        self.waited = !self.held.is_empty() || self.store.wait(timeout);
        self.waited
    }
}
