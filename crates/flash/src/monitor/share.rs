//! A share of a device: what one application owns. The module `operations` has those on its blocks.

mod operations;

use std::sync::{Arc, Mutex, MutexGuard};

use prism_base::{Nanos, SimTime};

use crate::error::{FlashError, Result};
use crate::monitor::map::DirectPath;
use crate::monitor::queue::ShareReply;
use crate::monitor::records::{Record, ShareRecord};
use crate::monitor::state::{Monitor, OpCounts, ShareState};
use crate::monitor::timed::Scheduler;
use crate::monitor::wall::Wall;
use crate::monitor::{Device, LunUse};

/// The geometry of a share. LUNs are numbered in the order of their allocation, round robin over
/// the channels; channels are numbered in the order in which the share got LUNs on them. Channels
/// can have different numbers of LUNs: 30 LUNs over 12 channels are 3 on six of them and 2 on the
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareGeometry {
    /// LUNs of each channel, by their number in the share.
    pub channels: Vec<Vec<u32>>,
    /// LUNs, including over-provisioning.
    pub luns: u32,
    /// LUNs of over-provisioning.
    pub ops_luns: u32,
    /// Blocks of a LUN.
    pub blocks_per_lun: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Out-of-band bytes of a page.
    pub oob_size: u32,
    /// Blocks that may be partly written at once; `u32::MAX` for any number.
    pub max_open_blocks: u32,
}

impl ShareGeometry {
    /// Blocks of the share.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.luns * self.blocks_per_lun
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.pages_per_block) * u64::from(self.page_size)
    }

    /// Bytes of all LUNs except over-provisioning.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        u64::from(self.luns - self.ops_luns) * u64::from(self.blocks_per_lun) * self.block_bytes()
    }
}

