//! The built `prism trace` commands over real samples: figures, round trips, selection.

use crate::common::{Run, flat, folder, good, gzip, json, path, quiet, refused, sample};
use serde_json::Value;

/// The JSON object `trace` of `prism trace info ARGS`.
fn info(args: &[&str]) -> Value {
    json(&[&["trace", "info"], args, &["--json", "-"]].concat())["trace"].take()
}

/// The figures that must not change when a trace is converted.
fn figures(trace: &Value) -> Value {
    let mut trace = trace.clone();
    trace.as_object_mut().unwrap().remove("file");
    trace
}

#[test]
fn the_sqlite_sample_has_the_figures_it_was_captured_with() {
    let trace = info(&[&sample("ext4-sqlite-wal.ftrace.zst"), "--phase", "app"]);
    let number = |key: &str| trace[key].as_u64().unwrap_or_else(|| panic!("{key}: {trace}"));
    assert_eq!(trace["format"], "ftrace");
    assert_eq!((number("reads"), number("writes")), (109, 10_676));
    assert_eq!((number("discards"), number("flushes")), (25, 9_894));
    assert_eq!(number("requests"), 109 + 10_676 + 25);
    let megabytes = |key: &str| (number(key) as f64 / 1e5).round() / 10.0;
    assert_eq!((megabytes("bytes_read"), megabytes("bytes_written")), (0.5, 127.8));
    assert_eq!(megabytes("bytes_written_metadata"), 13.9);
    assert_eq!((number("read_bytes_p50"), number("write_bytes_p50")), (4096, 8192));
    assert_eq!((number("unique_bytes_written") as f64 / 1e6).round(), 19.0);
    assert_eq!(number("queue_depth_max"), 44);
    assert_eq!((number("duration_ns") as f64 / 1e8).round(), 151.0);
    assert_eq!(trace["skipped"], serde_json::json!([]));
    let can = &trace["capabilities"];
    for known in ["discard", "flush", "completion", "queue", "process", "sync_meta"] {
        assert_eq!(can[known], true, "{known}");
    }
    let phases: Vec<&str> =
        trace["phases"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(phases, ["mkfs", "mount", "app", "sync", "fstrim", "umount", "end"]);
    assert_eq!(trace["devices"][0]["name"], "7,0");
    assert_eq!(trace["devices"][0]["write_zeroes"], 35);
    assert_eq!(trace["devices"][0]["bytes_zeroed"], 134_287_360);
    let processes = trace["processes"].as_array().unwrap();
    assert!(processes.iter().any(|row| row["name"] == "python3"), "{processes:?}");
}

#[test]
fn the_rocksdb_sample_has_the_figures_it_was_captured_with() {
    let trace = info(&[&sample("f2fs-rocksdb.ftrace.zst"), "--phase", "app"]);
    let number = |key: &str| trace[key].as_u64().unwrap_or_else(|| panic!("{key}: {trace}"));
    assert_eq!((number("reads"), number("writes"), number("flushes")), (1, 183, 29));
    assert_eq!((number("discards"), number("queue_depth_max")), (0, 16));
    assert_eq!((number("write_bytes_p50"), number("read_bytes_p50")), (44 << 10, 4096));
    assert_eq!((number("bytes_written") as f64 / 1e6).round(), 47.0);
    assert_eq!((number("bytes_written_metadata") as f64 / 1e5).round(), 3.0);
    assert_eq!((number("duration_ns") as f64 / 1e8).round(), 149.0);
}

#[test]
fn every_format_is_recognised() {
    let check = |name: &str, format: &str| {
        let trace = info(&[&sample(&format!("formats/{name}"))]);
        assert_eq!(trace["format"], format, "{name}");
        assert!(trace["requests"].as_u64().unwrap() > 0, "{name}");
    };
    check("blkparse-default.txt", "blkparse");
    check("perf-script-block.txt", "perf-script");
    check("fio-v3.iolog", "fio-iolog");
    check("nv.blktrace.0.zst", "blktrace");
}

#[test]
fn published_data_sets_are_read() {
    // The file and its options, the format, reads, writes, discards, flushes, and a part of the
    // notes on the limits of the trace.
    let check = |args: &str, format: &str, counts: [u64; 4], limit: &str| {
        let mut args = args.split(' ');
        let file = sample(&format!("../crates/trace/tests/data/{}", args.next().unwrap()));
        let args: Vec<&str> = [file.as_str()].into_iter().chain(args).collect();
        let trace = info(&args);
        assert_eq!(trace["format"], format, "{file}");
        let number = |key: &str| trace[key].as_u64().unwrap();
        let found = ["reads", "writes", "discards", "flushes"].map(number);
        assert_eq!(found, counts, "{file}");
        let text = flat(&good(&[&["trace", "info"], &args[..]].concat()));
        assert!(text.contains(limit), "{file}: {text}");
    };
    check("systor17-vdi.csv", "systor17", [12, 12, 0, 0], "the operation is left empty");
    check("k5cloud.csv", "k5cloud", [11, 11, 0, 0], "discards, write-zeroes, flushes");
    check("spc.csv", "spc", [12, 12, 0, 0], "completions");
    check("disksim.txt", "disksim", [12, 12, 0, 0], "wrong number of fields");
    check("ssdsim.txt", "mqsim", [11, 11, 0, 0], "processes");
    check("ssdsim.txt --format ssdsim", "ssdsim", [11, 11, 0, 0], "processes");
    check("fiu.txt", "fiu", [12, 12, 0, 0], "does not record: discards");
    check("midas.txt --format midas", "midas", [6, 12, 6, 0], "does not record: write-zeroes");
    check("baleen.txt", "baleen", [13, 13, 0, 0], "does not record: addresses");
    check("thesios.csv", "thesios", [14, 11, 0, 0], "read from the server's memory");
    check("io-tracer.csv", "io-tracer", [11, 11, 1, 1], "does not record: write-zeroes, files");
    check("io-tracer-old.csv", "io-tracer", [10, 12, 0, 0], "queue times");
    check("vscsi-v1.bin", "vscsi", [11, 12, 0, 0], "UNMAP, whose ranges are not recorded");
    check("vscsi-v2.bin", "vscsi", [11, 11, 0, 1], "does not record: discards");
    let cached = "every request counts as a read";
    check("oracle-general.bin --format oracle-general", "oracle-general", [25, 0, 0, 0], cached);
    check("lcs-large.bin.zst", "lcs", [11, 12, 1, 0], "Its clock has steps of 1 s");
    check("lcs-small.bin", "lcs", [21, 1, 0, 0], cached);
    check("lcs-format.bin", "lcs", [21, 1, 0, 0], "does not record: addresses");
}

#[test]
fn a_binary_trace_is_one_file_and_a_doubtful_one_is_not_guessed() {
    let data = |name: &str| sample(&format!("../crates/trace/tests/data/{name}"));
    let check = |args: &[&str], part| refused(&[&["trace", "info"], args].concat(), &[part]);
    let lcs = [data("lcs-small.bin"), data("lcs-format.bin")];
    check(&[&lcs[0], &lcs[1]], "lcs-format.bin: a trace of the format lcs is one file");
    check(&[&data("midas.txt")], "the lines fit the formats disksim and midas;");
    check(&[&data("oracle-general.bin")], "take --format oracle-general");
}

#[test]
fn a_text_described_by_a_map_is_read() {
    let data = |name: &str| sample(&format!("../crates/trace/tests/data/{name}"));
    let map = sample("maps/bpftrace-bio.toml");
    let trace = info(&[&data("bpftrace-bio.csv"), "--map", &map]);
    assert_eq!(trace["format"], "map");
    assert!(trace["requests"].as_u64().unwrap() > 30, "{trace}");
    let fields = "%5T.%9t,%p,%C,%a,%d,%S,%n,%N\\n";
    let trace = info(&[&data("blkparse-custom-f.txt"), "--blkparse-format", fields]);
    assert_eq!(trace["format"], "blkparse");
    assert!(trace["requests"].as_u64().unwrap() > 30, "{trace}");
    assert_eq!(trace["capabilities"]["process"], true);
}

#[test]
fn any_part_of_a_blktrace_recording_means_all_of_it() {
    let one = info(&[&sample("formats/nv.blktrace.0.zst")]);
    let other = info(&[&sample("formats/nv.blktrace.1.zst")]);
    let prefix = info(&[&sample("formats/nv")]);
    assert_eq!(figures(&one), figures(&other));
    assert_eq!(figures(&one), figures(&prefix));
}

#[test]
fn parquet_keeps_every_figure() {
    let folder = folder();
    let names = ["ext4-sqlite-wal.ftrace.zst", "formats/nv.blktrace.0.zst", "formats/fio-v3.iolog"];
    for name in names {
        let parquet = &path(&folder, "t.parquet");
        quiet(&["trace", "convert", &sample(name), parquet]);
        assert_eq!(figures(&info(&[parquet])), figures(&info(&[&sample(name)])), "{name}");
    }
    let phase = ["--phase", "app"];
    let app = &path(&folder, "app.parquet");
    let whole = sample("ext4-sqlite-wal.ftrace.zst");
    good(&["trace", "convert", &whole, app, phase[0], phase[1]]);
    let (stored, wanted) = (info(&[app]), info(&[&whole, phase[0], phase[1]]));
    for key in ["requests", "flushes", "bytes_written", "unique_bytes_written", "duration_ns"] {
        assert_eq!(stored[key], wanted[key], "{key}");
    }
}

#[test]
fn text_formats_keep_what_they_can_and_report_the_rest() {
    let folder = folder();
    let whole = sample("ext4-sqlite-wal.ftrace.zst");
    let wanted = info(&[&whole]);
    let convert = |name: &str| {
        let path = path(&folder, name);
        let said = good(&["trace", "convert", &whole, &path]);
        (info(&[&path]), said)
    };
    let (mqsim, said) = convert("t.mqsim");
    for key in ["reads", "writes", "bytes_read", "bytes_written"] {
        assert_eq!(mqsim[key], wanted[key], "{key}");
    }
    assert!(said.contains("67 of them: discard dropped"), "{said}");
    let (fio, said) = convert("t.iolog");
    for key in ["reads", "writes", "discards", "flushes", "bytes_written"] {
        assert_eq!(fio[key], wanted[key], "{key}");
    }
    assert!(said.contains("flags not written"), "{said}");
}

#[test]
fn packing_and_pipes_change_nothing() {
    let folder = folder();
    let packed = std::fs::read(sample("ext4-sqlite-wal.ftrace.zst")).unwrap();
    let plain = zstd::decode_all(&packed[..]).unwrap();
    let wanted = info(&[&sample("ext4-sqlite-wal.ftrace.zst")]);
    let gzipped = gzip(&plain);
    for (name, bytes) in [("plain.zst", &plain), ("gzip.txt", &gzipped), ("zstd", &packed)] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(figures(&info(&[path.to_str().unwrap()])), figures(&wanted), "{name}");
        let run = Run::with_input(&["trace", "info", "-", "--json", "-"], bytes);
        let json: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(figures(&json["trace"]), figures(&wanted), "{name} through a pipe");
    }
    // The two halves of the file are one trace again.
    let middle = plain.len() / 2;
    let cut = middle + plain[middle..].iter().position(|&byte| byte == b'\n').unwrap();
    let parts = [folder.path().join("a"), folder.path().join("b")];
    std::fs::write(&parts[0], &plain[..cut]).unwrap();
    std::fs::write(&parts[1], &plain[cut + 1..]).unwrap();
    let both = info(&[parts[0].to_str().unwrap(), parts[1].to_str().unwrap()]);
    assert_eq!(figures(&both), figures(&wanted));
}

