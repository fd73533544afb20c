//! Cleaning: copies the live pieces of a block, then erases it.

use crate::error::{FlashError, Result};
use crate::kv::index::PieceAddress;
use crate::kv::page::{self, DELETED};
use crate::kv::store::{COPIES, Store, Use};
use crate::medium::PageState;

use prism_nand::Cause;

impl Store {
    /// Cleans the block with the fewest live bytes; among equals, the one written longest ago.
    /// Returns whether a block could be cleaned with a gain.
    pub(super) fn clean(&mut self) -> Result<bool> {
        let closed = self.blocks.iter().zip(0u32..).filter(|(b, _)| b.used == Use::Closed);
        let Some((block, victim)) = closed.min_by_key(|(b, _)| (b.live, b.closed)) else {
            return Ok(false);
        };
        if block.live > 0 && block.live >= self.shape.gains_below(self.longest) {
            return Ok(false);
        }
        let dead = self.copy_out(victim)?;
        self.program_begun(COPIES)?;
        if self.blocks[victim as usize].live > 0 {
            // A page that was written cannot be read: do not erase its block, which may hold live
            // data.
            return Err(FlashError::Torn { at: self.share.path().address(victim, 0) });
        }
        self.erase(victim)?;
        for key in dead {
            let entry = self.index.get_mut(&key).expect("a piece of the key was on flash");
            entry.dead -= 1;
            self.remove_tombstone(&key);
        }
        Ok(true)
    }

    /// Copies the live pieces of a block; returns the keys of the pieces of old values in it.
    fn copy_out(&mut self, victim: u32) -> Result<Vec<Box<[u8]>>> {
        let mut dead = Vec::new();
        let mut bytes = vec![0; self.shape.page_size];
        self.copied = self.share.now_if_timed()?;
        let now = self.copied;
        for page in 0..self.share.write_pointer(victim)? {
            let access = self.share.access(victim, page, Cause::Gc, now);
            let (state, end) = self.share.read(access, 0, &mut bytes, &mut [])?;
            self.counts.reads[Cause::Gc] += 1;
            self.copied = self.copied.max(end);
            let Some((_, pieces)) = page::open(&bytes).filter(|_| state == PageState::Written)
            else {
                continue;
            };
            for (at, piece) in pieces {
                let place = PieceAddress { block: victim, page, at, part: piece.part.len() as u32 };
                if self.is_live(&piece, place) {
                    self.append(COPIES, piece, Some(place))?;
                } else if piece.len != DELETED {
                    dead.push(piece.key.into());
                }
            }
        }
        Ok(dead)
    }

    /// Erases a block once all copies, and the records that replaced the rest, are on flash.
    fn erase(&mut self, block: u32) -> Result<()> {
        let ready = self.end.max(self.copied);
        self.share.erase(self.share.access(block, 0, Cause::Gc, ready))?;
        self.counts.erases[Cause::Gc] += 1;
        // A block of the reserve must not get its old data back after a power failure.
        self.share.sync_if_volatile()?;
        self.put_erased(block);
        Ok(())
    }
}
