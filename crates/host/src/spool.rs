//! Stores a trace so that it can be replayed several times: in memory while it is short,
//! otherwise in an unnamed temporary file.
//!
//! Memory arithmetic: up to [`MEMORY_RECORDS`] records of 80 bytes are held (84 MB). The record
//! after them moves all of them to the file, 74 bytes each, and from then on only one block of
//! [`BLOCK_RECORDS`] records is in memory. The file has no name, so the kernel removes
//! it when the process ends for any reason.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use prism_trace::{Record, Records, Source, SourceError};

use crate::error::HostError;
use prism_trace::compact::{RECORD_BYTES, decode, encode};

/// Records held in memory before a temporary file is used: 84 MB, which leaves space for the
/// symbol table and a simulated drive in half a gigabyte.
pub const MEMORY_RECORDS: usize = 1 << 20;

/// Records read or written at once: 1.2 MB, large enough for the full speed of a disk.
const BLOCK_RECORDS: usize = 1 << 14;

/// Records returned at once from memory.
const BATCH_RECORDS: usize = 4096;

/// Records in the order of their issue times, readable as often as wanted.
#[derive(Debug)]
pub struct Spool {
    store: Store,
    records: u64,
    /// Records returned since the last rewind.
    place: u64,
}

#[derive(Debug)]
enum Store {
    Memory(Arc<Vec<Record>>),
    /// Each reader has its own position, so that several readers share the file.
    File {
        file: Arc<File>,
        block: Vec<u8>,
    },
}

/// Collects records one after another and becomes a [`Spool`].
#[derive(Debug)]
pub struct SpoolWriter {
    held: Vec<Record>,
    memory_records: usize,
    file: Option<File>,
    block: Vec<u8>,
    records: u64,
}

impl SpoolWriter {
    /// An empty spool that keeps up to [`MEMORY_RECORDS`] in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(MEMORY_RECORDS)
    }

    /// An empty spool that keeps up to `memory_records` in memory.
    #[must_use]
    pub fn with_limit(memory_records: usize) -> Self {
        Self { held: Vec::new(), memory_records, file: None, block: Vec::new(), records: 0 }
    }

    /// Appends a record.
    ///
    /// # Errors
    /// [`HostError::Temporary`] if the temporary file cannot be written.
    pub fn push(&mut self, record: Record) -> Result<(), HostError> {
        self.records += 1;
        if self.file.is_none() {
            if self.held.len() < self.memory_records {
                self.held.push(record);
                return Ok(());
            }
            self.spill()?;
        }
        self.append(&record)
    }

    /// Ends the writing.
    ///
    /// # Errors
    /// [`HostError::Temporary`] if the temporary file cannot be written.
    pub fn finish(mut self) -> Result<Spool, HostError> {
        self.flush()?;
        let store = match self.file {
            None => Store::Memory(Arc::new(self.held)),
            Some(file) => Store::File { file: Arc::new(file), block: self.block },
        };
        Ok(Spool { store, records: self.records, place: 0 })
    }

    fn spill(&mut self) -> Result<(), HostError> {
        self.file = Some(tempfile::tempfile().map_err(HostError::Temporary)?);
        for record in std::mem::take(&mut self.held) {
            self.append(&record)?;
        }
        Ok(())
    }

    fn append(&mut self, record: &Record) -> Result<(), HostError> {
        encode(record, &mut self.block);
        if self.block.len() >= BLOCK_RECORDS * RECORD_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), HostError> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.block).map_err(HostError::Temporary)?;
        }
        self.block.clear();
        Ok(())
    }
}

impl Default for SpoolWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// A clone reads the same records, from the first on.
impl Clone for Spool {
    fn clone(&self) -> Self {
        let store = match &self.store {
            Store::Memory(records) => Store::Memory(records.clone()),
            Store::File { file, .. } => Store::File { file: file.clone(), block: Vec::new() },
        };
        Self { store, records: self.records, place: 0 }
    }
}

