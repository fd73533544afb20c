//! Data read is the data written, also after cleaning has moved it.

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_engine::{Done, Engine, EngineConfig, HostUnit};
use prism_ftl::{Frontiers, Ftl, PageConfig, PageMap, UnitWrite, VictimPolicy};
use prism_nand::{Cause, Geometry, Nand, PageTimes, Timing};
use prism_testkit::seed;

const LOGICAL: u32 = 600;

fn parts() -> (Nand, Ftl) {
    let geometry = Geometry {
        dies_per_channel: 2,
        blocks_per_plane: 16,
        pages_per_block: 16,
        page: Bytes(8192),
        ..Geometry::SMALLEST
    };
    let config = PageConfig::simple(LOGICAL, VictimPolicy::Greedy, Frontiers::Separate);
    let ftl = PageMap::new(geometry.clone(), config, 1).unwrap();
    (Nand::with_content(geometry), ftl.into())
}

fn bytes_of(lpn: u32, version: u64) -> Box<[u8]> {
    let mut bytes = vec![version as u8; 4096];
    bytes[..4].copy_from_slice(&lpn.to_le_bytes());
    bytes[4..12].copy_from_slice(&version.to_le_bytes());
    bytes.into()
}

#[test]
fn random_writes_in_time_are_read_as_written() {
    let (nand, ftl) = parts();
    let timing = Timing {
        t_read: PageTimes::uniform(Nanos(10)),
        t_program: PageTimes::uniform(Nanos(100)),
        t_erase: Nanos(1000),
        t_command: Nanos(0),
        bus_bytes_per_second: None,
    };
    let mut engine = Engine::new(nand, ftl, EngineConfig::simple(timing));
    let mut rng = Rng::stream(seed(2), "bytes");
    let mut newest = vec![0; LOGICAL as usize];
    let mut now = SimTime::ZERO;
    let mut version = 0;
    let mut done: Vec<Done> = Vec::new();
    while version < 20_000 {
        let Some(die_group) = engine.writable_die_group(0, 0, now) else {
            now = engine.step(&mut done);
            continue;
        };
        let program_unit: Vec<_> = (0..2)
            .map(|tag| {
                version += 1;
                let lpn = rng.below(u64::from(LOGICAL)) as u32;
                newest[lpn as usize] = version;
                HostUnit { write: UnitWrite { lpn, source: None, version }, tag, lost: false }
            })
            .collect();
        let payloads =
            program_unit.iter().map(|u| bytes_of(u.write.lpn, u.write.version)).collect();
        engine.write_bytes(die_group, 0, &program_unit, payloads, now);
    }
    while !engine.is_idle() {
        engine.step(&mut done);
    }
    engine.assert_conserved();
    assert!(engine.counts().programs[Cause::Gc] > 1000, "cleaning moved data");
    for (lpn, &version) in newest.iter().enumerate().filter(|&(_, &version)| version > 0) {
        let at = engine.ftl().lookup(lpn as u32).expect("written");
        let unit = engine.nand().read(at).unwrap().expect("kept");
        assert_eq!(unit.payload.as_deref(), Some(&bytes_of(lpn as u32, version)[..]));
    }
}
