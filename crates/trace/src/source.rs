//! A trace that can be read several times in batches, as a replay needs it.

use crate::record::Record;

/// Reading the stored trace again failed (a disk error, a removed temporary file).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// Records in the order of their issue times, from the start as often as wanted.
pub trait Source {
    /// Goes back to the first record.
    ///
    /// # Errors
    /// [`SourceError`] if the storage fails.
    fn rewind(&mut self) -> Result<(), SourceError>;

    /// Replaces the content of `batch` by the next records; leaves it empty at the end.
    ///
    /// # Errors
    /// [`SourceError`] if the storage fails.
    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError>;
}

/// Calls `visit` with every record of `source`, from the first one on.
///
/// # Errors
/// [`SourceError`] if the storage fails.
pub fn each_record(
    source: &mut dyn Source,
    mut visit: impl FnMut(&Record),
) -> Result<(), SourceError> {
    let mut batch = Vec::new();
    source.rewind()?;
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        batch.iter().for_each(&mut visit);
    }
}

/// Records in memory, for tests and generated traces.
#[derive(Debug)]
pub struct VecSource {
    records: Vec<Record>,
    place: usize,
}

impl VecSource {
    /// A source over `records`, which are in the order of their issue times.
    #[must_use]
    pub fn new(records: Vec<Record>) -> Self {
        Self { records, place: 0 }
    }
}

impl Source for VecSource {
    fn rewind(&mut self) -> Result<(), SourceError> {
        self.place = 0;
        Ok(())
    }

    fn next_batch(&mut self, batch: &mut Vec<Record>) -> Result<(), SourceError> {
        let end = (self.place + 4096).min(self.records.len());
        batch.clear();
        batch.extend_from_slice(&self.records[self.place..end]);
        self.place = end;
        Ok(())
    }
}
