//! A space: segments that belong together, and change as a whole.
//!
//! A root segment names the segments of the space and has a catalog. [`Space::commit`] writes new
//! segments' root after all of them are durable, and only then frees those that the new root does
//! not name. A loss of power therefore leaves the old space or the new one. Every segment is
//! written and freed as a whole, so the flash below copies nothing when it is cleaned.

use std::collections::BTreeSet;

use prism_flash::{Buffer, FlashError};
use prism_segments::{FlashCounts, Shape, Store};

use crate::error::{GraphError, Result};
use crate::segment::{HEADER_BYTES, Header, Kind};

/// Writes in flight at most: enough for every channel of a small device.
const WRITES_MAX: usize = 8;
/// Reads of first pages in flight, when a space is opened.
const PROBES_MAX: usize = 64;

/// The last generation that a root may have: commits reach no such number.
const GENERATION_MAX: u64 = u64::MAX / 2;

/// A store at any level, which a thread can have.
pub type AnyStore = Box<dyn Store + Send>;

/// The segments of one space.
pub struct Space {
    /// The first one writes; each thread that reads has its own.
    stores: Vec<AnyStore>,
    generation: u64,
    root: Option<u32>,
    live: BTreeSet<u32>,
    /// Segments written since the last commit.
    fresh: Vec<u32>,
    /// Segments that no root names. They are freed before the first write, and not before: if the
    /// root is damaged, they are what is left of the space.
    stale: Vec<u32>,
    /// Segments with a header that were found.
    headers: usize,
    in_flight: usize,
    failed: Option<FlashError>,
    written: u64,
}

/// A root that was found.
struct Root {
    segment: u32,
    generation: u64,
    live: Vec<u32>,
    catalog: Vec<u8>,
}

impl Space {
    /// Opens the space of a device, which `stores` reach, and its catalog, if it has one. What an
    /// interrupted change left behind is freed before the first write.
    ///
    /// # Errors
    /// [`GraphError::Flash`] if the device fails.
    ///
    /// # Panics
    /// If `stores` is empty.
    pub fn open(mut stores: Vec<AnyStore>) -> Result<(Self, Option<Vec<u8>>)> {
        let store = stores.first_mut().expect("a store");
        let used: BTreeSet<u32> = store.used()?.into_iter().collect();
        let mut best: Option<Root> = None;
        let found = probe(store, &used);
        let headers = found.len();
        for (segment, header) in found {
            let newer = best.as_ref().is_none_or(|best| header.generation > best.generation);
            if header.kind == Kind::Root && newer {
                best = read_root(store, segment, &used).or(best);
            }
        }
        let mut space = Self {
            stores,
            generation: 0,
            root: None,
            live: BTreeSet::new(),
            fresh: Vec::new(),
            stale: Vec::new(),
            headers,
            in_flight: 0,
            failed: None,
            written: 0,
        };
        let catalog = best.map(|best| {
            space.generation = best.generation;
            space.root = Some(best.segment);
            space.live = best.live.into_iter().collect();
            best.catalog
        });
        let stale = |segment: &u32| space.root != Some(*segment) && !space.live.contains(segment);
        space.stale = used.into_iter().filter(stale).collect();
        Ok((space, catalog))
    }

    /// Segments with a header that were found when the space was opened.
    #[must_use]
    pub fn headers(&self) -> usize {
        self.headers
    }

