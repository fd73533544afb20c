//! Global wear levelling over many short sessions of a device: it keeps within its total budget,
//! and levels as well as in one long session.

use prism_base::Rng;
use prism_flash::raw::{Address, Raw};
use prism_flash::{Allocation, Device, DeviceGeometry, GlobalWear, Options};
use prism_flashfile::{FlashFile, SimulatedFile};
use prism_nand::Cause;
use prism_testkit::{all_seeds, seeds};

const GEOMETRY: DeviceGeometry = DeviceGeometry {
    channels: 4,
    luns_per_channel: 1,
    blocks_per_lun: 16,
    pages_per_block: 4,
    page_size: 1024,
    oob_size: 0,
    max_open_blocks: None,
};

const POLICY: GlobalWear = GlobalWear { min_gap: 8, delta: 0.0, budget: 0.1 };
const OPTIONS: Options = Options { timing: None, wear: Some(POLICY) };

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Clean,
    Kill,
    Power,
}

fn formatted() -> SimulatedFile {
    let file = SimulatedFile::new();
    let medium = FlashFile::create_simulated(&file, GEOMETRY).unwrap();
    let device = Device::format(medium, OPTIONS).unwrap();
    let lun = device.lun_capacity();
    for name in ["hot", "cold"] {
        drop(device.allocate(name, Allocation::new(lun, 0)).unwrap());
    }
    file
}

fn opened(file: &SimulatedFile) -> Device {
    let medium = FlashFile::open_simulated(file).unwrap();
    Device::open(medium, OPTIONS).unwrap()
}

/// The totals of many sessions.
#[derive(Debug, Default)]
struct Sum {
    erases: u64,
    levelled: u64,
    exchanges: u64,
    worn: f64,
    mean: f64,
}

/// Erases blocks of one share in turn, with a number of erases per session.
fn lives(end: End, each: u64) -> Sum {
    let file = formatted();
    let mut rng = Rng::stream(each, "wear.lives");
    let mut sum = Sum::default();
    while sum.erases < 6000 {
        let device = opened(&file);
        let found = device.wear();
        assert_eq!((found.erases, found.exchanges), (sum.levelled, sum.exchanges), "{end:?}");
        let raw = Raw::open(device.attach("hot").unwrap()).unwrap();
        let blocks = u64::from(raw.geometry().blocks_per_lun);
        for _ in 0..each {
            let at = Address { block: (sum.erases % blocks) as u32, ..Address::default() };
            raw.write_page(at, &[sum.erases as u8; 1024]).unwrap();
            raw.erase_block(at).unwrap();
            sum.erases += 1;
        }
        raw.sync().unwrap();
        sum.levelled += device.own_counts().erases[Cause::Wear];
        let report = device.wear();
        assert_eq!(report.erases, sum.levelled, "{end:?}: what it says it has cost");
        let most = POLICY.budget * sum.erases as f64 + 2.0;
        assert!(report.erases as f64 <= most, "{end:?} {each}: {report:?} of {most}");
        (sum.exchanges, sum.worn, sum.mean) = (report.exchanges, report.max, report.mean);
        drop(raw);
        match end {
            End::Clean => drop(device),
            End::Kill => file.kill(),
            End::Power => file.restart(&mut rng),
        }
    }
    sum
}

#[test]
fn short_sessions_level_as_well_as_a_long_one() {
    let long = lives(End::Clean, 6000);
    assert!(long.exchanges > 8, "{long:?}");
    for end in [End::Clean, End::Kill, End::Power] {
        for each in [3, 40, 500] {
            let short = lives(end, each);
            let context = format!("{end:?} {each}: {short:?}, and in one life {long:?}");
            assert!(short.exchanges.abs_diff(long.exchanges) <= 2, "{context}");
            assert!(short.worn / short.mean < 1.1 * long.worn / long.mean, "{context}");
        }
    }
}

/// Power fails during levelling, again and again: its cost is never forgotten, and each failure
/// overestimates it by at most two erases.
#[test]
fn random_cuts_never_make_levelling_cheaper() {
    for seed in seeds(0..12) {
        let mut rng = Rng::stream(seed, "wear.cuts");
        let file = formatted();
        let (mut spent, mut cuts, mut number) = (0, 0, 0u32);
        while cuts < 150 {
            let device = opened(&file);
            let known = device.wear().erases;
            assert!((spent..=spent + 2 * cuts).contains(&known), "seed {seed}: {known} of {spent}");
            let raw = Raw::open(device.attach("hot").unwrap()).unwrap();
            file.cut_power_after(rng.below(400));
            let blocks = raw.geometry().blocks_per_lun;
            while !file.lost_power() {
                let at = Address { block: number % blocks, ..Address::default() };
                let done = raw.write_page(at, &[1; 1024]).and_then(|()| raw.erase_block(at));
                assert!(done.is_ok() || file.lost_power(), "seed {seed}: {done:?}");
                // A page left by a power failure has to be erased.
                number += 1;
            }
            spent += device.own_counts().erases[Cause::Wear];
            cuts += 1;
            file.restart(&mut rng);
            drop((raw, device));
            let device = opened(&file);
            let raw = Raw::open(device.attach("hot").unwrap()).unwrap();
            raw.blocks().for_each(|at| raw.erase_block(at).unwrap());
            raw.sync().unwrap();
            spent += device.own_counts().erases[Cause::Wear];
            drop((raw, device));
        }
        assert!(!all_seeds() || spent > 100, "seed {seed}: {spent} erases for levelling");
    }
}
