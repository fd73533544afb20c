//! MQSim's description of a drive, `ssdconfig.xml`.
//!
//! Source: the README and the sources of CMU-SAFARI/MQSim; Tavakkol et al., "MQSim", FAST'18.
//! Times are nanoseconds, sizes bytes, rates of channels millions of transfers per second.

use super::device_file::{DeviceFile, bandwidth, size, times};
use super::error::Result;
use super::settings::{Given, Settings};

/// Settings that a device file cannot express.
pub const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("SATA_Processing_Delay", "only used with SATA"),
    ("Enable_ResponseTime_Logging", "logging; prism sim --requests writes every request"),
    ("ResponseTime_Logging_Period_Length", "logging"),
    ("Seed", "prism sim --seed"),
    ("Enabled_Preconditioning", "prism sim --state sets what the drive holds before the run"),
    ("Caching_Mechanism", "the write buffer has one mechanism"),
    ("Data_Cache_Sharing_Mode", "all requests share the write buffer"),
    ("Data_Cache_DRAM_*", "memory of the controller takes no time"),
    ("CMT_Capacity", "not used with Ideal_Mapping_Table"),
    ("CMT_Sharing_Mode", "all requests share the cached map"),
    ("Plane_Allocation_Scheme", "pages are dealt out to dies as they become free"),
    ("GC_Hard_Threshold", "not used without Preemptible_GC_Enabled"),
    ("Static_Wearleveling_Threshold", "not used without Static_Wearleveling_Enabled"),
    ("Preferred_suspend_*", "an operation is suspended whatever is left of it"),
    ("Flash_Comm_Protocol", "command and address cycles take no time; see flash.t_command"),
    ("Suspend_*", "not used with this CMD_Suspension_Support"),
    ("Page_Metadat_Capacity", "out-of-band bytes are not transferred"),
];

/// Adds the fields of the drive.
pub fn convert(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    settings.choice("Memory_Type", (), &[("FLASH", ())])?;
    let planes = geometry(settings, file)?;
    flash_times(settings, file)?;
    channel(settings, file)?;
    scheduler(settings, file)?;
    mapping(settings, file, &planes)?;
    cleaning(settings, file, &planes)?;
    wear(settings, file)?;
    controller(settings, file, &planes)
}

/// What several fields depend on.
struct Planes {
    /// Planes of the whole drive.
    all: u64,
    /// Planes of a die.
    per_die: u32,
    blocks: u32,
    pages_per_block: u32,
    page: u32,
}

impl Planes {
    fn pages(&self) -> u64 {
        self.all * u64::from(self.blocks) * u64::from(self.pages_per_block)
    }

    fn sectors_per_page(&self) -> u32 {
        self.page / 512
    }
}

fn geometry(settings: &mut Settings, file: &mut DeviceFile) -> Result<Planes> {
    let channels = settings.count("Flash_Channel_Count", 8, 1)?;
    let chips = settings.count("Chip_No_Per_Channel", 4, 1)?;
    let dies = settings.count("Die_No_Per_Chip", 2, 1)?;
    let planes = settings.count("Plane_No_Per_Die", 2, 1)?;
    let blocks = settings.count("Block_No_Per_Plane", 2048, 1)?;
    let pages = settings.count("Page_No_Per_Block", 256, 1)?;
    let page = settings.count("Page_Capacity", 8192, 512)?;
    let parts = [&channels, &chips, &dies, &planes, &blocks, &pages, &page].map(|part| part.value);
    settings.flash_bytes("Flash_Channel_Count", &parts)?;
    let dies_per_channel = u64::from(chips.value) * u64::from(dies.value);
    file.given("flash.channels", &channels);
    let origin = format!("{} x {}", chips.origin, dies.origin);
    file.field("flash.dies_per_channel", dies_per_channel, &origin);
    file.given("flash.planes", &planes);
    file.field("flash.multi_plane", false, "how MQSim works");
    if planes.value > 1 {
        file.note(
            "flash.multi_plane",
            "MQSim works on several planes of a die at once when operations on the same page of \
             each happen to wait. This drive works on them one at a time.",
        );
    }
    file.given("flash.blocks_per_plane", &blocks);
    file.given("flash.pages_per_block", &pages);
    file.field("flash.page", size(page.value.into()), &page.origin);
    Ok(Planes {
        all: u64::from(channels.value) * dies_per_channel * u64::from(planes.value),
        per_die: planes.value,
        blocks: blocks.value,
        pages_per_block: pages.value,
        page: page.value,
    })
}

