//! SimpleSSD's description of a drive, a `.cfg` file of version 2.
//!
//! Source: the remarks in `config/sample.cfg` and the sources of SimpleSSD/SimpleSSD. Times are
//! picoseconds, sizes bytes, rates of channels millions of transfers per second.

use super::device_file::{DeviceFile, bandwidth, size, time, times};
use super::error::{ImportError, Result};
use super::settings::{self, Given, Settings};

/// Settings that a device file cannot express.
const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("cpu.*", "processors of the controller; see drive.firmware_read and drive.firmware_write"),
    ("nvme.PCIELane", "not used without PCIEGeneration"),
    ("nvme.WorkInterval", "commands are fetched at once"),
    ("nvme.MaxRequestCount", "commands are fetched at once"),
    ("nvme.MaxIOCQueue", "completion queues have no limit"),
    ("nvme.WRR*", "priorities of NVMe queues; see drive.queue_weights"),
    ("nvme.DefaultNamespace", "a drive is one namespace"),
    ("nvme.LBASize", "requests are in sectors of 512 bytes"),
    ("nvme.AXI*", "buses inside the controller take no time"),
    ("nvme.FIFOTransferUnit", "buses inside the controller take no time"),
    ("nvme.EnableDiskImage", "simulated drives hold no data"),
    ("nvme.StrictSizeCheck", "simulated drives hold no data"),
    ("nvme.DiskImageFile*", "simulated drives hold no data"),
    ("nvme.UseCopyOnWriteDisk", "simulated drives hold no data"),
    ("ufs.*", "another host interface than that of this drive"),
    ("sata.*", "another host interface than that of this drive"),
    ("pal.PageAllocation", "pages are dealt out to dies as they become free"),
    ("ftl.RequestQueue", "the queue of the FTL has no limit"),
    ("ftl.Warmup", "prism sim --state filled:SHARE"),
    ("ftl.FillingMode", "prism sim --state sets what the drive holds before the run"),
    ("ftl.FillRatio", "prism sim --state filled:SHARE"),
    ("ftl.InvalidPageRatio", "prism sim --state preconditioned:CAPACITIES"),
    ("ftl.DChoiceParam", "only used with EvictPolicy 3"),
    ("ftl.GCReclaimBlocks", "only used with GCMode 0"),
    ("ftl.GCReclaimThreshold", "only used with GCMode 1"),
    ("icl.CacheWaySize", "the write buffer is fully associative"),
    ("icl.EnableReadCache", "reads are not cached"),
    ("icl.EnableReadPrefetch", "reads are not cached"),
    ("icl.ReadPrefetch*", "reads are not cached"),
    ("icl.EvictPolicy", "the write buffer is emptied in the order of arrival"),
    ("icl.EvictMode", "the write buffer is emptied by program units"),
    ("icl.CacheLatency", "memory of the controller takes no time"),
    ("dram.*", "memory of the controller takes no time"),
];

/// Whether `text` looks like a file of SimpleSSD.
pub fn is_simplessd(text: &str) -> bool {
    let is_section = |line: &str| {
        let line = line.trim();
        ["[pal]", "[ssd]", "[ftl]", "[generator]"].contains(&line)
    };
    text.lines().any(is_section)
}

/// The settings of a file.
pub fn settings(text: &str) -> Result<Settings> {
    let has = |section: &str| text.lines().any(|line| line.trim() == section);
    if !has("[pal]") {
        let requests = has("[generator]");
        return Err(match (requests, has("[ssd]")) {
            (true, _) => ImportError::SimpleSsdRequests,
            (false, true) => ImportError::SimpleSsd1,
            (false, false) => ImportError::Unknown,
        });
    }
    let all = settings::lines(text, true)?;
    Ok(Settings::new("SimpleSSD", WITHOUT_COUNTERPART, all))
}

