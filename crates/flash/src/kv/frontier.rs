//! Write frontiers: a page being filled, and open blocks that take pages in turn.

use std::collections::VecDeque;

use prism_nand::Cause;

use crate::kv::index::PieceAddress;
use crate::kv::page;

/// A block that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) block: u32,
    /// The next page.
    pub(super) page: u32,
}

/// A record, or a piece that is copied, until all of it is programmed.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) key: Box<[u8]>,
    pub(super) sequence: u64,
    /// Bytes of the record's value, or [`page::DELETED`].
    pub(super) len: u32,
    /// The old address of the piece, for a copy.
    pub(super) origin: Option<PieceAddress>,
    /// Bytes of the value that are not programmed yet.
    pub(super) left: u32,
    /// The pieces that are programmed.
    pub(super) places: Vec<PieceAddress>,
}

/// The write frontier of one cause.
#[derive(Debug)]
pub(super) struct Frontier {
    pub(super) cause: Cause,
    pub(super) slots: Vec<Option<Open>>,
    /// The slot that takes the next page.
    pub(super) turn: usize,
    /// The page being filled.
    pub(super) page: Vec<u8>,
    /// The pieces in it: the offset of each, and its bytes of the value.
    pub(super) pieces: Vec<(u32, u32)>,
    /// The records of the pieces, in order. Only the first can have pieces on flash already.
    pub(super) in_flight: VecDeque<InFlight>,
}

impl Frontier {
    pub(super) fn new(cause: Cause, width: u32) -> Self {
        let mut begun = Vec::new();
        page::begin(&mut begun);
        Self {
            cause,
            slots: vec![None; width as usize],
            turn: 0,
            page: begun,
            pieces: Vec::new(),
            in_flight: VecDeque::new(),
        }
    }

    /// Whether the page holds a piece.
    pub(super) fn is_begun(&self) -> bool {
        !self.pieces.is_empty()
    }

    pub(super) fn has_open(&self) -> bool {
        self.slots.iter().any(Option::is_some)
    }

    /// Notes that the page was programmed: calls `settle` with every record that is complete with
    /// it.
    pub(super) fn programmed(&mut self, at: Open, mut settle: impl FnMut(InFlight)) {
        for (byte, part) in std::mem::take(&mut self.pieces) {
            let in_flight = self.in_flight.front_mut().expect("every piece belongs to a record");
            in_flight.places.push(PieceAddress { block: at.block, page: at.page, at: byte, part });
            in_flight.left -= part;
            if in_flight.left == 0 {
                settle(self.in_flight.pop_front().expect("just seen"));
            }
        }
        page::begin(&mut self.page);
    }
}
