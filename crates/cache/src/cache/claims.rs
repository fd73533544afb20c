//! Slabs that are in a buffer when the cache is opened, because the earlier process had not synced
//! them: they are written to new blocks.

use std::collections::BTreeMap;

use prism_flash::FlashError;

use super::{Cache, Phase, Slab};
use crate::record::{self, At, UNIT};
use crate::slab::{self, Content, Fill};
use prism_segments::Store;

/// A slab in a buffer that is not on flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) buffer: u16,
    pub(super) number: u64,
    pub(super) fill: Fill,
    /// The block that it was written to before, where its state is.
    pub(super) of: u32,
}

/// Whether an item of a slab with this number, whose bytes these are, is whole.
fn is_whole(bytes: &[u8], number: u64, item: &Content) -> bool {
    let end = (u64::from(item.unit) + u64::from(item.units)) * u64::from(UNIT);
    let record = (end <= bytes.len() as u64).then(|| &bytes[(item.unit * UNIT) as usize..]);
    record.is_some_and(|bytes| {
        // The length in the table counts too: what is behind it is not kept.
        let len = record::parse(bytes).map_or(0, |(_, len)| len as u32);
        let is_read = record::read(bytes, At { slab: number, unit: item.unit }).is_some();
        is_read && len.div_ceil(UNIT) == item.units
    })
}

/// The items of a slab up to the first that is damaged.
fn whole(bytes: &[u8], number: u64, fill: Fill) -> impl Iterator<Item = Content> + '_ {
    slab::contents(bytes, fill).take_while(move |item| is_whole(bytes, number, item))
}

impl<S: Store> Cache<S> {
    /// Removes slabs from `ends` of which a buffer has more than flash. A disk that loses power may
    /// have written the end of a slab and not its beginning, so a slab that was not synced must be
    /// read to know.
    pub(super) fn drop_torn(
        &mut self,
        ends: &mut BTreeMap<u32, (u64, Fill)>,
        buffers: u16,
    ) -> Result<(), FlashError> {
        let number = |buffer| Some((slab::read_buffer(self.buffers.bytes(buffer))?.0, buffer));
        let in_buffers: BTreeMap<u64, u16> = (0..buffers).filter_map(number).collect();
        let unsynced = ends.iter().filter(|(_, (number, _))| in_buffers.contains_key(number));
        let reads = unsynced.map(|(&slab, _)| (slab, 0, self.shape.segment_bytes)).collect();
        let mut torn = Vec::new();
        self.read_all(reads, |cache, slab, data| {
            let (number, fill) = ends[&slab];
            let on_flash = data.filter(|bytes| slab::table_is_whole(bytes, fill));
            let on_flash = on_flash.map_or(0, |bytes| {
                slab::contents(bytes, fill).filter(|item| is_whole(bytes, number, item)).count()
            });
            let bytes = cache.buffers.bytes(in_buffers[&number]);
            let in_buffer =
                slab::read_buffer(bytes).map_or(0, |(_, fill)| whole(bytes, number, fill).count());
            torn.extend((in_buffer > on_flash).then_some(slab));
        })?;
        ends.retain(|slab, _| !torn.contains(slab));
        Ok(())
    }

    /// Writes the slabs in buffers to new blocks. Those that find none are lost.
    pub(super) fn rewrite_all(
        &mut self,
        mut claims: Vec<Claim>,
        now: u32,
    ) -> Result<(), FlashError> {
        while let Some(claim) = claims.pop() {
            let Some(slab) = self.open_unclaimed(&claims)? else {
                // A device that has failed erases nothing either; a read of it reports that.
                return self.read_all(vec![(0, 0, self.shape.page_bytes)], |_, _, _| {});
            };
            self.rewrite(&claim, slab, now);
        }
        Ok(())
    }

    /// Completes a command, without cleaning: buffers are not divided yet.
    fn complete_one(&mut self) -> bool {
        let waited = self.store.wait(None);
        while let Some(done) = self.store.poll() {
            self.complete(done);
        }
        waited
    }

    /// Opens a slab whose state no buffer of `claims` needs.
    fn open_unclaimed(&mut self, claims: &[Claim]) -> Result<Option<u32>, FlashError> {
        let mut refused = Vec::new();
        let opened = loop {
            match self.store.open()? {
                Some(slab) if claims.iter().any(|claim| claim.of == slab) => refused.push(slab),
                // Perhaps a block is still being erased.
                None if self.complete_one() => {}
                opened => break opened,
            }
        };
        refused.into_iter().try_for_each(|slab| self.store.free(slab))?;
        Ok(opened)
    }

    /// Writes the slab in a buffer to a new block, with the number that it has.
    fn rewrite(&mut self, claim: &Claim, slab: u32, now: u32) {
        let Claim { buffer, number, fill, of } = *claim;
        if slab != of {
            self.state.move_to(of, slab);
        }
        self.slabs[slab as usize] =
            Slab { number, phase: Phase::Writing, buffer, fill, ..Slab::FREE };
        let bytes = self.buffers.bytes(buffer);
        let items: Vec<Content> = whole(bytes, number, fill).collect();
        for item in &items {
            self.add_found(slab, item, now);
        }
        // What a loss of power left damaged is no part of the slab.
        let units = items.last().map_or(0, |last| last.unit + last.units);
        let fill = Fill { items: items.len() as u32, units };
        self.slabs[slab as usize].fill = fill;
        // What was there before the loss of power may be on the disk still, and be found after
        // another one in which the block is lost: nothing would say that it was replaced since.
        (units..self.slab_units as u32).for_each(|unit| self.state.set_dead(slab, unit));
        slab::refill(self.buffers.bytes_mut(buffer), fill);
        slab::seal(self.buffers.bytes_mut(buffer), fill);
        self.write_out(slab);
        while self.slabs[slab as usize].writes > 0 && self.complete_one() {}
    }
}
