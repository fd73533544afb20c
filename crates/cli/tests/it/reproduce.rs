//! `prism reproduce` on the shipped traces and on drives alone: the structure of its results.

use std::path::Path;
use std::sync::OnceLock;

use crate::common::loop_disk::{can_capture, has_program};
use crate::common::{Run, folder, good, refused, sample};
use prism_testkit::{assert_page, skipped};
use serde_json::Value;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs it at quarter scale, and returns the JSON. A copy of the page of `docs` is renewed as well:
/// the page has the same tables with the same rows.
fn reproduce(id: &str) -> Value {
    reproduce_with(id, "samples")
}

/// The same with traces in the folder `traces`.
fn reproduce_with(id: &str, traces: &str) -> Value {
    let page = std::fs::read_to_string(root().join("docs").join(format!("{id}.md"))).unwrap();
    let folder = folder();
    let copy = folder.path().join("page.md");
    std::fs::write(&copy, &page).unwrap();
    let args = ["reproduce", id, "--traces", traces, "--scale", "quarter", "--json", "-", "--page"];
    let found = Run::inside(&root(), &[&args[..], &[copy.to_str().unwrap()]].concat()).json();
    let renewed = std::fs::read_to_string(&copy).unwrap();
    // Of the traces of the unwritten contract some are not shipped; the file system of SFS has
    // fewer runs at this scale.
    let has_more = |name: &str| id == "unwritten-contract" || name.starts_with("File system");
    assert_page(&page, &renewed, has_more);
    found
}

fn rows(table: &Value) -> &[Value] {
    table["rows"].as_array().expect("a table has rows")
}

fn observation(found: &Value, number: u64) -> &Value {
    let all = found["observations"].as_array().unwrap();
    assert_eq!(all.len(), 24);
    all.iter().find(|one| one["number"] == number).expect("numbers are 1 to 24")
}

/// What the shipped traces show of the unwritten contract: one run for all tests.
fn contract() -> &'static Value {
    static FOUND: OnceLock<Value> = OnceLock::new();
    FOUND.get_or_init(|| reproduce("unwritten-contract"))
}

#[test]
fn the_shipped_traces_decide_observations() {
    let found = contract();
    let used = found["traces"].as_array().unwrap();
    assert_eq!(used.len() + found["missing_traces"].as_array().unwrap().len(), 15);
    for table in ["scores", "sizes", "barriers_and_discards", "rule_numbers", "lifetimes"] {
        assert_eq!(rows(&found[table]).len(), used.len(), "{table}");
    }
    assert_eq!(rows(&found["depths"]).len(), 2 * used.len());
    for row in rows(&found["scores"]) {
        for (key, score) in row.as_object().unwrap().iter().filter(|(key, _)| *key != "pair") {
            let score = score.as_f64().unwrap_or(0.0);
            assert!((0.0..=1.0).contains(&score), "{row}: {key}");
        }
    }
    for one in found["observations"].as_array().unwrap() {
        let listed = |key: &str| one[key].as_array().unwrap().len();
        let (supporting, opposing) = (listed("supporting"), listed("opposing"));
        let why = one["why"].as_str().unwrap();
        match one["outcome"].as_str().unwrap() {
            "reproduced" => assert!(supporting > 0 && why.is_empty(), "{one}"),
            "not_reproduced" => assert!(opposing > 0 && !why.is_empty(), "{one}"),
            other => panic!("every observation is decided: {other} {one}"),
        }
    }
    // SQLite writes little at a time; its reads have cold caches on every file system.
    assert_eq!(observation(found, 1)["outcome"], "reproduced");
    for number in [7, 9, 16, 20] {
        let one = observation(found, number);
        let lists = ["supporting", "opposing"].map(|key| one[key].as_array().unwrap().len());
        assert!(lists[0] + lists[1] >= 3, "{one}");
    }
    let cold = rows(&found["cold_reads"]);
    // Each pair was read with three settings of read-ahead.
    assert_eq!(cold.len() % 3, 0);
    assert!(rows(&found["sequential_work"]).iter().any(|row| row["instances"] == 2));
}

