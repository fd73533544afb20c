//! Segments of flash at each level of the library, as a program sees them. Each level is a small
//! file; everything else is the same code.

mod drive;
mod function;
mod ideal;
mod policy;
mod raw;
mod sim;
mod stripes;
mod wrapper;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_base::{Nanos, SimTime};
use prism_flash::{Address, Buffer, FlashError, Share, ShareGeometry};
use prism_nand::Cause;

pub use drive::DriveStore;
pub use function::FunctionStore;
pub use ideal::IdealStore;

pub use policy::PolicyStore;
pub use raw::RawStore;
pub use sim::{Level, SimStore};
pub use stripes::StripeStore;
pub use wrapper::Wrapper;

/// The segments of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Segments, of which some may never be open at once.
    pub segments: u32,
    /// Bytes of a segment, a multiple of those of a page.
    pub segment_bytes: u32,
    /// Bytes of the unit of reads and writes.
    pub page_bytes: u32,
    /// Channels, which work in parallel.
    pub channels: u32,
    /// Whether the program decides how many segments are kept erased; if not, the store has
    /// over-provisioning of its own, and all of its segments may be full.
    pub dynamic_reserve: bool,
}

/// A command that is complete.
#[derive(Debug)]
pub struct Done {
    /// The caller's number.
    pub tag: u64,
    /// When it was, on a device with timing.
    pub end: SimTime,
    /// The result.
    pub result: Result<(), FlashError>,
    /// The data.
    pub data: Buffer,
}

/// What the store did to flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounts {
    /// Pages programmed for the program.
    pub programs: u64,
    /// Pages that were copied below the program.
    pub copies: u64,
    /// Pages read for the program.
    pub reads: u64,
    /// Blocks erased.
    pub erases: u64,
}

prism_base::counts!(FlashCounts { values: programs, copies, reads, erases; });

/// A sync of a device that any thread can run.
pub type Syncer = Box<dyn FnOnce() -> Result<(), FlashError> + Send>;

/// A read of whole pages of a segment, from a number of bytes on, that any thread can make. It
/// fails if the segment was freed meanwhile, or has other data if it was written again.
pub type Reader = Arc<dyn Fn(u32, u32, &mut [u8]) -> Result<(), FlashError> + Send + Sync>;

/// Segments of flash. A segment is opened, written in order, read, and freed. Commands are queued
/// and their completions taken; nothing waits but [`Store::wait`] and a [`Reader`].
pub trait Store {
    /// Its segments.
    fn shape(&self) -> Shape;

    /// A number that belongs to the device, so that a state file of another one is recognised.
    fn identity(&self) -> u64;

    /// The segments that may hold data; called once, when the program opens the store. The others
    /// are free.
    ///
    /// # Errors
    /// [`FlashError`].
    fn used(&mut self) -> Result<Vec<u32>, FlashError>;

    /// Segments that can be opened now.
    fn available(&mut self) -> u32;

    /// Segments that were freed and can be opened when their erase is complete.
    fn erasing(&mut self) -> u32 {
        0
    }

    /// Segments that can be opened, now or when their erase is complete. An erase that ends while
    /// they are counted does not change the sum.
    fn unused(&mut self) -> u32 {
        self.available() + self.erasing()
    }

    /// Opens an erased segment; `None` if there is none.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    fn open(&mut self) -> Result<Option<u32>, FlashError>;

    /// Writes whole pages, the next ones of the segment.
    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64);

    /// Reads whole pages into `data`.
    fn read(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64);

    /// Frees a segment, which is erased when its commands have ended.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    fn free(&mut self, segment: u32) -> Result<(), FlashError>;

    /// Makes durable what was written and freed before.
    fn sync(&mut self, tag: u64);

    /// A sync that any thread can run without the store. It makes durable what was complete when
    /// this was called, so callers wait for all writes first. `None` if there is no such sync.
    fn syncer(&self) -> Option<Syncer> {
        None
    }

    /// Reads that any thread can make without the store, of pages whose writes are complete. `None`
    /// if there are no such reads.
    fn reader(&self) -> Option<Reader> {
        None
    }

    /// Whether a sync also makes the writes durable that are in flight when it is submitted.
    fn syncs_writes_in_flight(&self) -> bool {
        false
    }

    /// A buffer for commands.
    fn buffer(&self, len: usize) -> Buffer {
        vec![0; len].into()
    }

    /// The next completion, if there is one.
    fn poll(&mut self) -> Option<Done>;

    /// Waits for a completion (of an erase, too), at most for `timeout`; false if there is none. On
    /// a device with timing the clock advances, by all of `timeout` if there is none.
    fn wait(&mut self, timeout: Option<Nanos>) -> bool;

    /// A file descriptor that becomes readable when a command completes.
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What was done to flash.
    fn counts(&self) -> FlashCounts;

    /// The time, on a device with timing.
    fn now(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// The source code of the stores at each level, by the name of the level: what differs between
/// programs at different levels of the library.
pub const SOURCES: [(&str, &str); 6] = [
    ("raw", include_str!("raw.rs")),
    ("function", include_str!("function.rs")),
    ("policy", include_str!("policy.rs")),
    ("conventional drive", include_str!("drive.rs")),
    ("ideal", include_str!("ideal.rs")),
    ("function, all channels", include_str!("stripes.rs")),
];

/// Commands that are submitted to a queue of the library and not taken. Beyond what the device
/// takes at once they wait in the library; the program bounds them, by its buffers and by bytes of
/// reads.
pub(crate) const DEPTH: usize = usize::MAX;

/// What was done to the flash of a share.
pub(crate) fn counts_of(share: &Share) -> FlashCounts {
    let counts = share.counts().unwrap_or_default();
    FlashCounts {
        programs: counts.programs[Cause::Host],
        copies: counts.programs.total() - counts.programs[Cause::Host],
        reads: counts.reads[Cause::Host],
        erases: counts.erases.total(),
    }
}

/// The time of a share, on a device with timing.
pub(crate) fn now_of(share: &Share) -> SimTime {
    share.now().unwrap_or(SimTime::ZERO)
}

/// Ends a wait that began at `begun` and found nothing: on a device with timing it takes all of its
/// time, also if nothing was in flight.
pub(crate) fn pass_rest(share: &Share, begun: SimTime, timeout: Option<Nanos>) -> bool {
    if let (true, Some(timeout), Ok(now)) = (share.is_timed(), timeout, share.now()) {
        let _ = share.pass(Nanos((begun + timeout).0.saturating_sub(now.0)));
    }
    false
}

/// Addresses of the blocks of a share, as numbers of segments: those of a LUN together.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// LUNs before those of each channel.
    before: Vec<u32>,
    luns: Vec<(u32, u32)>,
    blocks: u32,
}

impl Numbering {
    pub(crate) fn new(geometry: &ShareGeometry) -> Self {
        let (mut before, mut luns) = (Vec::new(), Vec::new());
        for (channel, of_channel) in (0..).zip(&geometry.channels) {
            before.push(luns.len() as u32);
            luns.extend((0..of_channel.len() as u32).map(|lun| (channel, lun)));
        }
        Self { before, luns, blocks: geometry.blocks_per_lun }
    }

    pub(crate) fn segments(&self) -> u32 {
        self.luns.len() as u32 * self.blocks
    }

    pub(crate) fn address(&self, segment: u32) -> Address {
        let (channel, lun) = self.luns[(segment / self.blocks) as usize];
        Address { channel, lun, block: segment % self.blocks, page: 0 }
    }

    pub(crate) fn segment(&self, at: Address) -> u32 {
        (self.before[at.channel as usize] + at.lun) * self.blocks + at.block
    }
}
