//! Where the parsers of event formats put their events: they come into order, and become
//! records.

use crate::error::TraceError;
use crate::event::Event;
use crate::names::Names;
use crate::options::CountFrom;
use crate::order::Orderer;
use crate::pair::{Pairing, Totals};
use crate::record::Record;
use crate::skips::{SkipReason, Skips};

/// How far an event may stand behind later ones. Tools that merge the buffers of several
/// processors read them alternately of a fraction of a second.
const DISORDER_NS: u64 = 1_000_000_000;

/// Takes events from a parser, puts them into order, and pairs them into records.
pub(crate) struct Intake {
    pub names: Names,
    pub skips: Skips,
    order: Orderer<Event>,
    pairing: Pairing,
    ready: Vec<Record>,
    /// Smallest step of the clock seen in the timestamps.
    clock_ns: u64,
    /// A write-zeroes was distinguished from a write.
    pub write_zeroes: bool,
}

impl Intake {
    pub fn new(count_from: CountFrom) -> Self {
        Self::with_disorder(count_from, DISORDER_NS)
    }

    /// Events may stand up to `disorder_ns` behind later ones.
    pub fn with_disorder(count_from: CountFrom, disorder_ns: u64) -> Self {
        Self {
            names: Names::new(),
            skips: Skips::default(),
            order: Orderer::new(disorder_ns),
            pairing: Pairing::new(count_from),
            ready: Vec::new(),
            clock_ns: 1_000_000_000,
            write_zeroes: false,
        }
    }

    /// Takes an event read at its line; `step_ns` is the step of its timestamp.
    #[inline]
    pub fn event(&mut self, event: Event, step_ns: u64) -> Result<(), TraceError> {
        self.clock_ns = self.clock_ns.min(step_ns);
        self.order.push(event, event.line)?;
        while let Some(event) = self.order.pop(false) {
            self.pairing.event(event, &mut self.skips, &mut self.ready);
        }
        Ok(())
    }

    pub fn skip(&mut self, reason: SkipReason, line: u64) {
        self.skips.add(reason, line);
    }

    /// Moves the records that are complete to `out`.
    pub fn drain(&mut self, out: &mut Vec<Record>) {
        out.append(&mut self.ready);
    }

    /// Moves all the rest to `out`.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Totals {
        while let Some(event) = self.order.pop(true) {
            self.pairing.event(event, &mut self.skips, &mut self.ready);
        }
        let totals = self.pairing.finish(&mut self.skips, &mut self.ready);
        self.drain(out);
        totals
    }

    pub fn count_from(&self) -> CountFrom {
        self.pairing.count_from()
    }

    pub fn clock_ns(&self) -> u64 {
        self.clock_ns
    }
}