#[test]
fn figure_1_has_a_window_in_which_rocksdb_reads_and_writes() {
    let found = contract();
    let windows = rows(&found["figure_1"]["windows"]);
    assert_eq!(windows[0]["pair"], "published");
    let ours = windows.iter().find(|row| row["pair"] == "ext4-rocksdb").expect("it is shipped");
    assert!(ours["read"].as_u64() > Some(0) && ours["written"].as_u64() > Some(0), "{ours}");
    let points = found["figure_1"]["points_ns_reads_writes"]["ext4-rocksdb"].as_array().unwrap();
    let most = |side: usize| points.iter().map(|point| point[side].as_u64().unwrap()).max();
    assert_eq!(most(1), ours["most_reads"].as_u64());
    assert_eq!(most(2), ours["most_writes"].as_u64());
}

/// Runs `id` at quarter scale and returns the JSON, whose comparisons have a verdict and, where
/// they differ, a reason.
fn reproduce_alone(id: &str, traces: &str) -> Value {
    let found = reproduce_with(id, traces);
    assert_eq!((&found["id"], &found["scale"]), (&Value::from(id), &Value::from("quarter")));
    for one in found["compared"].as_array().expect("comparisons") {
        let why = one["why"].as_str().unwrap();
        let difference = one["difference"].as_f64();
        match one["verdict"].as_str().unwrap() {
            "agrees" => {
                assert!(difference.unwrap().abs() <= one["tolerance"].as_f64().unwrap(), "{one}");
                assert!(why.is_empty(), "{one}");
            }
            "explained" | "not given" | "unexplained" => assert!(!why.is_empty(), "{one}"),
            other => panic!("{other}"),
        }
    }
    found
}

fn verdict<'a>(found: &'a Value, what: &str) -> &'a str {
    let all = found["compared"].as_array().unwrap();
    let one = all.iter().find(|one| one["what"].as_str().unwrap().contains(what));
    one.unwrap_or_else(|| panic!("{what} is compared"))["verdict"].as_str().unwrap()
}

#[test]
fn the_article_on_ssd_friendly_applications_is_repeated() {
    let found = reproduce_alone("linkedin", "samples");
    for (table, count) in [
        ("threads", 7),
        ("sizes", 12),
        ("threshold", 8),
        ("mechanisms", 12),
        ("rates", 24),
        ("full", 10),
        ("lifetimes", 2),
        ("updates", 5),
        ("users", 3),
        ("changes", 5),
    ] {
        assert_eq!(rows(&found[table]).len(), count, "{table}");
    }
    assert_eq!(verdict(&found, "writes of 10 KB, 4 threads"), "agrees");
    assert_eq!(verdict(&found, "writes of 10 MB, 8 threads"), "unexplained");
    assert_eq!(verdict(&found, "95 % full, random victims: blocks"), "agrees");
    assert_eq!(verdict(&found, "95 % full, greedy: blocks"), "explained");
}

/// Records overwrites on ext4 in the folder, on as small a device as our own file system has at
/// quarter scale; false and a note where that is not possible.
fn record_overwrites(folder: &str) -> bool {
    let Some(_turn) = can_capture("SFS on ext4") else { return false };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if !has_program("mkfs.ext4") || !mounts.contains(" - cgroup") {
        skipped("SFS on ext4: it needs mkfs.ext4 and memory cgroups", "e2fsprogs");
        return false;
    }
    // 29,760 blocks, of which 8 of 30 parts are overwritten.
    let sizes = ["--size", "119040KiB", "--write", "31744KiB"];
    let what = ["--fs", "ext4", "--app", "overwrite-uniform", "--pattern", "rand", "--no-replay"];
    let keep = ["--keep-traces", folder];
    good(&[&["capture", "stack"], &what[..], &sizes[..], &keep[..]].concat());
    true
}

