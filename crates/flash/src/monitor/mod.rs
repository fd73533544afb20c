//! The flash monitor, which divides a device into shares.
//!
//! Several applications share one device. Each has a *share*: LUNs of its own, round robin over the
//! channels, some of which are over-provisioning. An application can access its own share only, and
//! a LUN is erased before another share gets it. Bad blocks are replaced by spare ones, invisibly
//! to the application. Source: Prism-SSD (Shen et al., ICDCS'19), section IV.A. Additions: shares
//! that grow and shrink, bandwidth limits, global wear levelling, and tables that survive a power
//! failure.

mod commands;
mod levelling;
mod map;
mod queue;
mod records;
mod replace;
mod ring;
mod schedule;
mod share;
mod state;
mod steps;
mod swap;
mod tables;
mod timed;
mod wall;

use std::sync::{Arc, Mutex, MutexGuard};

use prism_base::{Bytes, SimTime};
use prism_nand::Timing;

use crate::buffer::Buffer;
use crate::error::{FlashError, Result};
use crate::medium::{DeviceGeometry, Medium, MediumError, PageState};
use records::{Record, ShareRecord};
use state::{LunUse, Monitor};

pub use commands::Completion;
pub(crate) use commands::{Commands, level_queue};
pub use levelling::{GlobalWear, WearReport};
pub(crate) use queue::{ShareOp, ShareQueue, ShareReply};
pub use schedule::PASSED_MAX;
pub(crate) use share::{Hold, Level};
pub use share::{Share, ShareGeometry};
pub use state::OpCounts;
pub(crate) use state::{Access, Pads, Programmed, Urgency};
pub(crate) use timed::TimedQueue;
pub use wall::WallClock;

/// Bytes of the longest name of a share, as of a file's on most systems.
const NAME_MAX: usize = 255;

/// Options of a session with a device; none is stored on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// How long operations take in virtual time; `None` for a device without time.
    pub timing: Option<Timing>,
    /// When global wear levelling exchanges LUNs; `None` for never.
    pub wear: Option<GlobalWear>,
}

/// The size and the limits of a new share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocation {
    /// Bytes for the application.
    pub capacity: Bytes,
    /// Over-provisioning in percent of the capacity.
    pub over_provisioning: u32,
    /// Limit of reads and writes together, in bytes/s; `None` for no limit.
    pub bandwidth: Option<u64>,
    /// Blocks that may be partly written at once, where the device limits them; `None` for a part
    /// of the limit in proportion to the share's LUNs.
    pub open_blocks: Option<u32>,
}

impl Allocation {
    /// `capacity`, and `over_provisioning` percent of it; no limits.
    #[must_use]
    pub fn new(capacity: Bytes, over_provisioning: u32) -> Self {
        Self { capacity, over_provisioning, bandwidth: None, open_blocks: None }
    }
}

/// A share as the monitor lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareInfo {
    /// Its name.
    pub name: String,
    /// Its LUNs, as the device counts them.
    pub luns: Vec<u32>,
    /// How many of them are over-provisioning.
    pub ops_luns: u32,
    /// Whether an application is attached to it.
    pub attached: bool,
    /// Operations in it since the device was opened.
    pub counts: OpCounts,
}

/// A flash device that applications share. Clones are handles of the same device; threads
/// may use them at once.
#[derive(Clone, Debug)]
pub struct Device(Arc<Mutex<Monitor>>);

impl Device {
    /// Formats `medium`: all of its data is lost.
    ///
    /// # Errors
    /// [`FlashError`] if the geometry is out of range, the device has too many bad blocks, or it
    /// fails.
    pub fn format(medium: impl Into<Arc<dyn Medium>>, options: Options) -> Result<Self> {
        let medium = medium.into();
        medium.geometry().check()?;
        let mut worn_out = Vec::new();
        for block in 0..medium.geometry().blocks() {
            // A block whose erase was interrupted has no pages, and still has to be erased.
            let torn = medium.read(block, 0, 0, &mut [], &mut [])? == PageState::Torn;
            if (torn || medium.write_pointer(block) > 0) && !medium.is_factory_bad(block) {
                match medium.erase(block) {
                    Err(MediumError::EraseFailed { .. }) => worn_out.push(block),
                    done => done?,
                }
            }
        }
        medium.sync()?;
        let (mut monitor, _) = Monitor::blank(medium, options.timing)?;
        for block in worn_out {
            // The block is replaced when a share gets the LUN.
            let lun = monitor.lun_of(block);
            monitor.luns[lun as usize] = LunUse::Dirty;
        }
        monitor.levelling.policy = options.wear;
        let (format, dirty) = (monitor.format_record(), monitor.dirty());
        monitor.commit(&[format, dirty])?;
        Ok(Self(Arc::new(Mutex::new(monitor))))
    }

