//! The hybrid mapping at rest as bytes, and back.
//!
//! Kept is what a block is used for, the lists in which order matters, and the map; what
//! follows from these is worked out again. A merge may have been interrupted between two of
//! its steps, since these wait for the host as well; in the middle of one it may not.

use std::ops::RangeInclusive;

use prism_base::{DecodeError, Decoder, Encoder};
use prism_nand::{BlockId, Geometry, Pun};

use super::{Group, Hybrid, HybridConfig, Use};
use crate::ftl::snapshot::exactly;

/// Uses by their number in a saved state.
const USES: [Use; 9] = [
    Use::Free,
    Use::Log,
    Use::Sealed,
    Use::Wanted,
    Use::Merging,
    Use::Data,
    Use::Spent,
    Use::Dead,
    Use::Retired,
];

impl Group {
    fn is_new(&self) -> bool {
        let Self { logs, open, waits_for, merging, awaits_program_unit, found } = self;
        let idle = open.is_none() && waits_for.is_none() && merging.is_none();
        logs.is_empty() && idle && !awaits_program_unit && *found == 0
    }
}

impl Hybrid {
    /// Whether nothing is in flight: no program, no step of a merge, no padding that is due.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let quiet = self.program_units_in_flight.iter().all(|&program_units| program_units == 0);
        let no_step = self.die_groups.iter().all(|die_group| die_group.step.is_none());
        let no_merge = self.groups.iter().all(|group| group.merging.is_none());
        let no_target = !self.uses.contains(&Use::Target);
        quiet
            && no_step
            && no_merge
            && no_target
            && self.pads.is_empty()
            && self.in_flight.is_empty()
    }

    /// Appends the state of the FTL.
    ///
    /// # Panics
    /// If it is not at rest.
    pub fn encode(&self, out: &mut Encoder) {
        assert!(self.is_at_rest(), "only an FTL at rest is a state");
        out.column_u32(&self.l2p);
        let code = |of: &Use| USES.iter().position(|use_| use_ == of).expect("a use at rest");
        out.column_u8(&self.uses.iter().map(|of| code(of) as u8).collect::<Vec<_>>());
        for column in [&self.erases, &self.next, &self.group_of, &self.logical] {
            out.column_u32(column);
        }
        out.column_u64(&self.opened);
        out.column_u64(&self.changed);
        out.u64(self.opens);
        out.u64(self.changes);
        out.u32(self.next_die_group);
        out.u32(self.logs_found);
        let bad = (0..self.uses.len() as u32).filter(|&block| self.is_failed(block));
        out.column_u32(&bad.collect::<Vec<_>>());
        out.option(self.sequential);
        out.u32(u32::from(self.sequential_open));
        let groups = (0..).zip(&self.groups).filter(|(_, group)| !group.is_new());
        let groups: Vec<(u32, &Group)> = groups.collect();
        out.u32(groups.len() as u32);
        for (number, group) in groups {
            out.u32(number);
            out.column_u32(&group.logs);
            out.option(group.open);
            out.option(group.waits_for);
            out.u32(u32::from(group.awaits_program_unit));
            out.u32(group.found);
        }
        for die_group in &self.die_groups {
            for list in [&die_group.free, &die_group.dead, &die_group.failed, &die_group.wanted] {
                out.column_u32(&list.iter().copied().collect::<Vec<_>>());
            }
            out.column_u32(
                &die_group.fills.iter().flat_map(|&(log, end)| [log, end]).collect::<Vec<_>>(),
            );
            out.option(die_group.victim);
            out.u32(u32::from(die_group.copied));
        }
        out.column_u32(&self.idle_die_groups);
    }

    /// The FTL that [`Hybrid::encode`] wrote, over flash of the same shape and with the same
    /// configuration, which have been checked.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no state of such an FTL.
    pub fn decode(
        geometry: Geometry,
        config: HybridConfig,
        from: &mut Decoder<'_>,
    ) -> Result<Self, DecodeError> {
        let mut map = Self::new(geometry, config)
            .map_err(|_| from.wrong("the configuration does not fit the flash"))?;
        let l2p: Vec<u32> = from.column_u32(map.l2p.len())?.collect();
        map.decode_blocks(from)?;
        map.decode_groups(from)?;
        for die_group in 0..map.die_groups.len() {
            map.decode_die_group(die_group, from)?;
        }
        let die_groups = map.die_groups.len();
        map.idle_die_groups = from.list_below(die_groups, die_groups as u32)?;
        map.decode_units(&l2p, from)?;
        map.derive(from)?;
        map.check_lists().and_then(|()| map.check_groups()).map_err(|what| from.wrong(what))?;
        Ok(map)
    }

    fn decode_blocks(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let blocks = self.uses.len();
        let uses = from.bytes(blocks)?.iter().map(|&code| USES.get(usize::from(code)).copied());
        self.uses = uses.collect::<Option<_>>().ok_or_else(|| from.wrong("a block of no use"))?;
        self.erases = from.column_u32(blocks)?.collect();
        self.next = from.column_u32(blocks)?.collect();
        self.group_of = from.column_u32(blocks)?.collect();
        self.logical = from.column_u32(blocks)?.collect();
        self.opened = from.column_u64(blocks)?.collect();
        self.changed = from.column_u64(blocks)?.collect();
        self.opens = from.u64()?;
        self.changes = from.u64()?;
        let program_units = self.layout.program_units_per_block();
        let (groups, logical) = (self.groups.len() as u32, self.data.len() as u32);
        let is_wrong = self.next.iter().any(|&next| next > program_units)
            || self.group_of.iter().any(|&group| group >= groups)
            || self.logical.iter().any(|&block| block >= logical)
            || self.opened.iter().any(|&opened| opened > self.opens)
            || self.changed.iter().any(|&changed| changed > self.changes);
        if is_wrong {
            return Err(
                from.wrong("a block has more program units, or is of a later time, than there is")
            );
        }
        self.next_die_group = from.u32()?;
        if self.next_die_group > self.die_groups.len() as u32 {
            return Err(from.wrong("a die group is next that there is not"));
        }
        let logs_found = from.u32()?;
        let bad = from.list_below(blocks, blocks as u32)?;
        bad.into_iter().for_each(|block| self.fail(block));
        if self.is_read_only() {
            return Err(from.wrong("more blocks are bad than the drive can do without"));
        }
        self.logs_found = logs_found;
        self.sequential = from.option(blocks as u32)?;
        self.sequential_open = from.u32()? == 1;
        Ok(())
    }

    fn decode_groups(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let blocks = self.uses.len();
        for _ in 0..from.u32()? {
            let number = from.u32()?;
            let logs = from.list_below(blocks, blocks as u32)?;
            let open = from.option(blocks as u32)?;
            let waits_for = from.option(blocks as u32)?;
            let awaits_program_unit = from.u32()? == 1;
            let found = from.u32()?;
            let Some(group) = self.groups.get_mut(number as usize).filter(|group| group.is_new())
            else {
                return Err(from.wrong("a data group that there is not, or twice"));
            };
            *group = Group { logs, open, waits_for, merging: None, awaits_program_unit, found };
            if let Some(log) = waits_for {
                self.wanted_by.insert(log, number);
            }
        }
        Ok(())
    }

    fn decode_die_group(
        &mut self,
        index: usize,
        from: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        let (blocks, program_units) =
            (self.uses.len() as u32, self.layout.program_units_per_block());
        let per_die_group = self.layout.blocks_per_die_group() as usize;
        let die_group = &mut self.die_groups[index];
        for list in
            [&mut die_group.free, &mut die_group.dead, &mut die_group.failed, &mut die_group.wanted]
        {
            *list = from.list_below(per_die_group, blocks)?.into();
        }
        let fills = from.list_u32(2 * per_die_group)?;
        let fills = fills.chunks_exact(2).map(|fill| (fill[0], fill[1]));
        die_group.fills = fills.collect();
        if die_group.fills.iter().any(|&(log, end)| log >= blocks || end > program_units) {
            return Err(from.wrong("program units to be filled up that there are not"));
        }
        die_group.victim = from.option(blocks)?;
        die_group.copied = from.u32()? == 1;
        Ok(())
    }

    fn decode_units(&mut self, l2p: &[u32], from: &Decoder<'_>) -> Result<(), DecodeError> {
        let per_program_unit = self.layout.units_per_program_unit();
        for (lpn, &entry) in (0..).zip(l2p).filter(|(_, entry)| **entry != 0) {
            let at = Pun(entry - 1);
            if at.0 >= self.geometry.units() || self.live(at).is_some() {
                return Err(from.wrong("two units stand in one place, or one in none"));
            }
            let block = self.layout.block_of_unit(at).0 as usize;
            let (logical, offset) = self.block_units.split(lpn);
            let place = at.0 - block as u32 * self.layout.units_per_block();
            let fits = match self.uses[block] {
                Use::Data => self.logical[block] == logical && place == offset,
                Use::Log | Use::Sealed | Use::Wanted | Use::Merging => true,
                _ => false,
            };
            let own = self.group_of[block] == logical / self.config.group_blocks;
            if !fits || !own || place >= self.next[block] * per_program_unit {
                return Err(from.wrong("a unit stands in a block that cannot hold it"));
            }
            self.p2l[at.0 as usize] = lpn + 1;
            self.map(lpn, at);
        }
        Ok(())
    }

    /// Works out what follows from the uses of blocks.
    fn derive(&mut self, from: &Decoder<'_>) -> Result<(), DecodeError> {
        self.free_total = 0;
        for block in 0..self.uses.len() as u32 {
            let index = block as usize;
            let die_group = self.die_group_of(block);
            self.log_total += u32::from(self.is_log(block));
            let listed = match self.uses[index] {
                Use::Free => {
                    self.free_total += 1;
                    None
                }
                Use::Spent => {
                    self.spent_total += 1;
                    None
                }
                Use::Data => {
                    let data = &mut self.data[self.logical[index] as usize];
                    let known = std::mem::replace(data, block + 1);
                    (known != 0).then_some(block)
                }
                Use::Log => self.open_logs.insert(self.opened[index], block),
                Use::Sealed => self.die_groups[die_group].sealed.insert(self.opened[index], block),
                _ => None,
            };
            if listed.is_some() {
                return Err(from.wrong("two blocks are one logical block, or were opened at once"));
            }
        }
        Ok(())
    }

    /// That every block is in the lists of its die group that its use asks for, and in no other.
    fn check_lists(&self) -> Result<(), &'static str> {
        let mut times = vec![0u32; self.uses.len()];
        for (index, die_group) in self.die_groups.iter().enumerate() {
            let lists = [
                (&die_group.free, &[Use::Free][..]),
                (&die_group.dead, &[Use::Dead, Use::Spent]),
                (&die_group.wanted, &[Use::Wanted]),
            ];
            for (list, uses) in lists {
                for &block in list {
                    if self.die_group_of(block) != index
                        || !uses.contains(&self.uses[block as usize])
                    {
                        return Err("a block is in a list of another use");
                    }
                    times[block as usize] += 1;
                }
            }
            if die_group.failed.iter().any(|&block| self.die_group_of(block) != index) {
                return Err("a block that has failed is on another die group");
            }
            if let Some(victim) = die_group.victim {
                if self.die_group_of(victim) != index || self.uses[victim as usize] != Use::Merging
                {
                    return Err("what is merged is no log block");
                }
                times[victim as usize] += 1;
            }
        }
        let wants = |use_| match use_ {
            Use::Free | Use::Wanted | Use::Merging | Use::Dead | Use::Spent => 1,
            _ => 0,
        };
        if self.uses.iter().zip(times).any(|(&use_, times)| times != wants(use_)) {
            return Err("a block is missing from its die group, or there twice");
        }
        Ok(())
    }

    /// That groups and blocks agree on log blocks.
    fn check_groups(&self) -> Result<(), &'static str> {
        let mut logs = 0;
        for (number, group) in (0..).zip(&self.groups) {
            let own = |&log: &u32| self.is_log(log) && self.group_of[log as usize] == number;
            let mut sorted = group.logs.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let most = self.config.group_log_blocks.max(group.found) as usize;
            if !sorted.iter().all(own) || sorted.len() != group.logs.len() || sorted.len() > most {
                return Err("the log blocks of a data group are not its own");
            }
            logs += sorted.len() as u32;
            let open = |log: u32| own(&log) && self.uses[log as usize] == Use::Log;
            if group.open.is_some_and(|log| !open(log)) {
                return Err("the open log block of a data group is not open");
            }
            let may_wait = |log: u32| self.is_log(log) && self.wanted_by[&log] == number;
            if group.waits_for.is_some_and(|log| !may_wait(log)) {
                return Err("a data group waits for what is not merged");
            }
        }
        let most = self.logs_max.max(self.logs_found);
        if logs != self.log_total || logs > most {
            return Err("log blocks are not those of the data groups, or too many");
        }
        let closed = |&block: &u32| self.uses[block as usize] == Use::Log && !self.is_open(block);
        if (0..self.uses.len() as u32).any(|block| closed(&block)) {
            return Err("a log block is neither open nor full");
        }
        if self.sequential.is_some_and(|run| !self.is_log(run)) {
            return Err("the sequential log block is none");
        }
        let full = |&(_, &block): &(&u64, &u32)| {
            self.next[block as usize] == self.layout.program_units_per_block()
        };
        if self.open_logs.iter().any(|log| full(&log)) {
            return Err("an open log block is full");
        }
        Ok(())
    }

    /// How many program units the flash may hold in `block`.
    pub(crate) fn program_units_expected(&self, block: BlockId) -> RangeInclusive<u32> {
        let (next, program_units) =
            (self.next[block.0 as usize], self.layout.program_units_per_block());
        match self.uses[block.0 as usize] {
            Use::Free => exactly(0),
            // A block that was closed early may hold fewer.
            _ if next == program_units => 0..=program_units,
            Use::Log | Use::Sealed | Use::Wanted | Use::Merging | Use::Data => exactly(next),
            _ => 0..=program_units,
        }
    }
}
