//! What `prism report` must not claim: figures that do not exist, gains from few requests, faults
//! of the trace that are assumptions about the drive.

use crate::common::{flat, folder, good, path, sample};

/// The text of the report on `trace`, in which each line break is a space.
fn text(args: &[&str]) -> String {
    flat(&good(&[&["report"], args].concat()))
}

#[test]
fn a_short_trace_gains_nothing_that_it_cannot_show() {
    let trace = sample("formats/fio-v3.iolog");
    let shown = text(&[&trace]);
    let (_, advice) = shown.split_once("What to change first").expect("advice");
    let (advice, _) = advice.split_once("What would change").expect("what-ifs");
    // Forty requests have no 99th percentile.
    assert!(!advice.contains("p99 of reads and writes"), "{advice}");
    assert!(shown.contains("of only 19"), "{shown}");
    for never in ["instead of 0", "map pages, not blocks (", "Avoid full SSD usage"] {
        assert!(!advice.contains(never), "{never:?} is in {advice}");
    }
}

#[test]
fn a_drive_without_some_of_its_dies_says_so() {
    let trace = sample("formats/msr.csv");
    let device = ["--set", "ftl.victim=d-choices:10", "--what-if", "none"];
    let shown = text(&[&[trace.as_str()], &device[..]].concat());
    assert!(shown.contains("Latency and throughput are of that drive too, with"), "{shown}");
    assert!(shown.contains("of the 96 dies."), "{shown}");
    let wide = text(&[&trace, "--what-if", "none"]);
    assert!(wide.contains("on all 96 dies") && !wide.contains("of that drive too"), "{wide}");
}

#[test]
fn a_trace_beyond_the_drive_and_its_devices_are_named() {
    let folder = folder();
    let path = path(&folder, "two.csv");
    let line = |i: u64, disk: u64, offset: u64| {
        format!("{},host,{disk},Write,{offset},4096,100\n", 128_166_372_002_993_263 + i * 10_000)
    };
    let far = 5u64 << 40;
    let lines: String =
        (0..2000).map(|i| line(i, i % 2, if i % 2 == 1 { far } else { 0 } + i * 4096)).collect();
    std::fs::write(&path, lines).expect("a file in a temporary folder");
    let shown = text(&[&path, "--what-if", "none"]);
    assert!(shown.contains("more than the 3.64 TiB of the described drive"), "{shown}");
    assert!(shown.contains("range 0 to 128 GiB of device host,0"), "{shown}");
}

#[test]
fn the_first_screen_marks_what_is_weak_and_shows_both_charts() {
    let folder = folder();
    let page = path(&folder, "report.html");
    // The trace names neither files nor processes.
    let trace = sample("formats/mqsim.txt");
    text(&[&trace, "--what-if", "none", "--html", &page]);
    let html = std::fs::read_to_string(&page).expect("the page is written");
    let (_, glance) = html.split_once(">At a glance</h2>").expect("a first screen");
    let (glance, _) = glance.split_once("</section>").expect("its end");
    for part in ["The trace is too short to judge wear by", "Latency", "Where writes land"] {
        assert!(glance.contains(part), "{part:?} is not on the first screen");
    }
}

#[test]
fn text_and_help_are_as_wide_as_a_screen() {
    let widest = |args: &[&str], columns: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_prism"));
        let output = command.args(args).env("COLUMNS", columns).output().expect("it is built");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| line.chars().count()).max().expect("lines")
    };
    let trace = sample("formats/msr.csv");
    let info = ["trace", "info", trace.as_str()];
    assert!(widest(&info, "80") <= 80 && widest(&info, "300") <= 100);
    assert!(widest(&["report", "--help"], "300") <= 100);
}
