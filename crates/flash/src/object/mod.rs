//! The object level: objects with attributes, so that the device knows which data belongs together
//! and which is deleted.
//!
//! Source: block management with objects, Rajimwale, Prabhakaran and Davis, USENIX ATC'09, section
//! 3.7: the device handles allocation, so deleted data is never copied, and an object's attributes
//! decide its placement and the priority of its requests. Objects are byte arrays with attributes;
//! their data is in one page-mapped range over the whole share, with a placement handle for each
//! lifetime.
//!
//! A completed [`ObjectStore::flush`] makes everything before it durable: data, sizes, attributes,
//! deletions. A power failure leaves each object at its size of the last flush; each unit
//! overwritten since is either old or new. Units of an object at one flush are not given to another
//! object before a later flush has freed them.
//!
//! ```
//! use prism_base::Bytes;
//! use prism_flash::object::{Attributes, ObjectStore};
//! use prism_flash::{Allocation, Cache, Device, DeviceGeometry, MemoryDevice, Options};
//!
//! # let geometry = DeviceGeometry {
//! #     channels: 2,
//! #     luns_per_channel: 2,
//! #     blocks_per_lun: 64,
//! #     pages_per_block: 16,
//! #     page_size: 4096,
//! #     oob_size: 64,
//! #     max_open_blocks: None,
//! # };
//! let memory = MemoryDevice::new(geometry, Cache::None)?;
//! let device = Device::format(memory, Options::default())?;
//! let share = device.allocate("a", Allocation::new(Bytes(8 << 20), 25))?;
//! let store = ObjectStore::open(share)?;
//!
//! let cold = Attributes { cold: true, ..Attributes::default() };
//! let picture = store.create(cold)?;
//! store.append(picture, &[7; 100_000])?;
//! store.flush()?;
//! let mut end = [0; 10];
//! assert_eq!(store.read(picture, 99_995, &mut end)?, 5);
//! assert_eq!(end, [7, 7, 7, 7, 7, 0, 0, 0, 0, 0]);
//! store.delete(picture)?;
//! assert!(store.info(picture).is_err() && store.list().is_empty());
//! # Ok::<(), prism_flash::FlashError>(())
//! ```

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use prism_nand::Cause;

use crate::error::{FlashError, Result};
use crate::journal::Journal;
use crate::monitor::{Level, Share, Urgency};
use crate::policy::trims::{open_journal, sync_journal};
use crate::policy::{Cleaning, Inner, Lifetime, Mapping, OverProvisioning, RangeConfig};
use table::{Extent, FreeUnits, Object, decode, encode};

/// The id of an object; never reused after a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// The attributes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its reads and writes have priority: they wait neither for deferrable cleaning nor for a
    /// bandwidth limit.
    pub priority: bool,
    /// It cannot be written, truncated or deleted.
    pub read_only: bool,
    /// It will not be changed for long: it is placed with other cold objects.
    pub cold: bool,
    /// How long its data is expected to live.
    pub lifetime: Lifetime,
}

impl Default for Attributes {
    fn default() -> Self {
        let lifetime = Lifetime::Unknown;
        Self { priority: false, read_only: false, cold: false, lifetime }
    }
}

impl Attributes {
    /// The placement handle of its data.
    fn handle(&self) -> u32 {
        if self.cold || self.read_only {
            Lifetime::Extreme.handle()
        } else {
            self.lifetime.handle()
        }
    }

    fn urgency(&self) -> Urgency {
        if self.priority { Urgency::Urgent } else { Urgency::Normal }
    }
}

/// An object, as listed by [`ObjectStore::list`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name.
    pub id: ObjectId,
    /// Its size in bytes.
    pub size: u64,
    /// Its attributes.
    pub attributes: Attributes,
}

/// One block of the share in this many is for the table of objects; at least four are.
const TABLE_SHARE: u32 = 64;
/// Upper limit of the store's capacity, in percent of the share's blocks; cleaning needs the rest.
const CAPACITY_PERCENT: u64 = 90;

