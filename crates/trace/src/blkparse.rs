//! blkparse text: the default form (also of the kernel's `blk` tracer), or one described
//! by a `-f` string.
//!
//! ```text
//! 259,0    1        9     0.073520160   167  Q RAM 4104 + 8 [dd]
//!   7,0    1   844.348372327    22  C WSM 8719008 [0]
//! ```
//! The sequence number is missing in the tracer's form. A completion of no sectors is
//! printed without `+`. After the events comes a summary, which is counted and passed.

use crate::blkparse_format::FormatString;
use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, Intake, OTHER_EVENT, Target, UNREADABLE, What};
use crate::record::Op;
use crate::rwbs::Rwbs;
use crate::scan::Scan;
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// Lines of the summary at the end.
const SUMMARY: SkipReason = SkipReason("blkparse summary");

/// Reads lines of one form.
#[derive(Debug)]
pub(crate) struct Blkparse {
    format: Option<FormatString>,
    in_summary: bool,
}

/// The fields of a line that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields<'a> {
    pub device: Option<(u32, u32)>,
    pub time_ns: i64,
    pub step_ns: u64,
    pub pid: i32,
    pub comm: &'a [u8],
    pub action: &'a [u8],
    pub rwbs: &'a [u8],
    pub sector: u64,
    pub sectors: u64,
    /// Start of the second part of a split.
    pub second: Option<u64>,
    /// Where a remapped bio was before.
    pub from: Option<((u32, u32), u64)>,
}

impl Blkparse {
    /// A reader of the default form, or of `format`.
    pub fn new(format: Option<&str>) -> Result<Self, TraceError> {
        let format = format.map(FormatString::parse).transpose()?;
        Ok(Self { format, in_summary: false })
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
        let Some(fields) = fields else {
            self.no_event(line, number, intake);
            return Ok(());
        };
        match what(&fields, intake) {
            Ok(Some(what)) => {
                let event = Event { time_ns: fields.time_ns, line: number, what };
                intake.event(event, fields.step_ns)
            }
            Ok(None) => Ok(()),
            Err(reason) => {
                intake.skip(reason, number);
                Ok(())
            }
        }
    }

    /// Takes away what the form of the lines cannot tell.
    pub fn limit(&self, capabilities: &mut Capabilities) {
        if let Some(format) = &self.format {
            capabilities.process = format.prints(b'p') || format.prints(b'C');
        }
    }

    fn no_event(&mut self, line: &[u8], number: u64, intake: &mut Intake) {
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            return;
        }
        let per_cpu = text.strip_prefix(b"CPU").is_some_and(|rest| {
            rest.first().is_some_and(u8::is_ascii_digit) && rest.ends_with(b":")
        });
        self.in_summary |= per_cpu || text.starts_with(b"Total (");
        intake.skip(if self.in_summary { SUMMARY } else { UNREADABLE }, number);
    }
}

/// What a line means; `None` for what is understood but no request.
fn what(fields: &Fields<'_>, intake: &mut Intake) -> Result<Option<What>, SkipReason> {
    match fields.action {
        b"Q" | b"D" | b"C" | b"R" | b"A" | b"X" => {}
        b"G" | b"I" | b"M" | b"F" | b"S" | b"P" | b"U" | b"UT" | b"T" | b"B" | b"m" | b"ZP"
        | b"ZU" => return Ok(None),
        _ => return Err(OTHER_EVENT),
    }
    let device = fields.device.map_or(Symbol::NONE, |device| intake.names.device(device));
    let rwbs = Rwbs::parse(fields.rwbs).ok_or(BAD_EVENT)?;
    let target = Target::new(device, rwbs, fields.sector, fields.sectors).ok_or(BAD_EVENT)?;
    if target.op == Some(Op::WriteZeroes) {
        intake.write_zeroes = true;
    }
    Ok(match fields.action {
        b"Q" => Some(What::Queue(target, intake.names.who(fields.pid, fields.comm))),
        b"D" => Some(What::Issue(target, intake.names.issuer(fields.pid, fields.comm))),
        b"C" => Some(What::Complete(target)),
        b"R" => Some(What::Requeue(target)),
        // A `-f` string has no letter for the place before, so the moves stay unknown.
        b"A" => {
            fields.from.map(|(from, sector)| What::Remap(target, intake.names.device(from), sector))
        }
        // The operation of a bio to be split needs a length, which is not printed.
        _ => fields.second.and_then(|second| {
            let first = second.checked_sub(fields.sector)?;
            Some(What::Split(Target::new(device, rwbs, fields.sector, first)?, second))
        }),
    })
}

/// The fields of a line in the default form.
pub(crate) fn fields(line: &[u8]) -> Option<Fields<'_>> {
    let mut scan = Scan::new(line);
    let device = Some(scan.device()?);
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
    let (action, rwbs) = (scan.word()?, scan.word()?);
    let mut fields = Fields { device, time_ns, step_ns, pid, action, rwbs, ..Fields::default() };
    if let Some(number) = scan.spaced_number() {
        scan.spaces();
        if scan.eat(b'+').is_some() {
            fields.sector = number;
            fields.sectors = scan.spaced_number()?;
        } else if scan.eat(b'/').is_some() {
            fields.sector = number;
            fields.second = Some(scan.spaced_number()?);
        } else if action == b"C" {
            fields.sector = number;
        }
    }
    if action == b"A" {
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
