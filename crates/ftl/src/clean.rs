//! What is cleaned: victims, their valid units, and their return to the free list.

use prism_nand::{BlockId, DieId, Pun};

use crate::pagemap::{BlockState, P2L_TOMBSTONE, PageMap, decode_data};
use crate::plan::{CopyPlan, ReadRun, UnitWrite};

impl PageMap {
    /// Chooses the next victim on `die` and takes it out of the candidates; `None` if
    /// there is none, or none whose cleaning would gain anything.
    pub fn pick_victim(&mut self, die: DieId) -> Option<BlockId> {
        let per_die = self.geometry.blocks_per_die();
        let state = &mut self.dies[die.0 as usize];
        let chosen = match state.dead.pop() {
            Some(block) => block % per_die,
            None => {
                // Copies fill whole rows, so that less garbage than a row gains nothing.
                let most = self.geometry.units_per_block() - self.geometry.units_per_row();
                let policy = self.config.victim;
                policy.pick(&state.candidates, most, &mut self.rng)? as u32
            }
        };
        state.candidates.take(chosen as usize);
        let block = BlockId(die.0 * per_die + chosen);
        self.state[block.0 as usize] = BlockState::Victim;
        Some(block)
    }

    /// Whether the map still points to the unit at `at`; its logical unit if so.
    #[must_use]
    pub fn live(&self, at: Pun) -> Option<u32> {
        match self.p2l[at.0 as usize] {
            0 => None,
            P2L_TOMBSTONE => self.tombstones.contains_key(&at.0).then_some(UnitWrite::TOMBSTONE),
            lpn => (decode_data(self.l2p[lpn as usize - 1]) == Some(at)).then_some(lpn - 1),
        }
    }

    /// Plans the next step of cleaning `victim`: up to a row of valid units from unit
    /// `cursor` of the block on, into `plan` (its lists are reused). Moves the cursor;
    /// the plan is empty once the block is through.
    pub fn gather(&self, victim: BlockId, cursor: &mut u32, plan: &mut CopyPlan) {
        plan.reads.clear();
        plan.units.clear();
        let per_block = self.geometry.units_per_block();
        let room = self.geometry.units_per_row() as usize;
        let first = victim.0 * per_block;
        let mut planes = 0;
        while *cursor < per_block && plan.units.len() < room {
            let at = Pun(first + *cursor);
            *cursor += 1;
            let Some(lpn) = self.live(at) else { continue };
            // The version is the source's own; who keeps content copies it from there.
            plan.units.push(UnitWrite { lpn, source: Some(at), version: 0 });
            self.add_read(at, &mut planes, &mut plan.reads);
        }
    }

    /// Adds `at` to the reads: one command for a row as long as units of it follow each
    /// other, and one page for each plane that is needed. `planes` has a bit for each
    /// plane in the last command.
    pub fn add_read(&self, at: Pun, planes: &mut u64, reads: &mut Vec<ReadRun>) {
        let row = self.geometry.row_of(at);
        let place = at.0 - self.geometry.first_unit(row).0;
        let plane = 1 << (place / self.geometry.units_per_page());
        match reads.last_mut() {
            Some(run) if run.row == row => {
                run.units += 1;
                run.pages += u32::from(*planes & plane == 0);
                *planes |= plane;
            }
            _ => {
                reads.push(ReadRun { row, pages: 1, units: 1 });
                *planes = plane;
            }
        }
    }

    /// Whether `block` holds nothing that the map points to.
    #[must_use]
    pub fn is_dead(&self, block: BlockId) -> bool {
        self.valid[block.0 as usize] == 0
    }

    /// The erase of a victim has ended: it is free again.
    ///
    /// # Panics
    /// If it was no victim, or the map still points into it.
    pub fn erased(&mut self, block: BlockId) {
        let index = block.0 as usize;
        assert!(self.state[index] == BlockState::Victim, "{block:?} was erased but no victim");
        assert!(self.is_dead(block), "{block:?} was erased with valid units in it");
        self.state[index] = BlockState::Free;
        let die = self.geometry.die_of(block);
        self.dies[die.0 as usize].free.push_back(block.0);
    }
}