#[test]
fn sfs_is_repeated() {
    let traces = folder();
    let traces = traces.path().to_str().unwrap();
    let recorded = record_overwrites(traces);
    let found = reproduce_alone("sfs", traces);
    assert_eq!(rows(&found["segments"]).len(), 3 * 4);
    let drives = ["SSD-H, page", "SSD-H, N/K", "SSD-H, FAST", "SSD-M, page", "SSD-L, BAST"];
    for drive in drives {
        assert_eq!(verdict(&found, &format!("{drive}: sequential")), "agrees");
    }
    assert_eq!(verdict(&found, "SSD-H, FAST: random writes of 10 MiB"), "agrees");
    assert_eq!(verdict(&found, "FAST, segments, aligned: erases"), "agrees");
    assert!(rows(&found["sizes"]).len() > 7 * 8);
    let left_out = found["left_out"].as_str().expect("traces are missing");
    assert!(left_out.contains("prism capture stack") && left_out.contains(traces), "{left_out}");
    if recorded {
        an_overwritten_ext4_is_compared(&found);
    } else {
        assert_eq!(rows(&found["kernel"]).len(), 0);
    }
}

fn an_overwritten_ext4_is_compared(found: &Value) {
    let [row] = rows(&found["kernel"]) else { panic!("one run was recorded") };
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
    // Blocks that are overwritten twice before they are written back are written once; the journal
    // and the tables of blocks come on top.
    assert!((0.9..1.5).contains(&number("volume")), "{row}");
    // Writes in place among data that stays are merged and copied.
    assert!(number("fast_wa") > 2.0 && number("page_wa") > 1.3, "{row}");
    let compared = found["compared_kernel"].as_array().unwrap();
    let counted = compared.iter().filter(|one| one["basis"] == "independent").count();
    assert_eq!((compared.len(), counted), (5, 3), "{compared:?}");
    // At this scale blocks have four pages, and as many pages are erased as are programmed.
    for map in ["fast", "page"] {
        let programmed = number("volume") * number(&format!("{map}_wa"));
        let erased = number(&format!("{map}_erases")) * 4.0 / 1000.0;
        assert!((erased / programmed - 1.0).abs() < 0.1, "{map}: {row}");
    }
    assert_eq!(rows(&found["kernel_relations"]).len(), 2);
}

#[test]
fn atc09_compares_every_number_with_the_published_one() {
    let found = reproduce("atc09");
    let lines = found["comparisons"].as_array().unwrap();
    for line in lines {
        let difference = line["difference"].as_f64().expect("ours is there");
        assert_eq!(line["verdict"] == "agrees", difference.abs() <= 0.15, "{line}");
        assert_eq!(line["why"] == "", line["verdict"] == "agrees", "{line}");
    }
    for (part, table, count) in [
        ("table_1", "terms", 6),
        ("figure_2", "sizes", 28),
        ("table_3", "closest", 5),
        ("table_4", "improvements", 4 * 5),
        ("table_5", "closest", 4),
        ("figure_3", "runs", 6 * 5),
    ] {
        assert_eq!(rows(&found[part][table]).len(), count, "{part}");
    }
    assert!(rows(&found["table_2"]["closest"]).len() == 12 && lines.len() > 30, "{found}");
}

#[test]
fn ids_are_listed_and_an_empty_folder_is_refused() {
    let list = good(&["reproduce"]);
    for id in ["unwritten-contract", "linkedin", "sfs"] {
        assert!(list.contains(id), "{list}");
    }
    let empty = folder();
    let dir = empty.path().to_str().unwrap();
    refused(&["reproduce", "unwritten-contract", "--traces", dir], &[dir, "--traces"]);
    refused(&["reproduce", "other", "--traces", &sample("")], &[]);
}
