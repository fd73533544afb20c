//! The format of a page of the journal: a header with the page's position, then a piece of a stream
//! of records.
//!
//! Little endian: magic (8 bytes), XxHash64 of all that follows, epoch, index, base (8
//! each), kind, length (4 each), content, zeros up to the size of the page.

use twox_hash::XxHash64;

/// Bytes of a page before its content.
pub(super) const HEADER: usize = 48;

const MAGIC: [u8; 8] = *b"PrismJ01";
/// Offset from which on the hash covers the page.
const HASHED: usize = 16;
/// Bytes of a record before its content.
pub(super) const RECORD_HEADER: usize = 4;

/// What the content of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A piece of a checkpoint, but not the last.
    Checkpoint = 1,
    /// The last piece of a checkpoint.
    CheckpointEnd = 2,
    /// A piece of the records after the checkpoint.
    Records = 3,
}

/// The header of a page: its position in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Number of the checkpoint that the page is part of, or follows; from 1 on.
    pub epoch: u64,
    /// Index among the pages of the epoch, from 0 on.
    pub index: u64,
    /// The newest epoch whose checkpoint was durable when this page was programmed; 0 if
    /// there was none.
    pub base: u64,
    pub kind: Kind,
}

/// What was found in a programmed page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Whole(Header, &'a [u8]),
    /// A page of a journal that cannot be trusted.
    Damaged,
    /// Data that no journal wrote.
    Foreign,
}

/// Fills `page` with a header and `content`.
///
/// # Panics
/// If the content does not fit.
pub(super) fn encode(header: Header, content: &[u8], page: &mut [u8]) {
    let length = u32::try_from(content.len()).expect("a page is below 4 GiB");
    page[..8].copy_from_slice(&MAGIC);
    page[16..24].copy_from_slice(&header.epoch.to_le_bytes());
    page[24..32].copy_from_slice(&header.index.to_le_bytes());
    page[32..40].copy_from_slice(&header.base.to_le_bytes());
    page[40..44].copy_from_slice(&(header.kind as u32).to_le_bytes());
    page[44..48].copy_from_slice(&length.to_le_bytes());
    let (used, rest) = page[HEADER..].split_at_mut(content.len());
    used.copy_from_slice(content);
    rest.fill(0);
    let hash = XxHash64::oneshot(0, &page[HASHED..]);
    page[8..16].copy_from_slice(&hash.to_le_bytes());
}

/// Reads what [`encode`] wrote.
///
/// A page of which neither the magic nor the hash is right is foreign. If only one of the two is
/// right, it is a damaged page of a journal: no single damaged byte makes a page of a journal
/// foreign, or a foreign page a journal's.
pub(super) fn decode(page: &[u8]) -> Content<'_> {
    let u64_at = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("4 bytes"));
    let hash_is_right = u64_at(8) == XxHash64::oneshot(0, &page[HASHED..]);
    match (page[..8] == MAGIC, hash_is_right) {
        (false, false) => return Content::Foreign,
        (true, true) => {}
        _ => return Content::Damaged,
    }
    let kind = match u32_at(40) {
        1 => Kind::Checkpoint,
        2 => Kind::CheckpointEnd,
        3 => Kind::Records,
        _ => return Content::Damaged,
    };
    let header = Header { epoch: u64_at(16), index: u64_at(24), base: u64_at(32), kind };
    match page[HEADER..].get(..u32_at(44) as usize) {
        Some(content) => Content::Whole(header, content),
        None => Content::Damaged,
    }
}

/// Appends a record to a stream of records.
///
/// # Panics
/// If the record has 4 GiB or more: the journal takes none of that length.
pub(super) fn push_record(stream: &mut Vec<u8>, record: &[u8]) {
    let length = u32::try_from(record.len()).expect("a record is below 4 GiB");
    stream.extend_from_slice(&length.to_le_bytes());
    stream.extend_from_slice(record);
}

/// The complete records of a stream, and the bytes of an incomplete last one.
pub(super) fn records(mut stream: &[u8]) -> (Vec<Vec<u8>>, &[u8]) {
    let mut records = Vec::new();
    while let Some((length, rest)) = stream.split_first_chunk::<RECORD_HEADER>()
        && let Some((record, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)
    {
        records.push(record.to_vec());
        stream = rest;
    }
    (records, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Header = Header { epoch: 7, index: 1 << 40, base: 6, kind: Kind::Records };

    #[test]
    fn a_page_decodes_to_what_was_encoded_or_is_damaged() {
        let mut page = [0xee; 96];
        encode(HEAD, b"some records", &mut page);
        assert_eq!(decode(&page), Content::Whole(HEAD, b"some records"));
        for at in 0..page.len() {
            for bit in 0..8 {
                page[at] ^= 1 << bit;
                assert_eq!(decode(&page), Content::Damaged, "byte {at}, bit {bit}");
                page[at] ^= 1 << bit;
            }
        }
        assert_eq!(decode(&[0; 96]), Content::Foreign);
    }

    #[test]
    fn a_length_beyond_the_page_is_damage() {
        let mut page = [0; 96];
        encode(HEAD, b"some records", &mut page);
        page[44..48].copy_from_slice(&49_u32.to_le_bytes());
        let hash = XxHash64::oneshot(0, &page[HASHED..]);
        page[8..16].copy_from_slice(&hash.to_le_bytes());
        assert_eq!(decode(&page), Content::Damaged);
    }

    #[test]
    fn a_truncated_stream_gives_its_complete_records() {
        let mut stream = Vec::new();
        for record in [&b"one"[..], b"", b"three"] {
            push_record(&mut stream, record);
        }
        assert_eq!(records(&stream), (vec![b"one".into(), vec![], b"three".into()], &[][..]));
        for cut in 0..stream.len() {
            let (whole, rest) = records(&stream[..cut]);
            let expected = [7, 11, 20].iter().filter(|&&end| end <= cut).count();
            assert_eq!(whole.len(), expected, "cut at {cut}");
            let taken: usize = whole.iter().map(|record| record.len() + RECORD_HEADER).sum();
            assert_eq!(rest.len(), cut - taken, "cut at {cut}");
        }
    }
}
