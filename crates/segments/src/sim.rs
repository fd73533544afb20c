//! Segments of a simulation, without bytes and without time: what each level does to flash is
//! counted.
//!
//! With block-level mapping, or none, a segment is a block: filling it programs its pages, and
//! freeing it erases a block. With page-level mapping segments are spread over all dies of a drive
//! whose FTL (crate `ftl`, greedy) copies what is valid when it cleans.

use std::collections::VecDeque;

use prism_base::{Bytes, Nanos, SimTime};
use prism_engine::Immediate;
use prism_flash::{Buffer, FlashError};
use prism_ftl::{Frontiers, Ftl, FtlConfig, PageConfig, VictimPolicy};
use prism_nand::{Geometry, Nand};

use crate::{Done, FlashCounts, Shape, Store};

/// The level at which a simulated program uses flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The program has all blocks, and decides how many it keeps erased: the raw and the function
    /// level.
    Blocks,
    /// Block-level mapping with static over-provisioning: the policy level.
    Policy,
    /// A conventional drive: page-level mapping with static over-provisioning.
    Original,
}

/// The pages of a simulated device.
const PAGE: u32 = 16 << 10;

/// A store of a simulation.
pub struct SimStore {
    shape: Shape,
    free: VecDeque<u32>,
    done: VecDeque<Done>,
    counts: FlashCounts,
    drive: Option<Box<Immediate<Nand, Ftl>>>,
    version: u64,
}

impl SimStore {
    /// A store of `bytes` bytes of flash, over-provisioning included, in blocks of `segment_bytes`
    /// on this many channels, with `spare` percent of them as static over-provisioning; `None` if
    /// these are too few blocks: fewer than 16 a channel, or too few for a drive to have spare
    /// ones.
    #[must_use]
    pub fn new(
        level: Level,
        bytes: Bytes,
        spare: u32,
        segment_bytes: u32,
        channels: u32,
    ) -> Option<Self> {
        let blocks = u32::try_from(bytes.0 / u64::from(segment_bytes)).ok()? / channels * channels;
        if blocks < 16 * channels || !segment_bytes.is_multiple_of(PAGE) {
            return None;
        }
        let segments = match level {
            Level::Blocks => blocks,
            Level::Policy | Level::Original => {
                (u64::from(blocks) * u64::from(100 - spare.min(99)) / 100) as u32
            }
        };
        let shape = Shape {
            segments,
            segment_bytes,
            page_bytes: PAGE,
            channels,
            dynamic_reserve: level == Level::Blocks,
        };
        let drive = match level {
            Level::Original => {
                Some(Box::new(drive(blocks, segments, segment_bytes / PAGE, channels)?))
            }
            Level::Blocks | Level::Policy => None,
        };
        let counts = FlashCounts::default();
        let free = (0..segments).collect();
        Some(Self { shape, free, done: VecDeque::new(), counts, drive, version: 0 })
    }

    /// Pages of a segment.
    fn pages(&self) -> u32 {
        self.shape.segment_bytes / PAGE
    }

    fn finish(&mut self, tag: u64, data: Buffer) {
        self.done.push_back(Done { tag, end: SimTime::ZERO, result: Ok(()), data });
    }
}

/// A drive with one die on each channel, and blocks of the length of a segment; `None` if so few
/// blocks leave it no spare ones.
fn drive(blocks: u32, segments: u32, pages: u32, channels: u32) -> Option<Immediate<Nand, Ftl>> {
    let geometry = Geometry {
        channels,
        blocks_per_plane: blocks / channels,
        pages_per_block: pages,
        page: Bytes(PAGE.into()),
        unit: Bytes(PAGE.into()),
        ..Geometry::SMALLEST
    };
    let units = segments * pages;
    let config = PageConfig::simple(units, VictimPolicy::Greedy, Frontiers::Separate);
    let ftl = Ftl::new(geometry.clone(), FtlConfig::Page(config), 1);
    Some(Immediate::new(Nand::new(geometry), ftl.ok()?))
}

impl Store for SimStore {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn identity(&self) -> u64 {
        1
    }

    fn used(&mut self) -> Result<Vec<u32>, FlashError> {
        Ok(Vec::new())
    }

    fn available(&mut self) -> u32 {
        self.free.len() as u32
    }

    fn open(&mut self) -> Result<Option<u32>, FlashError> {
        Ok(self.free.pop_front())
    }

    /// Writes the whole segment.
    fn write(&mut self, segment: u32, _offset: u32, data: Buffer, tag: u64) {
        let pages = self.pages();
        self.counts.programs += u64::from(pages);
        if let Some(drive) = &mut self.drive {
            for lpn in segment * pages..(segment + 1) * pages {
                self.version += 1;
                drive.write(lpn, self.version);
            }
        }
        self.finish(tag, data);
    }

    fn read(&mut self, _segment: u32, _offset: u32, data: Buffer, tag: u64) {
        self.counts.reads += 1;
        self.finish(tag, data);
    }

    fn free(&mut self, segment: u32) -> Result<(), FlashError> {
        let pages = self.pages();
        match &mut self.drive {
            Some(drive) => {
                self.version += 1;
                drive.trim(segment * pages, (segment + 1) * pages, self.version);
            }
            None => self.counts.erases += 1,
        }
        self.free.push_back(segment);
        Ok(())
    }

    fn sync(&mut self, tag: u64) {
        self.finish(tag, Buffer::default());
    }

    fn poll(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn wait(&mut self, _timeout: Option<Nanos>) -> bool {
        !self.done.is_empty()
    }

    fn counts(&self) -> FlashCounts {
        let Some(drive) = &self.drive else { return self.counts };
        let done = drive.counts();
        let programs = done.units.total();
        FlashCounts {
            copies: programs - self.counts.programs.min(programs),
            erases: done.erases.total(),
            ..self.counts
        }
    }
}
