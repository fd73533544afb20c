//! From pages of the trace buffer to records: the counterpart of `Reader` for a source
//! that is not a stream of bytes.

use super::RingDecoder;
use crate::error::TraceError;
use crate::event::{Event, Intake};
use crate::reader::{CountFrom, Outcome, event_capabilities, event_outcome};
use crate::record::Record;
use crate::symbols::Symbols;

/// Reads the pages of all processors.
///
/// Each processor has a buffer of its own, and only the times say what came first. So the
/// pages come in rounds: in each the buffer of every processor is read until it is empty,
/// one after the other, and the end of the round puts their events into order. What is
/// recorded while a round goes on belongs to this round or the next one, which may
/// therefore begin up to a second before the end of the last one.
pub struct RingReader {
    decoder: RingDecoder,
    intake: Box<Intake>,
    round: Vec<Event>,
}

impl RingReader {
    /// A reader of pages of which [`RingDecoder::new`] takes the descriptions.
    ///
    /// # Errors
    /// [`TraceError::EventFormat`]
    pub fn new(
        header_page: &str,
        formats: &[(&str, &str)],
        count_from: CountFrom,
    ) -> Result<Self, TraceError> {
        let decoder = RingDecoder::new(header_page, formats)?;
        Ok(Self { decoder, intake: Box::new(Intake::new(count_from)), round: Vec::new() })
    }

    /// Bytes of a page: what one reading of `trace_pipe_raw` gives at most.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.decoder.page_bytes()
    }

    /// Takes the next page of a processor. Its events wait for the end of the round.
    ///
    /// # Errors
    /// [`TraceError::Bad`] if the bytes are no page at all.
    pub fn page(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let Intake { names, skips, .. } = &mut *self.intake;
        self.decoder.page(bytes, names, skips, &mut self.round)
    }

    /// Ends a round and hands out the records that are complete.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if an event belongs before the last round.
    pub fn end_round(&mut self, out: &mut Vec<Record>) -> Result<(), TraceError> {
        // Stable, so that events of one processor at the same time keep their order.
        self.round.sort_by_key(|event| event.time_ns);
        let result = self.round.drain(..).try_for_each(|event| self.intake.event(event, 1));
        self.intake.drain(out);
        result
    }

    /// Hands out what was held back, and what is known now.
    ///
    /// # Errors
    /// [`TraceError::NoEvent`] if there was no request, and as [`RingReader::end_round`].
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<Outcome, TraceError> {
        self.end_round(out)?;
        let totals = self.intake.finish(out);
        let capabilities = event_capabilities(&totals, &self.intake);
        let lines = self.decoder.records();
        match event_outcome(lines, capabilities, totals, &mut self.intake) {
            (outcome, true) => Ok(outcome),
            (_, false) => Err(TraceError::NoEvent { format: "ftrace", lines }),
        }
    }

    /// The names that the records refer to.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.intake.names.symbols
    }
}
