//! `prism trace info` on a sample of each event format: the format is recognised, and the notes say
//! what it does not record.

use crate::common::{Run, flat, json, quiet, refused, sample};
use serde_json::Value;

fn data(name: &str) -> String {
    sample(&format!("../crates/trace/tests/data/{name}"))
}

#[test]
fn each_sample_is_recognised_and_its_figures_are_right() {
    // Reads, writes, write-zeroes, discards and flushes.
    let check = |name: &str, format: &str, clock_ns: u64, expected: [u64; 5]| {
        let trace = json(&["trace", "info", &data(name), "--json", "-"])["trace"].take();
        let keys = ["reads", "writes", "write_zeroes", "discards", "flushes"];
        let found = keys.map(|key| trace[key].as_u64().unwrap_or_else(|| panic!("{key}: {trace}")));
        assert_eq!((trace["format"].as_str(), found), (Some(format), expected), "{name}");
        assert_eq!(trace["capabilities"]["clock_ns"], clock_ns, "{name}");
        let text = quiet(&["trace", "info", &data(name)]);
        assert!(text.contains(&format!("{format} trace")), "{name}:\n{text}");
    };
    check("blk-tracer/classic.txt.zst", "blkparse", 1, [1, 49, 0, 1, 1]);
    check("blk-tracer/default.txt.zst", "blkparse", 1000, [1, 49, 0, 1, 1]);
    check("blk-tracer/named.txt.zst", "blkparse", 1000, [1, 49, 0, 1, 1]);
    check("nvme-and-block.ftrace.zst", "ftrace", 1000, [402, 535, 20, 1, 32]);
    check("biosnoop-libbpf.txt", "biosnoop", 1000, [52, 8, 4, 2, 4]);
    check("biosnoop-bcc.txt", "biosnoop", 10_000, [58, 8, 0, 0, 0]);
    check("etw.csv", "etw", 1000, [2, 1, 0, 0, 1]);
    check("wiscsee.txt", "wiscsee", 1, [1, 2, 0, 1, 0]);
}

/// The lines of the NVMe driver in the sample that has both.
fn commands() -> Vec<u8> {
    let packed = std::fs::read(data("nvme-and-block.ftrace.zst")).expect("the sample");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("zstd")).expect("UTF-8");
    let lines = text.lines().filter(|line| line.contains(": nvme_"));
    lines.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

#[test]
fn nvme_commands_count_in_blocks_of_a_reported_size() {
    let text = commands();
    let info = |more: &[&str]| {
        let args = [&["trace", "info", "-", "--json", "-"], more].concat();
        Run::with_input(&args, &text).json()["trace"].take()
    };
    let (assumed, given) = (info(&[]), info(&["--block-size", "4KiB"]));
    assert_eq!(assumed["counted_from"], "nvme");
    assert_eq!(
        (&assumed["nvme_block_bytes"], &given["nvme_block_bytes"]),
        (&512.into(), &4096.into())
    );
    let bytes = |trace: &Value| trace["bytes_written"].as_u64().expect("bytes");
    assert_eq!(bytes(&assumed) * 8, bytes(&given));
    let said = flat(&Run::with_input(&["trace", "info", "-"], &text).good());
    for part in [
        "counted by the commands of the NVMe driver",
        "512 B was assumed (--block-size)",
        "discard whose ranges the NVMe driver does not print",
        "does not record: discards, sync and metadata marks, queue times",
    ] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
}

#[test]
fn invalid_and_useless_block_sizes_are_refused() {
    let check = |args: &[&str], part| refused(&[&["trace", "info"], args].concat(), &[part]);
    let both = data("nvme-and-block.ftrace.zst");
    check(&[&both, "--block-size", "4KiB"], "leave out --block-size");
    check(&[&both, "--block-size", "520B"], "power of two from 512 B to 64 KiB");
    check(&[&both, "--block-size", "512"], "512");
}