    /// Opens a device that was formatted, and recovers from a power failure.
    ///
    /// # Errors
    /// [`FlashError::NotFormatted`] if it holds no tables, or those of another geometry.
    pub fn open(medium: impl Into<Arc<dyn Medium>>, options: Options) -> Result<Self> {
        let (mut monitor, records) = Monitor::blank(medium.into(), options.timing)?;
        monitor.replay(&records)?;
        monitor.levelling.policy = options.wear;
        Ok(Self(Arc::new(Mutex::new(monitor))))
    }

    /// From now on operations also take their time on `clock`: a call on a share that is attached
    /// later returns when the device would have completed it. The clocks of these shares go on from
    /// the latest time that any share has reached.
    ///
    /// # Errors
    /// [`FlashError::NoClock`] on a device without timing.
    pub fn in_real_time(self, clock: &'static dyn WallClock) -> Result<Self> {
        let mut monitor = self.lock();
        if monitor.timeline.is_none() {
            return Err(FlashError::NoClock);
        }
        let clocks = monitor.shares.iter().flatten().map(|share| share.now);
        let latest = clocks.max().unwrap_or_default().max(monitor.floor);
        let begin = monitor.wall.map_or(latest, |wall| latest.max(wall.now()));
        monitor.wall = Some(wall::Wall::new(clock, begin));
        drop(monitor);
        Ok(self)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Monitor> {
        self.0.lock().expect("no thread panics while it holds the device")
    }

    /// Closes the device without writing anything, as the end of the process would, and returns its
    /// medium. Calls on remaining handles fail from now on.
    ///
    /// # Errors
    /// [`FlashError::Released`] if it was taken before.
    pub fn into_medium(self) -> Result<Arc<dyn Medium>> {
        let monitor = self.lock();
        monitor.medium()?;
        monitor.map.close();
        Ok(Arc::clone(&monitor.medium))
    }

    /// The medium, for a caller that knows its type. Changing it behind the device's back damages
    /// the device.
    #[must_use]
    pub fn medium(&self) -> Arc<dyn Medium> {
        Arc::clone(&self.lock().medium)
    }

    /// A buffer of `len` bytes that the device reads into and programs from without a copy: aligned
    /// for direct I/O. On a file, buffers share huge pages: one that is kept may keep 2 MiB.
    #[must_use]
    pub fn buffer(&self, len: usize) -> Buffer {
        self.medium().buffer(len)
    }

    /// The geometry of the device, including spare blocks and tables.
    #[must_use]
    pub fn geometry(&self) -> DeviceGeometry {
        self.lock().geometry
    }

    /// Bytes of a LUN that a share can use: those of its blocks without spare ones and tables.
    #[must_use]
    pub fn lun_capacity(&self) -> Bytes {
        let monitor = self.lock();
        Bytes(u64::from(monitor.usable) * monitor.geometry.block_bytes())
    }

    /// Usable LUNs that belong to no share.
    #[must_use]
    pub fn free_luns(&self) -> u32 {
        self.lock().luns.iter().filter(|lun| lun.is_free()).count() as u32
    }

    /// The shares, in the order in which they were allocated.
    #[must_use]
    pub fn shares(&self) -> Vec<ShareInfo> {
        let monitor = self.lock();
        let mut shares: Vec<_> = monitor.shares.iter().flatten().collect();
        shares.sort_by_key(|share| share.id);
        let info = |share: &&state::ShareState| ShareInfo {
            name: share.name.clone(),
            luns: share.luns.clone(),
            ops_luns: share.ops_luns,
            attached: share.attached,
            counts: share.all_counts(),
        };
        shares.iter().map(info).collect()
    }

    /// Operations for the tables, for failed blocks and for levelling since the device was opened.
    #[must_use]
    pub fn own_counts(&self) -> OpCounts {
        self.lock().counts
    }

    /// The physical blocks of a share, LUN by LUN.
    ///
    /// # Errors
    /// [`FlashError::NoShare`].
    pub fn blocks_of(&self, name: &str) -> Result<Vec<u32>> {
        let monitor = self.lock();
        let mut shares = monitor.shares.iter().flatten();
        let Some(share) = shares.find(|share| share.name == name) else {
            return Err(FlashError::NoShare { name: name.into() });
        };
        let virtual_blocks = share.luns.iter().flat_map(|&lun| {
            let first = lun * monitor.usable;
            first..first + monitor.usable
        });
        Ok(virtual_blocks.map(|block| monitor.map.block(block)).collect())
    }

    /// Physical blocks that failed and were replaced, and those that the manufacturer marked as
    /// bad.
    #[must_use]
    pub fn bad_blocks(&self) -> Vec<u32> {
        let monitor = self.lock();
        let marked = |block| monitor.medium.is_factory_bad(block);
        let bad = |&block: &u32| monitor.bad[block as usize] || marked(block);
        (0..monitor.geometry.blocks()).filter(bad).collect()
    }

    /// How often each block was erased, as far as is known: exactly, if the medium counts erases.
    #[must_use]
    pub fn erase_counts(&self) -> Vec<u32> {
        self.lock().erases.clone()
    }

    /// How evenly the device is worn.
    #[must_use]
    pub fn wear(&self) -> WearReport {
        self.lock().wear_report()
    }

    /// Levels wear now, moving about `blocks` blocks regardless of the budget of [`Options::wear`].
    /// Returns whether more blocks should move.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn level_wear(&self, policy: GlobalWear, blocks: u32) -> Result<bool> {
        self.lock().level(policy, blocks, SimTime::ZERO)
    }

