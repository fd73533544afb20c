//! What a drive has acknowledged and what it has promised to keep, to be compared with what is
//! found after a loss of power.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use prism_base::{Nanos, SimTime};
use prism_ssd::spec::WriteCache;
use prism_ssd::{Completion, Drive, HostOp, NandError, Request, Status};

use super::Log;

/// A content of a mapping unit. A content is a version, or `None` if the unit is unmapped.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// This one.
    Is(Option<u64>),
    /// That of a request which was in flight together with others: a version after this one, or
    /// unmapped if one of them was a trim.
    After(Option<u64>, bool),
}

impl Content {
    fn is(self, found: Option<u64>) -> bool {
        match self {
            Self::Is(content) => found == content,
            Self::After(version, has_trim) => {
                if found.is_none() {
                    has_trim
                } else {
                    found > version
                }
            }
        }
    }
}

/// The contents of a mapping unit that may be found after a loss of power.
#[derive(Clone, Debug)]
struct Unit {
    /// In the order of acknowledgement, each with its time; the first one is promised.
    contents: VecDeque<(Content, SimTime)>,
    /// Contents before the first one.
    dropped: usize,
    in_flight: u32,
    /// Since the last time without requests in flight: requests, and whether one of them was a trim
    /// and one a write.
    together: u32,
    has_trim: bool,
    has_write: bool,
}

impl Unit {
    fn new(content: Option<u64>, now: SimTime) -> Self {
        let contents = VecDeque::from([(Content::Is(content), now)]);
        let (in_flight, together) = (0, 0);
        Self { contents, dropped: 0, in_flight, together, has_trim: false, has_write: false }
    }

    fn begin(&mut self, trims: bool) {
        self.in_flight += 1;
        self.together += 1;
        self.has_trim |= trims;
        self.has_write |= !trims;
    }

    /// The version of the newest content that has one.
    fn newest_version(&self) -> Option<u64> {
        let version = |content: &(Content, SimTime)| match content.0 {
            Content::Is(version) | Content::After(version, _) => version,
        };
        self.contents.iter().filter_map(version).max()
    }

    /// Whether `found` may be of a request that was in flight when power failed, or of one that was
    /// in flight together with it.
    fn is_of_request_in_flight(&self, found: Option<u64>) -> bool {
        self.in_flight > 0
            && if found.is_none() {
                self.has_trim
            } else {
                self.has_write && found > self.newest_version()
            }
    }

    /// Adds the content after the last request in flight has completed.
    fn settle(&mut self, content: Option<u64>, now: SimTime) {
        if self.together > 1 {
            let other = Content::After(self.newest_version(), self.has_trim);
            self.contents.push_back((other, now));
        }
        self.contents.push_back((Content::Is(content), now));
        (self.together, self.has_trim, self.has_write) = (0, false, false);
    }

    /// The number of the newest content.
    fn newest(&self) -> usize {
        self.dropped + self.contents.len() - 1
    }

    /// The content with this number is durable from now on.
    fn promise(&mut self, number: usize) {
        while self.dropped < number && self.contents.len() > 1 {
            self.contents.pop_front();
            self.dropped += 1;
        }
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
struct Submitted {
    request: Request,
    /// Of a flush: the acknowledgements before its submission, which it makes durable.
    covered: u64,
}

/// The contents of all mapping units that jobs have written or trimmed, for drives without zones.
///
/// A unit that several requests in flight change counts as acknowledged when the last of them has
/// completed, since only then its content is certain.
#[derive(Debug)]
pub struct Acknowledged {
    units: BTreeMap<u32, Unit>,
    in_flight: HashMap<u64, Submitted>,
    /// Acknowledgements that no flush has made durable: their number, unit and content.
    pending: VecDeque<(u64, u32, usize)>,
    acknowledgements: u64,
    completed: u64,
    now: SimTime,
}

/// What is found after a loss of power.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterCut {
    /// When power failed.
    pub at: SimTime,
    /// Requests completed before.
    pub completed: u64,
    /// Requests in flight then.
    pub in_flight: u64,
    /// Mapping units with acknowledged writes or trims.
    pub units: u64,
    /// Of these, units whose newest content had to be durable: flushed, written with FUA, or
    /// acknowledged by a drive with power-loss protection or without a volatile cache.
    pub promised: u64,
    /// Units that have their newest acknowledged content, or that of a request in flight.
    pub kept: u64,
    /// Units that have an older content, which no promise forbids.
    pub lost: u64,
    /// The longest time between an acknowledgement that was lost and the loss of power.
    pub lost_for: Option<Nanos>,
    /// Units that have none of the contents that the drive may have: broken promises.
    pub broken: Vec<u32>,
}

impl Acknowledged {
    pub(super) fn new() -> Self {
        Self {
            units: BTreeMap::new(),
            in_flight: HashMap::new(),
            pending: VecDeque::new(),
            acknowledgements: 0,
            completed: 0,
            now: SimTime::ZERO,
        }
    }

