//! Checks the writes of a trace against the rules of zones, as without a host FTL.

use prism_ssd::{HostOp, Request, SubmitError, ZoneShape, Zones};
use prism_trace::{Op, Source, SourceError, each_record};

/// How many writes of a trace a zoned drive with empty zones would accept and refuse without a host
/// FTL. Each write completes before the next; a refused write changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneRuleCheck {
    /// Writes.
    pub writes: u64,
    /// Accepted writes.
    pub taken: u64,
    /// Writes that do not begin at a write pointer.
    pub not_at_write_pointer: u64,
    /// Writes that do not begin and end at whole units.
    pub unaligned: u64,
    /// Writes that do not fit the rest of a zone, a full one included.
    pub beyond_zone: u64,
    /// Writes for which too many zones are open or active.
    pub limits: u64,
}

impl ZoneRuleCheck {
    /// Checks the writes of `source` against zones of this shape.
    ///
    /// # Errors
    /// [`SourceError`] if the source cannot be read.
    pub fn of(source: &mut dyn Source, shape: ZoneShape) -> Result<Self, SourceError> {
        let mut zones = Zones::new(shape, |_| Some(0));
        let end = u64::from(shape.count) * shape.size;
        let mut found = Self::default();
        each_record(source, |record| {
            if record.op != Op::Write || record.len == 0 {
                return;
            }
            found.writes += 1;
            let within = record.offset.checked_add(record.len).is_some_and(|to| to <= end);
            let mut write = Request::new(HostOp::Write, record.offset, record.len, 0);
            match within.then(|| zones.take_and_end(&mut write)) {
                Some(Ok(())) => found.taken += 1,
                Some(Err(SubmitError::Unaligned { .. })) => found.unaligned += 1,
                Some(Err(SubmitError::NotAtWritePointer { .. })) => found.not_at_write_pointer += 1,
                Some(Err(SubmitError::TooManyOpen { .. } | SubmitError::TooManyActive { .. })) => {
                    found.limits += 1;
                }
                Some(Err(_)) | None => found.beyond_zone += 1,
            }
        })?;
        Ok(found)
    }

    /// Refused writes.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.writes - self.taken
    }
}