#[derive(Debug)]
struct State {
    inner: Inner,
    journal: Journal,
    objects: BTreeMap<ObjectId, Object>,
    next_id: u64,
    free: FreeUnits,
    /// Freed since the last flush.
    freed: Vec<Extent>,
    /// Changed since the last flush.
    changed: BTreeSet<ObjectId>,
    unit: u64,
    failed: Option<FlashError>,
}

/// Objects in a share. Threads may use it at once.
#[derive(Debug)]
pub struct ObjectStore(Mutex<State>);

impl ObjectStore {
    /// Opens `share`: with its objects, or empty if it was not used.
    ///
    /// # Errors
    /// [`FlashError::WrongLevel`] if another level keeps its data there,
    /// [`FlashError::InUse`] if the store is open already,
    /// [`FlashError::NoSpace`] if the share is too small.
    pub fn open(share: Share) -> Result<Self> {
        Ok(Self(Mutex::new(State::open(share)?)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics while it holds the store")
    }

    /// The share, to let time pass or to read its counts.
    #[must_use]
    pub fn share(&self) -> Share {
        self.lock().inner.share.clone()
    }

    /// Bytes for all objects together, and those that are free.
    #[must_use]
    pub fn capacity(&self) -> (u64, u64) {
        let state = self.lock();
        let size = state.inner.tables.ranges.iter().map(|range| range.end).sum();
        let freed: u64 = state.freed.iter().map(|extent| u64::from(extent.count)).sum();
        (size, (state.free.total() + freed) * state.unit)
    }

    /// Makes an empty object.
    ///
    /// # Errors
    /// The [`FlashError`] with which the device failed before.
    pub fn create(&self, attributes: Attributes) -> Result<ObjectId> {
        let mut state = self.lock();
        state.alive()?;
        let id = ObjectId(state.next_id);
        state.next_id += 1;
        state.objects.insert(id, Object { attributes, ..Object::default() });
        state.changed.insert(id);
        Ok(id)
    }

    /// Size and attributes of an object.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`] if there is no such object.
    pub fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        let state = self.lock();
        let object = state.object(id)?;
        Ok(ObjectInfo { id, size: object.size, attributes: object.attributes })
    }

    /// All objects, by id.
    #[must_use]
    pub fn list(&self) -> Vec<ObjectInfo> {
        let state = self.lock();
        let info = |(&id, object): (&ObjectId, &Object)| ObjectInfo {
            id,
            size: object.size,
            attributes: object.attributes,
        };
        state.objects.iter().map(info).collect()
    }

    /// Changes the attributes of an object; later writes are placed accordingly.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`].
    pub fn set_attributes(&self, id: ObjectId, attributes: Attributes) -> Result<()> {
        let mut state = self.lock();
        state.alive()?;
        state.object_mut(id)?.attributes = attributes;
        state.changed.insert(id);
        Ok(())
    }

    /// Reads from `offset` on; returns the number of bytes read. Gaps between written parts are
    /// zero.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`].
    pub fn read(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut state = self.lock();
        state.alive()?;
        let unit = state.unit;
        let object = state.object(id)?;
        let len = (into.len() as u64).min(object.size.saturating_sub(offset));
        let (parts, urgency) = (object.parts(unit, offset, len), object.attributes.urgency());
        let mut at = 0;
        for (address, bytes) in parts {
            let (range, offset) = state.inner.range_of(address, bytes)?;
            range.read(offset, &mut into[at..at + bytes as usize], Cause::Host, urgency)?;
            at += bytes as usize;
        }
        Ok(at)
    }

    /// Writes at `offset`; the object grows as far as needed.
    ///
    /// # Errors
    /// [`FlashError::NoSpace`], [`FlashError::Invalid`] for an object that is read-only,
    /// [`FlashError::NotAllocated`]. Nothing has changed then.
    pub fn write(&self, id: ObjectId, offset: u64, data: &[u8]) -> Result<()> {
        self.lock().write(id, offset, data)
    }

    /// Writes at the end; returns the offset.
    ///
    /// # Errors
    /// As [`ObjectStore::write`].
    pub fn append(&self, id: ObjectId, data: &[u8]) -> Result<u64> {
        let mut state = self.lock();
        let offset = state.object(id)?.size;
        state.write(id, offset, data)?;
        Ok(offset)
    }

    /// Sets the size of an object: truncates it, or extends it with zeros.
    ///
    /// # Errors
    /// As [`ObjectStore::write`].
    pub fn truncate(&self, id: ObjectId, size: u64) -> Result<()> {
        self.lock().truncate(id, size)
    }

    /// Deletes an object. Its data is never copied again from the next flush on.
    ///
    /// # Errors
    /// [`FlashError::NotAllocated`], [`FlashError::Invalid`] if it is read-only.
    pub fn delete(&self, id: ObjectId) -> Result<()> {
        let mut state = self.lock();
        state.alive()?;
        state.writable(id)?;
        let object = state.objects.remove(&id).expect("just seen");
        state.freed.extend(object.extents);
        state.changed.insert(id);
        Ok(())
    }

    /// Makes everything done so far durable.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails, or the table of objects is full
    /// ([`FlashError::Tables`]).
    pub fn flush(&self) -> Result<()> {
        let mut state = self.lock();
        state.alive()?;
        state.flush()
    }

    /// Cleans in idle time, up to `program_units` program units of copies. Returns whether there
    /// was anything to do.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub fn idle(&self, program_units: u32) -> Result<bool> {
        let mut state = self.lock();
        state.alive()?;
        let (range, _) = state.inner.range_of(0, 0)?;
        range.idle(program_units)
    }