/// Kinds of cells: the name in device files, and the pages of a wordline in MQSim's names.
const CELLS: [(&str, (&str, &[&str])); 3] = [
    ("SLC", ("slc", &["LSB"])),
    ("MLC", ("mlc", &["LSB", "MSB"])),
    ("TLC", ("tlc", &["LSB", "CSB", "MSB"])),
];

fn flash_times(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    let cell = settings.choice("Flash_Technology", CELLS[1].1, &CELLS)?;
    let (name, pages) = cell.value;
    file.field("flash.cell", format!("\"{name}\""), &cell.origin);
    for (field, operation, default) in
        [("flash.t_read", "Read", 75_000), ("flash.t_program", "Program", 750_000)]
    {
        let mut of_pages = Vec::new();
        let mut origins = Vec::new();
        for page in pages {
            let one = settings.long(&format!("Page_{operation}_Latency_{page}"), default)?;
            of_pages.push(one.value);
            origins.push(one.origin);
        }
        file.field(field, times(&of_pages), &origins.join(", "));
        if name == "tlc" && of_pages.iter().any(|time| *time != of_pages[0]) {
            file.note(
                field,
                "MQSim programs pages of a TLC block in an interleaved order. Here the three \
                 times alternate from page to page.",
            );
        }
        for page in ["LSB", "CSB", "MSB"].iter().filter(|page| !pages.contains(page)) {
            let why = format!("not used for {}", name.to_uppercase());
            settings.skip(&format!("Page_{operation}_Latency_{page}"), &why);
        }
    }
    file.time("flash.t_erase", &settings.long("Block_Erase_Latency", 3_800_000)?);
    file.given("flash.endurance", &settings.count("Block_PE_Cycles_Limit", 10_000, 1)?);
    Ok(())
}

fn channel(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    let rate = settings.count("Channel_Transfer_Rate", 300, 1)?;
    let width = settings.count("Flash_Channel_Width", 1, 1)?;
    let nominal = (u64::from(rate.value) * 1_000_000).saturating_mul(width.value.into());
    let origin = format!("{} x {}", rate.origin, width.origin);
    file.field("flash.channel_bandwidth", bandwidth(nominal), &origin);
    file.field("flash.channel_arbitration", "\"data-first\"", "how MQSim works");
    // MQSim computes in whole nanoseconds for each transfer.
    let effect = match 1000 / rate.value {
        0 => "take no time".to_owned(),
        cycle => {
            let real = u64::from(width.value) * 1_000_000_000 / u64::from(cycle);
            if real.abs_diff(nominal) < nominal / 100 {
                return Ok(());
            }
            format!("run at {} MB/s", real / 1_000_000)
        }
    };
    let note = format!(
        "MQSim rounds the time of one transfer down to whole nanoseconds, so transfers {effect} \
         there."
    );
    file.note("flash.channel_bandwidth", note);
    Ok(())
}

fn scheduler(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    let policies = [
        ("OUT_OF_ORDER", "read-first"),
        ("PRIORITY_OUT_OF_ORDER", "priority"),
        ("FLIN", "read-first"),
    ];
    let policy = settings.choice("Transaction_Scheduling_Policy", "read-first", &policies)?;
    let note = "MQSim serves reads before writes, and both before erases, on each chip. Here reads \
                overtake other operations of their die at most 64 times. Fairness between flows \
                is not modelled.";
    let value = format!("\"{}\"", policy.value);
    file.approximate("drive.scheduler", value, &policy.origin, note);
    let kinds =
        [("NONE", "none"), ("PROGRAM", "program"), ("ERASE", "erase"), ("PROGRAM_ERASE", "both")];
    let suspend = settings.choice("CMD_Suspension_Support", "erase", &kinds)?;
    file.word("flash.suspend", &suspend);
    if suspend.value == "none" {
        return Ok(());
    }
    let (programs, erases) = (suspend.value != "erase", suspend.value != "program");
    let mut cost = Given { value: 0, origin: String::new() };
    let costs =
        [("Suspend_Program_Time", 100_000, programs), ("Suspend_Erase_Time", 700_000, erases)];
    for (name, default, _) in costs.into_iter().filter(|&(_, _, applies)| applies) {
        let one = settings.long(name, default)?;
        if one.value >= cost.value {
            cost = one;
        }
    }
    file.time("flash.t_suspend", &cost);
    if programs && erases {
        file.note("flash.t_suspend", "One time for programs and erases: the longer one.");
    }
    Ok(())
}

