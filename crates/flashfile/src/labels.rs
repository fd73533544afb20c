//! Labels that were read, kept: reading a page costs no second call into the system as long
//! as the labels of its neighbours were read before.

use std::io;

use crate::engine::Engine;
use crate::layout::ALIGN;

const PAGE: usize = ALIGN as usize;
/// Pages of the file that are kept: 4 MiB, the labels of 512 MiB of pages of 4 KiB.
const KEPT: u64 = 1024;

/// A cache of those pages of the file that hold labels. Each has one place, which it shares
/// with every 1024th.
#[derive(Debug, Default)]
pub(crate) struct LabelCache {
    pages: Vec<Option<(u64, Box<[u8]>)>>,
}

impl LabelCache {
    fn place(number: u64) -> usize {
        (number % KEPT) as usize
    }

    /// Reads the label at `at`.
    pub(crate) fn read(&mut self, engine: &Engine, at: u64, label: &mut [u8]) -> io::Result<()> {
        let (number, within) = (at / ALIGN, (at % ALIGN) as usize);
        if within + label.len() > PAGE {
            return engine.read_at(at, label);
        }
        self.pages.resize_with(KEPT as usize, || None);
        let kept = &mut self.pages[Self::place(number)];
        let bytes = match kept {
            Some((other, bytes)) if *other == number => bytes,
            _ => {
                let mut bytes = vec![0; PAGE].into_boxed_slice();
                engine.read_at(number * ALIGN, &mut bytes)?;
                &mut kept.insert((number, bytes)).1
            }
        };
        label.copy_from_slice(&bytes[within..within + label.len()]);
        Ok(())
    }

    /// Writes a label, and keeps what is known of its page.
    pub(crate) fn write(&mut self, engine: &mut Engine, at: u64, label: &[u8]) -> io::Result<()> {
        let (number, within) = (at / ALIGN, (at % ALIGN) as usize);
        let kept = self.pages.get_mut(Self::place(number));
        if let Some(kept) = kept {
            match kept {
                Some((other, bytes)) if *other == number && within + label.len() <= PAGE => {
                    bytes[within..within + label.len()].copy_from_slice(label);
                }
                _ => {}
            }
        }
        engine.write_at(at, label)
    }
}
