//! Files of a program as lists of segments, in one or two ranges of flash: what Prism-SSD puts in
//! the place of GraphChi's files ("we divide the data of each shard into block-sized segments").

use std::collections::VecDeque;
use std::ops::Range;

use prism_base::{Nanos, SimTime};
use prism_flash::{Buffer, FlashError};
use prism_segments::{FlashCounts, Store};

/// Commands of up to a segment that are in flight: two for each LUN, as slabs of the cache.
const DEPTH: usize = 24;
/// The tag of writes and syncs; reads have the number of their piece. Stores use the largest number
/// themselves.
const WRITE: u64 = 1 << 63;

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Space {
    /// With what is not updated.
    Shards,
    /// With what is computed.
    Results,
}

/// A file: segments in their order.
#[derive(Debug)]
pub(in super::super) struct File {
    space: Space,
    segments: Vec<u32>,
    bytes: u64,
}

impl File {
    /// Its bytes.
    pub(in super::super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bytes of a file, in memory with the whole pages that have them.
#[derive(Debug, Default)]
pub(in super::super) struct Pages {
    /// Where the first page begins in the file.
    begin: u64,
    data: Vec<u8>,
    content: Range<usize>,
}

impl Pages {
    /// The bytes that were asked for.
    pub(in super::super) fn content(&self) -> &[u8] {
        &self.data[self.content.clone()]
    }

    /// The same, to be changed.
    pub(in super::super) fn content_mut(&mut self) -> &mut [u8] {
        &mut self.data[self.content.clone()]
    }
}

/// Bytes that were read and written, by the space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read from shards and from results.
    pub read: [u64; 2],
    /// Bytes written to shards and to results.
    pub written: [u64; 2],
}

impl Traffic {
    /// What was read and written after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let less = |after: [u64; 2], before: [u64; 2]| [after[0] - before[0], after[1] - before[1]];
        Self { read: less(self.read, before.read), written: less(self.written, before.written) }
    }
}

/// A part of a read: which request, where in its pages, and where on flash.
#[derive(Clone, Copy, Debug)]
struct Piece {
    request: usize,
    at: usize,
    store: usize,
    segment: u32,
    offset: u32,
    len: usize,
}

/// The files of a program.
pub(in super::super) struct Volume {
    /// The store of shards, and that of results unless both are the same.
    stores: Vec<Box<dyn Store>>,
    /// Commands in flight, and writes among them, by the store.
    in_flight: [[usize; 2]; 2],
    arrived: VecDeque<(usize, Buffer)>,
    failed: Option<FlashError>,
    traffic: Traffic,
}

