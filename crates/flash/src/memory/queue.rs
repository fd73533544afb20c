//! Operations of the device in memory in flight, completed in an order that comes from a seed.

use std::collections::VecDeque;
use std::sync::Arc;

use prism_base::{Nanos, Rng};

use crate::medium::{Medium, MediumQueue, Op, Reply, Request, execute};
use crate::memory::MemoryDevice;

/// Operations in flight. One is executed when a reply is taken, chosen at random among those that
/// may be next: programs of a block are executed in their order, and a sync makes durable what was
/// complete before.
pub(super) struct ShuffledQueue {
    device: Arc<MemoryDevice>,
    rng: Rng,
    in_flight: Vec<Request>,
    replies: VecDeque<Reply>,
}

impl ShuffledQueue {
    pub(super) fn new(device: Arc<MemoryDevice>, rng: Rng) -> Self {
        Self { device, rng, in_flight: Vec::new(), replies: VecDeque::new() }
    }

    /// Whether a program of the same block was submitted before.
    fn has_to_wait(&self, place: usize) -> bool {
        let Op::Program { block, .. } = self.in_flight[place].op else { return false };
        let same =
            |request: &Request| matches!(request.op, Op::Program { block: b, .. } if b == block);
        self.in_flight[..place].iter().any(same)
    }

    fn execute_one(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let mut place = self.rng.below(self.in_flight.len() as u64) as usize;
        while self.has_to_wait(place) {
            place -= 1;
        }
        let request = self.in_flight.remove(place);
        self.replies.push_back(execute(&*self.device as &dyn Medium, request));
    }
}

impl MediumQueue for ShuffledQueue {
    fn submit(&mut self, request: Request) {
        self.in_flight.push(request);
        // Some operations are complete at once, some later.
        if self.rng.chance(0.3) {
            self.execute_one();
        }
    }

    fn take(&mut self) -> Option<Reply> {
        if self.replies.is_empty() && self.rng.chance(0.5) {
            self.execute_one();
        }
        self.replies.pop_front()
    }

    fn wait(&mut self, _timeout: Option<Nanos>) -> bool {
        if self.replies.is_empty() {
            self.execute_one();
        }
        !self.replies.is_empty()
    }
}

impl Drop for ShuffledQueue {
    fn drop(&mut self) {
        while !self.in_flight.is_empty() {
            self.execute_one();
        }
    }
}
