//! Replays a ring of blocks: finds the newest complete checkpoint and the records after it.

use super::page::{self, Content, Header, Kind};
use super::{JournalError, JournalResult, Pages, Ring};
use crate::medium::PageState;

/// The result of reading the whole ring.
pub(super) struct Replay {
    pub records: Vec<Vec<u8>>,
    /// The epoch of the checkpoint that was replayed, 0 if there is none.
    pub epoch: u64,
    /// The highest epoch of any page, 0 if there is none.
    pub newest: u64,
    /// The blocks of the replayed epoch, in the order of its pages.
    pub chain: Vec<u32>,
    /// Of each block, whether all its pages are erased.
    pub erased: Vec<bool>,
    /// The block of the page programmed last.
    pub cursor: u32,
}

#[derive(Clone, Copy)]
struct JournalPage {
    header: Header,
    block: u32,
    page: u32,
}

/// Reads the ring.
///
/// # Errors
/// As [`super::Journal::open`].
pub(super) fn replay<P: Pages>(pages: &mut P, ring: Ring) -> JournalResult<Replay, P> {
    let mut buffer = vec![0; ring.page_size];
    let (mut found, erased) = scan(pages, ring, &mut buffer)?;
    found.sort_unstable_by_key(|found| (found.header.epoch, found.header.index));
    let epochs = found.chunk_by(|a, b| a.header.epoch == b.header.epoch);
    let chain = epochs.rev().find_map(complete_chain).unwrap_or(&[]);
    let epoch = chain.first().map_or(0, |found| found.header.epoch);
    // The newest epoch that some page proves to have been durable.
    let proven = found.iter().map(|found| proves(found.header)).max().unwrap_or(0);
    if proven > epoch {
        return Err(JournalError::Damaged { epoch: proven });
    }
    let last = found.last();
    Ok(Replay {
        records: read_chain(pages, chain, &mut buffer)?,
        epoch,
        newest: last.map_or(0, |found| found.header.epoch),
        chain: blocks_of(chain),
        erased,
        cursor: last.map_or(ring.blocks - 1, |found| found.block),
    })
}

/// All whole pages, in the order of the ring, and which blocks are erased. A page that cannot be
/// read is reported only if the others do not show that the blocks belong to another program.
fn scan<P: Pages>(
    pages: &mut P,
    ring: Ring,
    buffer: &mut [u8],
) -> JournalResult<(Vec<JournalPage>, Vec<bool>), P> {
    let mut found = Vec::new();
    let mut erased = vec![true; ring.blocks as usize];
    let mut unreadable = None;
    for block in 0..ring.blocks {
        for page in 0..ring.pages_per_block {
            let state = match pages.read(block, page, buffer) {
                Ok(state) => state,
                Err(error) => {
                    unreadable.get_or_insert(error);
                    continue;
                }
            };
            erased[block as usize] &= state == PageState::Erased;
            if state != PageState::Written {
                continue;
            }
            match page::decode(buffer) {
                Content::Whole(header, _) => found.push(JournalPage { header, block, page }),
                Content::Damaged => {}
                Content::Foreign => {
                    // If there are pages of a journal too, it has more than one damaged page.
                    let error = unreadable.filter(|_| !found.is_empty());
                    let foreign = JournalError::Foreign { block, page };
                    return Err(error.map_or(foreign, JournalError::Pages));
                }
            }
        }
    }
    match unreadable {
        Some(error) => Err(JournalError::Pages(error)),
        None => Ok((found, erased)),
    }
}

/// Of the pages of one epoch, sorted, those before the first gap, if they hold the whole
/// checkpoint.
fn complete_chain(epoch: &[JournalPage]) -> Option<&[JournalPage]> {
    let run = epoch.iter().zip(0..).take_while(|(found, index)| found.header.index == *index);
    let chain = &epoch[..run.count()];
    chain.iter().any(|found| found.header.kind == Kind::CheckpointEnd).then_some(chain)
}

/// The epoch whose checkpoint was durable before a page with this header was programmed.
fn proves(header: Header) -> u64 {
    if header.kind == Kind::Records { header.epoch } else { header.base }
}

fn blocks_of(chain: &[JournalPage]) -> Vec<u32> {
    let mut blocks: Vec<u32> = chain.iter().map(|found| found.block).collect();
    blocks.dedup();
    blocks
}

/// The records of a chain. Its pages are read once more instead of kept from the scan, which would
/// take as much memory as the ring has bytes.
fn read_chain<P: Pages>(
    pages: &mut P,
    chain: &[JournalPage],
    buffer: &mut [u8],
) -> JournalResult<Vec<Vec<u8>>, P> {
    let mut stream = Vec::new();
    let mut checkpoint = 0;
    for found in chain {
        let damaged = JournalError::Damaged { epoch: found.header.epoch };
        let state = pages.read(found.block, found.page, buffer).map_err(JournalError::Pages)?;
        match page::decode(buffer) {
            Content::Whole(header, content)
                if state == PageState::Written && header == found.header =>
            {
                stream.extend_from_slice(content);
            }
            _ => return Err(damaged),
        }
        if found.header.kind == Kind::CheckpointEnd {
            checkpoint = stream.len();
        }
    }
    let (mut records, rest) = page::records(&stream[..checkpoint]);
    if let (Some(first), false) = (chain.first(), rest.is_empty()) {
        return Err(JournalError::Damaged { epoch: first.header.epoch });
    }
    records.extend(page::records(&stream[checkpoint..]).0);
    Ok(records)
}