impl Volume {
    /// Without files, on one store or two of one device, of which nothing is used.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub(in super::super) fn new(mut stores: Vec<Box<dyn Store>>) -> Result<Self, FlashError> {
        for store in &mut stores {
            for segment in store.used()? {
                store.free(segment)?;
            }
        }
        let (in_flight, arrived) = ([[0; 2]; 2], VecDeque::new());
        Ok(Self { stores, in_flight, arrived, failed: None, traffic: Traffic::default() })
    }

    /// The time of the device.
    pub(in super::super) fn now(&self) -> SimTime {
        self.stores[0].now()
    }

    /// What was done to the flash of the device.
    pub(in super::super) fn counts(&self) -> FlashCounts {
        self.stores[0].counts()
    }

    /// Bytes that were read and written.
    pub(in super::super) fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Bytes of a page.
    pub(in super::super) fn page(&self) -> u64 {
        self.stores[0].shape().page_bytes.into()
    }

    fn store_of(&self, space: Space) -> usize {
        (space as usize).min(self.stores.len() - 1)
    }

    /// Writes a new file in the background.
    ///
    /// # Errors
    /// [`FlashError`] if there is no space, or if the device has failed.
    pub(in super::super) fn create(
        &mut self,
        space: Space,
        data: &[u8],
    ) -> Result<File, FlashError> {
        let store = self.store_of(space);
        let segment_bytes = u64::from(self.stores[store].shape().segment_bytes);
        let mut segments = Vec::new();
        for _ in 0..(data.len() as u64).div_ceil(segment_bytes) {
            let Some(segment) = self.stores[store].open()? else {
                let what = format!("no segment is free for a file of {} bytes", data.len());
                return Err(FlashError::Invalid { what });
            };
            segments.push(segment);
        }
        let file = File { space, segments, bytes: data.len() as u64 };
        self.replace(&file, data)?;
        Ok(file)
    }

    /// Writes all of a file in the background; the rest of its last page is zeros.
    ///
    /// # Errors
    /// [`FlashError`] if the device has failed.
    pub(in super::super) fn replace(&mut self, file: &File, data: &[u8]) -> Result<(), FlashError> {
        assert_eq!(data.len() as u64, file.bytes, "bytes of the file");
        let mut padded = data.to_vec();
        padded.resize(data.len().next_multiple_of(self.page() as usize), 0);
        self.write_at(file, 0, &padded)
    }

    /// Frees the segments of a file.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub(in super::super) fn remove(&mut self, file: File) -> Result<(), FlashError> {
        let store = self.store_of(file.space);
        file.segments.into_iter().try_for_each(|segment| self.stores[store].free(segment))
    }

    /// Writes, in the background, the pages with these bytes of `pages`, counted from the first
    /// that was asked for.
    ///
    /// # Errors
    /// [`FlashError`] if the device has failed.
    pub(in super::super) fn write(
        &mut self,
        file: &File,
        pages: &Pages,
        bytes: Range<usize>,
    ) -> Result<(), FlashError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let page = self.page() as usize;
        let begin = (pages.content.start + bytes.start) / page * page;
        let end = (pages.content.start + bytes.end).next_multiple_of(page);
        self.write_at(file, pages.begin + begin as u64, &pages.data[begin..end])
    }

    fn write_at(&mut self, file: &File, begin: u64, data: &[u8]) -> Result<(), FlashError> {
        let store = self.store_of(file.space);
        let segment_bytes = u64::from(self.stores[store].shape().segment_bytes);
        let mut done = 0;
        while done < data.len() {
            let at = begin + done as u64;
            let (segment, offset) = ((at / segment_bytes) as usize, at % segment_bytes);
            let len = (data.len() - done).min((segment_bytes - offset) as usize);
            let mut buffer = self.stores[store].buffer(len);
            buffer.copy_from_slice(&data[done..done + len]);
            self.wait_until(store, 1, DEPTH - 1)?;
            self.stores[store].write(file.segments[segment], offset as u32, buffer, WRITE);
            self.in_flight[store].iter_mut().for_each(|count| *count += 1);
            done += len;
        }
        self.traffic.written[file.space as usize] += data.len() as u64;
        Ok(())
    }

    /// Reads bytes of files, all at once, in whole pages.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub(in super::super) fn read(
        &mut self,
        requests: &[(&File, Range<u64>)],
    ) -> Result<Vec<Pages>, FlashError> {
        let page = self.page();
        let (mut pieces, mut all) = (Vec::new(), Vec::new());
        for (request, (file, bytes)) in requests.iter().enumerate() {
            let begin = bytes.start / page * page;
            let end = if bytes.is_empty() { begin } else { bytes.end.next_multiple_of(page) };
            pieces.extend(self.pieces(request, file, begin..end));
            let content = (bytes.start - begin) as usize..(bytes.end - begin) as usize;
            let len = ((end - begin) as usize).max(content.end);
            all.push(Pages { begin, data: vec![0; len], content });
            self.traffic.read[file.space as usize] += end - begin;
        }
        let (mut submitted, mut arrived) = (0, 0);
        while arrived < pieces.len() {
            while submitted < pieces.len() && submitted - arrived < DEPTH {
                let Piece { store, segment, offset, len, .. } = pieces[submitted];
                let buffer = self.stores[store].buffer(len);
                self.stores[store].read(segment, offset, buffer, submitted as u64);
                self.in_flight[store][0] += 1;
                submitted += 1;
            }
            self.take();
            while let Some((number, data)) = self.arrived.pop_front() {
                let Piece { request, at, len, .. } = pieces[number];
                all[request].data[at..at + len].copy_from_slice(&data);
                arrived += 1;
            }
            self.failed.take().map_or(Ok(()), Err)?;
            if submitted - arrived == DEPTH || submitted == pieces.len() && arrived < submitted {
                self.wait();
            }
        }
        Ok(all)
    }

    /// The parts of a read, each in one segment.
    fn pieces(&self, request: usize, file: &File, bytes: Range<u64>) -> Vec<Piece> {
        let store = self.store_of(file.space);
        let segment_bytes = u64::from(self.stores[store].shape().segment_bytes);
        let (mut pieces, mut at) = (Vec::new(), bytes.start);
        while at < bytes.end {
            let offset = at % segment_bytes;
            let len = (bytes.end - at).min(segment_bytes - offset);
            pieces.push(Piece {
                request,
                at: (at - bytes.start) as usize,
                store,
                segment: file.segments[(at / segment_bytes) as usize],
                offset: offset as u32,
                len: len as usize,
            });
            at += len;
        }
        pieces
    }

    /// Takes what is complete.
    fn take(&mut self) {
        for (store, in_flight) in self.stores.iter_mut().zip(&mut self.in_flight) {
            while let Some(done) = store.poll() {
                in_flight[0] -= 1;
                self.failed = self.failed.take().or(done.result.err());
                match done.tag {
                    WRITE => in_flight[1] -= 1,
                    piece => self.arrived.push_back((piece as usize, done.data)),
                }
            }
        }
    }

    /// Waits for a command of a store that has some in flight.
    fn wait(&mut self) {
        if let Some(store) = (0..self.stores.len()).find(|&store| self.in_flight[store][0] > 0) {
            self.stores[store].wait(None);
        }
    }

    /// Waits until of a store at most `most` commands, or writes (`kind` 1), are in flight.
    fn wait_until(&mut self, store: usize, kind: usize, most: usize) -> Result<(), FlashError> {
        loop {
            self.take();
            self.failed.take().map_or(Ok(()), Err)?;
            if self.in_flight[store][kind] <= most {
                return Ok(());
            }
            self.stores[store].wait(None);
        }
    }

    /// Waits until all writes are complete.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub(in super::super) fn wait_for_writes(&mut self) -> Result<(), FlashError> {
        (0..self.stores.len()).try_for_each(|store| self.wait_until(store, 1, 0))
    }

    /// Makes all writes durable.
    ///
    /// # Errors
    /// [`FlashError`] if the device fails.
    pub(in super::super) fn sync(&mut self) -> Result<(), FlashError> {
        self.wait_for_writes()?;
        for store in 0..self.stores.len() {
            self.stores[store].sync(WRITE);
            self.in_flight[store].iter_mut().for_each(|count| *count += 1);
        }
        self.wait_for_writes()
    }

    /// Lets time pass in which the program computes, and the device goes on.
    pub(in super::super) fn pass(&mut self, time: Nanos) {
        let end = self.now() + time;
        loop {
            self.take();
            let left = end.0.saturating_sub(self.now().0);
            if left == 0 {
                return;
            }
            self.stores[0].wait(Some(Nanos(left)));
        }
    }
}
