//! Jobs on zoned drives (`zonemode=zbd`): where their I/Os really go.
//!
//! A job says where it would read or write; a write goes to the write pointer of that zone, or
//! of another one that is open, once as many are open as may be. A zone that is full is reset
//! first, when all that the job has in flight is done; one in which no block fits any more is
//! finished. A read goes where there is data. Jobs of a run share the zones.
//!
//! Source: `zbd_adjust_block` of fio 3.33. Differs: a job that finds as many zones open as may
//! be, and none of them in its own region, finishes the one that was opened first; fio ends the
//! job. Zones that can only be read are not written, and those that are offline are left alone;
//! where a write would have gone to one, it goes to the next of the region that takes it.

use prism_ssd::{Drive, HostOp, ZoneShape, Zones};

use super::job::Job;
use super::worker::Io;

/// What `zonemode=zbd` is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zbd {
    /// Bytes from one zone to the next.
    pub size: u64,
    /// Bytes of a zone that can be written.
    pub capacity: u64,
    /// Most zones that are written at once; 0 for no limit.
    pub max_open: u32,
    /// Share of the region that is written from which on zones are reset.
    pub reset_threshold: f64,
    /// Writes from one such reset to the next; `None` for no such resets.
    pub reset_every: Option<u64>,
}

/// What has to happen with an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// It goes there.
    At(Io),
    /// A reset or finish of this zone has to be done before.
    After(HostOp, u32),
    /// I/Os on a zone have to end before.
    Later,
    /// There is no place for it: the job is at its end.
    Nowhere,
}

/// The zones, as the jobs of a run have left them. Offsets are in bytes of the drive.
#[derive(Clone, Debug)]
pub(super) struct ZoneBook {
    shape: ZoneShape,
    /// By zone: where the next write goes.
    pointers: Vec<u64>,
    /// By zone: writes, resets and finishes issued and not done; whether one is no write.
    busy: Vec<u32>,
    managed: Vec<bool>,
    /// By zone: it takes no more writes.
    failed: Vec<bool>,
    /// Zones that are being written, the first to be opened first.
    open: Vec<u32>,
    /// Writes until the next reset of `zone_reset_frequency`.
    until_reset: u64,
}

impl ZoneBook {
    /// The zones of `drive` as they are now; `None` if it has none.
    pub fn new(drive: &Drive) -> Option<Self> {
        let zones: &Zones = drive.zones()?;
        let shape = *zones.shape();
        Some(Self {
            pointers: zones.report().map(|zone| zone.write_pointer).collect(),
            busy: vec![0; shape.count as usize],
            managed: vec![false; shape.count as usize],
            failed: (0..shape.count).map(|zone| zones.has_failed(zone)).collect(),
            open: zones.report().filter(|zone| zone.state.is_active()).map(|z| z.zone).collect(),
            until_reset: 0,
            shape,
        })
    }

