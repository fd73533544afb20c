//! Aligned sequentiality: a drive that maps by the block makes a log block a data block as
//! it is, if it was written from its beginning and in order; else it copies.

use prism_ssd::HostOp;
use prism_ssd::device::Mapping;

use super::run::Bed;
use super::{BLOCK, Bench, Comparison, FLASH, Rule, SPACE, Side};

/// Logical blocks of a group, and twice as many log blocks.
const GROUP_BLOCKS: u32 = 4;
/// The most of all blocks that are log blocks: few beside what is written, so that merging
/// is part of what is measured.
const LOG_SHARE: f64 = 0.05;

pub(super) fn run(bench: Bench) -> Vec<Comparison> {
    let blocks = || (0..bench.bytes(SPACE)).step_by(BLOCK as usize);
    let half = BLOCK / 2;
    let conform = blocks().flat_map(|at| [at, at + half]).collect();
    let violate = blocks().flat_map(|at| [at + half, at]).collect();
    let side = |what: &str, offsets: Vec<u64>| {
        let mut device = bench.device(SPACE, FLASH);
        device.ftl.mapping = Mapping::Hybrid;
        device.ftl.group_blocks = Some(GROUP_BLOCKS);
        device.ftl.group_log_blocks = Some(2 * GROUP_BLOCKS);
        device.ftl.log_share = Some(LOG_SHARE);
        device.ftl.victim = prism_ftl::VictimPolicy::Fifo;
        // Merging begins where log blocks are asked for.
        (device.ftl.free_blocks_low, device.ftl.free_blocks_high) = (0, 0);
        device.drive.power_loss_protection = true;
        let mut bed = Bed::empty(device, bench.seed);
        bed.run(HostOp::Write, half, 1, &offsets);
        Side { what: what.into(), cost: bed.run(HostOp::Write, half, 1, &offsets) }
    };
    vec![Comparison {
        rule: Rule::AlignedSequentiality,
        name: "blocks by halves",
        conform: side("first half first", conform),
        violate: side("second half first", violate),
        published: &[],
    }]
}
