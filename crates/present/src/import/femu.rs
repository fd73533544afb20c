//! FEMU's black-box drive.
//!
//! Source: the property reference and the sources (`hw/femu/bbssd`, `hw/femu/nand`) of
//! MoatLab/FEMU. Times are nanoseconds, `devsz_mb` counts MiB, `buffer_size` pages.

use super::device_file::{DeviceFile, bandwidth, size, time, times};
use super::error::Result;
use super::settings::{Given, Settings};

/// Options that a device file cannot express.
pub const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("namespaces", "a drive is one namespace"),
    ("namespace_*", "a drive is one namespace"),
    ("devsz_mb", "op_pcent gives the capacity"),
    ("id", "a name inside QEMU"),
    ("serial", "a name inside QEMU"),
    ("drive", "a name inside QEMU"),
    ("subsys", "a name inside QEMU"),
    ("multipoller_enabled", "threads of the emulator"),
    ("poller_ratio", "threads of the emulator"),
    ("gc_thres_pcent", "cleaning begins where FEMU's becomes urgent, at gc_thres_pcent_high"),
    ("gc_seed", "prism sim --seed"),
    ("cell_pages", "nand_cell_type has times of its own"),
    ("pgtype_lat", "nand_cell_type has times of its own"),
    ("pg_*", "nand_cell_type has times of its own"),
    ("blk_er_lat", "nand_cell_type has times of its own"),
    ("ch_xfer_lat", "pg_xfer_lat is given"),
    ("mapping_cache_mb", "only used with mapping=dftl"),
    ("read_cache_mb", "reads are not cached"),
    ("cache_evict", "reads are not cached"),
    ("hot_cold_sep", "overwritten data has no blocks of its own"),
    ("buffer_thres_pcent", "the buffer is emptied as soon as there is a program unit"),
    ("vwc", "a flush writes the buffer to flash with either value"),
    ("status_lat", "reading the status takes no time"),
    ("pcie_prop_delay_ns", "the link has no delay"),
    ("trim_lat_ns", "discards take the time of the firmware"),
    ("tpl*", "planes of one command begin together"),
    ("tsusp_ns", "only used with pe_suspend"),
    ("ecc_*", "see [faults] of device files"),
    ("nand_bad_blocks", "see [faults] of device files"),
    ("err_*", "see [faults] of device files"),
    ("read_reclaim_limit", "data is not refreshed"),
    ("retention_limit_sec", "data is not refreshed"),
    ("mdts", "requests have no limit"),
    ("zns_*", "only used by zoned drives"),
    ("streams*", "see ftl.placement_handles"),
    ("fdp*", "see ftl.placement_handles"),
    ("gc_strategy", "see ftl.placement_handles"),
    ("power_loss", "see drive.power_loss_protection"),
    ("cmb*", "memory of the controller is not visible to the host"),
    ("nlbaf", "requests are in sectors of 512 bytes"),
    ("lba_index", "requests are in sectors of 512 bytes"),
    ("meta", "blocks have no metadata"),
    ("vid", "the identity of the controller"),
    ("did", "the identity of the controller"),
];

/// Adds the fields of the drive.
pub fn convert(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    let mode = settings.count("femu_mode", 2, 0)?;
    if mode.value != 1 {
        let why = "only black-box drives (femu_mode=1, mode = bbssd) have an FTL that can be \
                   imported";
        return Err(settings.refuse("femu_mode", why));
    }
    let flash = geometry(settings, file)?;
    flash_times(settings, file)?;
    channel(settings, file, &flash)?;
    mapping(settings, file, &flash)?;
    cleaning(settings, file, &flash)?;
    controller(settings, file, &flash)
}

/// What several fields depend on.
struct FlashShape {
    lines: u32,
    dies: u64,
    /// Bytes of a page.
    page: u64,
    /// Bytes of all flash.
    raw: u64,
}

