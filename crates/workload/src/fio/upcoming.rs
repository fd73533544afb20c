//! I/Os of a job that are drawn and not issued yet.

/// I/Os that are drawn at once, as many I/Os before they are issued. In batches: on a large drive
/// each prefetch of a map entry needs a page table walk, and these overlap.
pub(super) const DRAWN_AHEAD: usize = 8;

const MOST: usize = 2 * DRAWN_AHEAD;

/// An I/O that is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drawn {
    /// First byte, and length: 0 for the end of a pass, after which nothing is drawn.
    pub offset: u64,
    pub len: u64,
    pub dir: u32,
}

/// A queue of at most `2 * DRAWN_AHEAD` I/Os. A `prism_base::Ring` grows, and has to check for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Upcoming {
    slots: [Drawn; MOST],
    /// The number of I/Os ever added and removed, modulo 2^32.
    added: u32,
    removed: u32,
}

impl Upcoming {
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.added.wrapping_sub(self.removed) as usize
    }

    #[inline(always)]
    pub fn front(&self) -> Option<&Drawn> {
        (self.added != self.removed).then(|| &self.slots[self.removed as usize % MOST])
    }

    #[inline(always)]
    pub fn back(&self) -> Option<&Drawn> {
        let last = self.added.wrapping_sub(1);
        (self.added != self.removed).then(|| &self.slots[last as usize % MOST])
    }

    /// Adds an I/O; the caller checks that there is space.
    #[inline(always)]
    pub fn push_back(&mut self, drawn: Drawn) {
        debug_assert!(self.len() < MOST, "at most {MOST} I/Os are drawn in advance");
        self.slots[self.added as usize % MOST] = drawn;
        self.added = self.added.wrapping_add(1);
    }

    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<Drawn> {
        let first = *self.front()?;
        self.removed = self.removed.wrapping_add(1);
        Some(first)
    }
}
