//! The interface of the flash below a journal.

use crate::medium::PageState;

/// The blocks of a journal, a ring in the order in which they are written.
///
/// Pages of a block are programmed in order, each once after an erase. If power fails, operations
/// on one block have taken effect in order, and so have those before and those after a
/// [`Pages::sync`]; nothing else is guaranteed.
pub trait Pages {
    /// The error of the flash.
    type Error;
    /// Number of blocks, at least 3.
    fn blocks(&self) -> u32;
    /// Pages of a block, at least 1.
    fn pages_per_block(&self) -> u32;
    /// Bytes of a page, more than 48.
    fn page_size(&self) -> usize;
    /// Reads a page into `into`, which has the size of a page and is valid only if the page is
    /// [`PageState::Written`].
    ///
    /// # Errors
    /// The error of the flash. A torn page is no error.
    fn read(&mut self, block: u32, page: u32, into: &mut [u8]) -> Result<PageState, Self::Error>;
    /// Programs a page; `bytes` has its size.
    ///
    /// # Errors
    /// The error of the flash; the page may then be in any state.
    fn program(&mut self, block: u32, page: u32, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Erases a block.
    ///
    /// # Errors
    /// The error of the flash; the block may then be in any state.
    fn erase(&mut self, block: u32) -> Result<(), Self::Error>;
    /// Makes all earlier operations durable, before any later one.
    ///
    /// # Errors
    /// The error of the flash; operations since the last sync may then be lost.
    fn sync(&mut self) -> Result<(), Self::Error>;
}