    /// The segments of the device.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.stores[0].shape()
    }

    /// Bytes of a segment, with its header.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shape().segment_bytes as usize
    }

    /// What was done to the flash of the device.
    #[must_use]
    pub fn counts(&self) -> FlashCounts {
        self.stores[0].counts()
    }

    /// Bytes written through this value.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The stores, to open the space again.
    #[must_use]
    pub fn into_stores(self) -> Vec<AnyStore> {
        self.stores
    }

    /// The stores, for threads that read.
    pub(crate) fn stores(&mut self) -> &mut [AnyStore] {
        &mut self.stores
    }

    /// The segment of the root; `None` if there is none.
    pub(crate) fn root(&self) -> Option<u32> {
        self.root
    }

    /// The segments that the root names.
    pub(crate) fn live(&self) -> &BTreeSet<u32> {
        &self.live
    }

    /// The generation that is current.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Writes a segment, which belongs to the space from the next [`Space::commit`] on; returns its
    /// number.
    ///
    /// # Errors
    /// [`GraphError::NoSpace`] if no segment is free; [`GraphError::Flash`] if the device fails,
    /// also later writes.
    ///
    /// # Panics
    /// If header and payload are longer than a segment.
    pub fn write(&mut self, header: Header, payload: &[u8]) -> Result<u32> {
        let header = Header { generation: self.generation + 1, ..header };
        let shape = self.shape();
        let bytes = HEADER_BYTES + payload.len();
        assert!(bytes <= shape.segment_bytes as usize, "{bytes} bytes of a segment");
        let segment = self.open_segment()?;
        let store = &mut self.stores[0];
        // The whole block: with a rest of an older segment in it, the library would have to copy.
        let len = shape.segment_bytes as usize;
        let mut data = store.buffer(len);
        data[..HEADER_BYTES].copy_from_slice(&header.encode(payload));
        data[HEADER_BYTES..bytes].copy_from_slice(payload);
        data[bytes..].fill(0);
        store.write(segment, 0, data, segment.into());
        self.written += len as u64;
        self.in_flight += 1;
        self.fresh.push(segment);
        self.wait_until(WRITES_MAX - 1)?;
        Ok(segment)
    }

    fn open_segment(&mut self) -> Result<u32> {
        for segment in std::mem::take(&mut self.stale) {
            self.stores[0].free(segment)?;
        }
        loop {
            if let Some(segment) = self.stores[0].open()? {
                return Ok(segment);
            }
            // Blocks that were freed are erased in the background.
            if self.stores[0].erasing() == 0 {
                return Err(GraphError::NoSpace);
            }
            self.wait_until(0)?;
            self.stores[0].wait(None);
        }
    }

    /// Waits until at most `most` commands are in flight.
    fn wait_until(&mut self, most: usize) -> Result<()> {
        while self.in_flight > 0 {
            match self.stores[0].poll() {
                Some(done) => {
                    self.in_flight -= 1;
                    self.failed = self.failed.take().or(done.result.err());
                }
                None if self.in_flight <= most => break,
                None => {
                    self.stores[0].wait(None);
                }
            }
        }
        match self.failed.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.wait_until(0)?;
        self.stores[0].sync(0);
        self.in_flight += 1;
        self.wait_until(0)
    }

    /// Makes `live`, and no other segment, those of the space, with this catalog. Returns when that
    /// is durable.
    ///
    /// # Errors
    /// As [`Space::write`]; then the space is as it was before. [`Space::abandon`] frees what was
    /// written.
    pub fn commit(&mut self, catalog: &[u8], live: &[u32]) -> Result<()> {
        let mut payload = (live.len() as u32).to_le_bytes().to_vec();
        live.iter().for_each(|segment| payload.extend_from_slice(&segment.to_le_bytes()));
        payload.extend_from_slice(catalog);
        if HEADER_BYTES + payload.len() > self.capacity() {
            let what = "the catalog is longer than a segment: make the device of larger blocks";
            return Err(GraphError::Refused(what.into()));
        }
        self.sync()?;
        let root = self.write(Header::plain(Kind::Root, 0, 0), &payload)?;
        self.sync()?;
        self.generation += 1;
        let new: BTreeSet<u32> = live.iter().copied().collect();
        let before = std::mem::replace(&mut self.live, new);
        let old = before.into_iter().chain(self.root.replace(root)).chain(self.fresh.drain(..));
        let old: BTreeSet<u32> = old.collect();
        for segment in old {
            if segment != root && !self.live.contains(&segment) {
                self.stores[0].free(segment)?;
            }
        }
        Ok(())
    }

    /// Frees what was written since the last commit.
    ///
    /// # Errors
    /// [`GraphError::Flash`] if the device fails.
    pub fn abandon(&mut self) -> Result<()> {
        let waited = self.wait_until(0);
        for segment in std::mem::take(&mut self.fresh) {
            self.stores[0].free(segment)?;
        }
        waited
    }

    /// The payload of a segment of the current generation, whose header is to be `wanted`.
    ///
    /// # Errors
    /// [`GraphError::Damaged`] if it is not; [`GraphError::Flash`] if the device fails.
    pub fn read(&mut self, segment: u32, wanted: Header) -> Result<Vec<u8>> {
        let damaged = |what| GraphError::Damaged { segment, what };
        let (shape, len) = (self.shape(), HEADER_BYTES as u64 + u64::from(wanted.payload));
        if segment >= shape.segments || len > u64::from(shape.segment_bytes) {
            return Err(damaged("there is no segment with this number and length"));
        }
        self.wait_until(0)?;
        let len = (len as usize).next_multiple_of(shape.page_bytes as usize);
        let data = read_now(&mut self.stores[0], segment, len)?;
        let (header, payload) = Header::open(&data).ok_or_else(|| damaged("its hash is wrong"))?;
        if header != (Header { generation: self.generation, ..wanted }) {
            return Err(damaged("it is another segment than the catalog says"));
        }
        Ok(payload.to_vec())
    }
}

