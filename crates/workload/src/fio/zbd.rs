//! Jobs on zoned drives (`zonemode=zbd`): adjusts their I/Os to the zones.
//!
//! A job chooses an offset. A write goes to the write pointer of the zone at that offset or, at the
//! limit of open zones, of another open zone. A full zone is reset first, once the I/Os of the job
//! in flight have completed; a zone whose rest is smaller than a block is finished. A read is moved
//! to written data. Jobs of a run share the zones.
//!
//! Source: `zbd_adjust_block` of fio 3.33. Differs: at the limit of open zones, with none of them
//! in its region, a job finishes the one that was opened first; fio ends the job. A write to a
//! read-only or offline zone goes to the next zone of the region that can be written.

use prism_ssd::{Drive, HostOp, ZoneShape, Zones};

use super::job::Job;
use super::worker::Io;

/// Parameters of `zonemode=zbd`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zbd {
    /// Bytes from the start of one zone to that of the next.
    pub size: u64,
    /// Writable bytes of a zone.
    pub capacity: u64,
    /// Limit of open zones; 0 for none.
    pub max_open: u32,
    /// Written share of the region from which on zones are reset.
    pub reset_threshold: f64,
    /// Writes between two such resets; `None` for no such resets.
    pub reset_every: Option<u64>,
}

/// How to proceed with an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZonedIo {
    /// Issue this adjusted I/O.
    At(Io),
    /// This command on a zone has to complete first.
    After(HostOp, u32),
    /// I/Os on a zone have to complete first.
    Later,
    /// No zone is suitable: the job ends.
    Nowhere,
}

/// State of the zones in a run. Offsets are in bytes of the drive.
#[derive(Clone, Debug)]
pub(super) struct ZoneTable {
    shape: ZoneShape,
    /// Write pointers by zone, I/Os in flight included.
    pointers: Vec<u64>,
    /// By zone: writes, resets and finishes in flight, and whether one is a reset or finish.
    busy: Vec<u32>,
    managed: Vec<bool>,
    /// By zone: whether it is read only or offline.
    failed: Vec<bool>,
    /// Open zones, in the order of opening.
    open: Vec<u32>,
    /// Writes until the next reset of `zone_reset_frequency`.
    until_reset: u64,
}

impl ZoneTable {
    /// The current zones of `drive`; `None` if it is not zoned.
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

    /// Marks a zone as failed; `lost` if it cannot be read.
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

    /// Bytes of `zone` left to write.
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

    /// Adjusts an I/O of `job` to the zones.
    pub fn place(&mut self, job: &Job, zbd: &Zbd, io: Io) -> ZonedIo {
        match io.op {
            HostOp::Read => self.place_read(job, io),
            HostOp::Write => self.place_write(job, zbd, io),
            _ => ZonedIo::At(io),
        }
    }

    fn place_read(&self, job: &Job, io: Io) -> ZonedIo {
        let least = job.sizes[0].min();
        let zone = (io.offset / self.shape.size) as u32;
        let within = io.offset - self.start(zone);
        if within + io.len <= self.written(zone) {
            return ZonedIo::At(io);
        }
        let zones = self.zones_of(job);
        let random = job.is_random();
        let behind = (zone + 1..zones.end).chain(if random { zones.start..zone + 1 } else { 0..0 });
        let mut candidates = std::iter::once(zone).filter(|_| random).chain(behind);
        let Some(found) = candidates.find(|&zone| self.written(zone) >= least) else {
            return ZonedIo::Nowhere;
        };
        let data = self.written(found);
        let len = io.len.min(data / least * least);
        let offset = if random && data > len { within % (data - len) / least * least } else { 0 };
        ZonedIo::At(Io { offset: self.start(found) + offset, len, ..io })
    }

    fn place_write(&mut self, job: &Job, zbd: &Zbd, io: Io) -> ZonedIo {
        let least = job.sizes[1].min();
        let (pointers, busy, failed) = (&self.pointers, &self.busy, &self.failed);
        self.open.retain(|&zone| !failed[zone as usize]);
        let ends = |zone: u32| u64::from(zone) * self.shape.size + self.shape.capacity;
        self.open.retain(|&zone| pointers[zone as usize] < ends(zone) || busy[zone as usize] > 0);
        let short = |&&zone: &&u32| self.left(zone) > 0 && self.left(zone) < least;
        if let Some(&zone) = self.open.iter().find(short) {
            return self.manage(HostOp::ZoneFinish, zone);
        }
        let Some(wanted) = self.writable_from(job, (io.offset / self.shape.size) as u32) else {
            return ZonedIo::Nowhere;
        };
        let zone = if self.open.contains(&wanted) || self.may_open(zbd) {
            wanted
        } else {
            match self.open_zone_for(job, io.offset) {
                Ok(zone) => zone,
                Err(placed) => return placed,
            }
        };
        if self.managed[zone as usize] {
            return ZonedIo::Later;
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
        ZonedIo::At(Io { offset, len, ..io })
    }

    /// The first zone of the region, from `zone` on with wrap-around, that can be written.
    fn writable_from(&self, job: &Job, zone: u32) -> Option<u32> {
        let zones = self.zones_of(job);
        let mut all = (zone..zones.end).chain(zones.start..zone);
        all.find(|&zone| !self.failed[zone as usize])
    }

    fn may_open(&self, zbd: &Zbd) -> bool {
        zbd.max_open == 0 || (self.open.len() as u32) < zbd.max_open
    }

    /// An open zone for a write at `offset`, at the same relative position in the list of open
    /// zones as the offset in the region.
    fn open_zone_for(&self, job: &Job, offset: u64) -> Result<u32, ZonedIo> {
        let zones = self.zones_of(job);
        let len = u128::from(job.region.end - job.region.start);
        let along = u128::from(offset - job.region.start) * self.open.len() as u128 / len;
        let turned = self.open.iter().cycle().skip(along as usize).take(self.open.len());
        let own = |zone: &&u32| zones.contains(zone) && self.left(**zone) > 0;
        match turned.copied().find(|zone| own(&zone)) {
            Some(zone) => Ok(zone),
            None if self.open.iter().any(|zone| zones.contains(zone)) => Err(ZonedIo::Later),
            None => Err(self.manage(HostOp::ZoneFinish, self.open[0])),
        }
    }

    /// Whether `zone_reset_threshold` and `zone_reset_frequency` require a reset now.
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

    fn manage(&self, op: HostOp, zone: u32) -> ZonedIo {
        if self.busy[zone as usize] > 0 { ZonedIo::Later } else { ZonedIo::After(op, zone) }
    }

    /// The command that resets or finishes `zone`.
    pub fn command(&self, op: HostOp, zone: u32) -> Io {
        Io { op, offset: self.start(zone), len: 0, fua: false, handle: 0 }
    }

    /// Updates the zones when `io` is issued.
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

    /// Updates the zones when `io` has completed.
    pub fn done(&mut self, io: &Io) {
        if matches!(io.op, HostOp::Write | HostOp::ZoneReset | HostOp::ZoneFinish) {
            let zone = (io.offset / self.shape.size) as usize;
            self.busy[zone] -= 1;
            self.managed[zone] &= !io.op.manages_zone();
        }
    }
}