    /// Checks the invariants of the store (for tests).
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn assert_consistent(&self) {
        let mut state = self.lock();
        let owned: u64 = state.objects.values().map(Object::units).sum();
        let freed: u64 = state.freed.iter().map(|extent| u64::from(extent.count)).sum();
        let all = state.inner.tables.ranges.iter().map(|range| range.end).sum::<u64>() / state.unit;
        assert_eq!(owned + freed + state.free.total(), all, "every unit has one owner");
        state.inner.range_of(0, 0).expect("the store has a range").0.assert_consistent();
    }
}

impl State {
    fn open(share: Share) -> Result<Self> {
        let geometry = share.geometry()?;
        let above = (geometry.blocks() / TABLE_SHARE).max(4);
        let mut inner = Inner::open(share, Level::Objects, above)?;
        if inner.ranges.is_empty() {
            let blocks = u64::from(geometry.blocks().saturating_sub(above + 4));
            let user = u64::from(geometry.luns - geometry.ops_luns);
            let all = blocks * inner.format.block_bytes();
            let most = all * user / u64::from(geometry.luns) * CAPACITY_PERCENT / 100;
            if let Err(error) = configure(&mut inner, most) {
                // The share is still empty: another level may use it.
                inner.share.set_meta(Vec::new())?;
                return Err(error);
            }
        }
        let (journal, records) = open_journal(&inner.share, &inner.geometry, &inner.tables.above)?;
        let unit = u64::from(inner.format.unit);
        let size: u64 = inner.tables.ranges.iter().map(|range| range.end).sum();
        let mut state = Self {
            inner,
            journal,
            objects: BTreeMap::new(),
            next_id: 1,
            free: FreeUnits::default(),
            freed: Vec::new(),
            changed: BTreeSet::new(),
            unit,
            failed: None,
        };
        state.free.put(Extent { start: 0, count: (size / unit) as u32 });
        state.replay(&records)?;
        Ok(state)
    }