fn read_now(store: &mut AnyStore, segment: u32, len: usize) -> Result<Buffer> {
    let data = store.buffer(len);
    store.read(segment, 0, data, 0);
    loop {
        match store.poll() {
            Some(done) => {
                done.result.map_err(|error| GraphError::of_read(segment, error))?;
                return Ok(done.data);
            }
            None => {
                store.wait(None);
            }
        }
    }
}

/// The headers that segments begin with.
fn probe(store: &mut AnyStore, used: &BTreeSet<u32>) -> Vec<(u32, Header)> {
    let page = store.shape().page_bytes as usize;
    let (mut found, mut in_flight) = (Vec::new(), 0);
    let mut left = used.iter();
    loop {
        while in_flight < PROBES_MAX
            && let Some(segment) = left.next()
        {
            let data = store.buffer(page);
            store.read(*segment, 0, data, (*segment).into());
            in_flight += 1;
        }
        if in_flight == 0 {
            found.sort_unstable_by_key(|(segment, _)| *segment);
            return found;
        }
        while let Some(done) = store.poll() {
            in_flight -= 1;
            // A page that cannot be read is of a write that was interrupted, or of damage that
            // reading the segment reports.
            if let (Ok(()), Some(header)) = (done.result, Header::decode(&done.data)) {
                found.push((done.tag as u32, header));
            }
        }
        if in_flight > 0 {
            store.wait(None);
        }
    }
}

/// A root, if it is whole.
fn read_root(store: &mut AnyStore, segment: u32, used: &BTreeSet<u32>) -> Option<Root> {
    let shape = store.shape();
    let first = read_now(store, segment, shape.page_bytes as usize).ok()?;
    let bytes = HEADER_BYTES + Header::decode(&first)?.payload as usize;
    let len = bytes.next_multiple_of(shape.page_bytes as usize).min(shape.segment_bytes as usize);
    let data = read_now(store, segment, len).ok()?;
    let (header, payload) = Header::open(&data)?;
    let (count, rest) = payload.split_at_checked(4)?;
    let count = u32::from_le_bytes(count.try_into().ok()?) as usize;
    let (live, catalog) = rest.split_at_checked(count * 4)?;
    let live = live.chunks_exact(4).map(|n| u32::from_le_bytes(n.try_into().expect("four")));
    let live: Vec<u32> = live.collect();
    // What it names will be freed one day, and its generation is counted on.
    let is_possible = header.generation <= GENERATION_MAX
        && live.iter().all(|other| used.contains(other) && *other != segment);
    is_possible.then(|| Root {
        segment,
        generation: header.generation,
        live,
        catalog: catalog.to_vec(),
    })
}
