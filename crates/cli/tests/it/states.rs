//! `--save-state` and `--state` on a drive of each mapping: a run on a loaded snapshot has the same
//! figures as the run on the drive that was saved.

use crate::common::{folder, prism};
use serde_json::Value;

/// The options of a drive with each mapping.
const DRIVES: [(&str, &[&str]); 11] = [
    ("page", &["--device", "consumer-nvme"]),
    ("dftl", &["--set", "ftl.mapping=dftl", "--set", "ftl.map_cache=8KiB"]),
    ("block", &["--set", "ftl.mapping=block", "--set", "ftl.victim=lru"]),
    ("bast", &["--set", "ftl.mapping=bast", "--set", "ftl.victim=lru"]),
    ("fast", &["--set", "ftl.mapping=fast", "--set", "ftl.victim=fifo"]),
    (
        "hybrid",
        &[
            "--set=ftl.mapping=hybrid",
            "--set=ftl.victim=fifo",
            "--set=ftl.group_blocks=16",
            "--set=ftl.group_log_blocks=4",
        ],
    ),
    ("ranges", &["--device", "mixed-2008"]),
    ("slc cache", &["--device", "consumer-tlc"]),
    ("slc region", &["--device", "slc-mlc"]),
    ("zoned", &["--device", "zns-small", "--zonemode=zbd"]),
    ("ageing", &["--device", "consumer-nvme", "--faults", "tlc", "--wear", "3000"]),
];

/// The options of the small drive for block-level mappings and a map on flash.
const SMALL: [&str; 8] = [
    "--device",
    "slc-2008",
    "--set=drive.write_cache=write-back",
    "--set=drive.power_loss_protection=true",
    "--set=drive.write_buffer=1MiB",
    "--set=ftl.free_blocks_low=2",
    "--set=ftl.free_blocks_high=2",
    "--set=flash.multi_plane=false",
];

fn args<'a>(name: &str, more: &[&'a str]) -> Vec<&'a str> {
    let (_, own) = DRIVES.iter().find(|(known, _)| *known == name).expect("one of them");
    let own: Vec<&str> = own.to_vec();
    let by_block = ["block", "bast", "fast", "hybrid"].contains(&name);
    let zeroed: &[&str] = &[
        "--set=ftl.free_blocks_low=0",
        "--set=ftl.free_blocks_high=0",
        "--set=ftl.log_share=0.05",
    ];
    let mut all = vec!["sim", "--capacity", if name == "zoned" { "1GiB" } else { "64MiB" }];
    if own[0] != "--device" {
        all.extend(SMALL);
    }
    if by_block {
        all.extend(zeroed);
    }
    let job = ["--name=w", "--rw=randrw", "--bs=4k", "--io_size=8m", "--iodepth=4"];
    all.into_iter().chain(own).chain(job).chain(more.iter().copied()).collect()
}

fn result(name: &str, more: &[&str]) -> Value {
    let all = args(name, &[more, &["--json", "-"]].concat());
    let run = prism(&all);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}: {all:?}");
    serde_json::from_str::<Value>(&run.stdout).unwrap()["result"].clone()
}

#[test]
fn a_drive_of_any_mapping_is_saved_and_loaded() {
    let folder = folder();
    for (name, _) in DRIVES {
        let file = folder.path().join(format!("{name}.prism-state")).display().to_string();
        // Zones are not overwritten.
        let state = if name == "zoned" { "filled:0.5" } else { "preconditioned:1" };
        let plain = result(name, &["--state", state]);
        let saved = result(name, &["--state", state, "--save-state", &file]);
        assert_eq!(saved, plain, "{name}: saving changes nothing");
        assert_eq!(result(name, &["--state", &file]), plain, "{name}: loaded");
        // Another drive is refused by the field that differs.
        let other = prism(&args(name, &["--state", &file, "--set=drive.firmware_read=7us"]));
        assert_eq!((other.code, other.stdout.as_str()), (2, ""), "{name}");
        let why = "saved of another drive: its drive.firmware_read is";
        assert!(other.stderr.contains(why), "{name}: {}", other.stderr);
    }
}

#[test]
fn an_unknown_steady_state_is_refused_with_an_alternative() {
    for name in ["block", "bast", "fast", "hybrid", "ranges", "slc cache", "slc region"] {
        let run = prism(&args(name, &["--state", "steady"]));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}");
        assert!(run.stderr.contains("use the state preconditioned"), "{name}: {}", run.stderr);
    }
    let run = prism(&args("zoned", &["--state", "steady"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("use --state empty, filled or filled:SHARE"), "{}", run.stderr);
}
