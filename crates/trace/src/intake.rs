//! Takes the events of the parsers of event formats, sorts them by time and pairs them into
//! records.

use crate::error::TraceError;
use crate::event::Event;
use crate::names::Names;
use crate::options::CountFrom;
use crate::order::Orderer;
use crate::pair::{Pairing, Totals};
use crate::record::Record;
use crate::skips::{SkipReason, Skips};

/// Takes events from a parser, sorts them by time, and pairs them into records.
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
    /// Events may come up to `disorder_ns` after later ones.
    pub fn new(count_from: CountFrom, disorder_ns: u64) -> Self {
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

    /// Takes an event; `step_ns` is the resolution of its timestamp.
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

    /// Moves all remaining records to `out`.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Totals {
        while let Some(event) = self.order.pop(true) {
            self.pairing.event(event, &mut self.skips, &mut self.ready);
        }
        let totals = self.pairing.finish(&mut self.skips, &mut self.ready);
        self.drain(out);
        totals
    }

    /// How many events were sorted in far from their place ([`Orderer::far`]).
    pub fn reordered(&self) -> u64 {
        self.order.far()
    }

    pub fn count_from(&self) -> CountFrom {
        self.pairing.count_from()
    }

    pub fn clock_ns(&self) -> u64 {
        self.clock_ns
    }
}
