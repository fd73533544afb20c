//! Power fails while jobs run: recovered drives keep every promise, and the comparison finds what
//! a drive has lost.

use crate::common::fitted;
use prism_base::Rng;
use prism_ssd::{Drive, DriveSpec, DriveSpecError, InitialState, PreparedDrive};
use prism_testkit::{all_seeds, seeds};
use prism_workload::Silent;
use prism_workload::fio::{AfterCut, JobReader, jobs, run_until_cut};

fn device(preset: &str) -> DriveSpec {
    fitted(&DriveSpec::preset(preset).unwrap())
}

fn drive(device: &DriveSpec, state: InitialState) -> Drive {
    let prepared = PreparedDrive::with_content(device.clone(), state, 1, |_| true);
    prepared.unwrap().unwrap().into_drive().0
}

/// Runs a job until the cut, and compares with the drive that `recover` makes of the cut one.
fn cut(
    preset: &str,
    options: &str,
    requests: u64,
    recover: impl FnOnce(Drive) -> Drive,
) -> AfterCut {
    let device = device(preset);
    let mut drive = drive(&device, InitialState::Filled);
    let mut reader = JobReader::new();
    reader.file("jobs.fio", &format!("[job]\n{}\n", options.replace(' ', "\n"))).unwrap();
    let jobs = jobs(&reader.finish().unwrap(), &[], device.capacity().0, requests).unwrap();
    let acknowledged = run_until_cut(&mut drive, &jobs, &mut Silent, requests).unwrap();
    acknowledged.compare(&recover(drive)).unwrap()
}

fn recovered(drive: Drive) -> Drive {
    Drive::recover(drive.power_cut(7), 7).unwrap()
}

#[test]
fn random_cuts_break_no_promise() {
    let options = [
        "rw=randwrite iodepth=32",
        "rw=randwrite iodepth=8 fsync=5 bsrange=512-20k",
        "rw=randrw iodepth=16 sync=1",
        "rw=trimwrite iodepth=4 fsync=7",
        "rw=randwrite iodepth=64 random_distribution=zipf:1.2 norandommap fdatasync=40",
    ];
    let mut lost = 0;
    for seed in seeds(0..10) {
        let mut rng = Rng::stream(seed, "workload.cut");
        for preset in ["consumer-nvme", "dc-tlc", "pcie-mlc", "consumer-tlc"] {
            for options in options {
                let label = format!("{preset}, {options}, seed {seed}");
                let most = if rng.chance(0.5) { 200 } else { 16_000 };
                let requests = 1 + rng.below(most);
                let after = cut(preset, options, requests, recovered);
                assert_eq!(after.broken, [0; 0], "{label}");
                assert_eq!(after.completed, requests, "{label}");
                assert_eq!(after.kept + after.lost, after.units, "{label}");
                assert!(after.promised <= after.kept, "{label}");
                assert_eq!(after.lost_for.is_some(), after.lost > 0, "{label}");
                if device(preset).drive.power_loss_protection {
                    assert_eq!((after.lost, after.promised), (0, after.units), "{label}");
                }
                lost += after.lost;
            }
        }
    }
    assert!(!all_seeds() || lost > 100, "volatile caches have lost {lost} units");
}

/// A drive that lies: it has forgotten all that it had promised.
#[test]
fn a_broken_promise_is_found() {
    let empty = |drive: Drive| {
        let device = drive.device().clone();
        self::drive(&device, InitialState::Filled)
    };
    let options = "rw=write iodepth=1 bs=4k fsync=4";
    let after = cut("consumer-nvme", options, 10, empty);
    // Eight writes and two flushes have completed.
    assert_eq!((after.units, after.promised, after.kept, after.lost), (8, 8, 0, 0));
    assert_eq!(after.broken.len(), 8);
    // Without flushes it had promised nothing.
    let after = cut("consumer-nvme", "rw=write iodepth=1 bs=4k", 10, empty);
    assert_eq!((after.units, after.promised, after.kept, after.lost), (10, 0, 0, 10));
    assert!(after.lost_for.is_some() && after.broken.is_empty());
}

#[test]
fn jobs_that_end_before_are_cut_at_their_end() {
    let options = "rw=write size=40k bs=4k end_fsync=1";
    let after = cut("consumer-nvme", options, 1000, recovered);
    assert_eq!((after.completed, after.in_flight), (11, 0));
    assert_eq!((after.units, after.promised, after.kept), (10, 10, 10));
}

#[test]
fn states_that_are_laid_out_have_no_content() {
    let state = InitialState::Steady;
    let refused = PreparedDrive::with_content(device("dc-tlc"), state, 1, |_| true);
    assert_eq!(refused.err(), Some(DriveSpecError::NoContent));
    let state = InitialState::Settled;
    let settled = PreparedDrive::with_content(device("dc-tlc"), state, 1, |_| true).unwrap();
    assert!(settled.unwrap().into_drive().0.version_of(0).unwrap().is_some());
}
