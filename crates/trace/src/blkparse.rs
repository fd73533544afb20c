//! blkparse text: in the default form, in a form described by a `-f` string, or in one of those
//! of the kernel's `blk` tracer.
//!
//! ```text
//! 259,0    1        9     0.073520160   167  Q RAM 4104 + 8 [dd]
//!   7,0    1   844.348372327    22  C WSM 8719008 [0]
//!      ksoftirqd/1-22      [001] d.s1. 45556.181166:   7,0    C  WS 0 + 32 [0]
//!         python3-18717   [000] d..1. 45626.892734:   7,0   /a  Q  WS 0 + 32 [python3]
//! ```
//! With `blk_classic` the tracer prints no sequence number. Without that option it prints
//! ftrace's columns first, with times in microseconds, and after the device the control group
//! if `blk_cgroup` was on. Marks have the same form as elsewhere. A completion of no sectors is
//! printed without `+`. The output of blkparse ends with a summary, whose lines are skipped and
//! counted.

use crate::blkparse_format::{Fields, FormatString};
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, EventKind, OTHER_EVENT, Target};
use crate::ftrace::{self, Context};
use crate::intake::Intake;
use crate::record::Op;
use crate::rwbs::Rwbs;
use crate::scan::Scan;
use crate::skips::SkipReason;
use crate::symbols::Symbol;
use crate::tracepoint::{self, Head, Name};

/// The clock resolution of a mark without a time: not finer than that of any other line.
const TIMELESS_STEP_NS: u64 = 1_000_000_000;

/// Lines of the summary at the end.
const SUMMARY: SkipReason = SkipReason("blkparse summary");

/// Reads lines of one form.
#[derive(Debug)]
pub(crate) struct Blkparse {
    format: Option<FormatString>,
    in_summary: bool,
    /// The time of the last event, if there was one.
    last_ns: Option<i64>,
    /// A mark without a time before the first event.
    first_phase: Option<EventKind>,
}

/// The error for lines of the tracer that were printed without their time column.
const TIMELESS: &str = "this line of the blk tracer has no time, so nothing can be replayed; \
                        record with `echo 1 > options/context-info`, or with blk_classic";

impl Blkparse {
    /// A reader of the default form, or of `format`.
    pub fn new(format: Option<&str>) -> Result<Self, TraceError> {
        let format = format.map(FormatString::parse).transpose()?;
        Ok(Self { format, in_summary: false, last_ns: None, first_phase: None })
    }

    /// Takes one line.
    pub fn line(
        &mut self,
        line: &[u8],
        number: u64,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        let fields = match &self.format {
            Some(format) => format.fields(line),
            None => fields(line),
        };
        let Some(fields) = fields else { return self.no_event(line, number, intake) };
        self.last_ns = Some(fields.time_ns);
        if let Some(what) = self.first_phase.take() {
            intake.event(
                Event { time_ns: fields.time_ns, line: number, kind: what },
                TIMELESS_STEP_NS,
            )?;
        }
        match what(&fields, intake) {
            Ok(Some(what)) => {
                let event = Event { time_ns: fields.time_ns, line: number, kind: what };
                intake.event(event, fields.step_ns)
            }
            Ok(None) => Ok(()),
            Err(reason) => {
                intake.skip(reason, number);
                Ok(())
            }
        }
    }

    /// Clears the capabilities that the form of the lines cannot have.
    pub fn limit(&self, capabilities: &mut Capabilities) {
        if let Some(format) = &self.format {
            capabilities.process = format.prints(b'p') || format.prints(b'C');
        }
    }

    fn no_event(
        &mut self,
        line: &[u8],
        number: u64,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        if self.format.is_none() {
            if let Some(head) = ftrace::head(line) {
                return mark(&head, number, intake);
            }
            if let Some(text) = line.strip_prefix(b"tracing_mark_write: ") {
                return self.timeless_mark(text, number, intake);
            }
            // One such line in a trace with times is damaged; as the first line it shows that
            // no line has a time.
            if self.last_ns.is_none() && is_timeless(line) {
                return Err(TraceError::Bad { line: number, what: TIMELESS.to_owned() });
            }
        }
        let text = line.trim_ascii();
        let per_cpu = text.strip_prefix(b"CPU").is_some_and(|rest| {
            rest.first().is_some_and(u8::is_ascii_digit) && rest.ends_with(b":")
        });
        self.in_summary |= per_cpu || text.starts_with(b"Total (");
        if self.in_summary && !text.is_empty() {
            intake.skip(SUMMARY, number);
        } else {
            ftrace::no_event(line, number, intake);
        }
        Ok(())
    }

    /// With `blk_classic` the kernel prints marks without their time. It lies between those of
    /// the events around the mark; that of the event before it is used.
    fn timeless_mark(
        &mut self,
        text: &[u8],
        line: u64,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        let Some(what) = tracepoint::mark(text, &mut intake.names) else { return Ok(()) };
        match self.last_ns {
            Some(time_ns) => intake.event(Event { time_ns, line, kind: what }, TIMELESS_STEP_NS),
            None => {
                self.first_phase = Some(what);
                Ok(())
            }
        }
    }
}

