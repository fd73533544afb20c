//! blktrace binary, versions 7 and 8, either byte order; one input per CPU.
//!
//! A record is a header of 48 bytes (version 8: 64) and a payload. Records of one input are
//! nearly sorted; the inputs are merged by time, one record after another.
//!
//! Version 7 has no flag for write-zeroes: they look like writes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use rustc_hash::FxBuildHasher;

use crate::blktrace_record::{Header, Order};
use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, EventKind, OTHER_EVENT, Target};
use crate::intake::Intake;
use crate::skips::SkipReason;

/// The most commands that are remembered by process number. Linux can have four times as many
/// processes, but no trace of a drive has a million.
const COMMANDS_MAX: usize = 1 << 20;

/// Consumed bytes at the start of a buffer after which it is compacted.
const COMPACT_BYTES: usize = 64 << 10;

/// Reads and merges the inputs.
#[derive(Debug)]
pub(crate) struct Blktrace {
    inputs: Vec<Input>,
    /// Inputs whose next record is complete, by its time.
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// Inputs that need bytes before merging can continue.
    lacking: BTreeSet<usize>,
    commands: HashMap<u32, Command, FxBuildHasher>,
    records: u64,
}

type Command = ([u8; 16], usize);

#[derive(Debug, Default)]
struct Input {
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
    records: u64,
    order: Option<Order>,
    next: Option<Header>,
}

impl Blktrace {
    pub fn new(inputs: usize) -> Self {
        Self {
            inputs: (0..inputs).map(|_| Input::default()).collect(),
            ready: BinaryHeap::new(),
            lacking: (0..inputs).collect(),
            commands: HashMap::default(),
            records: 0,
        }
    }

