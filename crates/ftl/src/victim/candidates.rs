//! The sealed blocks of a die as victim policies see them: the valid units and the age of each.

use prism_base::codec::{invalid, load, save};
use prism_base::{Snapshot, snapshot_fields};

use super::column::Column;

/// The block is no candidate: it is free, open, or being cleaned.
pub(crate) const NOT_SEALED: u32 = u32::MAX;

/// The sealed blocks of one die, by their index on it.
///
/// The age of a block is the number of blocks sealed on the die since then: the FTL has no clock,
/// and data does not age while a drive is idle. Each seal follows a block's worth of programs, so
/// this is the age in writes, in units of blocks.
///
/// 28 bytes per block: 4 for valid units, 8 for the order of sealing, 16 for ages; 8 more if the
/// order of changes is kept.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    units_per_block: u32,
    valid: Column<u32>,
    by_age: Ring,
    /// In the order in which they were sealed or last lost a unit, if a policy needs that: then
    /// every lost unit changes the order.
    by_change: Option<Ring>,
    /// The value of `seals` when the block was sealed, its own seal included.
    sealed: Vec<u64>,
    /// The value of `seals` when the block last lost a unit or was sealed.
    changed: Vec<u64>,
    seals: u64,
}

/// Blocks in an order: a ring closed by an additional last node, whose `younger` is the first
/// block. A block is removed in constant time, and a walk from the oldest visits members only.
#[derive(Clone, Debug)]
struct Ring(Vec<Neighbours>);

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    older: u32,
    younger: u32,
}

impl Ring {
    fn new(blocks: usize) -> Self {
        let end = blocks as u32;
        Self(vec![Neighbours { older: end, younger: end }; blocks + 1])
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let end = self.0.len() - 1;
        let mut at = end;
        std::iter::from_fn(move || {
            at = self.0[at].younger as usize;
            (at != end).then_some(at)
        })
    }

    /// Adds `index` as the youngest.
    fn push(&mut self, index: usize) {
        let end = self.0.len() - 1;
        let last = self.0[end].older;
        self.0[index] = Neighbours { older: last, younger: end as u32 };
        self.0[last as usize].younger = index as u32;
        self.0[end].older = index as u32;
    }

    fn remove(&mut self, index: usize) {
        let Neighbours { older, younger } = self.0[index];
        self.0[older as usize].younger = younger;
        self.0[younger as usize].older = older;
    }

    /// Undoes the last [`Ring::remove`] not yet undone, which was of `index`.
    fn put_back(&mut self, index: usize) {
        // The node still has its former neighbours (Knuth, Dancing Links).
        let Neighbours { older, younger } = self.0[index];
        self.0[older as usize].younger = index as u32;
        self.0[younger as usize].older = index as u32;
    }
}

/// As a list of its blocks.
impl Snapshot for Ring {
    fn save_fields(&self, out: &mut Vec<u8>) {
        save(&self.iter().map(|index| index as u32).collect::<Vec<_>>(), out);
    }

    fn load_fields(&mut self, from: &mut &[u8]) -> std::io::Result<()> {
        let mut named = vec![false; self.0.len() - 1];
        for index in load::<Vec<u32>>(from)? {
            match named.get_mut(index as usize) {
                Some(named) if !*named => *named = true,
                _ => return Err(invalid("a sealed block is named twice, or there is none")),
            }
            self.push(index as usize);
        }
        Ok(())
    }
}

snapshot_fields!(Candidates { parts: by_age, by_change; columns: sealed, changed; values: seals; });

impl Candidates {
    /// A die of `blocks` blocks of `units_per_block` units, none of them sealed.
    #[must_use]
    pub(crate) fn new(blocks: usize, units_per_block: u32) -> Self {
        Self {
            units_per_block,
            valid: Column::new(blocks, NOT_SEALED),
            by_age: Ring::new(blocks),
            by_change: None,
            sealed: vec![0; blocks],
            changed: vec![0; blocks],
            seals: 0,
        }
    }

    /// As [`Candidates::new`], with the order of changes kept.
    #[must_use]
    pub(crate) fn with_changes(blocks: usize, units_per_block: u32) -> Self {
        Self { by_change: Some(Ring::new(blocks)), ..Self::new(blocks, units_per_block) }
    }

    /// Units per block.
    #[must_use]
    pub(crate) fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// Valid units of each sealed block, [`NOT_SEALED`] for others.
    #[must_use]
    pub(crate) fn valid(&self) -> &Column<u32> {
        &self.valid
    }

