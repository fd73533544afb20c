//! A trace of a running capture: turns the events of the kernel into records as they happen.
//!
//! The events are sorted and paired like those of event formats. So a live capture and a file
//! of the same events give the same records.
//!
//! Each CPU may have its own buffer, and only the times show the order of events. So the
//! buffers are read in rounds: in each round every buffer is read until it is empty, one after
//! the other, and the events are sorted at the end of the round. Events that are recorded
//! during a round belong to this round or the next one. So the events of a round may be earlier
//! than the last events of the round before, by ten seconds at most.

mod bpf;
mod file_names;

use crate::blkparse::Blkparse;
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::{Event, EventKind, LOST};
use crate::intake::Intake;
use crate::lines::Lines;
use crate::options::CountFrom;
use crate::read_report::{ReadReport, event_capabilities, of_events};
use crate::record::Record;
use crate::ring::RingDecoder;
use crate::symbols::Symbols;

/// By how much an event may come after later ones: as long as the thread that reads the buffers
/// may be delayed on a busy machine. The number of events that are held meanwhile is limited.
const DISORDER_NS: u64 = 10_000_000_000;

/// Takes events of a running kernel and gives records.
pub struct Live {
    intake: Box<Intake>,
    decoder: Decoder,
    /// Events taken.
    events: u64,
    lost: u64,
}

/// The source of the events, which determines their encoding.
enum Decoder {
    Bpf(bpf::Decoder),
    /// Pages of the trace buffer, and the events of this round.
    Ring(RingDecoder, Vec<Event>),
    /// Lines of the `blk` tracer.
    Text(Lines, Blkparse),
}

impl Live {
    /// Takes the events of Prism's own BPF programs; `count_from` is the event that is counted
    /// as the request.
    #[must_use]
    pub fn bpf(count_from: CountFrom) -> Self {
        Self::new(count_from, Decoder::Bpf(bpf::Decoder::default()))
    }

    /// Takes pages of the kernel's trace buffer. `header_page` (the text of
    /// `events/header_page`) describes their layout, and `formats` that of their records: the
    /// name of each event, for messages, and the text of its `format` file.
    ///
    /// # Errors
    /// [`TraceError::EventFormat`] if a text does not have the kernel's format, lacks a field,
    /// or none describes a block event.
    pub fn ring(
        header_page: &str,
        formats: &[(&str, &str)],
        count_from: CountFrom,
    ) -> Result<Self, TraceError> {
        let decoder = RingDecoder::new(header_page, formats)?;
        Ok(Self::new(count_from, Decoder::Ring(decoder, Vec::new())))
    }

    /// Takes the text of the `blk` tracer, in any pieces.
    #[must_use]
    pub fn blk_tracer(count_from: CountFrom) -> Self {
        let parser = Blkparse::new(None).expect("without a format string there is no bad one");
        Self::new(count_from, Decoder::Text(Lines::default(), parser))
    }

    fn new(count_from: CountFrom, decoder: Decoder) -> Self {
        Self { intake: Box::new(Intake::new(count_from, DISORDER_NS)), decoder, events: 0, lost: 0 }
    }

    /// The name of the source, as reports print it.
    #[must_use]
    pub fn format(&self) -> &'static str {
        match self.decoder {
            Decoder::Bpf(_) => "capture-bpf",
            Decoder::Ring(..) => "capture-ftrace",
            Decoder::Text(..) => "capture-blk",
        }
    }

    /// Takes the next piece from the kernel: one event of a BPF program, a page of the trace
    /// buffer, of which an unused end may be missing, or a piece of text.
    ///
    /// # Errors
    /// [`TraceError::Bad`] if the bytes are no page at all,
    /// [`TraceError::TimeRunsBackwards`] if an event comes ten seconds late.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        match &mut self.decoder {
            Decoder::Bpf(decoder) => {
                self.events += 1;
                decoder.event(bytes, self.events, &mut self.intake)
            }
            Decoder::Ring(decoder, round) => {
                let Intake { names, skips, .. } = &mut *self.intake;
                decoder.page(bytes, names, skips, round)?;
                self.events = decoder.records();
                Ok(())
            }
            Decoder::Text(lines, parser) => {
                let intake = &mut self.intake;
                lines.feed(bytes, |line, number| match line {
                    Ok(line) => parser.line(line, number, intake),
                    Err(reason) => {
                        intake.skip(reason, number);
                        Ok(())
                    }
                })?;
                self.events = lines.count();
                Ok(())
            }
        }
    }

    /// Ends a round and moves the records that are complete to `out`.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if an event belongs before the last round.
    pub fn end_round(&mut self, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let mut result = Ok(());
        if let Decoder::Ring(_, round) = &mut self.decoder {
            // Stable, so that events of one CPU at the same time keep their order.
            round.sort_by_key(|event| event.time_ns);
            result = round.drain(..).try_for_each(|event| self.intake.event(event, 1));
        }
        self.intake.drain(out);
        result
    }

    /// A phase of the experiment begins at `time_ns` of the events' clock.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if that was more than ten seconds ago.
    pub fn mark(&mut self, name: &str, time_ns: u64) -> Result<(), TraceError> {
        let what = EventKind::Phase(self.intake.names.symbols.intern(name));
        let event = Event { time_ns: time_ns as i64, line: self.events.max(1), kind: what };
        self.intake.event(event, 1)
    }

    /// The kernel reports that it lost `count` events in total, including losses that the
    /// events themselves reported.
    pub fn lost(&mut self, count: u64) {
        let skips = &mut self.intake.skips;
        let known: u64 =
            skips.rows().iter().filter(|row| row.reason == LOST).map(|row| row.count).sum();
        if count > known {
            skips.add_many(LOST, count - known, self.events.max(1));
        }
        self.lost = count.max(known);
    }

    /// Lost events, as reported to [`Live::lost`].
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.lost
    }

    /// Moves the remaining records to `out` and returns a report.
    ///
    /// # Errors
    /// As [`Live::end_round`].
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<ReadReport, TraceError> {
        self.end_round(out)?;
        let totals = self.intake.finish(out);
        let is_bpf = matches!(self.decoder, Decoder::Bpf(_));
        let seen = event_capabilities(&totals, &self.intake);
        // Without an event the clock is unknown.
        let clock_ns = if self.events == 0 { 1 } else { seen.clock_ns };
        let capabilities = Capabilities { file: is_bpf, stream: is_bpf, clock_ns, ..seen };
        Ok(of_events(self.events, capabilities, totals, &mut self.intake).0)
    }

    /// The names that the records refer to.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.intake.names.symbols
    }
}
