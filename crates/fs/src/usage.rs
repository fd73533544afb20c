//! What each segment holds: live blocks, and the sums from which its hotness follows.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::node::Pointer;

/// What a segment holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Usage {
    /// Live blocks of files.
    pub data: u32,
    /// Other live blocks: nodes and the node table.
    pub meta: u32,
    /// The sum of the times at which its live blocks of files were written.
    pub times: u64,
    /// The sum of their counts of writes.
    pub writes: u64,
    /// When its youngest block was written.
    pub youngest: u32,
}

impl Usage {
    /// Live blocks.
    #[must_use]
    pub fn live(&self) -> u32 {
        self.data.saturating_add(self.meta)
    }

    /// Its hotness at the time `now`: `sum W / (N T - sum T_b)`, with no age below `floor`; `None`
    /// if it has no blocks of files. Source: SFS, FAST'12 section 3.2.
    #[must_use]
    pub fn hotness(&self, now: u32, floor: u32) -> Option<f64> {
        let count = f64::from(self.data);
        let ages = count * f64::from(now) - self.times as f64;
        // A block that was never overwritten counts half a write, so that age still orders those.
        let writes = self.writes as f64 + count / 2.0;
        (self.data > 0).then(|| writes / ages.max(count * f64::from(floor.max(1))))
    }
}

/// All segments. Of a damaged file system the counts may be too small for what is removed, and
/// stop at 0; the check finds that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTable {
    /// By number of the segment.
    pub segments: Vec<Usage>,
    blocks_per_segment: u32,
    live: u64,
}

impl UsageTable {
    /// The table of these segments.
    #[must_use]
    pub fn new(segments: Vec<Usage>, blocks_per_segment: u32) -> Self {
        let live = segments.iter().map(|usage| u64::from(usage.live())).sum();
        Self { segments, blocks_per_segment, live }
    }

    /// Live blocks of all segments.
    #[must_use]
    pub fn live(&self) -> u64 {
        self.live
    }

    /// The segment of an address; `None` if the device has no such block, as pointers of a damaged
    /// file system may say.
    fn of(&mut self, addr: u32) -> Option<&mut Usage> {
        let is_block = Pointer { addr, ..Pointer::HOLE }.is_block();
        self.segments.get_mut((addr / self.blocks_per_segment) as usize).filter(|_| is_block)
    }

    /// A block of a file was written.
    pub fn add(&mut self, pointer: Pointer) {
        if let Some(usage) = self.of(pointer.addr) {
            usage.data = usage.data.saturating_add(1);
            usage.times = usage.times.saturating_add(pointer.time.into());
            usage.writes = usage.writes.saturating_add(pointer.writes.into());
            usage.youngest = usage.youngest.max(pointer.time);
            self.live += 1;
        }
    }

    /// A block of a file is dead.
    pub fn remove(&mut self, pointer: Pointer) {
        if let Some(usage) = self.of(pointer.addr) {
            usage.data = usage.data.saturating_sub(1);
            usage.times = usage.times.saturating_sub(pointer.time.into());
            usage.writes = usage.writes.saturating_sub(pointer.writes.into());
            self.live = self.live.saturating_sub(1);
        }
    }

    /// A node or a block of the node table was written; nothing if the address is none.
    pub fn add_meta(&mut self, addr: u32) {
        if let Some(usage) = self.of(addr) {
            usage.meta = usage.meta.saturating_add(1);
            self.live += 1;
        }
    }

    /// A node or a block of the node table is dead; nothing if the address is none.
    pub fn remove_meta(&mut self, addr: u32) {
        if let Some(usage) = self.of(addr) {
            usage.meta = usage.meta.saturating_sub(1);
            self.live = self.live.saturating_sub(1);
        }
    }
}