    /// Sealed blocks, the one sealed first at the head.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = usize> {
        self.by_age.iter()
    }

    /// Sealed blocks, ordered by the later of sealing and last lost unit, oldest first.
    ///
    /// # Panics
    /// If that order is not kept ([`Candidates::with_changes`]).
    pub(crate) fn by_change(&self) -> impl Iterator<Item = usize> {
        self.by_change.as_ref().expect("the order of changes is kept").iter()
    }

    /// Blocks sealed since sealed block `index` was.
    #[must_use]
    pub(crate) fn age_since_sealed(&self, index: usize) -> u64 {
        self.seals - self.sealed[index]
    }

    /// Blocks sealed since sealed block `index` last lost a valid unit, or since it was sealed if
    /// it has lost none.
    #[must_use]
    pub(crate) fn age_since_change(&self, index: usize) -> u64 {
        self.seals - self.changed[index]
    }

    /// Block `index` is full, with `valid` valid units: the youngest candidate.
    ///
    /// # Panics
    /// If it is a candidate already.
    pub(crate) fn seal(&mut self, index: usize, valid: u32) {
        assert!(self.valid.values()[index] == NOT_SEALED, "block {index} is sealed twice");
        self.seals += 1;
        self.valid.set(index, valid);
        self.sealed[index] = self.seals;
        self.changed[index] = self.seals;
        self.by_age.push(index);
        if let Some(ring) = &mut self.by_change {
            ring.push(index);
        }
    }

    /// Candidate `index` has lost valid units and has `valid` left.
    pub(crate) fn lower(&mut self, index: usize, valid: u32) {
        self.valid.lower(index, valid);
        self.changed[index] = self.seals;
        if let Some(ring) = &mut self.by_change {
            ring.remove(index);
            ring.push(index);
        }
    }

    /// Candidate `index` is no longer one. Returns its valid units.
    ///
    /// # Panics
    /// If it is no candidate.
    pub(crate) fn take(&mut self, index: usize) -> u32 {
        let valid = self.valid.values()[index];
        assert!(valid != NOT_SEALED, "block {index} is no candidate");
        self.valid.set(index, NOT_SEALED);
        self.by_age.remove(index);
        if let Some(ring) = &mut self.by_change {
            ring.remove(index);
        }
        valid
    }

    /// After loading: `valid` gives the valid units of each sealed block.
    pub(crate) fn check(&mut self, valid: impl Fn(usize) -> u32) -> Result<(), &'static str> {
        let order: Vec<usize> = self.by_age().collect();
        order.iter().for_each(|&index| self.valid.set(index, valid(index)));
        let ages = self.sealed.iter().zip(&self.changed);
        if ages.into_iter().any(|(sealed, changed)| sealed > changed || *changed > self.seals) {
            return Err("a block was sealed in the future");
        }
        let is_sealed = |index: usize| self.valid.values()[index] != NOT_SEALED;
        match &self.by_change {
            Some(ring) if ring.iter().count() != order.len() || !ring.iter().all(is_sealed) => {
                Err("the order of changes does not name each sealed block once")
            }
            _ => Ok(()),
        }
    }

    /// Undoes the last [`Candidates::take`] not yet undone, which was of `index` with `valid` valid
    /// units: its position and ages are restored. No block may have been sealed since.
    pub(crate) fn put_back(&mut self, index: usize, valid: u32) {
        self.valid.set(index, valid);
        self.by_age.put_back(index);
        if let Some(ring) = &mut self.by_change {
            ring.put_back(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use prism_testkit::seed;

    use super::*;

    /// Compares with a plain list of (index, valid, seal, change) in the order of sealing.
    #[test]
    fn random_candidates_equal_a_list() {
        const BLOCKS: u64 = 70;
        let mut rng = Rng::stream(seed(3), "candidates");
        let mut candidates = Candidates::with_changes(BLOCKS as usize, 9);
        // By the last change.
        let mut order_of_changes: Vec<usize> = Vec::new();
        let mut model: Vec<(usize, u32, u64, u64)> = Vec::new();
        let mut seals = 0;
        for _ in 0..20_000 {
            let index = rng.below(BLOCKS) as usize;
            match model.iter().position(|&(i, ..)| i == index) {
                None => {
                    seals += 1;
                    let valid = rng.below(10) as u32;
                    candidates.seal(index, valid);
                    model.push((index, valid, seals, seals));
                    order_of_changes.push(index);
                }
                Some(_) if rng.chance(0.2) => {
                    let taken: Vec<_> = model.iter().map(|&(i, ..)| i).collect();
                    let taken = taken.into_iter().filter(|_| rng.chance(0.3));
                    let taken: Vec<_> = taken.map(|i| (i, candidates.take(i))).collect();
                    for (i, valid) in taken.into_iter().rev() {
                        candidates.put_back(i, valid);
                    }
                }
                Some(place) if rng.chance(0.3) => {
                    candidates.take(index);
                    model.remove(place);
                    order_of_changes.retain(|&i| i != index);
                }
                Some(place) => {
                    let (_, valid, _, changed) = &mut model[place];
                    *valid = valid.saturating_sub(1);
                    *changed = seals;
                    candidates.lower(index, *valid);
                    order_of_changes.retain(|&i| i != index);
                    order_of_changes.push(index);
                }
            }
            let order: Vec<_> = candidates.by_age().collect();
            assert_eq!(order, model.iter().map(|&(i, ..)| i).collect::<Vec<_>>());
            assert_eq!(candidates.by_change().collect::<Vec<_>>(), order_of_changes);
            for &(i, valid, sealed, changed) in &model {
                assert_eq!(candidates.valid().values()[i], valid);
                assert_eq!(candidates.age_since_sealed(i), seals - sealed);
                assert_eq!(candidates.age_since_change(i), seals - changed);
            }
        }
    }
}
