//! Reads a whole trace in advance, for the rewrites that depend on later records.

use prism_trace::{Record, Source, SourceError};

/// The most accesses to units in a pass that are tracked. They are numbered with 32 bits, and
/// a byte for each takes 2 GB.
pub(in crate::what_if) const UNITS_MAX: usize = 2_000_000_000;

/// Reads `source` twice, as two passes of a replay do, and calls `each` with every record and
/// the number of its pass. The second pass shows what follows the end of the first one.
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