#[test]
fn a_stacked_device_without_issues_is_counted_where_requests_enter() {
    let packed = std::fs::read(sample("f2fs-rocksdb.ftrace.zst")).unwrap();
    let plain = String::from_utf8(zstd::decode_all(&packed[..]).unwrap()).unwrap();
    let queued: String = plain
        .lines()
        .filter(|line| !line.contains("block_rq_"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let json = Run::with_input(&["trace", "info", "-", "--json", "-"], queued.as_bytes()).json();
    assert_eq!(json["trace"]["counted_from"], "queue");
    assert!(json["trace"]["writes"].as_u64().unwrap() > 100);
}

#[test]
fn a_seed_makes_the_same_bytes() {
    let folder = folder();
    let make = |name: &str, pattern: &str, seed: &str| {
        let path = path(&folder, name);
        quiet(&["trace", "generate", "--pattern", pattern, "--seed", seed, "-o", &path]);
        std::fs::read(path).unwrap()
    };
    for pattern in ["uniform", "sequential", "zipf:1.2", "hotcold:20/80", "mixed", "bursty"] {
        let first = make("a.parquet", pattern, "7");
        assert_eq!(first, make("b.parquet", pattern, "7"), "{pattern}");
        if pattern != "sequential" {
            assert_ne!(first, make("c.parquet", pattern, "8"), "{pattern}");
        }
    }
    let trace = info(&[&path(&folder, "a.parquet")]);
    assert_eq!((&trace["writes"], &trace["format"]), (&100_000.into(), &"generated".into()));
}

#[test]
fn the_text_has_the_same_figures() {
    let text = quiet(&["trace", "info", &sample("ext4-sqlite-wal.ftrace.zst"), "--phase", "app"]);
    for part in ["only phase app", "10,676", "9,894", "python3", "does not record: files"] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    // Write-zeroes, by phase and by device.
    assert_eq!(text.matches(" zeroed ").count(), 2, "{text}");
    assert!(text.is_ascii(), "a pipe gets plain text");
}

#[test]
fn a_clock_of_seconds_is_reported() {
    for command in [&["trace", "info"][..], &["report", "--passes", "1", "--what-if", "none"]] {
        let coarse = good(&[command, &[&sample("formats/tencent.csv")]].concat());
        assert!(coarse.contains("clock has steps of 1 s"), "{coarse}");
        let fine = good(&[command, &[&sample("f2fs-rocksdb.ftrace.zst")]].concat());
        assert!(!fine.contains("clock has steps"), "{fine}");
    }
}