    /// The units that `request` changes, each with whether it unmaps the unit.
    fn effects(drive: &Drive, request: &Request) -> impl Iterator<Item = (u32, bool)> + use<> {
        let device = drive.device();
        let unit = device.ftl.mapping_unit.0;
        let (op, start, end) = (request.op, request.offset, request.offset + request.len);
        let (unmaps, discards) = (device.unmaps(), device.drive.discards);
        let touched = match op {
            HostOp::Write | HostOp::WriteZeroes | HostOp::Discard => {
                start / unit..end.div_ceil(unit)
            }
            _ => 0..0,
        };
        touched.filter_map(move |lpn| {
            let whole = start <= lpn * unit && (lpn + 1) * unit <= end;
            let trims = match op {
                HostOp::Write => false,
                HostOp::WriteZeroes => whole && unmaps,
                _ if whole && discards => true,
                _ => return None,
            };
            Some((lpn as u32, trims))
        })
    }

    /// Makes the first `covered` acknowledgements durable.
    fn make_durable(&mut self, covered: u64) {
        while let Some(&(_, lpn, number)) = self.pending.front().filter(|first| first.0 <= covered)
        {
            self.units.get_mut(&lpn).expect("it was acknowledged").promise(number);
            self.pending.pop_front();
        }
    }

    /// Compares what was acknowledged with the content of `recovered`, the drive after the loss of
    /// power.
    ///
    /// # Errors
    /// [`NandError`] if a unit cannot be read.
    ///
    /// # Panics
    /// If the flash of the drive keeps no content.
    pub fn compare(&self, recovered: &Drive) -> Result<AfterCut, NandError> {
        let mut after = AfterCut {
            at: self.now,
            completed: self.completed,
            in_flight: self.in_flight.len() as u64,
            units: 0,
            promised: 0,
            kept: 0,
            lost: 0,
            lost_for: None,
            broken: Vec::new(),
        };
        for (&lpn, unit) in &self.units {
            let found = recovered.version_of(lpn)?;
            let place = unit.contents.iter().rposition(|(content, _)| content.is(found));
            let is_acknowledged = unit.newest() > 0;
            after.units += u64::from(is_acknowledged);
            after.promised += u64::from(is_acknowledged && unit.contents.len() == 1);
            match place {
                _ if unit.is_of_request_in_flight(found) => {
                    after.kept += u64::from(is_acknowledged)
                }
                Some(place) if place + 1 == unit.contents.len() => {
                    after.kept += u64::from(is_acknowledged);
                }
                Some(place) => {
                    after.lost += 1;
                    let lost_for = self.now.since(unit.contents[place + 1].1);
                    after.lost_for = after.lost_for.max(Some(lost_for));
                }
                None => after.broken.push(lpn),
            }
        }
        Ok(after)
    }
}

impl Log<Drive> for Acknowledged {
    fn submitted(&mut self, drive: &Drive, request: Request) -> Result<(), NandError> {
        for (lpn, trims) in Self::effects(drive, &request) {
            let unit = match self.units.entry(lpn) {
                Entry::Occupied(unit) => unit.into_mut(),
                // What the drive held before the jobs is durable.
                Entry::Vacant(place) => {
                    place.insert(Unit::new(drive.version_of(lpn)?, drive.now()))
                }
            };
            unit.begin(trims);
        }
        let covered = self.acknowledgements;
        self.in_flight.insert(request.tag, Submitted { request, covered });
        Ok(())
    }

    fn completed_one(&mut self, drive: &Drive, completion: &Completion) -> Result<(), NandError> {
        let Some(Submitted { request, covered }) = self.in_flight.remove(&completion.tag) else {
            return Ok(());
        };
        self.completed += 1;
        self.now = completion.completed;
        let done = completion.status == Status::Done;
        if done && request.op == HostOp::Flush {
            self.make_durable(covered);
        }
        let spec = &drive.device().drive;
        let through = spec.write_cache == WriteCache::WriteThrough && request.op != HostOp::Discard;
        let durable = done && (spec.power_loss_protection || through || request.fua);
        for (lpn, _) in Self::effects(drive, &request) {
            let unit = self.units.get_mut(&lpn).expect("it was added at the submission");
            unit.in_flight -= 1;
            if unit.in_flight > 0 {
                continue;
            }
            unit.settle(drive.version_of(lpn)?, completion.completed);
            let number = unit.newest();
            if durable {
                unit.promise(number);
            } else if done {
                self.acknowledgements += 1;
                self.pending.push_back((self.acknowledgements, lpn, number));
            }
        }
        Ok(())
    }

    fn completed(&self) -> u64 {
        self.completed
    }
}