fn mapping(settings: &mut Settings, file: &mut DeviceFile, planes: &Planes) -> Result<()> {
    let kind =
        settings.choice("Address_Mapping", false, &[("PAGE_LEVEL", false), ("HYBRID", true)])?;
    let ideal = settings.flag("Ideal_Mapping_Table", false)?;
    let origin = format!("{}, {}", kind.origin, ideal.origin);
    file.field("ftl.mapping", if ideal.value { "\"page\"" } else { "\"dftl\"" }, &origin);
    if kind.value {
        file.note("ftl.mapping", "MQSim's hybrid mapping is page-level mapping here.");
    }
    file.field("ftl.mapping_unit", size(planes.page.into()), "Page_Capacity");
    if ideal.value {
        return Ok(());
    }
    // An entry holds two page numbers and a bit for each sector of a page.
    let capacity = settings.long("CMT_Capacity", 2 << 20)?;
    let bits = 2.0 * (planes.pages().max(1) as f64).log2() + f64::from(planes.sectors_per_page());
    let entry = (bits / 8.0).ceil() as u64;
    let entries = capacity.value / entry.max(1);
    let note = format!(
        "MQSim caches {entries} entries of {entry} bytes. This cache holds as many entries of 8 \
         bytes."
    );
    file.approximate("ftl.map_cache", size(entries.saturating_mul(8)), &capacity.origin, note);
    Ok(())
}

fn cleaning(settings: &mut Settings, file: &mut DeviceFile, planes: &Planes) -> Result<()> {
    file.field("ftl.frontiers", "\"separate\"", "MQSim copies to blocks of their own");
    let choices = format!("d-choices:{}", planes.blocks.ilog2().max(1));
    let policies = [
        ("GREEDY", "greedy"),
        ("RGA", choices.as_str()),
        ("RANDOM", "random"),
        ("RANDOM_P", "random"),
        ("RANDOM_PP", "random"),
        ("FIFO", "fifo"),
    ];
    let victim = settings.text("GC_Block_Selection_Policy").unwrap_or_else(|| "RGA".into());
    let found = policies.iter().find(|(name, _)| name.eq_ignore_ascii_case(&victim));
    let Some((_, policy)) = found else {
        let why = "expected is one of GREEDY, RGA, RANDOM, RANDOM_P, RANDOM_PP, FIFO";
        return Err(settings.refuse("GC_Block_Selection_Policy", why));
    };
    let origin = format!("GC_Block_Selection_Policy {victim}");
    file.field("ftl.victim", format!("\"{policy}\""), &origin);
    if victim.to_ascii_uppercase().starts_with("RANDOM_") {
        file.note(
            "ftl.victim",
            format!("{victim} skips blocks with little garbage, random does not."),
        );
    }
    let threshold = settings.number("GC_Exec_Threshold", 0.05, (0.0, 1.0))?;
    // MQSim counts the blocks of a plane; the blocks of a die group are those of all planes.
    let of_die = |share: f64| {
        let of_plane = ((share * f64::from(planes.blocks)) as u32).max(1);
        of_plane.saturating_mul(planes.per_die)
    };
    let low = of_die(threshold.value).max(2);
    file.field("ftl.free_blocks_low", low, &threshold.origin);
    file.field("ftl.free_blocks_high", low, &threshold.origin);
    let preemptible = settings.flag("Preemptible_GC_Enabled", true)?;
    if preemptible.value {
        let hard = settings.number("GC_Hard_Threshold", 0.005, (0.0, 1.0))?;
        let critical = of_die(hard.value).clamp(2, low);
        file.field("ftl.free_blocks_critical", critical, &hard.origin);
        let note = "MQSim's cleaning gives way to requests of the chip, here to those of the die.";
        file.approximate("ftl.cleaning", "\"partial\"", &preemptible.origin, note);
    } else {
        file.field("ftl.cleaning", "\"foreground\"", &preemptible.origin);
    }
    file.given("flash.copy_back", &settings.flag("Use_Copyback_for_GC", true)?);
    Ok(())
}

