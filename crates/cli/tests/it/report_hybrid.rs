//! `prism report` on a drive with the hybrid mapping: recordings replay lawfully, and the
//! contract of aligned sequentiality shows in what merges cost.

use crate::common::{assert_lawful, folder, path, quiet, report, sample};
use serde_json::Value;

/// 4 dies with blocks of 256 KiB in groups of 4.
const DEVICE: &str = r#"
name = "hybrid"
title = "a small drive with a hybrid mapping"
source = "invented for this test"

[flash]
cell = "mlc"
channels = 4
dies_per_channel = 1
planes = 1
multi_plane = false
blocks_per_plane = 320
pages_per_block = 64
page = "4KiB"
t_read = "20us"
t_program = "200us"
t_erase = "1.5ms"
channel_bandwidth = "400MB/s"
endurance = 3000

[ftl]
mapping = "hybrid"
mapping_unit = "4KiB"
frontiers = "separate"
victim = "fifo"
free_blocks_low = 1
free_blocks_high = 2
group_blocks = 4
group_log_blocks = 8
log_share = 0.1

[drive]
capacity = "256MiB"
firmware_read = "1us"
firmware_write = "1us"
link_bandwidth = "1GB/s"
queue_depth = 32
write_buffer = "1MiB"
write_cache = "write-back"
power_loss_protection = true
"#;

/// The report of `trace` on the drive, with further `flags`.
fn on_hybrid(trace: &str, flags: &[&str]) -> Value {
    let folder = folder();
    let device = &path(&folder, "hybrid.toml");
    std::fs::write(device, DEVICE).expect("a file in a temporary folder");
    let json = report(&[&[trace, "--device", device], flags].concat());
    assert_lawful(&json);
    assert_eq!(json["device"]["name"], "hybrid");
    json
}

fn figure(json: &Value, path: &str) -> f64 {
    let value = path.split('.').fold(json, |value, key| &value[key]);
    value.as_f64().unwrap_or_else(|| panic!("{path} is not a number"))
}

#[test]
fn recordings_replay_lawfully() {
    for name in ["f2fs-rocksdb.ftrace.zst", "formats/blkparse-default.txt"] {
        let json = on_hybrid(&sample(name), &["--passes", "3"]);
        assert!(figure(&json, "result.write_amplification") > 0.5, "{name}");
        assert_eq!(figure(&json, "result.flash.programs.gc"), 0.0, "{name}: merges, not cleaning");
    }
}

/// Write amplification and units merged under `requests` of a generated pattern over the
/// whole drive, made twice.
fn pattern(pattern: &str, size: &str, requests: &str) -> (f64, f64) {
    let folder = folder();
    let trace = &path(&folder, "trace.parquet");
    let addresses = ["--pattern", pattern, "--size", size, "--align", size, "--span", "256MiB"];
    let made = ["--requests", requests, "-o", trace];
    quiet(&[&["trace", "generate"], &addresses[..], &made].concat());
    let flags = ["--passes", "2", "--pace", "closed:8", "--capacity", "device"];
    let json = on_hybrid(trace, &flags);
    (figure(&json, "result.write_amplification"), figure(&json, "result.flash.units.merge"))
}

#[test]
fn whole_blocks_in_order_cost_nothing_and_random_writes_do() {
    // At the end of a pass some data may still be in the buffer of 1 MiB.
    let (sequential, merged) = pattern("sequential", "64KiB", "4096");
    assert!((0.99..=1.0).contains(&sequential) && merged == 0.0, "{sequential}");
    let (random, merged) = pattern("uniform", "4KiB", "32768");
    assert!(random > 1.5 && merged > 16_384.0, "{random}, {merged} merged");
}

/// The presets with block-level mapping, on the same recording: the more pages log blocks may
/// hold, the less is merged, and merges are reported.
#[test]
fn presets_that_map_blocks_take_a_recording() {
    let trace = sample("ext4-sqlite-wal.ftrace.zst");
    let amplification = |device: &str| {
        let flags = ["--device", device, "--passes", "2"];
        let json = report(&[&[trace.as_str()], flags.as_slice()].concat());
        assert_lawful(&json);
        assert_eq!(json["device"]["name"], device);
        let merges = &json["result"]["merges"];
        let total: u64 =
            ["switches", "partial", "full"].map(|kind| merges[kind].as_u64().unwrap()).iter().sum();
        assert!(total > 0, "{device}: {merges}");
        figure(&json, "result.write_amplification")
    };
    let [block, bast, fast] = ["block-2007", "bast-2007", "fast-2008"].map(amplification);
    assert!(block > 2.0 * bast && bast > fast && fast > 1.0, "{block}, {bast}, {fast}");
    assert!(amplification("mixed-2008") > bast, "the database lies in the range of blocks");
    let json = report(&[trace.as_str(), "--passes", "1"]);
    assert!(json["result"]["merges"].is_null(), "nothing is merged where pages are mapped");
}