    /// Restores the table, and trims units without an object, left by a power failure.
    fn replay(&mut self, records: &[Vec<u8>]) -> Result<()> {
        let tables = |what: String| FlashError::Tables { what };
        for bytes in records {
            let (id, object) = decode(bytes).map_err(|error| tables(error.to_string()))?;
            self.next_id = self.next_id.max(id.0 + 1);
            match object {
                Some(object) => drop(self.objects.insert(id, object)),
                None => drop(self.objects.remove(&id)),
            }
        }
        for object in self.objects.values() {
            for &extent in &object.extents {
                if !self.free.claim(extent) {
                    return Err(tables("two objects own the same units".into()));
                }
            }
        }
        let free: Vec<_> = self.free.runs().collect();
        for extent in free {
            self.trim(extent)?;
        }
        Ok(())
    }

    fn alive(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn object(&self, id: ObjectId) -> Result<&Object> {
        self.objects.get(&id).ok_or(FlashError::NotAllocated { what: "object", number: id.0 })
    }

    fn object_mut(&mut self, id: ObjectId) -> Result<&mut Object> {
        self.objects.get_mut(&id).ok_or(FlashError::NotAllocated { what: "object", number: id.0 })
    }

    fn writable(&self, id: ObjectId) -> Result<()> {
        if self.object(id)?.attributes.read_only {
            let what = format!("object {} is read-only; change its attributes first", id.0);
            return Err(FlashError::Invalid { what });
        }
        Ok(())
    }

    fn trim(&mut self, extent: Extent) -> Result<()> {
        let unit = self.unit;
        self.inner.trim(u64::from(extent.start) * unit, u64::from(extent.count) * unit)
    }

    fn write(&mut self, id: ObjectId, offset: u64, data: &[u8]) -> Result<()> {
        self.alive()?;
        self.writable(id)?;
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(data.len() as u64).ok_or_else(|| FlashError::NoSpace {
            what: "the object would be larger than 2^64 bytes".into(),
        })?;
        self.grow(id, end)?;
        let size = self.object(id)?.size;
        let done = self.zero_gap(id, size, offset).and_then(|()| self.put(id, offset, data));
        if end > size {
            self.object_mut(id)?.size = end;
            self.changed.insert(id);
        }
        self.noted(done)
    }

    /// Notes a failure of the device.
    fn noted<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error @ FlashError::Medium(_)) = &done {
            self.failed = Some(error.clone());
        }
        done
    }

    /// Allocates the units for `size` bytes, or none of them.
    fn grow(&mut self, id: ObjectId, size: u64) -> Result<()> {
        let have = self.object(id)?.units();
        let mut missing = size.div_ceil(self.unit).saturating_sub(have);
        if missing > self.free.total() && !self.freed.is_empty() {
            self.flush()?;
        }
        if missing > self.free.total() {
            let free = self.free.total() * self.unit;
            let what = format!("{free} bytes are free; delete objects, or grow the share");
            return Err(FlashError::NoSpace { what });
        }
        while missing > 0 {
            let last = self.object(id)?.extents.last();
            let near = last.map(|extent| extent.start + extent.count);
            let wanted = missing.min(u64::from(u32::MAX)) as u32;
            let extent = self.free.take(wanted, near).expect("as many are free");
            missing -= u64::from(extent.count);
            self.object_mut(id)?.extend(extent);
            self.changed.insert(id);
        }
        Ok(())
    }

    /// The rest of the last unit after an object's end is old data; it is zeroed before the object
    /// grows over it.
    fn zero_gap(&mut self, id: ObjectId, size: u64, offset: u64) -> Result<()> {
        let end = size.next_multiple_of(self.unit).min(offset);
        if end <= size {
            return Ok(());
        }
        self.put(id, size, &vec![0; (end - size) as usize])
    }

    fn put(&mut self, id: ObjectId, offset: u64, data: &[u8]) -> Result<()> {
        let object = self.object(id)?;
        let (handle, urgency) = (object.attributes.handle(), object.attributes.urgency());
        let mut at = 0;
        for (address, bytes) in object.parts(self.unit, offset, data.len() as u64) {
            let (range, offset) = self.inner.range_of(address, bytes)?;
            range.write(offset, &data[at..at + bytes as usize], handle, urgency)?;
            at += bytes as usize;
        }
        Ok(())
    }

    fn truncate(&mut self, id: ObjectId, size: u64) -> Result<()> {
        self.alive()?;
        self.writable(id)?;
        let before = self.object(id)?.size;
        if size > before {
            self.grow(id, size)?;
            let done = self.zero_gap(id, before, size);
            self.noted(done)?;
        }
        let units = size.div_ceil(self.unit);
        let object = self.object_mut(id)?;
        object.size = size;
        let gone = object.shorten(units);
        self.freed.extend(gone);
        self.changed.insert(id);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        // Data first: the table must not refer to missing data.
        let done = self.inner.flush().and_then(|()| self.flush_table());
        self.noted(done)
    }

    fn flush_table(&mut self) -> Result<()> {
        if self.changed.is_empty() {
            return Ok(());
        }
        for &id in &self.changed {
            let record = encode(id, self.objects.get(&id));
            let appended = self.journal.append(&record);
            appended.map_err(|error| FlashError::Tables { what: error.to_string() })?;
        }
        let (objects, next_id) = (&self.objects, self.next_id);
        let snapshot = || {
            let mut records: Vec<_> =
                objects.iter().map(|(&id, object)| encode(id, Some(object))).collect();
            // The highest id ever used, even if its object is deleted.
            if next_id > 1 && !objects.contains_key(&ObjectId(next_id - 1)) {
                records.push(encode(ObjectId(next_id - 1), None));
            }
            records
        };
        let Inner { share, geometry, tables, .. } = &self.inner;
        let end = sync_journal(&mut self.journal, share, geometry, &tables.above, snapshot)?;
        share.reach_if_timed(end)?;
        self.changed.clear();
        for extent in std::mem::take(&mut self.freed) {
            self.trim(extent)?;
            self.free.put(extent);
        }
        Ok(())
    }
}