/// The levels that store metadata of their own in a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Policy = 1,
    Objects = 2,
    Pairs = 3,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Policy => "the policy level",
            Self::Objects => "objects",
            Self::Pairs => "keys and values",
        }
    }

    /// The level that wrote this metadata, by its first byte.
    fn of(meta: &[u8]) -> Option<Self> {
        match meta.first()? {
            1 => Some(Self::Policy),
            2 => Some(Self::Objects),
            3 => Some(Self::Pairs),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Handle {
    device: Device,
    place: usize,
    id: u32,
    timed: bool,
    wall: Option<Wall>,
    path: DirectPath,
    /// Queued commands, on a device with timing.
    scheduler: Mutex<Scheduler>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Ok(share) = self.device.lock().share(self.place, self.id) {
            share.attached = false;
        }
    }
}

/// A handle of a share. Dropping the last clone detaches from the share; its data stays.
#[derive(Clone, Debug)]
pub struct Share(Arc<Handle>);

/// A level's exclusive use of a share, until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold(Share);

impl Drop for Hold {
    fn drop(&mut self) {
        // A released share is not held any more.
        let _ = self.0.with(|monitor, place| {
            monitor.shares[place].as_mut().expect("checked").held = false;
            Ok(())
        });
    }
}

impl Share {
    pub(super) fn new(device: Device, place: usize, id: u32) -> Self {
        let monitor = device.lock();
        let (timed, wall) = (monitor.timeline.is_some(), monitor.wall);
        let path = monitor.direct_path(place);
        let scheduler = Mutex::new(Scheduler::new(monitor.usable, path.page_size));
        drop(monitor);
        Self(Arc::new(Handle { device, place, id, timed, wall, path, scheduler }))
    }

    /// Runs `call` with the monitor and the index of this share in it.
    #[inline]
    pub(super) fn with<T>(&self, call: impl FnOnce(&mut Monitor, usize) -> Result<T>) -> Result<T> {
        let mut monitor = self.0.device.lock();
        monitor.share(self.0.place, self.0.id)?;
        call(&mut monitor, self.0.place)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The geometry of the share.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn geometry(&self) -> Result<ShareGeometry> {
        self.with(|monitor, place| {
            let share = monitor.shares[place].as_ref().expect("checked");
            let all = monitor.geometry;
            // Numbered in the order of the LUNs, so that addresses stay valid when LUNs are added.
            let mut numbers = Vec::new();
            let mut by_channel: Vec<Vec<u32>> = Vec::new();
            for (number, &lun) in (0..).zip(&share.luns) {
                let channel = lun % all.channels;
                let known = numbers.iter().position(|&known| known == channel);
                let place = known.unwrap_or_else(|| {
                    numbers.push(channel);
                    by_channel.push(Vec::new());
                    numbers.len() - 1
                });
                by_channel[place].push(number);
            }
            Ok(ShareGeometry {
                channels: by_channel,
                luns: share.luns.len() as u32,
                ops_luns: share.ops_luns,
                blocks_per_lun: monitor.usable,
                pages_per_block: all.pages_per_block,
                page_size: all.page_size,
                oob_size: all.oob_size,
                max_open_blocks: share.open_max,
            })
        })
    }

    /// Operations in the share since the device was opened.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn counts(&self) -> Result<OpCounts> {
        self.with(|monitor, place| {
            Ok(monitor.shares[place].as_ref().expect("checked").all_counts())
        })
    }

    /// The share's clock. It does not advance on a device without timing.
    ///
    /// # Errors
    /// [`FlashError::Released`].
    pub fn now(&self) -> Result<SimTime> {
        self.with(|monitor, place| {
            let share = monitor.shares[place].as_mut().expect("checked");
            if let Some(wall) = self.0.wall {
                share.now = share.now.max(wall.now());
            }
            Ok(share.now)
        })
    }

    /// Lets `time` pass for this share; in real time it waits.
    ///
    /// # Errors
    /// [`FlashError::Released`]; [`FlashError::Invalid`] if the clock would pass 2^63 ns.
    pub fn pass(&self, time: Nanos) -> Result<()> {
        let now = self.now()?;
        let then = now.0.checked_add(time.0).filter(|&then| i64::try_from(then).is_ok());
        let Some(then) = then else {
            let what = format!("{} ns after {} ns are beyond the clock's 292 years", time.0, now.0);
            return Err(FlashError::Invalid { what });
        };
        self.reach(SimTime(then))
    }

    /// Advances the share's clock to `time`, unless it is later already.
    pub(crate) fn reach(&self, time: SimTime) -> Result<()> {
        self.with(|monitor, place| {
            let share = monitor.shares[place].as_mut().expect("checked");
            // In real time it advances with the wall clock: other calls can run meanwhile.
            if self.0.wall.is_none() {
                share.now = share.now.max(time);
            }
            Ok(())
        })?;
        if let Some(wall) = self.0.wall {
            wall.wait_until(time);
        }
        Ok(())
    }

    /// Changes the bandwidth limit, in bytes/s; `None` for no limit.
    ///
    /// # Errors
    /// [`FlashError::NoClock`] on a device without timing, [`FlashError::Invalid`] for 0.
    pub fn limit_bandwidth(&self, limit: Option<u64>) -> Result<()> {
        self.with(|monitor, place| {
            monitor.check_bandwidth(limit)?;
            monitor.shares[place].as_mut().expect("checked").bandwidth = limit;
            monitor.commit_share(place)
        })
    }

    /// Adds LUNs, which get the next numbers; `ops_luns` of them are over-provisioning.
    ///
    /// # Errors
    /// [`FlashError::NoLuns`]; nothing has changed then.
    pub fn grow(&self, luns: u32, ops_luns: u32) -> Result<()> {
        self.with(|monitor, place| {
            let taken = monitor.take_clean_luns(luns)?;
            taken.iter().for_each(|&lun| monitor.luns[lun as usize] = LunUse::Owned);
            let share = monitor.shares[place].as_mut().expect("checked");
            share.luns.extend(taken);
            share.map.set(&share.luns);
            share.ops_luns += ops_luns.min(luns);
            monitor.commit_share(place)
        })
    }

    /// Gives back the last LUNs of the share, which have to be erased; over-provisioning first.
    ///
    /// # Errors
    /// [`FlashError::ShrinkBelowUse`] if one of them holds data, or none would be left;
    /// [`FlashError::Busy`] if a higher level owns all blocks of the share. Nothing has changed
    /// then.
    pub fn shrink(&self, luns: u32) -> Result<()> {
        if let Some(level) = Level::of(&self.meta()?) {
            let what = format!("{} owns every block of the share; release it", level.name());
            return Err(FlashError::Busy { what });
        }
        self.with(|monitor, place| {
            let mut share = monitor.shares[place].take().expect("checked");
            let mut free = 0;
            for &lun in share.luns.iter().rev() {
                let mut virtual_blocks = lun * monitor.usable..(lun + 1) * monitor.usable;
                let holds_data = |virtual_block| {
                    let block = monitor.map.block(virtual_block);
                    monitor.map.is_programmed(virtual_block)
                        || monitor.medium.write_pointer(block) > 0
                };
                if monitor.map.is_closed() || virtual_blocks.any(holds_data) {
                    break;
                }
                free += 1;
            }
            let left = (share.luns.len() as u32).saturating_sub(luns);
            let refused = luns > free || left == 0;
            if !refused {
                for lun in share.luns.split_off(left as usize) {
                    monitor.luns[lun as usize] = LunUse::Dirty;
                }
                share.ops_luns = share.ops_luns.saturating_sub(luns);
                share.map.set(&share.luns);
            }
            monitor.shares[place] = Some(share);
            if refused {
                return Err(FlashError::ShrinkBelowUse { luns, free });
            }
            monitor.commit_share(place)
        })
    }

    /// Releases the share and erases its data: now or, after a power failure, before another share
    /// gets its LUNs.
    ///
    /// A LUN with writes in flight is not used again before they end.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn release(self) -> Result<()> {
        self.with(|monitor, place| {
            let share = monitor.shares[place].take().expect("checked");
            share.map.set(&[]);
            share.luns.iter().for_each(|&lun| monitor.luns[lun as usize] = LunUse::Dirty);
            monitor.commit(&[Record::Released { id: share.id }])?;
            monitor.clean_luns(&share.luns)?;
            Ok(())
        })
    }

    /// Whether operations take time, so that the share's clock advances.
    #[inline]
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.0.timed
    }

    /// The queued commands of a share with timing. Its lock comes before the device's.
    pub(crate) fn scheduler(&self) -> MutexGuard<'_, Scheduler> {
        self.0.scheduler.lock().expect("no thread panics while it schedules")
    }

    /// Completes a command that a queue expects, unless the queue was dropped.
    pub(crate) fn complete(&self, queue: u64, reply: ShareReply) {
        self.scheduler().put_done(queue, reply);
    }

    /// See [`Medium::luns_work_in_parallel`](crate::Medium::luns_work_in_parallel); on a device
    /// with timing they do.
    pub(crate) fn luns_work_in_parallel(&self) -> bool {
        self.0.timed || self.0.path.medium.luns_work_in_parallel()
    }

    /// The share's clock, or zero at once on a device without timing.
    #[inline]
    pub(crate) fn now_if_timed(&self) -> Result<SimTime> {
        if self.0.timed { self.now() } else { Ok(SimTime::ZERO) }
    }

    /// As [`Share::reach`]; does nothing on a device without timing.
    #[inline]
    pub(crate) fn reach_if_timed(&self, time: SimTime) -> Result<()> {
        if self.0.timed { self.reach(time) } else { Ok(()) }
    }

    /// Checks that `level` may use the share; `None` is a level without metadata.
    pub(crate) fn claim(&self, level: Option<Level>) -> Result<()> {
        let found = Level::of(&self.meta()?);
        match (found, level) {
            (Some(found), wanted) if wanted != Some(found) => {
                let wanted = wanted.map_or("the raw or the function level", Level::name);
                Err(FlashError::WrongLevel { found: found.name(), wanted })
            }
            _ => Ok(()),
        }
    }

    /// As [`Share::claim`], and exclusively until the hold is dropped: a level that is open twice
    /// would not see its own writes.
    pub(crate) fn hold(&self, level: Option<Level>) -> Result<Hold> {
        self.claim(level)?;
        self.with(|monitor, place| {
            let share = monitor.shares[place].as_mut().expect("checked");
            if share.held {
                return Err(FlashError::InUse { name: share.name.clone() });
            }
            share.held = true;
            Ok(())
        })?;
        Ok(Hold(self.clone()))
    }

    /// The metadata of the level above.
    pub(crate) fn meta(&self) -> Result<Vec<u8>> {
        self.with(|monitor, place| {
            Ok(monitor.shares[place].as_ref().expect("checked").meta.clone())
        })
    }

    /// Stores `meta`, which is durable when this returns.
    ///
    /// # Errors
    /// [`FlashError::Tables`] if the device's tables have no room for it. Nothing has changed
    /// then.
    pub(crate) fn set_meta(&self, meta: Vec<u8>) -> Result<()> {
        self.with(|monitor, place| {
            let known = monitor.shares[place].as_ref().expect("checked").record();
            monitor.check_room(&ShareRecord { meta: meta.clone(), ..known })?;
            monitor.shares[place].as_mut().expect("checked").meta = meta;
            monitor.commit_share(place)
        })
    }
}

impl ShareState {
    /// Its operations, reads without the lock included.
    pub(super) fn all_counts(&self) -> OpCounts {
        let mut counts = self.counts;
        self.map.add_reads(&mut counts.reads);
        counts
    }
}

impl Monitor {
    fn commit_share(&mut self, place: usize) -> Result<()> {
        let record = self.shares[place].as_ref().expect("checked by the caller").record();
        let dirty = self.dirty();
        self.commit(&[Record::Share(record), dirty])
    }
}
