//! Jobs with placement handles: the handle of each write, errors, and fewer copies with separated
//! data.

use crate::common::{Issued, Log, fitted, parse_for, prepared};
use prism_ssd::{DriveSpec, HostOp, InitialState};
use prism_workload::fio::{self, FioError, Job, RunResult, Target};

fn device(handles: u32) -> DriveSpec {
    let mut preset = DriveSpec::preset("dc-tlc").unwrap();
    preset.ftl.placement_handles = handles;
    fitted(&preset)
}

/// Parses jobs, one per line, with options separated by spaces.
fn parse(text: &str, handles: u32) -> Result<Vec<Job>, FioError> {
    parse_for(&text.replace(' ', "\n"), Target::of(&device(handles)))
}

/// The I/Os in the order of issue.
fn run(text: &str, handles: u32) -> (RunResult, Log) {
    let jobs = parse(text, handles).unwrap();
    let mut log = Log::default();
    let mut drive = prepared(device(handles), InitialState::Filled);
    let outcome = fio::run(&mut drive, &jobs, &mut log).unwrap();
    log.issued.sort_by_key(|io| io.at);
    (outcome, log)
}

/// The handles of the writes for which `wanted` is true.
fn handles_of(log: &Log, wanted: impl Fn(&Issued) -> bool) -> Vec<u16> {
    let writes = log.issued.iter().filter(|io| io.op == HostOp::Write);
    writes.filter(|io| wanted(io)).map(|io| io.handle).collect()
}

/// The handles of the writes of a job.
fn written(options: &str, handles: u32) -> Vec<u16> {
    let (_, log) = run(&format!("[j] {options}\n"), handles);
    assert!(log.issued.iter().all(|io| io.op == HostOp::Write || io.handle == 0));
    handles_of(&log, |_| true)
}

#[test]
fn writes_use_the_handles_round_robin() {
    assert_eq!(written("rw=write number_ios=5 fdp=1", 3), [0, 1, 2, 0, 1]);
    assert_eq!(written("rw=write number_ios=5 dataplacement=fdp", 2), [0, 1, 0, 1, 0]);
    assert_eq!(written("rw=write number_ios=5 fdp=1 plids=6,1-2", 8), [1, 2, 6, 1, 2]);
    assert_eq!(written("rw=write number_ios=3 fdp=1 fdp_pli=5", 8), [5; 3]);
    let options = "rw=write number_ios=4 fdp=1 fdp_pli=1,1,3 fdp_pli_select=roundrobin fsync=1";
    assert_eq!(written(options, 4), [1, 1, 3, 1]);
    assert_eq!(written("rw=trimwrite number_ios=3 fdp=1", 2), [0, 1, 0]);
    // Without the options writes name no handle, which means the first.
    assert_eq!(written("rw=write number_ios=3", 4), [0; 3]);
    assert_eq!(written("rw=write number_ios=3 fdp=0 plids=2", 4), [0; 3]);
    assert_eq!(written("rw=write number_ios=3 dataplacement=none plids=2", 4), [0; 3]);
}

#[test]
fn every_clone_has_its_own_round_robin() {
    let text = "[j] rw=rw number_ios=40 fdp=1 plids=1-3 numjobs=3 offset_increment=1m size=1m\n";
    let (_, log) = run(text, 4);
    for clone in 0..3 {
        let handles = handles_of(&log, |io| io.offset >> 20 == clone);
        let turns = [1, 2, 3].into_iter().cycle().take(handles.len());
        assert_eq!(handles, turns.collect::<Vec<_>>(), "clone {clone}");
        assert!(handles.len() >= 10, "half of 40 I/Os are writes");
    }
}

#[test]
fn random_draws_from_the_list() {
    let handles = written("rw=randwrite number_ios=3000 fdp=1 plids=0,2-3 plid_select=random", 5);
    let count = |handle| handles.iter().filter(|&&it| it == handle).count();
    let counts: [usize; 5] = std::array::from_fn(|handle| count(handle as u16));
    assert_eq!((counts[1], counts[4]), (0, 0));
    // Five standard deviations of 26.
    assert!([0, 2, 3].iter().all(|&it| counts[it].abs_diff(1000) < 130), "{counts:?}");
    assert!(handles.windows(2).any(|two| two[0] == two[1]), "not in turn");
}

#[test]
fn placement_changes_no_other_random_choice() {
    let offsets = |options: &str| {
        run(&format!("[j] rw=randrw bsrange=4k-16k number_ios=300 {options}\n"), 4).1.offsets()
    };
    let without = offsets("fdp=0");
    assert_eq!(without.len(), 300);
    assert_eq!(offsets("fdp=1"), without);
    assert_eq!(offsets("fdp=1 plid_select=random plids=1-3"), without);
}

#[test]
fn invalid_combinations_are_refused() {
    let check = |options: &str, handles: u32, what: &str| {
        let error = parse(&format!("[j] rw=write {options}\n"), handles).unwrap_err().to_string();
        assert!(error.contains(what), "{options}: {error}");
    };
    check("fdp=1", 0, "job j: fdp=1 needs a drive with placement handles");
    check("dataplacement=fdp", 0, "--set ftl.placement_handles=8");
    check("fdp=2", 4, "0 or 1");
    check("dataplacement=streams", 4, "for which fdp is the option");
    check("dataplacement=yes", 4, "none or fdp");
    check("fdp=1 plids=4", 4, "names handle 4, but the drive has 4, from 0 on");
    check("fdp=1 plids=1-9", 4, "names handle 9");
    check("fdp=1 plids=", 4, "0,2-4");
    check("fdp=1 plids=3-1", 4, "0,2-4");
    check("fdp=1 plids=70000", 4, "0,2-4");
    check("fdp=1 plids=a", 4, "jobs.fio:4: plids=\"a\"");
    check("plids=1", 4, "plids means nothing without fdp=1");
    check("plid_select=random", 4, "plid_select means nothing without fdp=1");
    check("fdp=1 plid_select=scheme", 4, "give each region a job");
    check("fdp=1 plid_select=first", 4, "roundrobin or random");
    check("fdp=1 dp_scheme=x", 4, "does not simulate");
}

/// A sample on a drive of two handles, with and without them.
fn write_amplification(sample: &str) -> [f64; 2] {
    let lines: Vec<_> = sample.lines().filter(|line| !line.starts_with('#')).collect();
    let text = lines.join("\n");
    [text.replace("fdp=1", "fdp=0"), text]
        .map(|text| run(&text, 2).0.total.write_amplification().unwrap())
}

/// Small objects of a cache are deleted long before large ones. Separated, they leave blocks with
/// nothing to copy, and so do the large ones, which are deleted in the order of writing.
#[test]
fn data_that_is_deleted_together_is_not_copied() {
    let [mixed, apart] = write_amplification(include_str!("../../../../samples/jobs/cache.fio"));
    assert!(apart < 1.1 && mixed > 1.8, "apart {apart}, mixed {mixed}");
}
