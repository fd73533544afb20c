//! A device in memory of which a test can change every byte.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use prism_base::{Nanos, SimTime};
use prism_flash::{Buffer, FlashError};
use prism_graph::segment::{HEADER_BYTES, Header};
use prism_graph::space::AnyStore;
use prism_segments::{Done, FlashCounts, Shape, Store};

/// Segments.
pub const SEGMENTS: usize = 400;
/// Bytes of a segment.
pub const SEGMENT: usize = 2048;
const PAGE: usize = 512;
/// Reads between two calls of [`Plain::begin`]: none of the graphs needs as many.
const READS_MAX: u64 = 1 << 20;

/// The device: clones are the same one.
#[derive(Clone)]
pub struct Plain {
    segments: Arc<Mutex<Vec<Option<Vec<u8>>>>>,
    reads: Arc<AtomicU64>,
}

/// A store on the device.
struct PlainStore {
    plain: Plain,
    free: VecDeque<u32>,
    done: VecDeque<Done>,
}

impl Default for Plain {
    fn default() -> Self {
        Self::of(vec![None; SEGMENTS])
    }
}

impl Plain {
    fn of(segments: Vec<Option<Vec<u8>>>) -> Self {
        let segments = Arc::new(Mutex::new(segments));
        Self { segments, reads: Arc::default() }
    }

    /// A store on it, as a program that was started anew has one.
    pub fn stores(&self) -> Vec<AnyStore> {
        let segments = self.segments.lock().unwrap();
        let free = (0..SEGMENTS).filter(|at| segments[*at].is_none()).map(|at| at as u32);
        let free = free.collect();
        vec![Box::new(PlainStore { plain: self.clone(), free, done: VecDeque::new() })]
    }

    /// Another device with the same bytes.
    pub fn copy(&self) -> Self {
        Self::of(self.segments.lock().unwrap().clone())
    }

    /// Counts reads from here on.
    pub fn begin(&self) {
        self.reads.store(0, Ordering::Relaxed);
    }

    /// Segments with a header: number, header, payload.
    pub fn written(&self) -> Vec<(u32, Header, Vec<u8>)> {
        let segments = self.segments.lock().unwrap();
        let all = segments.iter().enumerate().filter_map(|(at, bytes)| {
            let (header, payload) = Header::open(bytes.as_ref()?)?;
            Some((at as u32, header, payload.to_vec()))
        });
        all.collect()
    }

    /// Writes a segment, with the hashes that it needs.
    pub fn set(&self, segment: u32, header: Header, payload: &[u8]) {
        let mut bytes = header.encode(payload).to_vec();
        bytes.extend_from_slice(payload);
        assert!(bytes.len() <= SEGMENT, "{} bytes after a header of {HEADER_BYTES}", payload.len());
        bytes.resize(SEGMENT, 0);
        self.segments.lock().unwrap()[segment as usize] = Some(bytes);
    }
}

impl PlainStore {
    fn complete(&mut self, tag: u64, data: Buffer) {
        self.done.push_back(Done { tag, end: SimTime::ZERO, result: Ok(()), data });
    }
}

impl Store for PlainStore {
    fn shape(&self) -> Shape {
        Shape {
            segments: SEGMENTS as u32,
            segment_bytes: SEGMENT as u32,
            page_bytes: PAGE as u32,
            channels: 1,
            dynamic_reserve: false,
        }
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        let segments = self.plain.segments.lock().unwrap();
        Ok((0..SEGMENTS as u32).filter(|at| segments[*at as usize].is_some()).collect())
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.free.pop_front())
    }

    fn write(&mut self, segment: u32, offset: u32, data: Buffer, tag: u64) {
        assert_eq!((offset, data.len()), (0, SEGMENT), "segments are written as wholes");
        self.plain.segments.lock().unwrap()[segment as usize] = Some(data.to_vec());
        self.complete(tag, data);
    }

    fn read(&mut self, segment: u32, offset: u32, mut data: Buffer, tag: u64) {
        let reads = self.plain.reads.fetch_add(1, Ordering::Relaxed);
        assert!(reads < READS_MAX, "it does not end");
        let len = data.len();
        assert!(len + offset as usize <= SEGMENT, "{len} bytes of a segment");
        match &self.plain.segments.lock().unwrap()[segment as usize] {
            Some(bytes) => data.copy_from_slice(&bytes[offset as usize..offset as usize + len]),
            None => data.fill(0),
        }
        self.complete(tag, data);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        assert!((segment as usize) < SEGMENTS, "segment {segment} is freed");
        assert!(!self.free.contains(&segment), "segment {segment} is free");
        self.free.push_back(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.complete(tag, Buffer::default());
    }

    fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn wait(&mut self, _timeout: Option<Nanos>) -> bool {
        !self.done.is_empty()
    }

    fn counts(&self) -> FlashCounts {
        FlashCounts::default()
    }
}
