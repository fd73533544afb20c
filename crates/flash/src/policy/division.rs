//! Chooses the blocks of a range and the configuration of its FTL.

use prism_ftl::{
    Frontiers, FtlConfig, HybridConfig, Logs, PageConfig, Placement, VictimPolicy, WearPolicy,
};

use crate::error::{FlashError, Result};
use crate::monitor::ShareGeometry;
use crate::policy::config::{Mapping, OverProvisioning, RangeConfig};
use crate::policy::program_units::ProgramUnitFormat;

/// In a smaller die group, most blocks would be open or reserved.
const DIE_GROUP_BLOCKS_MIN: u32 = 12;
/// With fewer log blocks, block-level mappings merge all the time.
const LOGS_MIN: u32 = 2;
/// Erases by which a block with cold data may lag behind before its data is moved.
const WEAR_BEHIND: u32 = 64;

/// The blocks of a range.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) die_groups: u32,
    pub(crate) blocks: Vec<u32>,
}

/// The FTL for `units` logical units on `die_groups` die groups of `per_die_group` blocks; `open`
/// is the limit of partly written blocks.
pub(crate) fn ftl_config(
    config: &RangeConfig,
    format: &ProgramUnitFormat,
    units: u32,
    die_groups: u32,
    per_die_group: u32,
    open: u32,
) -> FtlConfig {
    let (group_blocks, group_log_blocks) = match config.mapping {
        Mapping::Page => {
            let victim: VictimPolicy = config.cleaning.victim();
            let placement = match config.handles {
                0 | 1 => Placement::Any,
                handles => Placement::Handles(handles),
            };
            return FtlConfig::Page(PageConfig {
                placement,
                free_blocks_low: 3,
                free_blocks_high: 4,
                wear: WearPolicy {
                    least_worn_first: true,
                    move_behind_mean: Some(WEAR_BEHIND),
                    victims_above_mean: None,
                },
                ..PageConfig::simple(units, victim, Frontiers::Separate)
            });
        }
        Mapping::Block => (1, 1),
        Mapping::Hybrid { group_blocks, group_log_blocks } => (group_blocks, group_log_blocks),
    };
    let data = units.div_ceil(format.units * format.program_units_per_block);
    // One block is reserved for merges. Open blocks are the log blocks and, for each die group, the
    // target of a merge.
    let logs =
        (die_groups * per_die_group).saturating_sub(data + 1).min(open.saturating_sub(die_groups));
    FtlConfig::Hybrid(HybridConfig {
        logs: Logs::Groups,
        gaps: false,
        logical_units: units,
        group_blocks,
        group_log_blocks,
        log_blocks: logs,
        victim: config.cleaning.victim(),
        free_blocks_low: 0,
        free_blocks_high: 0,
        reserve_blocks: 0,
    })
}

/// Blocks that a range of `config` keeps open on `die_groups` die groups, at least.
fn open_needed(config: &RangeConfig, die_groups: u32) -> u32 {
    match config.mapping {
        // One for each kind of data and one for copies.
        Mapping::Page => die_groups.saturating_mul(config.handles.max(1) + 1),
        // Log blocks for a few groups, and the target of a merge for each die group.
        Mapping::Block | Mapping::Hybrid { .. } => die_groups + LOGS_MIN,
    }
}

