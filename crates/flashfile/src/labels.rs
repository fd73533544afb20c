//! Labels that were read, kept: reading a page costs no second call into the system as long
//! as the labels of its neighbours were read before.

use std::io;

use prism_base::Zeroed;

use crate::engine::Engine;
use crate::layout::ALIGN;

const PAGE: usize = ALIGN as usize;
/// Pages of the file that are kept: 16 MiB, the labels of 2 GiB of pages of 4 KiB.
const KEPT: usize = 4096;
/// The number of no page.
const NONE: u64 = u64::MAX;

/// A cache of those pages of the file that hold labels. Each has one place, which it shares
/// with every 4096th. Its memory comes as it is used.
#[derive(Debug, Default)]
pub(crate) struct LabelCache(Option<Pages>);

#[derive(Debug)]
struct Pages {
    /// By place: the page that is there.
    numbers: Vec<u64>,
    bytes: Zeroed<u8>,
}

impl Pages {
    fn new() -> Self {
        Self { numbers: vec![NONE; KEPT], bytes: Zeroed::new(KEPT * PAGE) }
    }

    /// The page's place, and what is there of it from byte `within` on.
    fn part(&mut self, number: u64, within: usize, len: usize) -> (&mut u64, &mut [u8]) {
        let place = (number % KEPT as u64) as usize;
        (&mut self.numbers[place], &mut self.bytes[place * PAGE + within..][..len])
    }
}

impl LabelCache {
    /// Reads the label at `at`.
    pub(crate) fn read(&mut self, engine: &Engine, at: u64, label: &mut [u8]) -> io::Result<()> {
        let (number, within) = (at / ALIGN, (at % ALIGN) as usize);
        if within + label.len() > PAGE {
            return engine.read_at(at, label);
        }
        let pages = self.0.get_or_insert_with(Pages::new);
        let (there, page) = pages.part(number, 0, PAGE);
        if *there != number {
            // Should it fail, nothing is there.
            *there = NONE;
            engine.read_at(number * ALIGN, page)?;
            *there = number;
        }
        label.copy_from_slice(&page[within..within + label.len()]);
        Ok(())
    }

    /// Writes a label, and keeps what is known of its page.
    pub(crate) fn write(&mut self, engine: &mut Engine, at: u64, label: &[u8]) -> io::Result<()> {
        let (number, within) = (at / ALIGN, (at % ALIGN) as usize);
        if let Some(pages) = self.0.as_mut().filter(|_| within + label.len() <= PAGE) {
            let (there, part) = pages.part(number, within, label.len());
            if *there == number {
                part.copy_from_slice(label);
            }
        }
        engine.write_at(at, label)
    }
}