fn geometry(settings: &mut Settings, file: &mut DeviceFile) -> Result<FlashShape> {
    let sector = settings.count("secsz", 512, 1)?;
    let sectors = settings.count("secs_per_pg", 8, 1)?;
    let pages = settings.count("pgs_per_blk", 256, 1)?;
    let blocks = settings.count("blks_per_pl", 256, 1)?;
    let planes = settings.count("pls_per_lun", 1, 1)?;
    let luns = settings.count("luns_per_ch", 8, 1)?;
    let channels = settings.count("nchs", 8, 1)?;
    let parts = [&sector, &sectors, &pages, &blocks, &planes, &luns, &channels];
    let raw = settings.flash_bytes("nchs", &parts.map(|part| part.value))?;
    file.given("flash.channels", &channels);
    file.given("flash.dies_per_channel", &luns);
    file.given("flash.planes", &planes);
    let together = settings.count("mp_program", 0, 0)?;
    let reads = settings.count("mp_read", 0, 0)?;
    let origin = format!("{}, {}", together.origin, reads.origin);
    file.field("flash.multi_plane", together.value > 0 && planes.value > 1, &origin);
    if planes.value > 1 && (together.value > 0) != (reads.value > 0) {
        let note = "Reads and programs work on all planes, or both on one: as mp_program.";
        file.note("flash.multi_plane", note);
    }
    file.given("flash.blocks_per_plane", &blocks);
    file.given("flash.pages_per_block", &pages);
    let page = u64::from(sector.value) * u64::from(sectors.value);
    let origin = format!("{} x {}", sector.origin, sectors.origin);
    file.field("flash.page", size(page), &origin);
    let dies = u64::from(luns.value) * u64::from(channels.value);
    file.field("flash.superblock_dies", dies, "a line of FEMU spans all LUNs");
    if planes.value > 1 && together.value == 0 {
        let note = "A line of FEMU also spans the planes. Here it has blocks of one plane.";
        file.note("flash.superblock_dies", note);
    }
    let lines =
        if together.value > 0 { blocks.value } else { blocks.value.saturating_mul(planes.value) };
    Ok(FlashShape { lines, dies, page, raw })
}