impl Spool {
    /// Whether the records are in memory, not in a temporary file.
    #[must_use]
    pub fn in_memory(&self) -> bool {
        matches!(self.store, Store::Memory(_))
    }
}

impl Records for Spool {
    fn count(&self) -> u64 {
        self.records
    }

    fn reader(&self) -> Box<dyn Source + Send> {
        Box::new(self.clone())
    }
}

impl Source for Spool {
    fn rewind(&mut self) -> Result<(), SourceError> {
        self.place = 0;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError> {
        batch.clear();
        let left = usize::try_from(self.records - self.place).unwrap_or(usize::MAX);
        match &mut self.store {
            Store::Memory(records) => {
                let start = self.place as usize;
                batch.extend_from_slice(&records[start..start + left.min(BATCH_RECORDS)]);
            }
            Store::File { file, block } => {
                block.resize(left.min(BLOCK_RECORDS) * RECORD_BYTES, 0);
                let at = self.place * RECORD_BYTES as u64;
                file.read_exact_at(block, at).map_err(|e| lost(&e))?;
                for bytes in block.chunks_exact(RECORD_BYTES) {
                    batch.push(decode(bytes).ok_or_else(changed)?);
                }
            }
        }
        self.place += batch.len() as u64;
        Ok(())
    }
}

fn lost(error: &std::io::Error) -> SourceError {
    SourceError(format!("the temporary file of the trace cannot be read: {error}"))
}

fn changed() -> SourceError {
    SourceError("the temporary file of the trace does not hold what was written to it".into())
}

#[cfg(test)]
mod tests {
    use prism_trace::Op;

    use super::*;

    fn read_all(spool: &mut Spool) -> Vec<Record> {
        let mut all = Vec::new();
        prism_trace::each_record(spool, |record| all.push(*record)).unwrap();
        all
    }

    fn check(records: usize, limit: usize, in_memory: bool) {
        let wanted: Vec<Record> =
            (0..records).map(|i| Record::new(Op::Write, i as i64, i as u64 * 512, 512)).collect();
        let mut writer = SpoolWriter::with_limit(limit);
        for &record in &wanted {
            writer.push(record).unwrap();
        }
        let mut spool = writer.finish().unwrap();
        assert_eq!((spool.count(), spool.in_memory()), (records as u64, in_memory));
        assert_eq!(read_all(&mut spool), wanted);
        assert_eq!(read_all(&mut spool), wanted, "the second reading");
        let mut batch = Vec::new();
        spool.rewind().unwrap();
        spool.next_batch(&mut batch).unwrap();
        let mut other = spool.clone();
        assert_eq!(read_all(&mut other), wanted, "another reader at the same time");
        let first = batch.len();
        spool.next_batch(&mut batch).unwrap();
        assert_eq!(batch.first(), wanted.get(first), "the first goes on where it was");
    }

    #[test]
    fn every_size_around_the_limits_is_kept() {
        check(0, 10, true);
        check(10, 10, true);
        check(11, 10, false);
        check(BATCH_RECORDS * 2, 1 << 20, true);
        check(BATCH_RECORDS * 2 + 1, 1 << 20, true);
        check(BLOCK_RECORDS, 1, false);
        check(BLOCK_RECORDS + 1, 1, false);
        check(BLOCK_RECORDS * 2 + 3, BLOCK_RECORDS, false);
    }

    #[test]
    fn a_shortened_file_is_an_error_and_not_a_shorter_trace() {
        let mut writer = SpoolWriter::with_limit(0);
        for i in 0..10 {
            writer.push(Record::new(Op::Read, i, 0, 512)).unwrap();
        }
        let mut spool = writer.finish().unwrap();
        let Store::File { file, .. } = &spool.store else { panic!("limit 0 means a file") };
        file.set_len(9 * RECORD_BYTES as u64).unwrap();
        assert!(spool.next_batch(&mut Vec::new()).is_err());
    }
}
