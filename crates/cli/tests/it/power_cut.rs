//! `prism sim --cut-power-after`.

use crate::common::{Run, prism};

const JOB: [&str; 6] =
    ["--name=w", "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=32m", "--fsync=64"];

fn sim(args: &[&str]) -> Run {
    prism(&[&["sim", "--capacity", "64MiB"], args, &JOB].concat())
}

#[test]
fn a_cut_reports_what_is_lost() {
    let args = ["--device", "consumer-nvme", "--cut-power-after", "2000"];
    let shown = sim(&args).quiet();
    for text in ["Loss of power after 2,000 requests", "Promised", "Lost for", "fsync=N"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    assert_eq!(sim(&args).quiet(), shown);
    let cut = &sim(&[&args[..], &["--json", "-"]].concat()).json()["power_cut"];
    let number = |key: &str| cut[key].as_u64().unwrap_or_else(|| panic!("{key}: {cut}"));
    assert_eq!((number("requests_completed"), number("promises_broken")), (2000, 0));
    assert!(number("units_lost") > 0 && number("lost_for_ns") > 0);
    assert_eq!(number("units_kept") + number("units_lost"), number("units_acknowledged"));
    assert!(number("units_promised") > 1900);
}

#[test]
fn what_does_not_go_with_a_cut_is_refused() {
    let cases: [(&[&str], &str); 6] = [
        (&["--cut-power-after", "0"], "0 is not in 1.."),
        (&["--cut-power-after", "9", "--state", "steady"], "--state empty, filled or"),
        (
            &["--cut-power-after", "9", "--device", "zns-small", "--zonemode=zbd"],
            "drives without zones",
        ),
        (&["--cut-power-after", "9", "--sweep", "seed=1,2"], "--cut-power-after applies only"),
        (&["--cut-power-after", "9", "--output-format=json"], "leave out --output-format=json"),
        (&["--cut-power-after", "9", "--state", "x.prism-state"], "a snapshot has no content"),
    ];
    for (args, expected) in cases {
        sim(args).refused(&[expected]);
    }
}
