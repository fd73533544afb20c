//! Reads a whole trace in advance, for the rewrites that depend on later records.

use prism_trace::{Record, Source, SourceError, each_record};

/// The most accesses to units in a pass that are tracked. They are numbered with 32 bits, and
/// a byte for each takes 2 GB.
pub(in crate::what_if) const UNITS_MAX: usize = 2_000_000_000;

/// Reads `source` twice, as two passes of a replay do, and calls `visit` with every record and
/// the number of its pass. The second pass shows what follows the end of the first one.
pub(super) fn twice(
    source: &mut dyn Source,
    mut visit: impl FnMut(&Record, u32),
) -> Result<(), SourceError> {
    (0..2).try_for_each(|pass| each_record(source, |record| visit(record, pass)))
}
