//! `prism device import`: configurations of other simulators become drives and jobs that run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Run, folder, json, prism, words};

/// A configuration among the test data of the converter.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../present/tests/data/import").join(name)
}

fn import(name: &str, output: &Path, more: &[&str]) -> Run {
    let file = data(name);
    let (file, output) = (file.to_str().unwrap(), output.to_str().unwrap());
    prism(&[&["device", "import", file, "-o", output], more].concat())
}

/// The JSON of `prism sim WORDS` on the drive of this size, as fio prints it.
fn sim(device: &Path, capacity: &str, more: &str) -> Value {
    let device = device.to_str().unwrap();
    let usual = ["sim", "--output-format=json", "--device", device, "--capacity", capacity];
    json(&[&usual[..], &words(more)].concat())
}

/// Each drive runs a few thousand requests: it is filled, then written and read at random.
#[test]
fn imported_drives_simulate_requests() {
    let folder = folder();
    for name in [
        "mqsim-ssdconfig.xml",
        "mqsim-queue-fetch-size-16.xml",
        "simplessd-sample.cfg",
        "simplessd-intel750.cfg",
        "simplessd-gem5-spdk.cfg",
        "femu-run-blackbox.sh",
        "femu-qlc.conf",
        "femu-write-buffer.conf",
    ] {
        let device = folder.path().join("drive.toml");
        let run = import(name, &device, &[]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        assert!(run.stderr.contains(" settings left out (listed at the end"), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        let mix = "--name=mix --rw=randrw --bs=8k --iodepth=16 --number_ios=4000";
        let result = sim(&device, "4GiB", mix);
        let job = &result["jobs"][0];
        let ios = |dir: &str| job[dir]["total_ios"].as_u64().unwrap();
        assert_eq!(ios("read") + ios("write"), 4000, "{name}");
    }
}

/// A read at queue depth 1 takes tR, the transfer of the pages that it needs over the channel, the
/// host link and the firmware.
#[test]
fn latencies_follow_from_the_settings() {
    let folder = folder();
    let device = folder.path().join("drive.toml");
    let check = |name: &str, bytes: &str, expected: u64| {
        assert_eq!(import(name, &device, &[]).code, 0);
        let reads = format!("--name=read --rw=randread --number_ios=500 --bs={bytes}");
        let result = sim(&device, "1GiB", &reads);
        let fastest = result["jobs"][0]["read"]["clat_ns"]["min"].as_u64();
        assert_eq!(fastest, Some(expected), "{name}, {bytes}");
    };
    // 75 us, 8 KiB at 333 MB/s and at 4 GB/s, rounded up.
    check("mqsim-queue-fetch-size-16.xml", "8k", 75_000 + 24_601 + 2_048);
    // 40 us, one or two pages of 16 KiB at 400 MB/s, 5 us.
    check("simplessd-sample.cfg", "4k", 40_000 + 40_960 + 5_000);
    check("simplessd-sample.cfg", "32k", 40_000 + 81_920 + 5_000);
    check("femu-run-blackbox.sh", "4k", 40_000);
}

/// The jobs of a workload run on the drive of the configuration next to it, for a tenth of a
/// second instead of ten.
#[test]
fn imported_jobs_run_on_the_imported_drive() {
    let folder = folder();
    let (device, jobs) = (folder.path().join("drive.toml"), folder.path().join("jobs.fio"));
    assert_eq!(import("mqsim-ssdconfig.xml", &device, &[]).code, 0);
    let run = import("mqsim-workload.xml", &jobs, &["--scenario", "1"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert!(run.stderr.contains("2 synthetic (jobs), 0 with a trace"), "{}", run.stderr);
    let text = std::fs::read_to_string(&jobs).unwrap();
    assert!(text.contains("runtime=10s"));
    std::fs::write(&jobs, text.replace("runtime=10s", "runtime=100ms")).unwrap();
    let result = sim(&device, "1GiB", &format!("--state filled:0.75 {}", jobs.display()));
    let ios = |job: usize| result["jobs"][job]["write"]["total_ios"].as_u64().unwrap();
    // 16 requests are in flight in one flow, 2 in the other.
    assert!(ios(0) > 2 * ios(1) && ios(1) > 100, "{} and {}", ios(0), ios(1));
}

#[test]
fn output_goes_to_standard_output_and_refusals_name_the_file() {
    let text = std::fs::read(data("femu-run-blackbox.sh")).unwrap();
    let run = Run::with_input(&["device", "import", "-"], &text);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("name = \"imported\"\n"), "{}", run.stdout);
    assert!(run.stderr.starts_with("standard input: FEMU drive with 64 dies, 12 GiB for the host"));
    let folder = folder();
    let output = folder.path().join("drive.toml");
    let said = import("README.md", &output, &[])
        .refused(&["README.md: this is no configuration of a known simulator"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!output.exists());
}
