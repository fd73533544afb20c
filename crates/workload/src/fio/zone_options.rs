//! The options of jobs on zoned drives, read and checked against the drive.

use prism_ssd::ZoneShape;

use super::error::FioError;
use super::job::{Job, Order, Rw, uses};
use super::random::Distribution;
use super::resolve::{JobSettings, Target};
use super::sizes::Sizes;
use super::value::float;
use super::zbd::Zbd;

/// Options without effect unless `zonemode=zbd` is given.
const ZONE_OPTIONS: [&str; 4] =
    ["zonesize", "max_open_zones", "zone_reset_threshold", "zone_reset_frequency"];

impl JobSettings<'_> {
    /// Applies the zone options to the job. With `zonemode=zbd`, its region becomes whole zones.
    pub(super) fn apply_zones(&self, job: &mut Job, target: &Target) -> Result<(), FioError> {
        let s = self.settings;
        let mode = s.read("zonemode", |text| match text {
            "none" => Ok(false),
            "zbd" => Ok(true),
            _ => Err("none or zbd is expected; strided is not simulated".into()),
        })?;
        if !mode.unwrap_or(false) {
            return self.check_no_zones(job, target);
        }
        let Some(shape) = target.zones else {
            let what = "zonemode=zbd needs a zoned drive, such as --device zn540";
            return Err(self.wrong(what.into()));
        };
        if matches!(job.rw, Rw::Trim | Rw::TrimWrite) {
            let what = "trims with zonemode=zbd are not simulated: zones are reset when a write \
                        finds them full, or by zone_reset_threshold and zone_reset_frequency";
            return Err(self.wrong(what.into()));
        }
        let size = s.integer("zonesize")?.filter(|&size| size > 0);
        if let Some(size) = size.filter(|&size| size != shape.size) {
            return Err(self.wrong(format!(
                "zonesize={size}, but zones of this drive are {} bytes apart; leave the option out",
                shape.size
            )));
        }
        self.check_blocks(job, &shape)?;
        // As in fio, the offset is rounded up and the end down.
        let start = job.region.start.next_multiple_of(shape.size);
        let end = job.region.end / shape.size * shape.size;
        if start >= end {
            return Err(self.wrong(format!(
                "its region has no whole zone of {} bytes in it; use a larger size",
                shape.size
            )));
        }
        job.region = start..end;
        job.zbd = Some(self.zbd(&shape)?);
        if job.order == Order::Map {
            // The zones determine the offsets of writes, so that a map of blocks has no use.
            job.order = Order::Drawn(Distribution::Uniform);
        }
        Ok(())
    }

    fn zbd(&self, shape: &ZoneShape) -> Result<Zbd, FioError> {
        let s = self.settings;
        let given = s.count("max_open_zones", 0, u64::from(u32::MAX), 0)? as u32;
        if shape.max_open > 0 && given > shape.max_open {
            return Err(self.wrong(format!(
                "max_open_zones={given} is more than the {} that the drive can have open",
                shape.max_open
            )));
        }
        let share = |option: &str| s.read(option, |text| float(text, 0.0, 1.0));
        let frequency = share("zone_reset_frequency")?.filter(|&share| share > 0.0);
        Ok(Zbd {
            size: shape.size,
            capacity: shape.capacity,
            max_open: if given > 0 { given } else { shape.max_open },
            reset_threshold: share("zone_reset_threshold")?.unwrap_or(0.0),
            reset_every: frequency.map(|share| ((1.0 / share) as u64).max(1)),
        })
    }

    fn check_no_zones(&self, job: &Job, target: &Target) -> Result<(), FioError> {
        if let Some(option) = ZONE_OPTIONS.into_iter().find(|option| self.settings.has(option)) {
            return Err(self.wrong(format!("{option} means nothing without zonemode=zbd")));
        }
        let [_, writes, trims] = uses(job.rw);
        if target.zones.is_some() && (writes || trims) {
            let what = "the drive is zoned and takes writes at the write pointers of its zones \
                        only: give zonemode=zbd, or another --device";
            return Err(self.wrong(what.into()));
        }
        Ok(())
    }

    /// Zones are written in whole mapping units, and a block has to fit into one.
    fn check_blocks(&self, job: &Job, shape: &ZoneShape) -> Result<(), FioError> {
        let sizes: &Sizes = &job.sizes[1];
        if job.uses(1) && !sizes.are_multiples_of(shape.block) {
            return Err(self.wrong(format!(
                "zones of this drive are written in multiples of {} bytes; use such a bs",
                shape.block
            )));
        }
        let smallest = (0..2).filter(|&dir| job.uses(dir)).map(|dir| job.sizes[dir].min()).max();
        if smallest.is_some_and(|smallest| smallest > shape.capacity) {
            return Err(self.wrong(format!(
                "a block is larger than a zone of this drive, which holds {} bytes",
                shape.capacity
            )));
        }
        Ok(())
    }
}
