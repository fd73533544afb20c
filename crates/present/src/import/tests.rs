//! Real configurations, field by field, and damaged ones.

use prism_ssd::DriveSpec;
use prism_workload::fio;

use super::{Imported, import};

const MQSIM: &str = include_str!("../../tests/data/import/mqsim-ssdconfig.xml");
const MQSIM_FETCH: &str = include_str!("../../tests/data/import/mqsim-queue-fetch-size-16.xml");
const WORKLOAD: &str = include_str!("../../tests/data/import/mqsim-workload.xml");
const SAMPLE: &str = include_str!("../../tests/data/import/simplessd-sample.cfg");
const INTEL750: &str = include_str!("../../tests/data/import/simplessd-intel750.cfg");
const SPDK: &str = include_str!("../../tests/data/import/simplessd-gem5-spdk.cfg");
const FEMU: &str = include_str!("../../tests/data/import/femu-run-blackbox.sh");
const QLC: &str = include_str!("../../tests/data/import/femu-qlc.conf");
const BUFFER: &str = include_str!("../../tests/data/import/femu-write-buffer.conf");

fn converted(text: &str) -> Imported {
    import(text, "it", "it.fio", None).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks every field of the device file that `text` becomes, except those with the same value in
/// all files, against `expected`: one section, and `name value` pairs between semicolons.
fn check(text: &str, expected: [(&str, &str); 3]) -> DriveSpec {
    let imported = converted(text);
    let table: toml::Table = imported.text.parse().unwrap();
    for (section, fields) in expected {
        let mut found: Vec<String> = table[section]
            .as_table()
            .unwrap()
            .iter()
            .map(|(name, value)| format!("{name} {}", value.to_string().replace('"', "")))
            .collect();
        // Numbers that follow from how drives are scaled are not repeated here.
        for field in &mut found {
            let name = field.split(' ').next().unwrap_or_default().to_owned();
            if fields.contains(&format!("{name} *")) {
                *field = format!("{name} *");
            }
        }
        found.sort();
        let mut expected: Vec<String> = fields
            .split(';')
            .map(|field| field.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "[{section}] of\n{}", imported.text);
    }
    let listed = imported.text.lines().filter(|line| line.starts_with("#   line ")).count();
    assert_eq!(listed, imported.left_out);
    let noted = imported.text.matches("# Approximation: ").count();
    assert_eq!(noted, imported.approximations);
    DriveSpec::from_toml(&imported.text).unwrap()
}

/// The settings of MQSim's own example. Flash: 8 x 4 x 2 dies of 2 x 2048 blocks of 256 pages of
/// 8 KiB are 512 GiB. Of the 8,388,608 sectors of a plane 93 % are 7,801,405; of 128 planes,
/// 499,289,920 KiB. A cached entry has 2 x 26 + 16 bits, 9 bytes, so 233,016 fit 2 MiB.
#[test]
fn mqsims_example() {
    let spec = check(
        MQSIM,
        [
            (
                "flash",
                "cell mlc; channels 8; dies_per_channel 8; planes 2; multi_plane false;
                 blocks_per_plane 2048; pages_per_block 256; page 8KiB; t_read 75us;
                 t_program 75us; t_erase 3800us; endurance 10000; channel_bandwidth 333MB/s;
                 channel_arbitration data-first;
                 suspend erase; t_suspend 700us; copy_back false",
            ),
            (
                "ftl",
                "mapping dftl; mapping_unit 8KiB; map_cache 1864128B; frontiers separate;
                 victim d-choices:11; free_blocks_low *; free_blocks_high *;
                 cleaning foreground; wear_least_worn_first true; wear_move_behind_mean 100",
            ),
            (
                "drive",
                "capacity 499289920KiB; firmware_read 0ns; firmware_write 0ns;
                 link_bandwidth 400MB/s; queue_depth 65535; queues 8; in_service 512;
                 scheduler read-first; write_buffer 256MiB; write_cache write-back;
                 power_loss_protection true",
            ),
        ],
    );
    // 5 % of 2 x 2048 blocks, or fewer where these leave too little for the data.
    assert!((102..=204).contains(&spec.ftl.free_blocks_low), "{}", spec.ftl.free_blocks_low);
    // 512 / 476.16 - 1
    assert!((spec.over_provisioning().nominal - 0.0752).abs() < 0.0002);
}

#[test]
fn mqsims_configuration_of_the_paper() {
    let imported = converted(MQSIM_FETCH);
    for field in [
        "mapping = \"page\"  # Address_Mapping, Ideal_Mapping_Table",
        "t_program = \"750us\"  # Page_Program_Latency_LSB, Page_Program_Latency_MSB",
        "in_service = 16  # Queue_Fetch_Size",
        "link_bandwidth = \"4GB/s\"  # PCIe_Lane_Bandwidth x PCIe_Lane_Count",
        "line 28: CMT_Capacity = 2097152: not used with Ideal_Mapping_Table",
        "line 53: Page_Read_Latency_CSB = 75000: not used for MLC",
    ] {
        assert!(imported.text.contains(field), "{field}:\n{}", imported.text);
    }
    assert!(!imported.text.contains("HostInterface_Type ="), "it is used");
    let sata = converted(&MQSIM_FETCH.replace(">NVME<", ">SATA<")).text;
    assert!(sata.contains("firmware_write = \"400us\"  # SATA_Processing_Delay"), "{sata}");
    assert!(sata.contains("Queue_Fetch_Size = 16: only used with NVMe"), "{sata}");
}

/// 6 x 10 dies of 2 planes that work together. A superblock holds 6 x 2 x 512 pages of 16 KiB, 96
/// MiB, and 3980 of 5120 are for the host.
#[test]
fn simplessds_intel_750() {
    let spec = check(
        INTEL750,
        [
            (
                "flash",
                "cell mlc; channels 6; dies_per_channel 10; planes 2; multi_plane true;
                 blocks_per_plane 512; pages_per_block 512; page 16KiB;
                 t_read [60813ns, 107810ns]; t_program [1160310ns, 2625us]; t_erase 3ms;
                 endurance 100000; channel_bandwidth 333MB/s; superblock_dies 6",
            ),
            (
                "ftl",
                "mapping page; mapping_unit 32KiB; frontiers shared; victim greedy;
                 free_blocks_low 26; free_blocks_high 26; wear_least_worn_first true",
            ),
            (
                "drive",
                "capacity 382080MiB; firmware_read 0ns; firmware_write 0ns;
                 link_bandwidth infinite; queue_depth 65536; queues 16; write_buffer 512MiB;
                 write_cache write-back; power_loss_protection false",
            ),
        ],
    );
    // 5120 / 3980 - 1
    assert!((spec.over_provisioning().nominal - 0.2864).abs() < 0.0001);
}

/// 4096 superblocks of 128 MiB, of which three quarters are for the host.
#[test]
fn simplessds_example() {
    let spec = check(
        SAMPLE,
        [
            (
                "flash",
                "cell mlc; channels 8; dies_per_channel 8; planes 2; multi_plane true;
                 blocks_per_plane 512; pages_per_block 512; page 16KiB; t_read [40us, 65us];
                 t_program [500us, 1300us]; t_erase 3500us; endurance 100000;
                 channel_bandwidth 400MB/s; superblock_dies 8",
            ),
            (
                "ftl",
                "mapping page; mapping_unit 32KiB; frontiers shared; victim greedy;
                 free_blocks_low 26; free_blocks_high 26; wear_least_worn_first true",
            ),
            (
                "drive",
                "capacity 384GiB; firmware_read 5us; firmware_write 5us;
                 link_bandwidth infinite; queue_depth 65536; queues 16; write_buffer 512MiB;
                 write_cache write-back; power_loss_protection false",
            ),
        ],
    );
    assert!((spec.over_provisioning().nominal - 1.0 / 3.0).abs() < 1e-9);
    let text = converted(SAMPLE).text;
    assert!(
        text.contains("line 21: pal.CSBRead = 0: not used for MLC") || text.contains("CSBRead")
    );
}

/// A file with settings that SimpleSSD itself does not have.
#[test]
fn unknown_settings_are_named() {
    let text = converted(SPDK).text;
    let (_, unknown) = text.split_once("# Settings not understood (4):\n").expect("a list");
    for (name, line) in unknown.lines().zip([
        "UncoreMode = 0",
        "CQBatchN = 8",
        "CQBatchT = 4000000",
        "DBBatchB = 4",
    ]) {
        assert!(name.ends_with(line), "{name}");
    }
    // 4 x 984.6 MB/s
    assert!(text.contains("link_bandwidth = \"3938461540B/s\""), "{text}");
}

/// FEMU's script: 64 dies of 256 blocks of 256 pages of 4 KiB are 16 GiB, 12 of them for the host.
/// Cleaning is urgent when 5 % of the lines, 12, are free or fewer.
#[test]
fn femus_script() {
    let spec = check(
        FEMU,
        [
            (
                "flash",
                "cell slc; channels 8; dies_per_channel 8; planes 1; multi_plane false;
                 blocks_per_plane 256; pages_per_block 256; page 4KiB; t_read 40us;
                 t_program 200us; t_erase 2ms; t_command 0ns; endurance 100000;
                 channel_bandwidth infinite; superblock_dies 64",
            ),
            (
                "ftl",
                "mapping page; mapping_unit 4KiB; frontiers shared; victim greedy;
                 free_blocks_low 13; free_blocks_high 13",
            ),
            (
                "drive",
                "capacity 12GiB; firmware_read 0ns; firmware_write 0ns; link_bandwidth infinite;
                 queue_depth 2048; queues 8; write_buffer 1MiB; write_cache write-through;
                 power_loss_protection true",
            ),
        ],
    );
    assert!((spec.over_provisioning().nominal - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn femus_conf_files_and_options() {
    let check = |text: &str, expected: &[&str]| {
        let imported = converted(text);
        for part in expected {
            assert!(imported.text.contains(part), "{part} is not in\n{}", imported.text);
        }
    };
    check(
        QLC,
        &[
            "cell = \"qlc\"",
            "t_read = [\"47900ns\", \"76200ns\", \"134600ns\", \"228100ns\"]",
            "capacity = \"4GiB\"",
            "t_erase = \"3ms\"",
            "cell_pages = 4: nand_cell_type has times of its own",
        ],
    );
    check(
        "-device femu,femu_mode=1,nand_cell_type=3,pg_rd_lat=1,pg_xfer_lat=9,ch_xfer_lat=8",
        &[
            "pg_rd_lat = 1: nand_cell_type has times of its own",
            "ch_xfer_lat = 8: pg_xfer_lat is given",
            "without a counterpart (2)",
        ],
    );
    check(
        BUFFER,
        &["write_buffer = \"8MiB\"", "write_cache = \"write-back\"", "protection = false"],
    );
    // 4 KiB in 25 us; 512 MiB of flash behind 25 % of spare.
    check(
        "qemu -device femu,femu_mode=1,nchs=2,luns_per_ch=4,blks_per_pl=64,op_pcent=25,\
         ch_xfer_lat=25000,gc_policy=d-choice,fw_cpu_ns=3000,pcie_bandwidth_mbps=3200,\
         pe_suspend=1,tsusp_ns=5000,namespace_sizes=1G,,2G,mystery=7",
        &[
            "channel_bandwidth = \"163840kB/s\"",
            "capacity = \"419428KiB\"",
            "victim = \"d-choices:4\"",
            "firmware_read = \"3us\"",
            "firmware_cores = 1",
            "link_bandwidth = \"3200MB/s\"",
            "suspend = \"both\"",
            "scheduler = \"read-first\"",
            "namespace_sizes = 1G,2G: a drive is one namespace",
            "# Settings not understood (1):\n#   line 1: mystery = 7\n",
        ],
    );
    // As in the C sources of earlier versions.
    check(
        "    spp->secsz = 512;\n    spp->secs_per_pg = 8; /* 4 KiB */\n    spp->nchs = 4;\n\
         spp->tt = spp->nchs * 2;\n    spp->gc_thres_pcent_high = 0.95;\n    devsz_mb = 1;\n",
        &[
            "channels = 4",
            "free_blocks_low = 13",
            "t_read = \"40us\"  # pg_rd_lat (FEMU's default)",
        ],
    );
}

/// Two flows share the whole drive: each has half of the addresses, and uses half of that.
#[test]
fn mqsims_workload_becomes_jobs() {
    let all = converted(WORKLOAD);
    let job = |depth: u32, seed: u32, offset: &str| {
        format!(
            "rw=randwrite\nnorandommap\nblockalign=512\nbs=4096\n{offset}size=25%\n\
             iodepth={depth}\nruntime=10s\ntime_based\nrandseed={seed}\n"
        )
    };
    for part in [
        format!("[scenario1-flow1]\n{}", job(16, 798, "")),
        format!("[scenario1-flow2]\n{}", job(2, 6533, "offset=25%\n")),
        "#   prism sim it.fio --device DRIVE.toml --state filled:0.75\n".into(),
        "#   prism report traces/tpcc-small.trace --format mqsim --device DRIVE.toml --passes 1 \
         --state filled:0.7\n"
            .into(),
        "line 22: Intensity = 32768: only used with BANDWIDTH".into(),
    ] {
        assert!(all.text.contains(&part), "{part} is not in\n{}", all.text);
    }
    assert!(all.summary.contains("2 synthetic (jobs), 1 with a trace"), "{}", all.summary);
    assert!(!all.text.contains("stonewall"));
    let second = import(WORKLOAD, "it", "it.fio", Some(2)).unwrap();
    assert!(!second.text.contains("[scenario1"), "{}", second.text);
    assert!(second.text.contains("so there are no jobs") && !second.text.contains("[global]"));
    let none = import(WORKLOAD, "it", "it.fio", Some(3)).unwrap_err().to_string();
    assert_eq!(none, "there is no scenario 3; the file has 2");
}

/// The jobs of a job file, as `prism sim` reads them.
fn jobs(text: &str) -> Vec<fio::Job> {
    let mut reader = fio::JobReader::new();
    let read = reader.file("it.fio", text).and_then(|()| reader.finish());
    let sections = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let drive = DriveSpec::preset("femu").unwrap();
    fio::jobs(&sections, &[], fio::Target::of(&drive), 1).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Every form of a flow, changed from the example.
#[test]
fn forms_of_flows() {
    let check = |changes: &[(&str, &str)], expected: &str| {
        let mut text = WORKLOAD.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        let imported = converted(&text);
        assert!(imported.text.contains(expected), "{expected} is not in\n{}", imported.text);
        assert_eq!(jobs(&imported.text).len(), 2);
    };
    let reads = (">0</Read_Percentage>", ">70</Read_Percentage>");
    let streaming = (">UNIFORM_RANDOM<", ">STREAMING<");
    check(&[reads], "rw=randrw\nrwmixread=70\n");
    check(&[reads, streaming], "rw=rw\nrwmixread=70\nbs=4096\n");
    let hot = [
        (">UNIFORM_RANDOM<", ">RANDOM_HOTCOLD<"),
        (">0</Percentage_of_Hot_Region>", ">10</Percentage_of_Hot_Region>"),
    ];
    check(&hot, "random_distribution=zoned:90/10:10/90\n");
    let counted = [
        (">10000000000</Stop_Time>", ">0</Stop_Time>"),
        (">0</Total_Requests_To_Generate>", ">500</Total_Requests_To_Generate>"),
    ];
    check(&counted, "number_ios=500\nio_size=2048000\n");
    let by_rate = ("QUEUE_DEPTH", "BANDWIDTH");
    check(&[by_rate, reads], "rate=22937,9830\nrate_process=poisson\n");
    check(&[by_rate], "rate=32768\nrate_process=poisson\niodepth=1024\n");
    check(&[(">HIGH<", ">URGENT<")], "prioclass=1\n");
    let aligned = (
        "<Seed>",
        "<Generated_Aligned_Addresses>true</Generated_Aligned_Addresses>\
         <Address_Alignment_Unit>16</Address_Alignment_Unit><Seed>",
    );
    check(&[aligned], "blockalign=8192\n");
    // The first flow has one die of two alone and half of the other: three quarters.
    let lists = [(">0,1</Die_IDs>", ">0</Die_IDs>")];
    check(&lists, "offset=25%\nsize=25%\n");
}

/// The jobs of a later scenario begin when those of the earlier one have ended.
#[test]
fn scenarios_follow_each_other() {
    let (start, end) = (WORKLOAD.find("<IO_Scenario>"), WORKLOAD.find("</IO_Scenario>"));
    let first = &WORKLOAD[start.unwrap()..end.unwrap() + "</IO_Scenario>".len()];
    let text = converted(&WORKLOAD.replace("</MQSim_IO", &format!("{first}\n</MQSim_IO"))).text;
    assert_eq!(jobs(&text).len(), 4);
    assert_eq!(text.matches("stonewall").count(), 1, "{text}");
    let (_, third) = text.split_once("[scenario3-flow1]").expect("a job");
    assert!(third.split('[').next().unwrap().contains("stonewall"), "{text}");
}

#[test]
fn line_ends_and_byte_order_marks_of_windows_do_not_matter() {
    for text in [MQSIM, SAMPLE, FEMU, WORKLOAD] {
        let other = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(converted(&other), converted(text));
    }
}

#[test]
fn watermarks_that_do_not_fit_are_lowered_and_it_is_said() {
    let text = MQSIM.replace(">0.05000<", ">0.30<");
    let imported = converted(&text);
    let spec = DriveSpec::from_toml(&imported.text).unwrap();
    assert!((100..1228).contains(&spec.ftl.free_blocks_low), "{}", spec.ftl.free_blocks_low);
    assert!(imported.text.contains("MQSim asks for 1228 erased blocks of a die group"));
}

/// Each setting in turn gets a value at the edge of what fits: the result is a drive or an error.
#[test]
fn extreme_values_are_imported_or_refused() {
    let check = |text: &str, marks: [char; 2]| {
        for (at, line) in text.lines().enumerate() {
            let Some((name, rest)) = line.split_once(marks[0]) else { continue };
            let end = rest.find(marks[1]).map_or("", |end| &rest[end..]);
            for value in ["0", "4294967295", "18446744073709551615"] {
                let changed = format!("{name}{}{value}{end}", marks[0]);
                let lines = text.lines().enumerate();
                let lines: Vec<_> =
                    lines.map(|(n, line)| if n == at { changed.as_str() } else { line }).collect();
                match import(&lines.join("\n"), "it", "it.fio", None) {
                    Ok(imported) => assert!(imported.text.contains("line ")),
                    Err(error) => assert!(!error.to_string().contains('\n'), "{changed}: {error}"),
                }
            }
        }
    };
    check(MQSIM, ['>', '<']);
    check(WORKLOAD, ['>', '<']);
    check(SAMPLE, ['=', '#']);
    check(QLC, ['=', '#']);
}

#[test]
fn damaged_files_give_one_clear_line() {
    let check = |text: &str, expected: &str| {
        let message = import(text, "it", "it.fio", None).unwrap_err().to_string();
        assert!(message.contains(expected), "{expected:?} is not in {message:?}");
        assert!(!message.contains('\n'), "{message}");
    };
    check("", "no configuration of a known simulator");
    check("a b c\n", "no configuration of a known simulator");
    check("<a/>", "root element <a>");
    check("<simplessd version=\"2.1\"/>", "SimpleSSD 2.1 or later");
    check("[ssd]\nNumChannel = 8\n", "SimpleSSD 1");
    check("[global]\n[generator]\nio_size = 16M\n", "requests for SimpleSSD-Standalone");
    check(&MQSIM.replace("</Seed>", "</<Seed>"), "line 10: the XML is damaged");
    check(&MQSIM[..2000], "the XML is damaged");
    check(
        &MQSIM.replace(">8192</Page_C", ">8 KiB</Page_C"),
        "line 64: Page_Capacity = 8 KiB: a whole",
    );
    check(
        &MQSIM.replace(">MLC<", ">XLC<"),
        "Flash_Technology = XLC: expected is one of SLC, MLC, TLC",
    );
    check(
        &MQSIM.replace(">8</Flash_Ch", ">0</Flash_Ch"),
        "Flash_Channel_Count = 0: must be at least 1",
    );
    check(
        &MQSIM.replace(">0.07<", ">1.5<"),
        "Overprovisioning_Ratio = 1.5: must be from 0 to 0.99",
    );
    check(&MQSIM.replace(">0.07<", ">0<"), "the drive cannot be simulated: ");
    check(
        &SAMPLE.replace("Channel = 8", "Channel"),
        "line 16: \"Channel\" is neither NAME = VALUE",
    );
    check(&SAMPLE.replace("LSBRead = 4", "LSBRead = x"), "pal.LSBRead = x0000000: a whole number");
    check(&FEMU.replace("nchs=8", "nchs=eight"), "nchs = eight: a whole number is expected");
    check(&FEMU.replace("femu_mode=1", "femu_mode=3"), "femu_mode = 3: only black-box drives");
    check("-device femu,devsz_mb=1024", "femu_mode is missing: only black-box drives");
    check("-device femu -m 4G", "followed by no options");
    check("x -device femu,nchs=1 -device femu,nchs=2", "line 1: a second -device femu");
    check(&WORKLOAD.replace(">8</Average", ">-8</Average"), "Average_Request_Size = -8: a whole");
    check(&WORKLOAD.replace(">0,1</Die", ">0,,1</Die"), "a list of whole numbers is expected");
    check(&WORKLOAD.replace("Set_Synthetic", "Set_Other"), "is no flow");
    check("<MQSim_IO_Scenarios/>", "line 1: there is no <IO_Scenario>");
    let nameless = WORKLOAD.replace("traces\\tpcc-small.trace", "");
    check(&nameless, "line 58: File_Path = : the name of a trace is expected");
    let refused = import(MQSIM, "it", "it.fio", Some(1)).unwrap_err().to_string();
    assert!(refused.contains("--scenario is for workload files"), "{refused}");
}
