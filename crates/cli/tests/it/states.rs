//! `--save-state` and `--state` on a drive of each mapping: a run on a loaded snapshot has the same
//! figures as the run on the drive that was saved.

use crate::common::{folder, json, path, refused};
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
    json(&all)["result"].clone()
}

#[test]
fn a_drive_of_any_mapping_is_saved_and_loaded() {
    let folder = folder();
    for (name, _) in DRIVES {
        let file = path(&folder, &format!("{name}.prism-state"));
        // Zones are not overwritten.
        let state = if name == "zoned" { "filled:0.5" } else { "preconditioned:1" };
        let plain = result(name, &["--state", state]);
        let saved = result(name, &["--state", state, "--save-state", &file]);
        assert_eq!(saved, plain, "{name}: saving changes nothing");
        assert_eq!(result(name, &["--state", &file]), plain, "{name}: loaded");
        // Another drive is refused by the field that differs.
        let other = args(name, &["--state", &file, "--set=drive.firmware_read=7us"]);
        refused(&other, &["saved of another drive: its drive.firmware_read is"]);
    }
}

#[test]
fn an_unknown_steady_state_is_refused_with_an_alternative() {
    for name in ["block", "bast", "fast", "hybrid", "ranges", "slc cache", "slc region"] {
        refused(&args(name, &["--state", "steady"]), &["use the state preconditioned"]);
    }
    let zoned = args("zoned", &["--state", "steady"]);
    refused(&zoned, &["use --state empty, filled or filled:SHARE"]);
}
