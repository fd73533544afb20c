//! Flash that loses power on demand, with or without a volatile cache.

use std::collections::HashSet;

use prism_base::{Rng, SimTime};
use prism_engine::FlashCounts;
use prism_engine::device::{Ended, FlashDevice, Jobs, Load};
use prism_ftl::{ReadRun, UnitWrite};
use prism_nand::{
    BlockId, Cause, DieId, Geometry, Layout, Nand, ProgramUnitId, Status, StoredUnit, UnitTag,
};

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

/// A device that performs a number of operations, then tears one. Operations are performed when
/// they are submitted, and end in a random order, but those of one block in order.
#[derive(Debug)]
pub struct Fragile {
    pub nand: Nand,
    /// The durable state, and the operations since.
    durable: Option<(Nand, Vec<Op>)>,
    /// Operations until power is lost.
    pub left: u64,
    pub done: u64,
    /// Power is lost: nothing is performed, and nothing ends.
    pub lost: bool,
    rng: Rng,
    ended: Vec<(BlockId, Ended)>,
    counts: FlashCounts,
    loads: Vec<Load>,
    /// An erase may not be durable; blocks with host data that may not be.
    erased: bool,
    programmed: HashSet<u32>,
}

impl Fragile {
    pub fn new(nand: Nand, cache: Cache, left: u64) -> Self {
        let durable = (cache == Cache::Volatile).then(|| (nand.clone(), Vec::new()));
        let loads = vec![Load::default(); nand.geometry().dies() as usize];
        Self {
            nand,
            durable,
            left,
            done: 0,
            lost: false,
            rng: Rng::stream(0, "fragile"),
            ended: Vec::new(),
            counts: FlashCounts::default(),
            loads,
            erased: false,
            programmed: HashSet::new(),
        }
    }

    /// Whether the next operation is performed; if not, it is torn, and all later ones are lost.
    fn has_power(&mut self) -> bool {
        self.lost = self.left == 0;
        self.left = self.left.saturating_sub(1);
        self.done += u64::from(!self.lost);
        !self.lost
    }

    /// The content of the program of a job.
    fn content(&self, jobs: &Jobs, job: u32) -> Vec<StoredUnit> {
        let job = &jobs[job];
        let pad = StoredUnit { tag: UnitTag::Pad, version: 0, payload: None };
        let stored = |(place, write): (usize, &UnitWrite)| match write.source {
            Some(source) => self.nand.read(source).unwrap().cloned().unwrap(),
            None if write.lpn == UnitWrite::PAD => pad.clone(),
            None => StoredUnit {
                tag: UnitTag::Data(write.lpn),
                version: write.version,
                payload: job.payloads.get(place).cloned(),
            },
        };
        let mut units: Vec<StoredUnit> = job.units.iter().enumerate().map(stored).collect();
        units.resize(self.nand.layout().units_per_program_unit() as usize, pad);
        units
    }

    /// Everything performed so far is durable.
    pub fn sync(&mut self) {
        (self.erased, self.programmed) = (false, HashSet::new());
        if let Some((nand, ops)) = &mut self.durable
            && !self.lost
            && !ops.is_empty()
        {
            *nand = self.nand.clone();
            ops.clear();
        }
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

impl FlashDevice for Fragile {
    fn geometry(&self) -> &Geometry {
        self.nand.geometry()
    }

    fn layout(&self) -> &Layout {
        self.nand.layout()
    }

    fn uses_payloads(&self) -> bool {
        true
    }

    fn counts(&self) -> &FlashCounts {
        &self.counts
    }

    fn counts_mut(&mut self) -> &mut FlashCounts {
        &mut self.counts
    }

    fn load(&self, die: DieId) -> &Load {
        &self.loads[die.0 as usize]
    }

    fn load_mut(&mut self, die: DieId) -> &mut Load {
        &mut self.loads[die.0 as usize]
    }

    fn read(&mut self, _: &mut Jobs, _: &ReadRun, _: Cause, _: u32, _: bool, _: SimTime) {
        unreachable!("the test reads without the controller")
    }

    fn read_for_copy(&mut self, _jobs: &mut Jobs, job: u32, run: &ReadRun, _now: SimTime) {
        let block = self.nand.layout().block_of(run.program_unit);
        if self.programmed.contains(&block.0) {
            self.sync();
        }
        self.ended.push((block, Ended::CopyRead { job }));
    }

    fn program(&mut self, jobs: &mut Jobs, job: u32, _now: SimTime) {
        if self.lost {
            return;
        }
        let program_unit = ProgramUnitId(jobs[job].program_unit);
        let block = self.nand.layout().block_of(program_unit);
        let cause = jobs[job].cause.expect("a job with a cause");
        if cause == Cause::Host && self.erased {
            self.sync();
        }
        if !self.has_power() {
            self.nand.program_begin(program_unit, []).expect("the next program unit of its block");
            return;
        }
        let units = self.content(jobs, job);
        self.nand.program_begin(program_unit, units.clone()).expect("lawful");
        self.nand.program_end(program_unit);
        let (geometry, layout) = (self.nand.geometry(), self.nand.layout());
        self.counts.count_program(geometry, layout, cause, u32::MAX, &jobs[job].units);
        if cause == Cause::Host {
            self.programmed.insert(block.0);
        }
        self.note(Op::Program(program_unit, units));
        self.ended.push((block, Ended::Program { job, status: Status::Passed }));
    }

    fn erase(
        &mut self,
        _jobs: &mut Jobs,
        block: BlockId,
        _cause: Cause,
        die_group: u32,
        _now: SimTime,
    ) -> u32 {
        let members = self.nand.members_to_erase(block).count() as u32;
        if self.lost {
            return members;
        }
        self.sync();
        if !self.has_power() {
            let mut rng = Rng::stream(self.done, "fragile.erase");
            erase(&mut self.nand, block, true, &mut rng);
            if let Some((nand, _)) = &mut self.durable {
                *nand = self.nand.clone();
            }
            return members;
        }
        erase(&mut self.nand, block, false, &mut Rng::stream(0, "unused"));
        self.note(Op::Erase(block));
        self.erased = true;
        let ended = Ended::Erase { block, die_group, status: Status::Passed };
        self.ended.extend((0..members).map(|_| (block, ended)));
        members
    }

    fn end_next(&mut self, _jobs: &mut Jobs) -> (SimTime, Option<Ended>) {
        let any = self.rng.below(self.ended.len() as u64) as usize;
        let block = self.ended[any].0;
        let first = self.ended.iter().position(|&(other, _)| other == block);
        (SimTime::ZERO, Some(self.ended.remove(first.expect("there is one")).1))
    }

    fn next_at(&self) -> SimTime {
        if self.ended.is_empty() || self.lost { SimTime::NEVER } else { SimTime::ZERO }
    }

    fn order(&mut self) {
        self.sync();
    }
}
