//! What a journal needs of the flash that it lives on.

use crate::medium::PageState;

/// The blocks that a journal lives on, in the order in which they are written: a ring.
///
/// Pages of a block are programmed in order, each once after an erase. Operations of one
/// block take effect in order, and so does everything before a [`Pages::sync`] and
/// everything after it; nothing else is promised if power goes.
pub trait Pages {
    /// Why the flash could not do it.
    type Error;
    /// Number of blocks, at least 3.
    fn blocks(&self) -> u32;
    /// Pages of a block, at least 1.
    fn pages_per_block(&self) -> u32;
    /// Bytes of a page, more than 48.
    fn page_size(&self) -> usize;
    /// Reads a page into `into`, which has the size of a page and means something only if
    /// the page is [`PageState::Written`].
    ///
    /// # Errors
    /// What the flash says. A page that is torn is no error.
    fn read(&mut self, block: u32, page: u32, into: &mut [u8]) -> Result<PageState, Self::Error>;
    /// Programs a page with as many bytes as it has.
    ///
    /// # Errors
    /// What the flash says; the page may then be in any state.
    fn program(&mut self, block: u32, page: u32, bytes: &[u8]) -> Result<(), Self::Error>;
    /// Erases a block.
    ///
    /// # Errors
    /// What the flash says; the block may then be in any state.
    fn erase(&mut self, block: u32) -> Result<(), Self::Error>;
    /// Everything before is durable, and comes before everything after.
    ///
    /// # Errors
    /// What the flash says; nothing is then known to be durable.
    fn sync(&mut self) -> Result<(), Self::Error>;
}
