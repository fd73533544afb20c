//! Turns options into jobs: reads values, converts amounts to bytes of the drive, and refuses
//! options that do not combine.

use std::ops::Range;

use prism_base::Nanos;
use prism_ssd::{DriveSpec, ZoneShape};

use super::error::FioError;
use super::job::{
    DEPTH_MAX, Engine, JOBS_MAX, Job, Limit, Order, Percentiles, Rate, Rw, Think, uses,
};
use super::jobfile::{Section, Setting};
use super::random::Distribution;
use super::settings::{Settings, wrong};
use super::sizes::{SECTOR, Sizes};
use super::value::{Amount, TIME_MAX, flag, float, triple};

/// The properties of the drive that jobs run on.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Capacity in bytes.
    pub capacity: u64,
    /// Its zones; `None` if it is not zoned.
    pub zones: Option<ZoneShape>,
    /// Its placement handles; 0 if it has none.
    pub handles: u32,
}

impl Target {
    /// The drive that `device` describes.
    #[must_use]
    pub fn of(device: &DriveSpec) -> Self {
        Self {
            capacity: device.capacity().0,
            zones: device.zone_shape(),
            handles: device.ftl.placement_handles,
        }
    }
}

/// A drive of this capacity without zones or placement handles.
impl From<u64> for Target {
    fn from(capacity: u64) -> Self {
        Self { capacity, zones: None, handles: 0 }
    }
}

/// The jobs of `sections` on `target`, clones one after another. `overrides` follow the options of
/// every section; `seed` is that of jobs without `randseed`.
///
/// # Errors
/// [`FioError`] names the location of a value, or the job whose options do not combine.
pub fn jobs(
    sections: &[Section],
    overrides: &[Setting],
    target: impl Into<Target>,
    seed: u64,
) -> Result<Vec<Job>, FioError> {
    let target = target.into();
    let capacity = target.capacity;
    let mut jobs: Vec<Job> = Vec::new();
    let (mut stage, mut group) = (0, 0);
    for section in sections {
        let settings = Settings::new(section.settings.iter().chain(overrides))?;
        let named = JobSettings { section, settings: &settings };
        let wall = section.begins_file || settings.flag("stonewall")?;
        if !jobs.is_empty() {
            stage += u32::from(wall);
            group += u32::from(wall || settings.flag("new_group")?);
        }
        let mut job = named.job(&target, seed)?;
        job.options.extend(overrides.iter().map(|s| (s.option, s.value.clone())));
        (job.stage, job.group) = (stage, group);
        job.wait_for = named.waits_for(&jobs)?;
        let clones = settings.count("numjobs", 1, JOBS_MAX as u64, 1)?;
        for clone in 0..clones {
            let mut job = job.clone();
            job.number = jobs.len();
            job.region = named.region(capacity, clone, &job.sizes, uses(job.rw))?;
            named.apply_zones(&mut job, &target)?;
            named.finish(&mut job)?;
            jobs.push(job);
        }
        if jobs.len() > JOBS_MAX {
            return Err(named.wrong(format!("more than {JOBS_MAX} jobs")));
        }
    }
    if jobs.is_empty() { Err(FioError::NoJob) } else { Ok(jobs) }
}

/// The settings of a section, with its name for messages.
pub(super) struct JobSettings<'a> {
    section: &'a Section,
    pub(super) settings: &'a Settings<'a>,
}