    /// The drive has said that a zone has failed; `lost` if there is nothing to be read.
    pub fn has_failed(&mut self, zone: u32, lost: bool) {
        self.failed[zone as usize] = true;
        if lost {
            self.pointers[zone as usize] = self.start(zone);
        }
    }

    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * self.shape.size
    }

    fn end(&self, zone: u32) -> u64 {
        self.start(zone) + self.shape.capacity
    }

    /// Bytes of `zone` that can be written.
    fn left(&self, zone: u32) -> u64 {
        self.end(zone) - self.pointers[zone as usize]
    }

    fn written(&self, zone: u32) -> u64 {
        self.pointers[zone as usize] - self.start(zone)
    }

    /// The zones of a job's region.
    fn zones_of(&self, job: &Job) -> std::ops::Range<u32> {
        let zone = |offset: u64| (offset / self.shape.size) as u32;
        zone(job.region.start)..zone(job.region.end)
    }

    /// Where an I/O that `job` wants goes.
    pub fn place(&mut self, job: &Job, zbd: &Zbd, io: Io) -> Placed {
        match io.op {
            HostOp::Read => self.place_read(job, io),
            HostOp::Write => self.place_write(job, zbd, io),
            _ => Placed::At(io),
        }
    }

    fn place_read(&self, job: &Job, io: Io) -> Placed {
        let least = job.sizes[0].min();
        let zone = (io.offset / self.shape.size) as u32;
        let within = io.offset - self.start(zone);
        if within + io.len <= self.written(zone) {
            return Placed::At(io);
        }
        let zones = self.zones_of(job);
        let random = job.is_random();
        let behind = (zone + 1..zones.end).chain(if random { zones.start..zone + 1 } else { 0..0 });
        let mut candidates = std::iter::once(zone).filter(|_| random).chain(behind);
        let Some(found) = candidates.find(|&zone| self.written(zone) >= least) else {
            return Placed::Nowhere;
        };
        let data = self.written(found);
        let len = io.len.min(data / least * least);
        let offset = if random && data > len { within % (data - len) / least * least } else { 0 };
        Placed::At(Io { offset: self.start(found) + offset, len, ..io })
    }

    fn place_write(&mut self, job: &Job, zbd: &Zbd, io: Io) -> Placed {
        let least = job.sizes[1].min();
        let (pointers, busy, failed) = (&self.pointers, &self.busy, &self.failed);
        self.open.retain(|&zone| !failed[zone as usize]);
        let ends = |zone: u32| u64::from(zone) * self.shape.size + self.shape.capacity;
        self.open.retain(|&zone| pointers[zone as usize] < ends(zone) || busy[zone as usize] > 0);
        let short = |&&zone: &&u32| self.left(zone) > 0 && self.left(zone) < least;
        if let Some(&zone) = self.open.iter().find(short) {
            return self.manage(HostOp::ZoneFinish, zone);
        }
        let Some(wanted) = self.sound_from(job, (io.offset / self.shape.size) as u32) else {
            return Placed::Nowhere;
        };
        let zone = if self.open.contains(&wanted) || self.may_open(zbd) {
            wanted
        } else {
            match self.instead_of(job, io.offset) {
                Ok(zone) => zone,
                Err(placed) => return placed,
            }
        };
        if self.managed[zone as usize] {
            return Placed::Later;
        }
        let started = self.written(zone) > 0;
        if self.left(zone) == 0 || started && self.reset_is_due(job, zbd) {
            return self.manage(HostOp::ZoneReset, zone);
        }
        if !self.open.contains(&zone) {
            self.open.push(zone);
        }
        let offset = self.pointers[zone as usize];
        let len = io.len.min(self.left(zone) / least * least);
        Placed::At(Io { offset, len, ..io })
    }

    /// The first zone of the region from `zone` on, and round, that can be written.
    fn sound_from(&self, job: &Job, zone: u32) -> Option<u32> {
        let zones = self.zones_of(job);
        let mut all = (zone..zones.end).chain(zones.start..zone);
        all.find(|&zone| !self.failed[zone as usize])
    }

    fn may_open(&self, zbd: &Zbd) -> bool {
        zbd.max_open == 0 || (self.open.len() as u32) < zbd.max_open
    }

    /// An open zone for a write at `offset`, as far along the open ones as that lies in the
    /// region.
    fn instead_of(&self, job: &Job, offset: u64) -> Result<u32, Placed> {
        let zones = self.zones_of(job);
        let len = u128::from(job.region.end - job.region.start);
        let along = u128::from(offset - job.region.start) * self.open.len() as u128 / len;
        let turned = self.open.iter().cycle().skip(along as usize).take(self.open.len());
        let own = |zone: &&u32| zones.contains(zone) && self.left(**zone) > 0;
        match turned.copied().find(|zone| own(&zone)) {
            Some(zone) => Ok(zone),
            None if self.open.iter().any(|zone| zones.contains(zone)) => Err(Placed::Later),
            None => Err(self.manage(HostOp::ZoneFinish, self.open[0])),
        }
    }

    /// Whether so much is written, and so many writes have come, that a zone is to be reset.
    fn reset_is_due(&mut self, job: &Job, zbd: &Zbd) -> bool {
        let Some(every) = zbd.reset_every else { return false };
        let written: u64 = self.zones_of(job).map(|zone| self.written(zone)).sum();
        let region = (job.region.end - job.region.start) as f64;
        if (written as f64) < region * zbd.reset_threshold {
            return false;
        }
        self.until_reset = self.until_reset.checked_sub(1).unwrap_or(every - 1);
        self.until_reset == 0
    }

    fn manage(&self, op: HostOp, zone: u32) -> Placed {
        if self.busy[zone as usize] > 0 { Placed::Later } else { Placed::After(op, zone) }
    }

    /// The command that resets or finishes `zone`.
    pub fn command(&self, op: HostOp, zone: u32) -> Io {
        Io { op, offset: self.start(zone), len: 0, fua: false, handle: 0 }
    }

    /// `io` is issued.
    pub fn issued(&mut self, io: &Io) {
        let zone = (io.offset / self.shape.size) as u32;
        self.pointers[zone as usize] = match io.op {
            HostOp::Write => io.offset + io.len,
            HostOp::ZoneReset => self.start(zone),
            HostOp::ZoneFinish => self.end(zone),
            _ => return,
        };
        self.busy[zone as usize] += 1;
        self.managed[zone as usize] = io.op.manages_zone();
    }

    /// `io` is done.
    pub fn done(&mut self, io: &Io) {
        if matches!(io.op, HostOp::Write | HostOp::ZoneReset | HostOp::ZoneFinish) {
            let zone = (io.offset / self.shape.size) as usize;
            self.busy[zone] -= 1;
            self.managed[zone] &= !io.op.manages_zone();
        }
    }
}
