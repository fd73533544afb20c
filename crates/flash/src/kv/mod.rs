//! A key-value store on the raw level.
//!
//! Source: Prism-SSD (Shen et al., ICDCS'19), section VII, which proposes the interface as an
//! extension. The store is a log: records are packed into pages, pages go to open blocks on several
//! LUNs in turn, nothing is changed in place, and an index in memory has the address of the newest
//! record of each key (about 120 bytes and the key). Out-of-band bytes are not used, and two blocks
//! open at once are enough: one for users, one for copies.
//!
//! **Writing.** A set or delete puts its record on a page in memory, which is programmed when it is
//! full or at [`KvStore::flush`]. A record that does not fit in the rest of a page is split into
//! pieces, each with key and checksum. It takes effect in the index when its last piece is
//! programmed; until then the previous record stays. Programs are asynchronous: the share's clock
//! advances to the end of the transfer, and only a flush waits for the programs.
//!
//! **Order.** After a power failure the store holds a prefix of the calls in their order, with all
//! of them up to the last flush. Pages are programmed in the order of the records, and a record is
//! valid if all of its pieces are there. With a volatile cache, a later block can survive without
//! an earlier one; so user writes have only one open block there, which is synced when it is full,
//! before it can be copied or the next one is opened.
//!
//! **Cleaning** takes the full block with the fewest live bytes, if that gains at least a page,
//! copies its live pieces, and erases it when the copies are on flash. Copies keep the place of
//! their record in the order of calls, and pieces are split further where a page ends, never into
//! parts below an eighth of a page. The tombstone of a delete is needed as long as a piece of an
//! older value of *its* key is on flash; the index counts these, so a tombstone is garbage as soon
//! as the last of them is erased, and a store full of tombstones can be cleaned.
//!
//! **Capacity.** Each record is charged for the largest number of headers that it can ever need. As
//! long as the sum is below a bound, cleaning some full block gains space whenever only the reserve
//! is erased, so an admitted set always succeeds; see `room.rs`. User writes leave the reserve to
//! copies, and copies open the last erased block only if they have no other. A victim that gains
//! has less than a block of live data, so one erased block is enough to empty it.
//!
//! **Recovery** reads everything, programs nothing and erases nothing, so power may fail again at
//! any moment. Blocks that were open take no more pages. Of two copies of a piece the one
//! programmed first wins. So if power fails while a victim is copied, the pieces in the victim stay
//! valid; the block opened last for copies holds only copies of them, is garbage as a whole, and is
//! erased before any further copy. Repeated power failures therefore find the same block in the
//! reserve again and never use it up. With a volatile cache, an erase is synced before its block
//! counts as erased: if the erase were undone, the reserve would be lost.
//!
//! **Costs.** Cleaning reads every page of a victim. Finding a victim scans the table of blocks.
//! Opening reads the whole share. Blocks of a LUN are erased in turn; cold data is not moved to
//! level wear.
//!
//! ```
//! use prism_base::Bytes;
//! use prism_flash::{Allocation, Cache, Device, DeviceGeometry, KvStore, MemoryDevice, Options};
//!
//! let geometry = DeviceGeometry {
//!     channels: 2,
//!     luns_per_channel: 2,
//!     blocks_per_lun: 32,
//!     pages_per_block: 16,
//!     page_size: 4096,
//!     oob_size: 0,
//!     max_open_blocks: Some(14),
//! };
//! let memory = MemoryDevice::new(geometry, Cache::None)?;
//! let device = Device::format(memory, Options::default())?;
//! let share = device.allocate("pairs", Allocation::new(Bytes(2 << 20), 25))?;
//!
//! let store = KvStore::open(share)?;
//! store.set(b"apple", b"red")?;
//! store.set(b"banana", b"yellow")?;
//! store.set(b"cherry", b"dark red")?;
//! assert!(store.delete(b"cherry")?);
//! store.flush()?;
//!
//! assert_eq!(store.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! let found = store.scan(b"b".as_slice().., 10)?;
//! assert_eq!(found, [(b"banana".to_vec(), b"yellow".to_vec())]);
//! # Ok::<(), prism_flash::FlashError>(())
//! ```

mod clean;
mod frontier;
mod index;
mod page;
mod recover;
mod room;
mod store;

use std::ops::{Bound, RangeBounds};
use std::sync::{Mutex, MutexGuard};

use crate::error::{FlashError, Result};
use crate::monitor::{Hold, OpCounts, Share};
use store::Store;

/// The longest value in bytes, which limits the memory of a call.
pub const VALUE_MAX: usize = 16 << 20;

/// Content of a store, and its operations since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KvStats {
    /// Keys that have a value.
    pub records: u64,
    /// Bytes of these keys and values.
    pub live_bytes: u64,
    /// Bytes that they are charged, including headers and tombstones.
    pub charged_bytes: u64,
    /// The limit of bytes charged: the share without its over-provisioning, or the bound for
    /// cleaning if that is less. The bound falls as longer keys and values are set.
    pub capacity_bytes: u64,
    /// Bytes of keys and values set, and of keys deleted.
    pub written_bytes: u64,
    /// Operations on flash: `host` for sets, deletes and gets, and the reads when opening, `gc` for
    /// cleaning.
    pub counts: OpCounts,
    /// Bytes programmed divided by bytes written; 0 before the first.
    pub write_amplification: f64,
}

/// A key-value store on a share; threads may use it at once.
///
/// If the device fails in a call that writes, every later such call returns the same error, while
/// reads still work; open the share again to recover.
#[derive(Debug)]
pub struct KvStore {
    store: Mutex<Store>,
    _hold: Hold,
}