    /// The input whose bytes are needed next.
    pub fn wants(&self) -> Option<usize> {
        self.lacking.first().copied()
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// Whether write-zeroes are distinguished from writes.
    pub fn has_write_zeroes(&self) -> bool {
        self.inputs.iter().filter_map(|input| input.order).all(Order::is_new)
    }

    pub fn feed(
        &mut self,
        input: usize,
        bytes: &[u8],
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        let place = &mut self.inputs[input];
        assert!(!place.ended, "input {input} was fed after its end");
        place.buffer.extend_from_slice(bytes);
        if place.next.is_none() {
            self.load(input)?;
        }
        self.merge(intake)
    }

    pub fn end_of_input(&mut self, input: usize, intake: &mut Intake) -> Result<(), TraceError> {
        self.inputs[input].ended = true;
        if self.inputs[input].next.is_none() {
            self.load(input)?;
        }
        self.merge(intake)
    }

    /// Finds the next record of `input`, or records that it needs bytes.
    fn load(&mut self, input: usize) -> Result<(), TraceError> {
        let place = &mut self.inputs[input];
        place.next = place.whole_record(input)?;
        match place.next {
            Some(header) => {
                self.ready.push(Reverse((header.time_ns, input)));
                self.lacking.remove(&input);
            }
            None if place.ended => {
                self.lacking.remove(&input);
            }
            None => {
                self.lacking.insert(input);
            }
        }
        Ok(())
    }

    fn merge(&mut self, intake: &mut Intake) -> Result<(), TraceError> {
        while self.lacking.is_empty()
            && let Some(Reverse((_, input))) = self.ready.pop()
        {
            let place = &mut self.inputs[input];
            let header = place.next.take().expect("an input is ready by its next record");
            let from = place.start + header.len;
            let payload = place.start + header.len..from + header.payload_len;
            place.start = payload.end;
            place.records += 1;
            self.records += 1;
            let number = self.records;
            let payload = &self.inputs[input].buffer[payload];
            take(&header, payload, number, &mut self.commands, intake)?;
            self.load(input)?;
        }
        Ok(())
    }
}

impl Input {
    /// The header of the next record, if all of the record has arrived.
    fn whole_record(&mut self, input: usize) -> Result<Option<Header>, TraceError> {
        if self.start >= COMPACT_BYTES || self.start == self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let bytes = &self.buffer[self.start..];
        let bad = |what: String| {
            let line = self.records + 1;
            let what = format!("record {line} of input {} {what}", input + 1);
            Err(TraceError::Bad { line, what })
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        if let Some(mark) = bytes.first_chunk() {
            match (Order::of_mark(*mark), self.order) {
                (None, _) => {
                    return bad("does not begin with the mark of blktrace; the file is damaged, \
                                or not of blktrace version 7 or 8"
                        .to_owned());
                }
                (found, None) => self.order = found,
                (found, before) if found != before => {
                    return bad("is of another version or byte order than before".to_owned());
                }
                _ => {}
            }
        }
        let header = self.order.and_then(|order| Header::read(bytes, order));
        let whole = header.filter(|header| bytes.len() >= header.len + header.payload_len);
        if whole.is_none() && self.ended {
            return bad(format!(
                "is cut off after {} bytes; the trace was not closed, or not copied whole",
                bytes.len()
            ));
        }
        if let Some(header) = whole
            && i64::try_from(header.time_ns).is_err()
        {
            return bad(format!("has the time {} ns, which cannot be", header.time_ns));
        }
        Ok(whole)
    }
}

fn take(
    header: &Header,
    payload: &[u8],
    number: u64,
    commands: &mut HashMap<u32, Command, FxBuildHasher>,
    intake: &mut Intake,
) -> Result<(), TraceError> {
    if header.is_notice() {
        if header.names_process() {
            let name = payload.split(|&byte| byte == 0).next().unwrap_or_default();
            let len = name.len().min(16);
            let mut command = [0; 16];
            command[..len].copy_from_slice(&name[..len]);
            if commands.len() < COMMANDS_MAX || commands.contains_key(&header.pid) {
                commands.insert(header.pid, (command, len));
            }
        }
        return Ok(());
    }
    let (command, len) = commands.get(&header.pid).copied().unwrap_or_default();
    match what(header, payload, &command[..len], intake) {
        Ok(Some(what)) => {
            let time_ns = i64::try_from(header.time_ns).unwrap_or(i64::MAX);
            intake.event(Event { time_ns, line: number, kind: what }, 1)
        }
        Ok(None) => Ok(()),
        Err(reason) => {
            intake.skip(reason, number);
            Ok(())
        }
    }
}

/// What a record means; `None` for a known event that is not about requests.
fn what(
    header: &Header,
    payload: &[u8],
    comm: &[u8],
    intake: &mut Intake,
) -> Result<Option<EventKind>, SkipReason> {
    let payload = payload.get(header.cgroup_len()..).unwrap_or_default();
    let device = intake.names.device(header.device());
    let (rwbs, sectors) = header.rwbs();
    let target = Target::new(device, rwbs, header.sector, sectors).ok_or(BAD_EVENT)?;
    let pid = i32::try_from(header.pid).unwrap_or(-1);
    Ok(match header.action() {
        1 => Some(EventKind::Queue(target, intake.names.process(pid, comm))),
        6 => Some(EventKind::Requeue(target)),
        7 => Some(EventKind::Issue(target, intake.names.issuer(pid, comm))),
        8 => Some(EventKind::Complete(target)),
        13 => {
            let second = payload.first_chunk().ok_or(BAD_EVENT)?;
            Some(EventKind::Split(target, u64::from_be_bytes(*second)))
        }
        15 => {
            // The payload of a remap is big-endian on all machines.
            let from = payload.first_chunk().ok_or(BAD_EVENT)?;
            let sector = payload.get(8..).and_then(<[u8]>::first_chunk).ok_or(BAD_EVENT)?;
            let from =
                intake.names.device(crate::blktrace_record::device(u32::from_be_bytes(*from)));
            Some(EventKind::Remap(target, from, u64::from_be_bytes(*sector)))
        }
        2..=5 | 9..=12 | 14 | 16 | 17 => None,
        _ => return Err(OTHER_EVENT),
    })
}
