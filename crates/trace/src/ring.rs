//! Reads the kernel's binary trace buffer: pages of `per_cpu/cpuN/trace_pipe_raw`, whose layout
//! is described by files in the `events` directory of the tracing file system.
//!
//! The events are the same as in ftrace's text, but with nanoseconds instead of microseconds,
//! with a count of lost events, and an order of magnitude cheaper to record.
//!
//! ```text
//! page     time u64 | commit: bytes used, flags of loss | records ... | count of loss
//! record   type 5 bits, time since the one before 27 bits | length, if it is long | fields
//! ```
//! Numbers are little-endian. The offsets of fields in a record differ between kernels and are
//! never assumed: they come from the descriptions.
//!
//! Source: Linux `kernel/trace/ring_buffer.c`, `Documentation/trace/ring-buffer-map.rst`.

mod format;
mod page;
#[cfg(test)]
mod tests;

use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, EventKind, LOST, OTHER_EVENT};
use crate::names::Names;
use crate::skips::{SkipReason, Skips};
use crate::tracepoint::{self, Facts, Kind, Name};
use format::{EventFormat, Field};
use page::{Damaged, Layout};

/// A page of which a part cannot be split into records.
const BAD_PAGE: SkipReason = SkipReason("page of the trace buffer damaged from here on");

/// Splits pages of the trace buffer into events.
#[derive(Debug)]
pub(crate) struct RingDecoder {
    layout: Layout,
    /// The described events, by identifier.
    plans: Vec<(u16, Plan)>,
    kind: Field,
    records: u64,
}

/// How records of one identifier are read.
#[derive(Debug)]
enum Plan {
    Block(Block),
    Mark(Field),
    Passed,
}

/// The positions of the fields of a block event.
#[derive(Debug)]
struct Block {
    kind: Kind,
    pid: Field,
    device: Field,
    rwbs: Field,
    sector: Field,
    /// Sectors; of a split the sector where the second part begins.
    extent: Field,
    /// Device and sector before a remap.
    from: Option<(Field, Field)>,
    comm: Option<Field>,
}

impl RingDecoder {
    /// A decoder of pages as `header_page` describes them (the text of `events/header_page`),
    /// with records as `formats` do: the name of each event, for messages, and the text of its
    /// `format` file. Events that are not among them are skipped and counted.
    ///
    /// # Errors
    /// [`TraceError::EventFormat`] if a text does not have the kernel's format, lacks a field,
    /// or none describes a block event.
    pub fn new(header_page: &str, formats: &[(&str, &str)]) -> Result<Self, TraceError> {
        let layout = Layout::parse(header_page)?;
        let mut plans: Vec<(u16, Plan)> = Vec::new();
        let mut kind = None;
        for (name, text) in formats {
            let format = EventFormat::parse(name, text)?;
            kind = Some(format.number("common_type")?);
            let plan = match Name::of(format.event.as_bytes()) {
                Name::Block(kind) => Plan::Block(Block::new(kind, &format)?),
                Name::Mark => Plan::Mark(format.text("buf")?),
                Name::Passed => Plan::Passed,
                Name::Other | Name::Command | Name::CommandDone => continue,
            };
            if plans.iter().any(|(id, _)| *id == format.id) {
                return Err(format.bad(format!("the identifier {} was there before", format.id)));
            }
            plans.push((format.id, plan));
        }
        let has_block = plans.iter().any(|(_, plan)| matches!(plan, Plan::Block(_)));
        match kind {
            Some(kind) if has_block => Ok(Self { layout, plans, kind, records: 0 }),
            _ => Err(TraceError::EventFormat {
                name: "events/block".to_owned(),
                what: "no format of a block event was given".to_owned(),
            }),
        }
    }

    /// Bytes of a page: the most that one read of `trace_pipe_raw` returns.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.layout.page_bytes()
    }

    /// Records of all pages so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Reads one page and appends its events to `events`; they are in the order of their times.
    /// A page may be shorter than [`RingDecoder::page_bytes`] if the rest is unused. Damage
    /// ends the page and is counted.
    ///
    /// # Errors
    /// [`TraceError::Bad`] if the bytes are not a page.
    pub(crate) fn page(
        &mut self,
        bytes: &[u8],
        names: &mut Names,
        skips: &mut Skips,
        events: &mut Vec<Event>,
    ) -> Result<(), TraceError> {
        let page = self.layout.page(bytes).ok_or_else(|| TraceError::Bad {
            line: self.records + 1,
            what: format!(
                "{} bytes are no page of the trace buffer, which has {}",
                bytes.len(),
                self.page_bytes()
            ),
        })?;
        if let Some(lost) = page.lost {
            skips.add_many(LOST, lost, self.records + 1);
        }
        for record in page.records() {
            self.records += 1;
            let line = self.records;
            match record {
                Err(Damaged) => skips.add(BAD_PAGE, line),
                Ok((time_ns, fields)) => match self.what(fields, names) {
                    Ok(Some(what)) => events.push(Event { time_ns, line, kind: what }),
                    Ok(None) => {}
                    Err(reason) => skips.add(reason, line),
                },
            }
        }
        Ok(())
    }

    /// What a record means; `None` for a known event that is not about requests.
    fn what(&self, fields: &[u8], names: &mut Names) -> Result<Option<EventKind>, SkipReason> {
        let id = self.kind.number(fields).ok_or(BAD_EVENT)?;
        let plan = self.plans.iter().find(|(of, _)| u64::from(*of) == id);
        match plan.map(|(_, plan)| plan).ok_or(OTHER_EVENT)? {
            Plan::Block(block) => block.what(fields, names).map(Some).ok_or(BAD_EVENT),
            Plan::Mark(text) => {
                let text = text.bytes(fields).ok_or(BAD_EVENT)?;
                // A mark of several lines is one line and others that are not events.
                let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
                Ok(tracepoint::mark(line, names))
            }
            Plan::Passed => Ok(None),
        }
    }
}

impl Block {
    fn new(kind: Kind, format: &EventFormat) -> Result<Self, TraceError> {
        let extent = if kind == Kind::Split { "new_sector" } else { "nr_sector" };
        let from = match kind {
            Kind::Remap => Some((format.number("old_dev")?, format.number("old_sector")?)),
            _ => None,
        };
        let comm = match kind {
            Kind::Queue | Kind::Start | Kind::Issue => Some(format.text("comm")?),
            _ => None,
        };
        Ok(Self {
            kind,
            pid: format.number("common_pid")?,
            device: format.number("dev")?,
            rwbs: format.text("rwbs")?,
            sector: format.number("sector")?,
            extent: format.number(extent)?,
            from,
            comm,
        })
    }

    fn what(&self, fields: &[u8], names: &mut Names) -> Option<EventKind> {
        let from = match self.from {
            Some((dev, sector)) => (device(dev.number(fields)?), sector.number(fields)?),
            None => Default::default(),
        };
        let facts = Facts {
            pid: i32::try_from(self.pid.number(fields)?).ok()?,
            comm: self.comm.map_or(Some(&[][..]), |comm| comm.bytes(fields))?,
            device: device(self.device.number(fields)?),
            rwbs: self.rwbs.bytes(fields)?,
            sector: self.sector.number(fields)?,
            extent: self.extent.number(fields)?,
            from,
        };
        tracepoint::what(self.kind, &facts, names)
    }
}

/// The numbers of a device: 12 bits of the major one above 20 bits of the minor one.
fn device(number: u64) -> (u32, u32) {
    ((number >> 20) as u32, (number & 0xf_ffff) as u32)
}