/// Makes the one range of the store: as large as the share allows, up to `most` bytes, and smaller
/// if more LUNs can then be written in parallel.
fn configure(inner: &mut Inner, most: u64) -> Result<()> {
    /// Blocks of a LUN for each kind of data, so that open ones are few among them.
    const BLOCKS_PER_KIND: u32 = 16;
    let unit = u64::from(inner.format.unit);
    let kinds = (inner.geometry.blocks_per_lun / BLOCKS_PER_KIND).saturating_sub(1);
    let kinds = if inner.geometry.max_open_blocks < 16 { kinds.min(2) } else { kinds };
    let config = RangeConfig {
        over_provisioning: OverProvisioning::Rest,
        handles: kinds.clamp(1, Lifetime::ALL.len() as u32),
        open_blocks: None,
        ..RangeConfig::new(Mapping::Page, Cleaning::CostBenefit)
    };
    let smaller = |bytes: &u64| Some(bytes * 15 / 16 / unit * unit);
    let sizes = std::iter::successors(Some(most / unit * unit), smaller);
    let (mut best, mut refused) = (None, None);
    for bytes in sizes.take_while(|&bytes| bytes > most / 3) {
        match inner.plan(&inner.tables, bytes, config) {
            Ok((_, division))
                if best.is_none_or(|(die_groups, _)| division.die_groups > die_groups) =>
            {
                best = Some((division.die_groups, bytes));
            }
            Ok(_) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (best, refused) {
        (Some((_, bytes)), _) => inner.configure(0, bytes, config),
        (None, refused) => Err(refused.unwrap_or_else(|| FlashError::NoSpace {
            what: "the share is too small for objects; grow it".into(),
        })),
    }
}