impl KvStore {
    /// Opens the store in `share`, or makes one if the share is empty.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] or [`FlashError::Busy`] if the share is used otherwise,
    /// [`FlashError::InUse`] if the store is open already,
    /// [`FlashError::NotFormatted`] if another version wrote it, [`FlashError::NoSpace`] if
    /// it is too small or may not have two blocks open.
    pub fn open(share: Share) -> Result<Self> {
        let hold = recover::claim(&share)?;
        let store = Mutex::new(Store::recover(share)?);
        Ok(Self { store, _hold: hold })
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("no thread panics while it holds the store")
    }

    /// The longest key in bytes: 255, or an eighth of a page if that is less.
    #[must_use]
    pub fn key_max(&self) -> usize {
        self.lock().shape.key_max()
    }

    /// Sets the value of a key. It is durable after the next [`KvStore::flush`].
    ///
    /// # Errors
    /// [`FlashError::Invalid`] for a key that is empty or longer than [`KvStore::key_max`],
    /// or a value longer than [`VALUE_MAX`]; [`FlashError::NoSpace`]. Nothing has changed
    /// then.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut store = self.lock();
        check_key(&store, key)?;
        if value.len() > VALUE_MAX {
            let what = format!(
                "a value of {} bytes: the most is {VALUE_MAX}; split it over several keys",
                value.len()
            );
            return Err(FlashError::Invalid { what });
        }
        if !store.write(|store| store.admit(key, value.len()))? {
            return Err(full(&store));
        }
        store.write(|store| store.set(key, Some(value)))
    }

    /// Deletes a key; returns whether it had a value. It is durable after the next
    /// [`KvStore::flush`]. Works in a full store, too.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] as [`KvStore::set`]; [`FlashError::NoSpace`] only if the share was
    /// made too small for its data.
    pub fn delete(&self, key: &[u8]) -> Result<bool> {
        let mut store = self.lock();
        check_key(&store, key)?;
        if store.index.get(key).is_none_or(|entry| entry.visible().is_none()) {
            return Ok(false);
        }
        if !store.has_room_to_delete(key) {
            return Err(full(&store));
        }
        store.write(|store| store.set(key, None))?;
        Ok(true)
    }

    /// The value of a key, if it has one.
    ///
    /// # Errors
    /// [`FlashError::Torn`] if a record cannot be read any more.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut store = self.lock();
        let now = store.share.now_if_timed()?;
        let (value, end) = store.value(key, now)?;
        store.share.reach_if_timed(end)?;
        Ok(value)
    }

    /// The first `limit` keys of a range, in order, with their values, which are read in parallel.
    ///
    /// # Errors
    /// As [`KvStore::get`].
    pub fn scan<'a>(
        &self,
        range: impl RangeBounds<&'a [u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut store = self.lock();
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        if is_empty(bounds) {
            return Ok(Vec::new());
        }
        let visible = store.index.range::<[u8], _>(bounds).filter(|(_, e)| e.visible().is_some());
        let keys: Vec<_> = visible.take(limit).map(|(key, _)| key.to_vec()).collect();
        let now = store.share.now_if_timed()?;
        let (mut found, mut end) = (Vec::with_capacity(keys.len()), now);
        for key in keys {
            let (value, read) = store.value(&key, now)?;
            end = end.max(read);
            found.push((key, value.expect("only keys with a value were listed")));
        }
        store.share.reach_if_timed(end)?;
        Ok(found)
    }

    /// Makes everything set or deleted so far durable. A page that is not full is padded.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn flush(&self) -> Result<()> {
        self.lock().write(Store::flush)
    }

    /// Content and operations of the store. Iterates over all keys.
    #[must_use]
    pub fn stats(&self) -> KvStats {
        let store = self.lock();
        let mut stats = KvStats {
            charged_bytes: store.newest,
            capacity_bytes: store.shape.capacity(store.longest),
            written_bytes: store.written,
            counts: store.counts,
            ..KvStats::default()
        };
        for (key, entry) in &store.index {
            if let Some(len) = entry.visible() {
                stats.records += 1;
                stats.live_bytes += (key.len() + len) as u64;
            }
        }
        let programmed = store.counts.programs.total() * store.shape.page_size as u64;
        if store.written > 0 {
            stats.write_amplification = programmed as f64 / store.written as f64;
        }
        stats
    }

    /// Flushes, and returns the share with its data.
    ///
    /// # Errors
    /// As [`KvStore::flush`]; the share is detached then.
    pub fn into_share(self) -> Result<Share> {
        self.flush()?;
        let store = self.store.into_inner().expect("no thread panics while it holds the store");
        Ok(store.share)
    }
}

/// Whether the bounds exclude every key.
fn is_empty(bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match bounds {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (
            Bound::Included(from) | Bound::Excluded(from),
            Bound::Included(to) | Bound::Excluded(to),
        ) => from >= to,
        _ => false,
    }
}

fn check_key(store: &Store, key: &[u8]) -> Result<()> {
    let most = store.shape.key_max();
    if (1..=most).contains(&key.len()) {
        return Ok(());
    }
    let what = format!("a key of {} bytes: keys have 1 to {most} bytes in this store", key.len());
    Err(FlashError::Invalid { what })
}

fn full(store: &Store) -> FlashError {
    let what = format!(
        "{} of {} bytes are in use: delete keys, or give the store a larger share",
        store.newest,
        store.shape.capacity(store.longest)
    );
    FlashError::NoSpace { what }
}
