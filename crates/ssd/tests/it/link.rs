//! The host link: full duplex as PCIe's, or half duplex as SATA's.

use prism_base::{Nanos, SimTime};
use prism_ssd::spec::Duplex;
use prism_ssd::{Completion, Drive, HostOp, Request};

use crate::common::lab::{FIRMWARE, READ, UNIT, channel, filled, lab, link};

/// The latency of a read if a write is submitted `before` the read's data gets to the link.
fn read_latency(drive: &mut Drive, before: Nanos) -> Nanos {
    let unit = |op, tag| Request::new(op, tag * UNIT, UNIT, tag);
    let begin = drive.now();
    drive.submit(unit(HostOp::Read, 0), begin).unwrap();
    let submitted = SimTime(begin.0 + (FIRMWARE + READ + channel(1)).0 - before.0);
    let mut done: Vec<Completion> = Vec::new();
    drive.advance(submitted, &mut done);
    drive.submit(unit(HostOp::Write, 1), submitted).unwrap();
    drive.advance(SimTime(begin.0 + 1_000_000_000), &mut done);
    let read = done.iter().find(|completion| completion.tag == 0).unwrap();
    read.completed.since(begin)
}

#[test]
fn a_write_delays_a_read_on_a_half_duplex_link_alone() {
    let before = Nanos(link(1).0 / 2);
    let read = FIRMWARE + READ + channel(1) + link(1);
    for (duplex, wait) in [(Duplex::Full, 0), (Duplex::Half, link(1).0 - before.0)] {
        let mut device = lab();
        device.drive.link_duplex = duplex;
        let took = read_latency(&mut filled(&device), before);
        assert_eq!(took, read + Nanos(wait), "{duplex:?}");
    }
}

#[test]
fn sata_presets_are_half_duplex() {
    for name in ["sfs-slc", "sfs-mlc", "slc-mlc", "bast-2007"] {
        let preset = prism_ssd::DriveSpec::preset(name).unwrap();
        assert_eq!(preset.drive.link_duplex, Duplex::Half, "{name}");
    }
}