fn wear(settings: &mut Settings, file: &mut DeviceFile) -> Result<()> {
    file.given("ftl.wear_least_worn_first", &settings.flag("Dynamic_Wearleveling_Enabled", true)?);
    let fixed = settings.flag("Static_Wearleveling_Enabled", true)?;
    if fixed.value {
        let behind = settings.count("Static_Wearleveling_Threshold", 100, 1)?;
        let note = "MQSim compares the least and the most worn block of a plane. Here a block is \
                    compared with the mean of its die group.";
        file.approximate("ftl.wear_move_behind_mean", behind.value, &behind.origin, note);
    }
    Ok(())
}

fn controller(settings: &mut Settings, file: &mut DeviceFile, planes: &Planes) -> Result<()> {
    let spare = settings.number("Overprovisioning_Ratio", 0.07, (0.0, 0.99))?;
    let sectors = f64::from(planes.blocks)
        * f64::from(planes.pages_per_block)
        * f64::from(planes.sectors_per_page());
    let sectors = planes.all * (sectors * (1.0 - spare.value)) as u64;
    let page = u64::from(planes.page);
    let capacity = sectors * 512 / page * page;
    file.field("drive.capacity", size(capacity), &format!("1 - {} of the flash", spare.origin));
    let interface =
        settings.choice("HostInterface_Type", false, &[("NVME", false), ("SATA", true)])?;
    let firmware = if interface.value {
        settings.long("SATA_Processing_Delay", 400_000)?
    } else {
        Given { value: 0, origin: "MQSim's firmware takes no time".into() }
    };
    file.firmware(&firmware);
    if interface.value {
        let note = "MQSim's delay is that of the host and the SATA adapter together.";
        file.note("drive.firmware_read", note);
    }
    let width = settings.count("PCIe_Lane_Count", 4, 1)?;
    let rate = settings.number("PCIe_Lane_Bandwidth", 1.0, (1e-6, 1e6))?;
    let link = (rate.value * 1e9 * f64::from(width.value)).round() as u64;
    let origin = format!("{} x {}", rate.origin, width.origin);
    file.field("drive.link_bandwidth", bandwidth(link), &origin);
    file.given("drive.queue_depth", &settings.count("IO_Queue_Depth", 1024, 1)?);
    let queues =
        if interface.value { (1, "one queue with SATA") } else { (8, "one for each flow") };
    file.field("drive.queues", queues.0, queues.1);
    if interface.value {
        settings.skip("Queue_Fetch_Size", "only used with NVMe");
    } else {
        let fetch = settings.count("Queue_Fetch_Size", 512, 1)?;
        let note = "MQSim limits the requests in service for each queue, this drive for all \
                    queues together.";
        file.approximate("drive.in_service", fetch.value, &fetch.origin, note);
    }
    let cache = settings.long("Data_Cache_Capacity", 512 << 20)?;
    file.field("drive.write_buffer", size(cache.value.max(page)), &cache.origin);
    let note = "MQSim chooses for each flow (Device_Level_Data_Caching_Mode of the workload) \
                whether a write is complete in the cache. Reads are not cached here.";
    file.approximate("drive.write_cache", "\"write-back\"", "flows with WRITE_CACHE", note);
    let note = "MQSim knows neither FLUSH nor a loss of power, so a flush costs nothing here.";
    file.approximate("drive.power_loss_protection", true, "how MQSim works", note);
    Ok(())
}
