//! Jobs with `zonemode=zbd` on a zoned drive: offsets of writes, resets and finishes, and options
//! that do not combine.

use crate::common::{Log, parse_for, prepared};
use prism_base::Bytes;
use prism_ssd::spec::FaultSpec;
use prism_ssd::{Drive, DriveSpec, HostOp, InitialState, ZoneState};
use prism_testkit::{all_seeds, seeds};
use prism_workload::fio::{self, FioError, Job, RunResult, Target};

const UNIT: u64 = 4096;
const ZONE: u64 = 80 * UNIT;
const CAPACITY: u64 = 64 * UNIT;
const ZONES: u64 = 8;

/// Eight zones of 320 KiB that hold 256 KiB; three may be open.
fn device() -> DriveSpec {
    let mut device = DriveSpec::preset("zn540").unwrap();
    device.flash.channels = 2;
    device.flash.dies_per_channel = 1;
    device.flash.superblock_dies = 2;
    device.flash.page = Bytes(8192);
    device.flash.pages_per_program = 1;
    device.flash.pages_per_block = 8;
    device.flash.blocks_per_plane = 10;
    device.ftl.zone_size = Some(Bytes(ZONE));
    device.ftl.max_open_zones = Some(3);
    device.ftl.max_active_zones = Some(3);
    device.drive.capacity = Bytes(ZONES * ZONE);
    device.drive.write_buffer = Bytes(20 * UNIT);
    device.check().unwrap();
    device
}

fn parse(text: &str) -> Result<Vec<Job>, FioError> {
    parse_for(text, Target::of(&device()))
}

fn of_one(options: &str) -> String {
    format!("[job]\nzonemode=zbd\n{}\n", options.replace(' ', "\n"))
}

struct Ran {
    outcome: RunResult,
    log: Log,
    drive: Drive,
}

impl Ran {
    fn of(text: &str, state: InitialState) -> Self {
        Self::on(prepared(device(), state), text)
    }

    fn on(mut drive: Drive, text: &str) -> Self {
        let mut log = Log::default();
        let outcome = fio::run(&mut drive, &parse(text).unwrap(), &mut log).unwrap();
        while drive.next_event().is_some() {
            drive.step(&mut Vec::new());
        }
        Self { outcome, log, drive }
    }

    fn states(&self) -> String {
        let letter = |state: ZoneState| state.name().chars().next().unwrap();
        self.drive.zones().unwrap().report().map(|zone| letter(zone.state)).collect()
    }

    fn resets(&self) -> u64 {
        self.outcome.total.latency_of(HostOp::ZoneReset).count()
    }

    fn finishes(&self) -> u64 {
        self.outcome.total.latency_of(HostOp::ZoneFinish).count()
    }

    fn written(&self) -> u64 {
        self.outcome.total.bytes_of(HostOp::Write)
    }
}

#[test]
fn sequential_writes_fill_one_zone_after_another() {
    let ran = Ran::of(&of_one("rw=write bs=32k"), InitialState::Empty);
    assert_eq!(ran.states(), "ffffffff");
    assert_eq!((ran.written(), ran.resets()), (ZONES * CAPACITY, 0));
    let offsets: Vec<_> = ran.log.issued.iter().map(|io| io.offset / 1024).collect();
    assert_eq!(offsets[..9], [0, 32, 64, 96, 128, 160, 192, 224, 320]);
    // Full zones are reset, each before its first write.
    let ran = Ran::of(&of_one("rw=write bs=32k iodepth=4 size=640k"), InitialState::Filled);
    assert_eq!((ran.written(), ran.resets()), (2 * CAPACITY, 2));
    let programmed = ran.drive.flash_counts().units.total();
    assert_eq!((programmed + u64::from(ran.drive.buffered_units())) * UNIT, ran.written());
}

#[test]
fn random_writes_go_to_write_pointers_of_a_few_zones() {
    for depth in [1, 8] {
        let options = format!("rw=randwrite bs=8k io_size=1m iodepth={depth} max_open_zones=2");
        let ran = Ran::of(&of_one(&options), InitialState::Empty);
        assert_eq!(ran.written(), 1 << 20);
        assert!(ran.drive.zones().unwrap().active() <= 2);
        // Writes within a zone are sequential, and start at its begin after a reset.
        for zone in 0..ZONES {
            let writes = ran.log.issued.iter().filter(|io| io.offset / ZONE == zone);
            let offsets: Vec<_> = writes.map(|io| (io.offset - zone * ZONE) / 8192).collect();
            let follow = |pair: &[u64]| pair[1] == pair[0] + 1 || pair == [CAPACITY / 8192 - 1, 0];
            assert!(offsets.windows(2).all(follow), "zone {zone}: {offsets:?}");
            assert!(offsets.first().is_none_or(|&first| first == 0));
        }
    }
}

/// Blocks of 24 KiB leave 16 KiB of 256 KiB, too small for another block.
#[test]
fn zones_are_finished_where_no_block_fits() {
    let ran = Ran::of(&of_one("rw=write bs=24k size=960k"), InitialState::Empty);
    assert_eq!(ran.written(), 3 * 10 * 24 * 1024);
    assert_eq!(ran.finishes(), 2);
    assert_eq!(ran.states(), "ffieeeee");
    let ran = Ran::of(&of_one("rw=randwrite bs=24k io_size=4m iodepth=4"), InitialState::Empty);
    assert!(ran.finishes() > 8 && ran.resets() > 4, "{} {}", ran.finishes(), ran.resets());
}

