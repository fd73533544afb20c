//! Reading a trace ahead.

use prism_trace::{Record, Source, SourceError};

/// Units accessed in a pass that are followed at most: numbers of 32 bits, and 2 GB for a
/// byte each.
pub(in crate::what_if) const UNITS_MAX: usize = 2_000_000_000;

/// Reads `source` twice over, as two passes of a replay would, and tells the number of the
/// pass with each record. The second pass is the future of the first one's end.
pub(super) fn twice(
    source: &mut dyn Source,
    mut each: impl FnMut(&Record, u32),
) -> Result<(), SourceError> {
    let mut batch = Vec::new();
    for pass in 0..2 {
        source.rewind()?;
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            batch.iter().for_each(|record| each(record, pass));
        }
    }
    Ok(())
}