    /// Allocates a share and attaches to it.
    ///
    /// # Errors
    /// [`FlashError::ShareExists`], [`FlashError::NoLuns`], [`FlashError::NoClock`] for a bandwidth
    /// limit without timing, [`FlashError::Invalid`] for a limit of 0 or a name that is empty,
    /// longer than 255 bytes or has control characters, [`FlashError::NoSpace`] if no block may be
    /// open, [`FlashError::Tables`] if the device's tables are full.
    pub fn allocate(&self, name: &str, wanted: Allocation) -> Result<Share> {
        if name.is_empty() || name.len() > NAME_MAX || name.contains(char::is_control) {
            let what = "a share's name has 1 to 255 bytes and no control characters";
            return Err(FlashError::Invalid { what: what.into() });
        }
        let mut monitor = self.lock();
        if monitor.shares.iter().flatten().any(|share| share.name == name) {
            return Err(FlashError::ShareExists { name: name.into() });
        }
        monitor.check_bandwidth(wanted.bandwidth)?;
        let user = monitor.luns_for(wanted.capacity);
        let percent = u64::from(wanted.over_provisioning);
        let ops_luns = (u64::from(user) * percent).div_ceil(100).min(1 << 20) as u32;
        let luns = monitor.take_clean_luns(user + ops_luns)?;
        let open_max = monitor.open_max(wanted.open_blocks, user + ops_luns)?;
        let record = ShareRecord {
            id: monitor.next_id,
            name: name.into(),
            ops_luns,
            open_max,
            bandwidth: wanted.bandwidth.unwrap_or(0),
            luns,
            meta: Vec::new(),
        };
        monitor.check_room(&record)?;
        monitor.commit(&[Record::Share(record.clone())])?;
        monitor.put_share(record);
        drop(monitor);
        self.attach(name)
    }

    /// Attaches to a share that was allocated before.
    ///
    /// # Errors
    /// [`FlashError::NoShare`], or [`FlashError::InUse`] if it is attached already.
    pub fn attach(&self, name: &str) -> Result<Share> {
        let mut monitor = self.lock();
        let named = |share: &Option<state::ShareState>| {
            share.as_ref().is_some_and(|share| share.name == name)
        };
        let Some(place) = monitor.shares.iter().position(named) else {
            return Err(FlashError::NoShare { name: name.into() });
        };
        let floor = monitor.floor;
        let share = monitor.shares[place].as_mut().expect("just found");
        if share.attached {
            return Err(FlashError::InUse { name: name.into() });
        }
        share.attached = true;
        share.now = share.now.max(floor);
        let id = share.id;
        drop(monitor);
        Ok(Share::new(self.clone(), place, id))
    }

    /// Releases a share that is not attached: its data is lost.
    ///
    /// # Errors
    /// [`FlashError::NoShare`], [`FlashError::InUse`].
    pub fn release(&self, name: &str) -> Result<()> {
        let share = self.attach(name)?;
        share.release()
    }
}

impl Monitor {
    fn luns_for(&self, capacity: Bytes) -> u32 {
        let lun = u64::from(self.usable) * self.geometry.block_bytes();
        capacity.0.div_ceil(lun).clamp(1, u64::from(u32::MAX / 2)) as u32
    }

