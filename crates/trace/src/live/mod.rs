//! A trace that is still being made: events of a running kernel go in as they happen,
//! records come out.
//!
//! The events go the way of those of event formats: into order, then paired. So a live
//! capture and a file of the same events give the same records.

mod bpf;
mod file_names;

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::{Event, Intake, LOST, What};
use crate::reader::{CountFrom, Outcome, event_capabilities, event_outcome};
use crate::record::Record;
use crate::symbols::Symbols;

/// Takes events of a running kernel and gives records.
pub struct Live {
    intake: Intake,
    decoder: Decoder,
    /// Events taken.
    events: u64,
    lost: u64,
}

/// Who made the events, and thereby their form.
enum Decoder {
    Bpf(bpf::Decoder),
}

impl Live {
    /// Takes what Prism's own BPF programs say; `count_from` is the event that counts as
    /// the request.
    #[must_use]
    pub fn bpf(count_from: CountFrom) -> Self {
        Self::new(count_from, Decoder::Bpf(bpf::Decoder::default()))
    }

    fn new(count_from: CountFrom, decoder: Decoder) -> Self {
        Self { intake: Intake::new(count_from), decoder, events: 0, lost: 0 }
    }

    /// The name of the source, as reports print it.
    #[must_use]
    pub fn format(&self) -> &'static str {
        match self.decoder {
            Decoder::Bpf(_) => "capture-bpf",
        }
    }

    /// Takes the next piece of what the kernel hands out: one event of a BPF program.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if it comes a second late.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.events += 1;
        match &mut self.decoder {
            Decoder::Bpf(decoder) => decoder.event(bytes, self.events, &mut self.intake),
        }
    }

    /// A phase of the experiment begins at `time_ns` of the events' clock.
    ///
    /// # Errors
    /// [`TraceError::TimeRunsBackwards`] if that was more than a second ago.
    pub fn mark(&mut self, name: &str, time_ns: u64) -> Result<(), TraceError> {
        let what = What::Phase(self.intake.names.symbols.intern(name));
        let event = Event { time_ns: time_ns as i64, line: self.events.max(1), what };
        self.intake.event(event, 1)
    }

    /// The kernel had no room for `count` events.
    pub fn lost(&mut self, count: u64) {
        self.lost += count;
        if count > 0 {
            self.intake.skips.add_many(LOST, count, self.events.max(1));
        }
    }

    /// Events for which the kernel had no room.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.lost
    }

    /// Moves the records that are complete to `out`.
    pub fn drain(&mut self, out: &mut Vec<Record>) {
        self.intake.drain(out);
    }

    /// Moves the rest to `out` and says what is known now.
    #[must_use]
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Outcome {
        let totals = self.intake.finish(out);
        let capabilities = Capabilities {
            file: matches!(self.decoder, Decoder::Bpf(_)),
            stream: matches!(self.decoder, Decoder::Bpf(_)),
            ..event_capabilities(&totals, &self.intake)
        };
        event_outcome(self.events, capabilities, totals, &mut self.intake).0
    }

    /// The names that the records refer to.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.intake.names.symbols
    }
}
