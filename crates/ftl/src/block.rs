//! What a translation layer keeps of each block.

/// What a block is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BlockState {
    /// Erased, in the free list of its lane.
    #[default]
    Free,
    /// A frontier writes to it, or its last rows are still being programmed.
    Open,
    /// Full and committed: a candidate.
    Sealed,
    /// Chosen for cleaning, until it is erased.
    Victim,
    /// A program of it failed: closed, and to be emptied.
    Failed,
    /// Bad, and empty.
    Retired,
}

/// A block. Whoever asks for one of these asks for another next, and the blocks under way on
/// all dies are more than the first cache holds lines for: so they lie together, and in one
/// line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
pub(crate) struct Block {
    /// Units that the map points to.
    pub(crate) valid: u32,
    /// Rows reserved and not yet committed.
    pub(crate) rows_in_flight: u16,
    /// The frontier that wrote it, while it is not free.
    pub(crate) frontier: u16,
    pub(crate) state: BlockState,
}
