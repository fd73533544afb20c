//! Wear levelling within a LUN: exchanges the contents of two blocks; their addresses in the share
//! stay the same.
//!
//! Data that is rewritten often (hot) moves to a less worn block, data that is not (cold) to the
//! worn one. Flash has no direct exchange: a spare block takes the first, and the block that the
//! second leaves becomes spare. Each of the two moves is a copy, then a record in the journal, so
//! after a power failure each virtual block is either at its old place or at its new one, with all
//! of its data.

use prism_base::SimTime;
use prism_nand::Cause;

use crate::error::Result;
use crate::monitor::Share;
use crate::monitor::records::Record;
use crate::monitor::state::Monitor;

impl Share {
    /// The erase counts of the share's blocks, LUN by LUN.
    pub(crate) fn wear(&self) -> Result<Vec<u32>> {
        self.with(|monitor, place| {
            let share = monitor.shares[place].as_ref().expect("checked");
            let virtual_blocks = share.luns.iter().flat_map(|&lun| {
                let first = lun * monitor.usable;
                first..first + monitor.usable
            });
            let erases = |block| monitor.erases[monitor.map.block(block) as usize];
            Ok(virtual_blocks.map(erases).collect())
        })
    }

    /// Moves the data of block `hot` to a less worn block, and that of the less worn block `cold`
    /// to a worn one. Returns the end of the moves; `None` if there was no spare block, in which
    /// case one or both may not have moved.
    pub(crate) fn swap_wear(&self, hot: u32, cold: u32, ready: SimTime) -> Result<Option<SimTime>> {
        self.with(|monitor, place| {
            let (hot, cold) =
                (monitor.virtual_block(place, hot)?, monitor.virtual_block(place, cold)?);
            let end = monitor.swap_wear(hot, cold, ready)?;
            monitor.note_wear()?;
            Ok(end)
        })
    }
}

impl Monitor {
    fn swap_wear(&mut self, hot: u32, cold: u32, ready: SimTime) -> Result<Option<SimTime>> {
        let (worn, fresh) = (self.map.block(hot), self.map.block(cold));
        let lun = self.lun_of(worn);
        let in_use = |virtual_block| self.map.is_programmed(virtual_block);
        if lun != self.lun_of(fresh) || in_use(hot) || in_use(cold) {
            // The LUN is being exchanged with another, which levels more than this; or programs
            // are in progress.
            return Ok(None);
        }
        let wear = |&block: &u32| self.erases[block as usize];
        let Some(spare) = self.spares[lun as usize].iter().copied().min_by_key(wear) else {
            return Ok(None);
        };
        // A spare block that is more worn than the worn one takes the cold data instead.
        let moves = if wear(&spare) < wear(&worn) {
            [(hot, spare), (cold, worn)]
        } else {
            [(cold, spare), (hot, fresh)]
        };
        let mut end = ready;
        for (virtual_block, to) in moves {
            match self.move_to_spare(virtual_block, to, end)? {
                Some(moved) => end = moved,
                None => return Ok(None),
            }
        }
        Ok(Some(end))
    }

    /// Erases the spare block `to` and moves a virtual block there; `None` if the block failed.
    fn move_to_spare(
        &mut self,
        virtual_block: u32,
        to: u32,
        ready: SimTime,
    ) -> Result<Option<SimTime>> {
        let lun = self.lun_of(to);
        self.spares[lun as usize].retain(|&spare| spare != to);
        self.counts.erases[Cause::Wear] += 1;
        if !self.erase_block(to)? {
            self.bad[to as usize] = true;
            self.commit(&[Record::Bad { blocks: vec![to] }])?;
            return Ok(None);
        }
        let ready = self.at_earliest(ready);
        let erased = self.timeline.as_mut().map_or(ready, |time| time.erase(lun, ready).end);
        let from = self.map.block(virtual_block);
        let pages = self.medium()?.write_pointer(from);
        let end = self.remap(virtual_block, to, pages, Cause::Wear, erased)?;
        Ok((self.map.block(virtual_block) == to).then_some(end))
    }
}
