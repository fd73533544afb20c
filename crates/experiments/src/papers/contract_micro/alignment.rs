//! Aligned sequentiality: a drive with block-level mapping turns a log block into a data block
//! without copies if it was written sequentially from its beginning; otherwise it copies.

use prism_ssd::HostOp;
use prism_ssd::spec::Mapping;

use super::measured::MeasuredDrive;
use super::{BLOCK, Bench, Comparison, FLASH, Rule, SPACE, Side};

/// Logical blocks of a group, which has twice as many log blocks.
const GROUP_BLOCKS: u32 = 4;
/// Maximal share of log blocks: few compared with what is written, so that the measurement
/// includes merges.
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
        // Merges begin only when no log block is free.
        (device.ftl.free_blocks_low, device.ftl.free_blocks_high) = (0, 0);
        device.drive.power_loss_protection = true;
        let mut drive = MeasuredDrive::empty(device, bench.seed);
        drive.run(HostOp::Write, half, 1, &offsets);
        Side { what: what.into(), cost: drive.run(HostOp::Write, half, 1, &offsets) }
    };
    vec![Comparison {
        rule: Rule::AlignedSequentiality,
        name: "blocks by halves",
        conform: side("first half first", conform),
        violate: side("second half first", violate),
        published: &[],
    }]
}