#[test]
fn zones_are_reset_beyond_the_threshold() {
    let options = "rw=randwrite bs=8k io_size=4m zone_reset_threshold=0.5 zone_reset_frequency=0.1";
    let ran = Ran::of(&of_one(options), InitialState::Empty);
    let without = Ran::of(&of_one("rw=randwrite bs=8k io_size=4m"), InitialState::Empty);
    assert_eq!((ran.written(), without.written()), (4 << 20, 4 << 20));
    assert!(ran.resets() > without.resets(), "{} {}", ran.resets(), without.resets());
    let written = |ran: &Ran| -> u64 {
        let report = ran.drive.zones().unwrap().report();
        report.map(|zone| zone.write_pointer - zone.start).sum()
    };
    assert!(written(&ran) < written(&without));
}

#[test]
fn reads_go_where_data_is() {
    let text = format!(
        "{}[read]\nstonewall\nzonemode=zbd\nrw=randread\nbs=4k\nio_size=1m\n",
        of_one("rw=write size=640k")
    );
    let ran = Ran::of(&text, InitialState::Empty);
    assert_eq!(ran.outcome.total.unmapped, 0);
    let reads: Vec<_> = ran.log.issued.iter().filter(|io| io.op == HostOp::Read).collect();
    assert_eq!(reads.len(), 256);
    assert!(reads.iter().all(|io| io.offset < 2 * ZONE && io.offset % ZONE < CAPACITY));
    // Sequential reads skip the unwritten parts of zones, and end after the last data.
    let text = text.replace("randread", "read");
    let ran = Ran::of(&text, InitialState::Empty);
    assert_eq!(ran.outcome.total.bytes_of(HostOp::Read), 2 * CAPACITY);
    assert_eq!(ran.outcome.total.unmapped, 0);
    let nothing = Ran::of(&of_one("rw=randread"), InitialState::Empty);
    assert_eq!(nothing.outcome.total.requests, 0);
}

/// Jobs that share zones at any depth neither conflict nor stall.
#[test]
fn jobs_share_zones() {
    for (bs, depth) in [("4k", 1), ("12k", 16), ("4k-32k", 5)] {
        let bs = if bs.contains('-') { format!("bsrange={bs}") } else { format!("bs={bs}") };
        let text = format!(
            "[global]\nzonemode=zbd\n{bs}\niodepth={depth}\nio_size=2m\n\
             [a]\nrw=randwrite\n[b]\nrw=randrw\n[c]\nrw=write\noffset=1280k\n\
             [d]\nrw=write\nsize=640k\n"
        );
        let ran = Ran::of(&text, InitialState::FilledTo { share: 0.5 });
        ran.drive.assert_consistent();
        assert!(ran.written() > 4 << 20, "{bs}: {}", ran.written());
    }
}

#[test]
fn options_that_do_not_combine_are_refused() {
    let check = |text: &str, part: &str| {
        let error = parse(&text.replace(' ', "\n")).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    };
    check("[j] rw=randwrite", "give zonemode=zbd, or another --device");
    check("[j] rw=randtrim", "give zonemode=zbd");
    check("[j] rw=trim zonemode=zbd", "trims with zonemode=zbd are not simulated");
    check("[j] zonemode=strided", "strided is not simulated");
    check("[j] rw=write zonemode=zbd zonesize=1m", "zones of this drive are 327680 bytes apart");
    check("[j] rw=write zonemode=zbd bs=2k", "multiples of 4096");
    check("[j] rw=write zonemode=zbd bs=1m", "which holds 262144 bytes");
    check("[j] rw=write zonemode=zbd size=64k", "no whole zone");
    check("[j] rw=write zonemode=zbd max_open_zones=4", "more than the 3");
    check("[j] rw=read max_open_zones=2", "means nothing without zonemode=zbd");
    check("[j] rw=write zonemode=zbd zone_reset_threshold=2", "no number from 0 to 1");
    check("[j] rw=write zonemode=zbd zonerange=1m", "does not simulate");
    assert_eq!(parse("[j]\nrw=randread\n").unwrap().len(), 1);
    let error = parse_for("[j]\nrw=write\nzonemode=zbd\n", 1 << 30).unwrap_err().to_string();
    assert!(error.contains("needs a zoned drive"), "{error}");
}

/// Zones fail while jobs use them: I/Os in flight to a failed zone fail, later ones use other
/// zones, and the jobs run to their end.
#[test]
fn random_failures_of_zones_do_not_stop_jobs() {
    let (mut failed, mut errors, mut written) = (0, 0, 0);
    for seed in seeds(0..20) {
        let mut device = device();
        let mut faults = FaultSpec::of_kind("tlc");
        faults.factory_bad = Some(0.0);
        faults.program_failure = Some(0.02);
        faults.erase_failure = Some(0.02);
        (faults.program_exponent, faults.erase_exponent) = (Some(0.0), Some(0.0));
        device.faults = Some(faults);
        let text = "[w]\nzonemode=zbd\nrw=randrw\nbs=16k\niodepth=4\nioengine=libaio\n\
                    io_size=4m\nnorandommap\n";
        let ran = Ran::on(Drive::new(device, seed).unwrap(), text);
        ran.drive.assert_consistent();
        let zones = ran.drive.zones().unwrap();
        failed += zones.count(ZoneState::ReadOnly) + zones.count(ZoneState::Offline);
        errors += ran.outcome.total.errors[HostOp::Write as usize];
        written += ran.written();
    }
    assert!(!all_seeds() || failed >= 30 && errors >= 8, "{failed} zones failed, {errors} writes");
    // Drives become read-only early here.
    assert!(!all_seeds() || written > 20 * ZONES * CAPACITY / 8, "{written}");
}
