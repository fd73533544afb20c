//! Power failures of the device in memory.

use std::sync::atomic::Ordering;

use prism_base::{FastMap, Rng};

use super::{Block, MemoryDevice};

/// How to undo an operation on a block since the last sync.
#[derive(Debug)]
pub(super) enum Undo {
    Program,
    Finish,
    /// The block as it was before.
    Erase(Box<Block>),
}

impl MemoryDevice {
    /// Power fails during the operation after the next `operations`.
    pub fn cut_power_after(&self, operations: u64) {
        self.cut_at.store(self.operations().saturating_add(operations), Ordering::SeqCst);
    }

    /// Whether power has failed.
    #[must_use]
    pub fn lost_power(&self) -> bool {
        !self.powered.load(Ordering::SeqCst)
    }

    /// Cuts power, unless it has failed already, and restores it. With a volatile cache each block
    /// keeps the first few of its operations since the last sync, as many as `rng` chooses, and the
    /// next one may be torn. This is *not* the end of a process, which loses nothing here.
    pub fn restart(&self, rng: &mut Rng) {
        let undo = std::mem::take(&mut self.common().unsynced);
        let mut of_block: FastMap<u32, Vec<Undo>> = FastMap::default();
        let mut order = Vec::new();
        for (block, undo) in undo {
            let list = of_block.entry(block).or_default();
            if list.is_empty() {
                order.push(block);
            }
            list.push(undo);
        }
        for block in order {
            let list = of_block.remove(&block).expect("listed once");
            let kept = rng.below(list.len() as u64 + 1) as usize;
            let torn = rng.chance(0.5);
            roll_back(&mut self.block_mut(block), list, kept, torn);
        }
        let pages = self.geometry.pages_per_block;
        let open = (0..self.geometry.blocks()).filter(|&block| self.block(block).is_open(pages));
        self.open.store(open.count() as u32, Ordering::SeqCst);
        self.cut_at.store(u64::MAX, Ordering::SeqCst);
        self.powered.store(true, Ordering::SeqCst);
    }
}

/// Undoes the operations of a block but the first `kept`; the next one may be torn.
fn roll_back(state: &mut Block, list: Vec<Undo>, kept: usize, torn: bool) {
    let count = list.len();
    for (place, undo) in list.into_iter().enumerate().rev() {
        if place < kept {
            break;
        }
        let (erase, program) = (matches!(undo, Undo::Erase(_)), matches!(undo, Undo::Program));
        match undo {
            Undo::Program => {
                state.programmed -= 1;
                state.torn.retain(|&page| page != state.programmed);
            }
            Undo::Finish => state.finished = false,
            Undo::Erase(before) => {
                let worn_out = state.worn_out;
                *state = *before;
                state.worn_out = worn_out;
            }
        }
        if place == kept && torn && place < count {
            if erase {
                state.unstable = true;
            } else if program {
                state.torn.push(state.programmed);
                state.programmed += 1;
            }
        }
    }
}
