//! Flash that loses power on demand, with or without a volatile cache.

use prism_base::Rng;
use prism_engine::Flash;
use prism_ftl::{Ftl, UnitWrite};
use prism_nand::{BlockId, Cause, Geometry, Layout, Nand, ProgramUnitId, StoredUnit};

/// The power is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLost;

/// Operations since the last sync.
#[derive(Clone, Debug)]
enum Op {
    Program(ProgramUnitId, Vec<StoredUnit>),
    Erase(BlockId),
}

/// The effect of a loss of power on operations that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// They are durable.
    None,
    /// Of those since the last sync, each block keeps a random number of the first ones.
    Volatile,
}

/// A device that performs a number of operations, then tears one.
#[derive(Debug)]
pub struct Fragile {
    pub nand: Nand,
    /// The durable state, and the operations since.
    durable: Option<(Nand, Vec<Op>)>,
    /// Operations until power is lost.
    pub left: u64,
    pub done: u64,
}

impl Fragile {
    pub fn new(nand: Nand, cache: Cache, left: u64) -> Self {
        let durable = (cache == Cache::Volatile).then(|| (nand.clone(), Vec::new()));
        Self { nand, durable, left, done: 0 }
    }

    fn has_power(&mut self) -> bool {
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        self.done += u64::from(has);
        has
    }

    fn note(&mut self, op: Op) {
        if let Some((_, ops)) = &mut self.durable {
            ops.push(op);
        }
    }

    /// The cells after the loss of power.
    pub fn after_cut(self, rng: &mut Rng) -> Nand {
        let Some((mut nand, ops)) = self.durable else {
            let mut nand = self.nand;
            nand.lose_power(self.done);
            return nand;
        };
        let block_of = |op: &Op| match op {
            Op::Program(program_unit, _) => nand.layout().block_of(*program_unit).0,
            Op::Erase(block) => block.0,
        };
        let blocks: Vec<u32> = ops.iter().map(block_of).collect();
        let mut kept = vec![0; nand.geometry().blocks() as usize];
        blocks.iter().for_each(|&block| kept[block as usize] += 1);
        for kept in &mut kept {
            *kept = rng.below(*kept + 1);
        }
        let mut torn = vec![false; kept.len()];
        for (op, block) in ops.into_iter().zip(blocks) {
            let block = block as usize;
            let whole = kept[block] > 0;
            kept[block] = kept[block].saturating_sub(1);
            if !whole && (torn[block] || rng.chance(0.5)) {
                torn[block] = true;
                continue;
            }
            torn[block] = !whole;
            match op {
                Op::Program(program_unit, units) => {
                    nand.program_begin(program_unit, units).expect("a prefix of legal operations");
                    if whole {
                        nand.program_end(program_unit);
                    }
                }
                Op::Erase(block) => erase(&mut nand, block, !whole, rng),
            }
        }
        nand.lose_power(self.done);
        nand
    }
}

/// Erases the members of `block` that have to be erased, or tears the erase of one of them.
fn erase(nand: &mut Nand, block: BlockId, torn: bool, rng: &mut Rng) {
    let members: Vec<_> = nand.members_to_erase(block).collect();
    let at = if torn { rng.below(members.len() as u64) as usize } else { members.len() };
    for (i, &member) in members.iter().enumerate().take(at + 1) {
        nand.erase_begin(block, member).unwrap();
        if i < at {
            nand.erase_end(block, member);
        }
    }
}

impl Flash for Fragile {
    type Error = PowerLost;

    fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    fn layout(&self) -> &Layout {
        self.nand.layout()
    }

    fn keeps_content(&self) -> bool {
        true
    }

    fn program_bulk(
        &mut self,
        _first: ProgramUnitId,
        _program_units: u32,
    ) -> Result<(), PowerLost> {
        unreachable!("content is kept")
    }

    fn program(
        &mut self,
        program_unit: ProgramUnitId,
        cause: Cause,
        units: &[UnitWrite],
        bytes: &[u8],
        ftl: &Ftl,
    ) -> Result<(), PowerLost> {
        if !self.has_power() {
            self.nand.program_begin(program_unit, []).expect("the next program unit of its block");
            return Err(PowerLost);
        }
        Flash::program(&mut self.nand, program_unit, cause, units, bytes, ftl).expect("lawful");
        let first = self.nand.layout().first_unit(program_unit).0;
        let places = first..first + self.nand.layout().units_per_program_unit();
        let read = |at| self.nand.read(prism_nand::Pun(at)).unwrap().cloned().unwrap();
        self.note(Op::Program(program_unit, places.map(read).collect()));
        Ok(())
    }

    fn erase(&mut self, block: BlockId, _cause: Cause) -> Result<u32, PowerLost> {
        self.sync()?;
        if !self.has_power() {
            let mut rng = Rng::stream(self.done, "fragile.erase");
            erase(&mut self.nand, block, true, &mut rng);
            if let Some((nand, _)) = &mut self.durable {
                *nand = self.nand.clone();
            }
            return Err(PowerLost);
        }
        let members = self.nand.members_to_erase(block).count() as u32;
        erase(&mut self.nand, block, false, &mut Rng::stream(0, "unused"));
        self.note(Op::Erase(block));
        Ok(members)
    }

    fn sync(&mut self) -> Result<(), PowerLost> {
        if let Some((nand, ops)) = &mut self.durable
            && !ops.is_empty()
        {
            *nand = self.nand.clone();
            ops.clear();
        }
        Ok(())
    }
}