/// Takes a mark between the lines of the tracer. Block events of ftrace are skipped, because
/// they would repeat those of the tracer.
fn mark(head: &Head<'_>, line: u64, intake: &mut Intake) -> Result<(), TraceError> {
    match Name::of(head.name) {
        Name::Mark => tracepoint::take(head, line, intake),
        _ => {
            intake.skip(OTHER_EVENT, line);
            Ok(())
        }
    }
}

/// What a line means; `None` for a known event that is not about requests.
fn what(fields: &Fields<'_>, intake: &mut Intake) -> Result<Option<EventKind>, SkipReason> {
    if !is_of_request(fields.action).ok_or(OTHER_EVENT)? {
        return Ok(None);
    }
    let device = fields.device.map_or(Symbol::NONE, |device| intake.names.device(device));
    let rwbs = Rwbs::parse(fields.rwbs).ok_or(BAD_EVENT)?;
    let target = Target::new(device, rwbs, fields.sector, fields.sectors).ok_or(BAD_EVENT)?;
    if target.op == Some(Op::WriteZeroes) {
        intake.write_zeroes = true;
    }
    Ok(match fields.action {
        b"Q" => Some(EventKind::Queue(target, intake.names.process(fields.pid, fields.comm))),
        b"D" => Some(EventKind::Issue(target, intake.names.issuer(fields.pid, fields.comm))),
        b"C" => Some(EventKind::Complete(target)),
        b"R" => Some(EventKind::Requeue(target)),
        // A `-f` string has no letter for the place before a remap, so remaps stay unknown.
        b"A" => fields
            .from
            .map(|(from, sector)| EventKind::Remap(target, intake.names.device(from), sector)),
        // The operation of a bio that is split depends on its length, which is not printed.
        _ => fields.second.and_then(|second| {
            let first = second.checked_sub(fields.sector)?;
            Some(EventKind::Split(Target::new(device, rwbs, fields.sector, first)?, second))
        }),
    })
}

/// Whether an action is about a request; `None` if the action is not known.
fn is_of_request(action: &[u8]) -> Option<bool> {
    match action {
        b"Q" | b"D" | b"C" | b"R" | b"A" | b"X" => Some(true),
        b"G" | b"I" | b"M" | b"F" | b"S" | b"P" | b"U" | b"UT" | b"T" | b"B" | b"m" | b"ZP"
        | b"ZU" => Some(false),
        _ => None,
    }
}

/// The fields of a line in the default form, or of the tracer.
#[inline]
pub(crate) fn fields(line: &[u8]) -> Option<Fields<'_>> {
    let mut scan = Scan::new(line);
    let Some(device) = scan.device() else { return tracer_fields(line) };
    scan.spaced_number()?;
    let after_processor = scan;
    let (time_ns, step_ns) = match scan.seconds() {
        Some(time) => time,
        None => {
            scan = after_processor;
            scan.spaced_number()?;
            scan.seconds()?
        }
    };
    let pid = i32::try_from(scan.spaced_number()?).ok()?;
    let action = scan.word()?;
    let device = Some(device);
    action_fields(scan, Fields { device, time_ns, step_ns, pid, action, ..Fields::default() })
}

/// The fields of a line of the tracer after ftrace's columns.
fn tracer_fields(line: &[u8]) -> Option<Fields<'_>> {
    let Context { pid, time_ns, step_ns, rest, .. } = ftrace::context(line)?;
    let mut scan = Scan::new(rest);
    let device = Some(scan.device()?);
    let mut action = scan.word()?;
    if action.starts_with(b"/") || action.contains(&b',') {
        action = scan.word()?;
    }
    action_fields(scan, Fields { device, time_ns, step_ns, pid, action, ..Fields::default() })
}

/// Whether a line is one of the tracer that should have ftrace's columns but does not.
pub(crate) fn is_timeless(line: &[u8]) -> bool {
    let mut scan = Scan::new(line);
    let mut word = || {
        scan.device()?;
        let word = scan.word()?;
        if word.starts_with(b"/") || word.contains(&b',') { scan.word() } else { Some(word) }
    };
    let action = word().and_then(is_of_request);
    action.is_some() && scan.word().and_then(Rwbs::parse).is_some()
}

/// The fields from the letters of the operation on.
#[inline]
fn action_fields<'a>(mut scan: Scan<'a>, mut fields: Fields<'a>) -> Option<Fields<'a>> {
    fields.rwbs = scan.word()?;
    if let Some(number) = scan.spaced_number() {
        scan.spaces();
        if scan.eat(b'+').is_some() {
            fields.sector = number;
            fields.sectors = scan.spaced_number()?;
        } else if scan.eat(b'/').is_some() {
            fields.sector = number;
            fields.second = Some(scan.spaced_number()?);
        } else if fields.action == b"C" {
            fields.sector = number;
        }
    }
    if fields.action == b"A" {
        scan.word_is(b"<-")?;
        scan.word_is(b"(")?;
        let from = scan.device()?;
        scan.eat(b')')?;
        fields.from = Some((from, scan.spaced_number()?));
    }
    if let Some(start) = scan.rest.iter().position(|&byte| byte == b'[')
        && let Some(end) = scan.rest.iter().rposition(|&byte| byte == b']')
    {
        fields.comm = scan.rest.get(start + 1..end)?;
    }
    Some(fields)
}