/// Adds the fields of the drive.
pub fn convert(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    let flash = geometry(settings, file)?;
    flash_times(settings, file)?;
    mapping(settings, file, &flash)?;
    cleaning(settings, file, &flash)?;
    controller(settings, file, &flash)
}

/// What several fields depend on.
struct FlashShape {
    /// Blocks of a die group.
    blocks: u32,
    /// Superblocks of the drive, and what each holds.
    superblocks: u64,
    superblock_bytes: u64,
    /// Dies of a superblock.
    superblock_dies: u64,
    /// What an I/O unit holds: a page on every plane that works together.
    unit: u64,
}

fn geometry(settings: &mut Settings, file: &mut DeviceFile) -> Result<FlashShape> {
    let channels = settings.count("pal.Channel", 8, 1)?;
    let packages = settings.count("pal.Package", 4, 1)?;
    let dies = settings.count("pal.Die", 2, 1)?;
    let planes = settings.count("pal.Plane", 1, 1)?;
    let blocks = settings.count("pal.Block", 512, 1)?;
    let pages = settings.count("pal.Page", 512, 1)?;
    let page = settings.count("pal.PageSize", 16384, 512)?;
    let together = settings.flag("pal.EnableMultiPlaneOperation", true)?;
    let parts =
        [&channels, &packages, &dies, &planes, &blocks, &pages, &page].map(|part| part.value);
    settings.flash_bytes("pal.Channel", &parts)?;
    file.given("flash.channels", &channels);
    let dies_per_channel = u64::from(packages.value) * u64::from(dies.value);
    let origin = format!("{} x {}", packages.origin, dies.origin);
    file.field("flash.dies_per_channel", dies_per_channel, &origin);
    file.given("flash.planes", &planes);
    file.given("flash.multi_plane", &together);
    file.given("flash.blocks_per_plane", &blocks);
    file.given("flash.pages_per_block", &pages);
    file.field("flash.page", size(page.value.into()), &page.origin);
    let letters = settings.text("pal.SuperblockSize");
    let parts = letters.as_deref().unwrap_or("CWDP").to_ascii_uppercase();
    let part = |letter: char, count: u32| if parts.contains(letter) { u64::from(count) } else { 1 };
    let superblock_dies =
        part('C', channels.value) * part('W', packages.value) * part('D', dies.value);
    let origin = match &letters {
        Some(letters) => format!("pal.SuperblockSize {letters}"),
        None => "pal.SuperblockSize (SimpleSSD's default)".into(),
    };
    file.field("flash.superblock_dies", superblock_dies, &origin);
    if !parts.contains('C') && superblock_dies > 1 {
        let note = "SimpleSSD's superblocks lie on one channel, those of this drive on all.";
        file.note("flash.superblock_dies", note);
    }
    let ganged = if together.value { u64::from(planes.value) } else { 1 };
    let lone = if together.value { 1 } else { u64::from(planes.value) };
    if lone > 1 && parts.contains('P') {
        let note = "SimpleSSD's superblocks also span the planes of a die.";
        file.note("flash.superblock_dies", note);
    }
    let unit = u64::from(page.value) * ganged;
    let of_die = u64::from(blocks.value) * lone;
    let groups = u64::from(channels.value) * dies_per_channel / superblock_dies;
    let block = unit * u64::from(pages.value);
    Ok(FlashShape {
        blocks: u32::try_from(of_die).unwrap_or(u32::MAX),
        superblocks: groups * of_die,
        superblock_bytes: block * superblock_dies,
        superblock_dies,
        unit,
    })
}