/// Built-in times of a kind of cells: its name, tR and tPROG of the pages of a wordline, tBERS.
type CellTimes = (&'static str, &'static [u64], &'static [u64], u64);

/// FEMU's table, `hw/femu/nand/nand.h`.
const CELLS: [(&str, Option<CellTimes>); 5] = [
    ("0", None),
    ("1", Some(("slc", &[40_000], &[800_000], 2_000_000))),
    ("2", Some(("mlc", &[48_000, 64_000], &[850_000, 2_300_000], 3_000_000))),
    ("3", Some(("tlc", &[56_500, 77_500, 106_000], &[820_500, 2_225_000, 5_734_000], 3_000_000))),
    (
        "4",
        Some((
            "qlc",
            &[47_900, 76_200, 134_600, 228_100],
            &[861_525, 2_447_500, 6_880_800, 9_174_400],
            3_000_000,
        )),
    ),
];

fn flash_times(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    let cell = settings.choice("nand_cell_type", None, &CELLS)?;
    if let Some((name, reads, programs, erase)) = cell.value {
        file.field("flash.cell", format!("\"{name}\""), &cell.origin);
        file.field("flash.t_read", times(reads), &cell.origin);
        file.field("flash.t_program", times(programs), &cell.origin);
        file.field("flash.t_erase", time(erase), &cell.origin);
        if reads.len() > 1 {
            let note = "Times of FEMU's table, which versions change. They alternate from page to \
                        page, in FEMU in the order of paired pages.";
            file.note("flash.t_read", note);
        }
    } else {
        let origin = "one time for all pages";
        file.field("flash.cell", "\"slc\"", origin);
        for (field, name, default) in [
            ("flash.t_read", "pg_rd_lat", 40_000),
            ("flash.t_program", "pg_wr_lat", 200_000),
            ("flash.t_erase", "blk_er_lat", 2_000_000),
        ] {
            let one = settings.long(name, default)?;
            file.field(field, time(one.value), &one.origin);
        }
        for name in ["cell_pages", "pgtype_lat"] {
            settings.skip(name, "without nand_cell_type one time for all pages is used");
        }
    }
    let cycles = settings.count("pe_cycles_rated", 0, 0)?;
    if cycles.value > 0 {
        file.given("flash.endurance", &cycles);
    } else {
        file.approximate(
            "flash.endurance",
            100_000,
            "FEMU's blocks do not wear out",
            "Only lifetimes in reports use this number.",
        );
    }
    let suspend = settings.count("pe_suspend", 0, 0)?;
    if suspend.value > 0 {
        file.field("flash.suspend", "\"both\"", &suspend.origin);
        file.time("flash.t_suspend", &settings.long("tsusp_ns", 0)?);
        file.field("drive.scheduler", "\"read-first\"", &suspend.origin);
    }
    Ok(())
}

/// The bus of a channel: FEMU counts a time for each page.
fn channel(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    file.time("flash.t_command", &settings.long("cmd_addr_lat", 0)?);
    let newer = settings.long("pg_xfer_lat", 0)?;
    let page = if newer.value > 0 { newer } else { settings.long("ch_xfer_lat", 0)? };
    let rate = match page.value {
        0 => 0,
        nanos => flash.page.saturating_mul(1_000_000_000) / nanos,
    };
    let origin = format!("a page in {}", page.origin);
    file.field("flash.channel_bandwidth", bandwidth(rate), &origin);
    if rate > 0 {
        file.note("flash.channel_bandwidth", "Earlier versions of FEMU ignore this time.");
    }
    Ok(())
}

fn mapping(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let kinds = [("page", "page"), ("dftl", "dftl"), ("hybrid", "bast"), ("fast", "fast")];
    let kind = settings.choice("mapping", "page", &kinds)?;
    let origin = &kind.origin;
    match kind.value {
        "dftl" => {
            file.field("ftl.mapping", "\"dftl\"", origin);
            let cache = settings.count("mapping_cache_mb", 0, 0)?;
            let mib = if cache.value == 0 { 4 } else { u64::from(cache.value) };
            let note = "Entries have 8 bytes here.";
            file.approximate("ftl.map_cache", size(mib << 20), &cache.origin, note);
        }
        "page" => file.field("ftl.mapping", "\"page\"", origin),
        other => {
            let note = format!(
                "FEMU's mapping is {other}, whose number of log blocks is not an option there. \
                 This is page-level mapping."
            );
            file.approximate("ftl.mapping", "\"page\"", origin, note);
        }
    }
    file.field("ftl.mapping_unit", size(flash.page), "a page");
    file.field("ftl.frontiers", "\"shared\"", "FEMU copies to the open line of the host");
    Ok(())
}

fn cleaning(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let policies = [
        ("greedy", "greedy"),
        ("random", "random"),
        ("cost-benefit", "cost-benefit"),
        ("fifo", "fifo"),
        ("d-choice", "d-choices:4"),
    ];
    file.word("ftl.victim", &settings.choice("gc_policy", "greedy", &policies)?);
    let high = settings.number("gc_thres_pcent_high", 95.0, (0.0, 100.0))?;
    // In the C sources it is a share, not a percentage.
    let used = if high.value <= 1.0 { high.value } else { high.value / 100.0 };
    // FEMU cleans when as many lines are free, or fewer; here cleaning starts below a number.
    let free = ((1.0 - used) * f64::from(flash.lines)) as u32;
    let low = (free + 1).max(2);
    let note = "FEMU already cleans lines with much garbage when gc_thres_pcent of the lines are \
                used.";
    file.approximate("ftl.free_blocks_low", low, &high.origin, note);
    file.field("ftl.free_blocks_high", low, &high.origin);
    Ok(())
}

fn controller(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let spare = settings.count("op_pcent", 0, 0)?;
    let (capacity, origin) = if spare.value > 0 {
        let share = u128::from(flash.raw) * 100 / (100 + u128::from(spare.value));
        (share as u64, format!("{} of the flash", spare.origin))
    } else {
        let mib = settings.count("devsz_mb", 1024, 1)?;
        (u64::from(mib.value) << 20, mib.origin)
    };
    file.field("drive.capacity", size(capacity / flash.page * flash.page), &origin);
    let firmware = settings.long("fw_cpu_ns", 0)?;
    file.firmware(&firmware);
    if firmware.value > 0 {
        file.field("drive.firmware_cores", 1, "FEMU models one core");
    }
    let link = settings.count("pcie_bandwidth_mbps", 0, 0)?;
    let rate = u64::from(link.value) * 1_000_000;
    file.field("drive.link_bandwidth", bandwidth(rate), &link.origin);
    let entries = settings.count("entries", 2047, 1)?;
    file.field("drive.queue_depth", entries.value.saturating_add(1), &entries.origin);
    file.given("drive.queues", &settings.count("queues", 8, 1)?);
    write_buffer(settings, file, flash)
}

fn write_buffer(settings: &mut Settings, file: &mut DeviceFile, flash: &FlashShape) -> Result<()> {
    let pages = settings.count("buffer_size", 0, 0)?;
    // All pages of a wordline on each die, which a buffer needs without protection.
    let least = (flash.page * flash.dies * 4).max(1 << 20);
    if pages.value == 0 {
        let origin = "on its way to flash";
        file.field("drive.write_buffer", size(least), origin);
        file.field("drive.write_cache", "\"write-through\"", &pages.origin);
        let origin = "a write is complete on flash; FEMU loses no power";
        file.field("drive.power_loss_protection", true, origin);
        return Ok(());
    }
    let Given { value, origin } = pages;
    let bytes = u64::from(value) * flash.page;
    file.field("drive.write_buffer", size(bytes.max(least)), &origin);
    if bytes < least {
        file.note("drive.write_buffer", "A buffer holds at least a wordline of each die.");
    }
    file.field("drive.write_cache", "\"write-back\"", &origin);
    file.field("drive.power_loss_protection", false, "a flush writes the buffer to flash");
    Ok(())
}
