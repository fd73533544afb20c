//! Flash and FTL without time, for simulations that ask only what is programmed and erased.

use prism_engine::{FlashCounts, Immediate};
use prism_ftl::Ftl;
use prism_nand::{Geometry, Nand};

/// Dies with a channel each, one plane, pages of 4 KiB that are mapping units, and at least
/// `blocks` blocks in all.
pub(crate) fn geometry(dies: u32, blocks: u32, pages_per_block: u32) -> Geometry {
    Geometry {
        channels: dies,
        blocks_per_plane: blocks.div_ceil(dies),
        pages_per_block,
        ..Geometry::SMALLEST
    }
}

/// Flash with its FTL, to which single units are written.
#[derive(Debug)]
pub(crate) struct Untimed {
    engine: Immediate<Nand, Ftl>,
    version: u64,
}

impl Untimed {
    pub(crate) fn new(nand: Nand, ftl: Ftl) -> Self {
        Self { engine: Immediate::new(nand, ftl), version: 0 }
    }

    /// Writes the units below `units` once, in order.
    pub(crate) fn fill(&mut self, units: u32) {
        (0..units).for_each(|lpn| self.write(lpn));
    }

    /// Writes a unit.
    #[inline]
    pub(crate) fn write(&mut self, lpn: u32) {
        self.version += 1;
        self.engine.write(lpn, self.version);
    }

    /// Writes units one after another: the same as [`Untimed::write`] of each, but faster on a
    /// large drive.
    pub(crate) fn write_all(&mut self, lpns: &[u32]) {
        self.engine.write_all(lpns, self.version + 1);
        self.version += lpns.len() as u64;
    }

    /// Trims a unit.
    pub(crate) fn trim(&mut self, lpn: u32) {
        self.version += 1;
        self.engine.trim(lpn, lpn + 1, self.version);
    }

    /// Flash operations so far.
    pub(crate) fn counts(&self) -> FlashCounts {
        *self.engine.counts()
    }

    pub(crate) fn ftl(&self) -> &Ftl {
        self.engine.ftl()
    }

    /// Flash operations since `before`, at the end of a simulation.
    ///
    /// # Panics
    /// If a law of conservation is broken.
    pub(crate) fn finish(self, before: &FlashCounts) -> FlashCounts {
        self.engine.flash().assert_conserved();
        self.engine.ftl().assert_consistent();
        self.engine.counts().since(before)
    }
}