fn flash_times(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    const CELLS: [(&str, (&str, &[&str])); 3] = [
        ("0", ("slc", &["LSB"])),
        ("1", ("mlc", &["LSB", "MSB"])),
        ("2", ("tlc", &["LSB", "CSB", "MSB"])),
    ];
    let cell = settings.choice("pal.NANDType", CELLS[1].1, &CELLS)?;
    let (name, pages) = cell.value;
    file.field("flash.cell", format!("\"{name}\""), &cell.origin);
    for (field, operation, default) in
        [("flash.t_read", "Read", 40_000_000), ("flash.t_program", "Write", 500_000_000)]
    {
        let (mut of_pages, mut origins, mut exact) = (Vec::new(), Vec::new(), true);
        for page in pages {
            let one = settings.long(&format!("pal.{page}{operation}"), default)?;
            exact &= one.value.is_multiple_of(1000);
            of_pages.push(nanos(one.value));
            origins.push(one.origin);
        }
        file.field(field, times(&of_pages), &origins.join(", "));
        if !exact {
            file.note(field, "Picoseconds are rounded to nanoseconds.");
        }
        if name == "tlc" {
            let note = "Times of pages alternate from page to page, in SimpleSSD in an order of \
                        its own.";
            file.note(field, note);
        }
        for page in ["LSB", "CSB", "MSB"].iter().filter(|page| !pages.contains(page)) {
            let why = format!("not used for {}", name.to_uppercase());
            settings.skip(&format!("pal.{page}{operation}"), &why);
        }
    }
    let erase = settings.long("pal.Erase", 3_500_000_000)?;
    file.field("flash.t_erase", time(nanos(erase.value)), &erase.origin);
    let rate = settings.count("pal.DMASpeed", 400, 1)?;
    let width = settings.count("pal.DMAWidth", 8, 8)?;
    let bytes = (u64::from(rate.value) * 1_000_000).saturating_mul(width.value.into()) / 8;
    let origin = format!("{} x {}", rate.origin, width.origin);
    file.field("flash.channel_bandwidth", bandwidth(bytes), &origin);
    file.given("flash.endurance", &settings.count("ftl.EraseThreshold", 100_000, 1)?);
    Ok(())
}

/// Picoseconds in nanoseconds, rounded to the nearest.
fn nanos(picoseconds: u64) -> u64 {
    picoseconds.saturating_add(500) / 1000
}

fn mapping(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let kind = settings.choice("ftl.MappingMode", (), &[("0", ())])?;
    file.field("ftl.mapping", "\"page\"", &kind.origin);
    let tweak = settings.flag("ftl.EnableRandomIOTweak", true)?;
    file.field("ftl.mapping_unit", size(flash.unit), "pal.PageSize, on all planes together");
    if !tweak.value && flash.superblock_dies > 1 {
        let note = format!(
            "SimpleSSD without EnableRandomIOTweak maps a page of all {} dies of a superblock as \
             one unit.",
            flash.superblock_dies
        );
        file.note("ftl.mapping_unit", note);
    }
    file.field("ftl.frontiers", "\"shared\"", "SimpleSSD copies to the open blocks of the host");
    file.field("ftl.wear_least_worn_first", true, "how SimpleSSD works");
    Ok(())
}

fn cleaning(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let policies = [("0", "greedy"), ("1", "cost-benefit"), ("2", "random"), ("3", "d-choices")];
    let policy = settings.choice("ftl.EvictPolicy", "greedy", &policies)?;
    if policy.value == "d-choices" {
        let of = settings.count("ftl.DChoiceParam", 3, 1)?;
        let origin = format!("{}, {}", policy.origin, of.origin);
        file.field("ftl.victim", format!("\"d-choices:{}\"", of.value), &origin);
    } else {
        file.word("ftl.victim", &policy);
    }
    let threshold = settings.number("ftl.GCThreshold", 0.05, (0.0, 1.0))?;
    let blocks = |share: f64| ((share * f64::from(flash.blocks)).ceil() as u32).max(2);
    let low = blocks(threshold.value);
    file.field("ftl.free_blocks_low", low, &threshold.origin);
    if u64::from(flash.blocks) < flash.superblocks {
        let note = "SimpleSSD counts the erased blocks of the whole drive, here each die group \
                    counts its own.";
        file.note("ftl.free_blocks_low", note);
    }
    let until = settings.choice("ftl.GCMode", false, &[("0", false), ("1", true)])?;
    if until.value {
        let high = settings.number("ftl.GCReclaimThreshold", 0.1, (0.0, 1.0))?;
        file.field("ftl.free_blocks_high", blocks(high.value).max(low), &high.origin);
    } else {
        let more = settings.count("ftl.GCReclaimBlocks", 1, 1)?;
        let high = low.saturating_add(more.value - 1);
        file.field("ftl.free_blocks_high", high, &more.origin);
    }
    Ok(())
}