    fn check_bandwidth(&self, limit: Option<u64>) -> Result<()> {
        match limit {
            Some(_) if self.timeline.is_none() => Err(FlashError::NoClock),
            Some(0) => {
                let what =
                    "a limit of 0 bytes a second lets nothing through; use None for no limit";
                Err(FlashError::Invalid { what: what.into() })
            }
            _ => Ok(()),
        }
    }

    /// How many blocks a new share of `luns` LUNs may have open. The monitor itself needs two of
    /// the device's: for its journal, and for a block that it moves.
    fn open_max(&self, wanted: Option<u32>, luns: u32) -> Result<u32> {
        let Some(max) = self.geometry.max_open_blocks else { return Ok(u32::MAX) };
        let given: u32 = self.shares.iter().flatten().map(|share| share.open_max).sum();
        let part = u64::from(max - 2) * u64::from(luns) / u64::from(self.geometry.luns());
        let asked = wanted.unwrap_or(part as u32);
        let left = (max - 2).saturating_sub(given);
        if asked == 0 || asked > left {
            let what = format!(
                "{asked} open blocks were asked for, and {left} of the device's {max} are left: \
                 say how many in the allocation, or release a share"
            );
            return Err(FlashError::NoSpace { what });
        }
        Ok(asked)
    }

    /// Free LUNs, one from each channel in turn.
    fn take_luns(&mut self, count: u32) -> Result<Vec<u32>> {
        let usable = |lun: &u32| self.luns[*lun as usize].is_free() && !self.is_written_to(*lun);
        let usable: Vec<bool> = (0..self.luns.len() as u32).map(|lun| usable(&lun)).collect();
        let free = usable.iter().filter(|usable| **usable).count() as u32;
        if count > free {
            return Err(FlashError::NoLuns { asked: count, free });
        }
        let channels = self.geometry.channels;
        let mut taken: Vec<u32> = Vec::new();
        let mut channel = self.next_channel;
        while (taken.len() as u32) < count {
            let of_channel = (channel..self.luns.len() as u32).step_by(channels as usize);
            let is_free = |lun: &u32| usable[*lun as usize];
            taken.extend(of_channel.filter(is_free).find(|lun| !taken.contains(lun)));
            channel = (channel + 1) % channels;
        }
        self.next_channel = channel;
        Ok(taken)
    }

    /// Whether programs of a released share are still in flight on a virtual LUN: they could land
    /// in what is written there next.
    fn is_written_to(&self, lun: u32) -> bool {
        let mut blocks = lun * self.usable..(lun + 1) * self.usable;
        blocks.any(|virtual_block| self.map.is_programmed(virtual_block))
    }

    /// Takes free LUNs and erases the data of former shares. Skips a LUN with a failed block and no
    /// spare one.
    fn take_clean_luns(&mut self, count: u32) -> Result<Vec<u32>> {
        loop {
            let taken = self.take_luns(count)?;
            if self.clean_luns(&taken)? {
                return Ok(taken);
            }
        }
    }

    /// Erases the data of former shares on LUNs. Returns whether all of the LUNs are usable.
    fn clean_luns(&mut self, luns: &[u32]) -> Result<bool> {
        let (mut any, mut all) = (false, true);
        for &lun in luns {
            if self.luns[lun as usize] != LunUse::Dirty || self.is_written_to(lun) {
                continue;
            }
            self.luns[lun as usize] = match self.clean_lun(lun) {
                Ok(()) => LunUse::Free,
                Err(FlashError::WornOut { .. }) => LunUse::WornOut,
                Err(error) => return Err(error),
            };
            all &= self.luns[lun as usize] == LunUse::Free;
            any = true;
        }
        if any {
            self.sync()?;
            let dirty = self.dirty();
            self.commit(&[dirty])?;
        }
        Ok(all)
    }

    fn clean_lun(&mut self, lun: u32) -> Result<()> {
        for virtual_block in lun * self.usable..(lun + 1) * self.usable {
            let block = self.map.block(virtual_block);
            // A block whose erase was interrupted has no pages, and still has to be erased.
            let used = self.medium()?.write_pointer(block) > 0;
            if used || self.is_torn(block)? {
                self.erase_virtual_block(virtual_block, prism_nand::Cause::Host, SimTime::ZERO)?;
            }
        }
        Ok(())
    }

    fn is_torn(&mut self, block: u32) -> Result<bool> {
        let state = self.medium()?.read(block, 0, 0, &mut [], &mut [])?;
        Ok(state == PageState::Torn)
    }
}