impl JobSettings<'_> {
    pub(super) fn wrong(&self, what: String) -> FioError {
        FioError::Job { job: self.section.name.clone(), what }
    }

    /// The job without its region and the values that depend on it.
    fn job(&self, target: &Target, seed: u64) -> Result<Job, FioError> {
        let s = self.settings;
        let micro = Nanos(1000);
        let second = Nanos(1_000_000_000);
        let (rw, random) = self.rw()?;
        let (depth, engine) = self.depth()?;
        let sizes = self.sizes()?;
        let align = self.align(&sizes)?;
        let think = s.time("thinktime", micro)?.filter(|time| *time > Nanos::ZERO);
        let think_blocks = s.count("thinktime_blocks", 1, u64::MAX, 1)?;
        let flush_every =
            [s.count("fsync", 0, u64::MAX, 0)?, s.count("fdatasync", 0, u64::MAX, 0)?];
        let own = &self.section.settings[self.section.defaults..];
        Ok(Job {
            name: self.section.name.clone(),
            description: s.text("description").map(str::to_owned),
            filename: self.filename()?,
            rw,
            order: self.order(random)?,
            rate: self.rate(&sizes)?,
            sizes,
            align,
            region: 0..target.capacity,
            depth,
            engine,
            limit: self.limit()?,
            think: think.map(|time| Think { time, blocks: think_blocks }),
            ramp: s.time("ramp_time", second)?.unwrap_or(Nanos::ZERO),
            delay: s.time("startdelay", second)?.unwrap_or(Nanos::ZERO),
            stage: 0,
            wait_for: 0..0,
            flush_every,
            flush_at_end: s.flag("end_fsync")?,
            fua: self.fua()?,
            handles: self.handles(target.handles)?,
            urgent: s.count("prioclass", 0, 3, 0)? == 1,
            seed: s.integer("randseed")?.unwrap_or(seed),
            number: 0,
            group: 0,
            group_reporting: s.flag("group_reporting")?,
            zbd: None,
            percentiles: self.percentiles()?,
            options: own.iter().map(|s| (s.option, s.value.clone())).collect(),
        })
    }

    fn rw(&self) -> Result<(Rw, bool), FioError> {
        let mix = self.read_percent()?;
        let read = |text: &str| {
            let mixed = Rw::Mixed { read_percent: mix };
            Ok(match text {
                "read" => (Rw::Read, false),
                "write" => (Rw::Write, false),
                "trim" => (Rw::Trim, false),
                "rw" | "readwrite" => (mixed, false),
                "trimwrite" => (Rw::TrimWrite, false),
                "randread" => (Rw::Read, true),
                "randwrite" => (Rw::Write, true),
                "randtrim" => (Rw::Trim, true),
                "randrw" => (mixed, true),
                "randtrimwrite" => (Rw::TrimWrite, true),
                _ => {
                    return Err("read, write, trim, rw, readwrite, trimwrite, randread, \
                                randwrite, randtrim, randrw or randtrimwrite is expected"
                        .into());
                }
            })
        };
        Ok(self.settings.read("rw", read)?.unwrap_or((Rw::Read, false)))
    }

    /// The later of `rwmixread` and `rwmixwrite` applies.
    fn read_percent(&self) -> Result<u32, FioError> {
        let s = self.settings;
        let read = s.count("rwmixread", 0, 100, 50)?;
        let write = s.count("rwmixwrite", 0, 100, 50)?;
        Ok(match s.last_of(&["rwmixread", "rwmixwrite"]).map(|s| s.option) {
            Some("rwmixwrite") => 100 - write as u32,
            _ => read as u32,
        })
    }

    /// The last of `bs`, `bsrange` and `bssplit` applies; 4 KiB without any.
    fn sizes(&self) -> Result<[Sizes; 3], FioError> {
        let integer = self.settings.to_integer();
        let given = self.settings.last_of(&["bs", "bsrange", "bssplit"]);
        let Some(setting) = given else { return Ok([(); 3].map(|()| Sizes::One(4096))) };
        let read = |text: &str| match setting.option {
            "bs" => Sizes::parse_one(text, &integer),
            "bsrange" => Sizes::parse_range(text, &integer),
            _ => Sizes::parse_split(text, &integer),
        };
        let sizes = triple(&setting.value, read).map_err(|what| wrong(setting, what))?;
        Ok(sizes.map(|sizes| sizes.unwrap_or(Sizes::One(4096))))
    }

    fn align(&self, sizes: &[Sizes; 3]) -> Result<[u64; 3], FioError> {
        let integer = self.settings.to_integer();
        let given = self.settings.read("ba", |text| {
            triple(text, |text| match integer(text)? {
                bytes if bytes > 0 && bytes.is_multiple_of(SECTOR) => Ok(bytes),
                _ => Err(format!("a multiple of {SECTOR} bytes is expected")),
            })
        })?;
        let given = given.unwrap_or([None; 3]);
        Ok(std::array::from_fn(|dir| given[dir].unwrap_or_else(|| sizes[dir].min())))
    }

    fn order(&self, random: bool) -> Result<Order, FioError> {
        let s = self.settings;
        let integer = s.to_integer();
        let drawn = s.read("random_distribution", |text| Distribution::parse(text, &integer))?;
        let drawn = drawn.unwrap_or(Distribution::Uniform);
        let lfsr = s.read("random_generator", |text| match text {
            "tausworthe" | "tausworthe64" => Ok(false),
            "lfsr" => Ok(true),
            _ => Err("tausworthe, tausworthe64 or lfsr is expected".into()),
        })?;
        let lfsr = lfsr.unwrap_or(false);
        let without_map = s.flag("norandommap")?;
        if !random {
            return Ok(Order::Sequential);
        }
        let uniform = drawn == Distribution::Uniform;
        if lfsr && (!uniform || s.has("ba")) {
            let what = "random_generator=lfsr visits every block once: leave out \
                        random_distribution and ba";
            return Err(self.wrong(what.into()));
        }
        if uniform && !s.has("ba") && (lfsr || !without_map) {
            return Ok(Order::Map);
        }
        Ok(Order::Drawn(drawn))
    }

    fn rate(&self, sizes: &[Sizes; 3]) -> Result<[Option<Rate>; 3], FioError> {
        let s = self.settings;
        let integer = s.to_integer();
        let list = |option| s.read(option, |text| triple(text, &integer));
        let bytes = list("rate")?.unwrap_or([None; 3]);
        let ios = list("rate_iops")?.unwrap_or([None; 3]);
        let process = s.read("rate_process", |text| match text {
            "linear" => Ok(false),
            "poisson" => Ok(true),
            _ => Err("linear or poisson is expected".into()),
        })?;
        let poisson = process.unwrap_or(false);
        let mut rates = [None; 3];
        for dir in 0..3 {
            let by_ios = ios[dir].filter(|&ios| ios > 0);
            let by_bytes = bytes[dir].filter(|&bytes| bytes > 0);
            let rate = match (by_bytes, by_ios) {
                (Some(_), Some(_)) => {
                    return Err(self.wrong("rate and rate_iops limit the same direction".into()));
                }
                (Some(bytes), None) => bytes,
                (None, Some(ios)) => ios.checked_mul(sizes[dir].min()).ok_or_else(|| {
                    self.wrong("rate_iops times the block size is too large".into())
                })?,
                (None, None) => continue,
            };
            rates[dir] = Some(Rate { bytes: rate, poisson });
        }
        Ok(rates)
    }

    /// Synchronous engines have one I/O in flight, whatever `iodepth` says.
    fn depth(&self) -> Result<(u32, Engine), FioError> {
        let depth = self.settings.count("iodepth", 1, DEPTH_MAX, 1)? as u32;
        let waits = self.settings.read("ioengine", |text| match text {
            "libaio" | "io_uring" | "io_uring_cmd" | "posixaio" => Ok(false),
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(true),
            _ => Err("libaio, io_uring, io_uring_cmd, posixaio, sync, psync, vsync, pvsync or \
                      pvsync2 is expected: others are about something else than a drive"
                .into()),
        })?;
        Ok(match waits {
            Some(true) => (1, Engine::Waiting { asked: depth }),
            Some(false) => (depth, Engine::Asynchronous),
            None => (depth, Engine::Unnamed),
        })
    }

    /// The limits that do not depend on the region.
    fn limit(&self) -> Result<Limit, FioError> {
        let s = self.settings;
        let second = Nanos(1_000_000_000);
        let loops = s.count("loops", 1, u64::MAX, 1)?;
        let ios = s.count("number_ios", 0, u64::MAX, 0)?;
        let runtime = s.time("runtime", second)?.filter(|time| *time > Nanos::ZERO);
        let time_based = s.flag("time_based")?;
        if time_based && runtime.is_none() {
            return Err(self.wrong("time_based needs a runtime".into()));
        }
        Ok(Limit {
            bytes: 0,
            ios: (ios > 0).then(|| ios.saturating_mul(loops)),
            passes: Some(loops),
            runtime,
            time_based,
        })
    }

    fn fua(&self) -> Result<bool, FioError> {
        let sync = self.settings.read("sync", |text| match text {
            "0" | "none" => Ok(false),
            "1" | "sync" | "dsync" => Ok(true),
            _ => Err("none, 0, sync, dsync or 1 is expected".into()),
        })?;
        let s = self.settings;
        Ok(sync.unwrap_or(false) || s.flag("dsync")? || s.flag("writefua")?)
    }

    fn filename(&self) -> Result<Option<String>, FioError> {
        self.settings.read("filename", |text| {
            if text.replace("\\:", "").contains(':') {
                return Err("one drive is simulated; name one file".into());
            }
            Ok(text.to_owned())
        })
    }

    fn percentiles(&self) -> Result<Percentiles, FioError> {
        let s = self.settings;
        let list = s.read("percentile_list", |text| {
            let list: Result<Vec<f64>, _> = text.split(':').map(|p| float(p, 0.0, 100.0)).collect();
            list.map(|mut list| {
                list.sort_by(f64::total_cmp);
                list.dedup();
                list
            })
        })?;
        let usual = [
            1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
            99.95, 99.99,
        ];
        Ok(Percentiles {
            list: list.unwrap_or_else(|| usual.to_vec()),
            clat: s.read("clat_percentiles", flag)?.unwrap_or(true),
            lat: s.flag("lat_percentiles")?,
        })
    }

    fn waits_for(&self, before: &[Job]) -> Result<Range<usize>, FioError> {
        let Some(name) = self.settings.text("wait_for") else { return Ok(0..0) };
        let first = before.iter().position(|job| job.name == name);
        let last = before.iter().rposition(|job| job.name == name);
        match (first, last) {
            (Some(first), Some(last)) => Ok(first..last + 1),
            _ => Err(self.wrong(format!("wait_for={name}: no job of this name comes before it"))),
        }
    }

    /// The region of the clone with this number.
    fn region(
        &self,
        capacity: u64,
        clone: u64,
        sizes: &[Sizes; 3],
        used: [bool; 3],
    ) -> Result<Range<u64>, FioError> {
        let s = self.settings;
        let smallest = smallest(sizes, used);
        // Percentages of offsets are rounded up to whole blocks, sizes down.
        let start_of = |amount: Amount, times: u64| match amount {
            Amount::Bytes(bytes) => bytes.checked_mul(times),
            Amount::Percent(percent) => {
                let bytes = share(capacity, percent).checked_mul(times)?;
                bytes.checked_next_multiple_of(smallest)
            }
        };
        let offset = s.amount("offset")?.unwrap_or(Amount::Bytes(0));
        let step = s.amount("offset_increment")?.unwrap_or(Amount::Bytes(0));
        let start =
            start_of(offset, 1).zip(start_of(step, clone)).and_then(|(a, b)| a.checked_add(b));
        let start = start.filter(|&start| start < capacity).ok_or_else(|| {
            self.wrong(format!("its offset lies beyond the drive's {capacity} bytes"))
        })?;
        let rest = capacity - start;
        let option = if s.has("filesize") { "filesize" } else { "size" };
        let len = match s.amount(option)? {
            None => rest,
            Some(Amount::Percent(percent)) => {
                let share = share(capacity, percent).min(rest);
                share - share % smallest
            }
            Some(Amount::Bytes(bytes)) if bytes <= rest => bytes,
            Some(Amount::Bytes(bytes)) => {
                return Err(self.wrong(format!(
                    "{option}={bytes} from byte {start} on reaches beyond the drive's {capacity} \
                     bytes; use a larger --capacity, or a share such as {option}=100%"
                )));
            }
        };
        if len < smallest || !start.is_multiple_of(SECTOR) {
            let what = format!(
                "the region of {len} bytes from {start} on has no room for a block of {smallest} \
                 bytes at a sector"
            );
            return Err(self.wrong(what));
        }
        Ok(start..start + len)
    }

    /// Sets the limits that depend on the region, and checks that the sizes fit the map of blocks.
    fn finish(&self, job: &mut Job) -> Result<(), FioError> {
        let s = self.settings;
        let len = job.region.end - job.region.start;
        let amount = |option| -> Result<Option<u64>, FioError> {
            Ok(s.amount(option)?.map(|amount| match amount {
                Amount::Bytes(bytes) => bytes,
                Amount::Percent(percent) => share(len, percent),
            }))
        };
        let size = if s.has("filesize") { amount("size")?.unwrap_or(len) } else { len };
        let io_size = amount("io_size")?.filter(|&bytes| bytes > 0);
        let loops = job.limit.passes.unwrap_or(1);
        job.limit.bytes = io_size.unwrap_or(size).saturating_mul(loops);
        // With a ramp, a pass may begin before its end, so only bytes count.
        if io_size.is_some() || job.limit.time_based || job.ramp > Nanos::ZERO {
            job.limit.passes = None;
        }
        let used = uses(job.rw);
        let granule = smallest(&job.sizes, used);
        let largest_min = (0..3).filter(|&dir| used[dir]).map(|dir| job.sizes[dir].min()).max();
        if largest_min.is_some_and(|min| min > len) {
            return Err(self.wrong(format!("a block does not fit its region of {len} bytes")));
        }
        if job.order == Order::Map {
            let fits = |dir: usize| job.sizes[dir].are_multiples_of(granule);
            if !(0..3).filter(|&dir| used[dir]).all(fits) {
                return Err(self.wrong(format!(
                    "its sizes are no multiples of the smallest, {granule}, so that no map of \
                     blocks fits them; give norandommap"
                )));
            }
            let single = |dir: usize| job.sizes[dir] == Sizes::One(granule);
            let lfsr = s.text("random_generator") == Some("lfsr");
            if lfsr && !(0..3).filter(|&dir| used[dir]).all(single) {
                return Err(self.wrong("random_generator=lfsr needs a single block size".into()));
            }
        }
        if let Order::Drawn(distribution) = &mut job.order {
            distribution.fit(len).map_err(|what| self.wrong(what))?;
        }
        let longest = job.ramp + job.delay + job.limit.runtime.unwrap_or(Nanos::ZERO);
        assert!(longest.0 <= 3 * TIME_MAX.0, "each time is bounded when it is read");
        Ok(())
    }
}

fn smallest(sizes: &[Sizes; 3], used: [bool; 3]) -> u64 {
    let of_used = (0..3).filter(|&dir| used[dir]).map(|dir| sizes[dir].min());
    of_used.min().expect("every job has a direction")
}

fn share(of: u64, percent: u64) -> u64 {
    (u128::from(of) * u128::from(percent) / 100) as u64
}