fn controller(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let spare = settings.number("ftl.OverProvisioningRatio", 0.2, (0.0, 0.99))?;
    let logical = (flash.superblocks as f64 * (1.0 - spare.value)) as u64;
    let capacity = logical * flash.superblock_bytes;
    let origin = format!("1 - {} of the superblocks", spare.origin);
    file.field("drive.capacity", size(capacity), &origin);
    let firmware = if settings.has("ftl.Latency") {
        let one = settings.long("ftl.Latency", 0)?;
        Given { value: nanos(one.value), origin: one.origin }
    } else {
        Given { value: 0, origin: "no ftl.Latency in the file".into() }
    };
    file.firmware(&firmware);
    if settings.has("cpu.ClockSpeed") {
        let note = "SimpleSSD counts instructions of the controller's processors. They take no \
                    time here.";
        file.note("drive.firmware_read", note);
    }
    link(settings, file)?;
    file.field("drive.queue_depth", 65_536, "the host decides");
    file.given("drive.queues", &settings.count("nvme.MaxIOSQueue", 16, 1)?);
    let cached = settings.flag("icl.EnableWriteCache", true)?;
    if cached.value {
        let cache = settings.long("icl.CacheSize", 32 << 20)?;
        // Without protection, all pages of a wordline are in the buffer, on each die of a
        // superblock.
        let least = flash.unit * flash.superblock_dies * 4;
        file.field("drive.write_buffer", size(cache.value.max(least)), &cache.origin);
        if cache.value < least {
            file.note("drive.write_buffer", "A buffer holds at least whole wordlines.");
        }
        file.field("drive.write_cache", "\"write-back\"", &cached.origin);
    } else {
        settings.skip("icl.CacheSize", "not used without EnableWriteCache: reads are not cached");
        let least = flash.unit * flash.superblock_dies * 4;
        file.field("drive.write_buffer", size(least), "on its way to flash");
        file.field("drive.write_cache", "\"write-through\"", &cached.origin);
    }
    let note = "A FLUSH writes the buffer to flash, as in SimpleSSD. There a power loss destroys \
                no earlier pages of a wordline, here it may, so they are written together.";
    file.approximate("drive.power_loss_protection", false, "how SimpleSSD works", note);
    Ok(())
}

/// The host link. Files of the first versions say nothing about it.
fn link(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    if !settings.has("nvme.PCIEGeneration") {
        file.field("drive.link_bandwidth", "\"infinite\"", "no nvme.PCIEGeneration in the file");
        return Ok(());
    }
    // Bytes per second in each direction, after the line code of each generation.
    let rates = [
        ("0", 250_000_000_u64),
        ("1", 500_000_000),
        ("2", 984_615_385),
        ("3", 1_969_230_769),
        ("4", 3_938_461_538),
    ];
    let rate = settings.choice("nvme.PCIEGeneration", rates[2].1, &rates)?;
    let width = settings.count("nvme.PCIELane", 4, 1)?;
    let origin = format!("{} x {}", rate.origin, width.origin);
    let note = "Headers of packets take no time here.";
    let value = bandwidth(rate.value.saturating_mul(u64::from(width.value)));
    file.approximate("drive.link_bandwidth", value, &origin, note);
    Ok(())
}