/// Chooses blocks for a range of `bytes` bytes among those that are not `used`, in at most
/// `die_groups_max` die groups.
///
/// # Errors
/// [`FlashError::NoSpace`] says how many blocks are needed and free.
pub(crate) fn divide(
    config: &RangeConfig,
    share: &ShareGeometry,
    format: &ProgramUnitFormat,
    bytes: u64,
    used: &[bool],
    open: u32,
    die_groups_max: u32,
) -> Result<Division> {
    let units = u32::try_from(bytes / u64::from(format.unit)).unwrap_or(u32::MAX);
    let data = bytes.div_ceil(format.block_bytes()).max(1);
    let free = used.iter().filter(|used| !**used).count() as u64;
    let wanted = match config.over_provisioning {
        OverProvisioning::Percent(percent) => (data * (100 + u64::from(percent))).div_ceil(100),
        OverProvisioning::Rest => free,
    };
    let mut refused = None;
    let enough = (wanted / u64::from(DIE_GROUP_BLOCKS_MIN)).max(1) as u32;
    let most = enough.min(die_groups_max);
    for die_groups in (1..=most).rev() {
        if open_needed(config, die_groups) > open {
            continue;
        }
        // The mapping may need more spare blocks than the over-provisioning requested.
        let exact = matches!(config.over_provisioning, OverProvisioning::Rest);
        let first =
            if exact { wanted / u64::from(die_groups) } else { wanted.div_ceil(die_groups.into()) };
        let last = if exact { first } else { first + 32 };
        for per_die_group in first..=last.min(free / u64::from(die_groups)) {
            let per_die_group = per_die_group as u32;
            let geometry = format.geometry(die_groups, per_die_group);
            let ftl = ftl_config(config, format, units, die_groups, per_die_group, open);
            match ftl.check(&geometry) {
                Ok(()) => {
                    let blocks = take_blocks(share, used, die_groups, per_die_group);
                    return Ok(Division { die_groups, blocks });
                }
                Err(error) => refused = Some(error),
            }
        }
    }
    let what = match refused {
        Some(error) => format!("the range does not fit the share's {free} free blocks: {error}"),
        None if open_needed(config, 1) > open => format!(
            "the range needs {} open blocks and may have {open}: raise open_blocks of the share \
             or of the range",
            open_needed(config, 1)
        ),
        None => format!(
            "the range needs {wanted} blocks and the share has {free} free ones: make it smaller, \
             lower its over-provisioning, or grow the share"
        ),
    };
    Err(FlashError::NoSpace { what })
}

/// `per_die_group` free blocks for each die group: from its own LUNs, one after another, then from
/// the LUN with the most.
fn take_blocks(
    share: &ShareGeometry,
    used: &[bool],
    die_groups: u32,
    per_die_group: u32,
) -> Vec<u32> {
    let mut free: Vec<Vec<u32>> = (0..share.luns)
        .map(|lun| {
            let blocks = lun * share.blocks_per_lun..(lun + 1) * share.blocks_per_lun;
            blocks.rev().filter(|&block| !used[block as usize]).collect()
        })
        .collect();
    let mut taken = vec![Vec::new(); die_groups as usize];
    for (die_group, blocks) in (0..).zip(&mut taken) {
        let own: Vec<u32> = (die_group..share.luns).step_by(die_groups as usize).collect();
        'die_group: loop {
            let before = blocks.len();
            for &lun in &own {
                if blocks.len() == per_die_group as usize {
                    break 'die_group;
                }
                blocks.extend(free[lun as usize].pop());
            }
            if blocks.len() == before {
                break;
            }
        }
    }
    for blocks in &mut taken {
        while blocks.len() < per_die_group as usize {
            let richest = free.iter_mut().max_by_key(|blocks| blocks.len()).expect("has LUNs");
            blocks.push(richest.pop().expect("enough blocks are free"));
        }
        // Sorted, they are stored in fewer runs.
        blocks.sort_unstable();
    }
    taken.into_iter().flatten().collect()
}

/// `count` free blocks, one of each LUN in turn.
pub(crate) fn take_any(share: &ShareGeometry, used: &[bool], count: u32) -> Option<Vec<u32>> {
    let free = |block: &u32| !used[*block as usize];
    let by_place = (0..share.blocks_per_lun)
        .flat_map(|place| (0..share.luns).map(move |lun| lun * share.blocks_per_lun + place));
    let blocks: Vec<u32> = by_place.filter(free).take(count as usize).collect();
    (blocks.len() == count as usize).then_some(blocks)
}
