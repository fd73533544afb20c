//! Preparation of a large drive; the caller measures its time and memory.

use prism_base::{Bytes, Rng};
use prism_ftl::Ftl;
use prism_nand::Nand;
use prism_ssd::{Drive, DriveSpec, DriveSpecError, InitialState};

use super::speed::mqsim_like;
use crate::drives::prepared;
use crate::untimed::Untimed;

named_enum! {
    /// A kind of preparation.
    pub enum Task {
        /// An empty drive is created.
        Ready = "ready, 1 TB",
        /// Every unit is written once, in order.
        Fill = "fill, 1 TB",
        /// Random units of a filled drive are overwritten, half as many as it has; the drive is in
        /// steady state then.
        Overwrite = "overwrite half, 1 TB",
        /// A drive is created in steady state, without writing to it.
        Steady = "steady state, 1 TB",
        /// The same, then overwritten at random until write amplification is steady.
        Precondition = "precondition, 1 TB",
    }
}

/// A prepared drive.
#[derive(Debug)]
pub struct PreparedDrive {
    /// Pages of its flash. Each page is a mapping unit.
    pub pages: u64,
    /// Write amplification of the second half of the overwrites.
    pub write_amplification: Option<f64>,
    /// Keeps the memory of the drive until the caller has measured it.
    _memory: DriveMemory,
}

#[derive(Debug)]
enum DriveMemory {
    Drive(#[expect(dead_code, reason = "kept until its memory was measured")] Box<Drive>),
    Untimed(#[expect(dead_code, reason = "kept until its memory was measured")] Box<Untimed>),
}

/// Blocks per plane of a drive with 1 TiB of flash.
pub const TERABYTE: u32 = 4096;

/// A drive of 64 dies with two planes and an effective over-provisioning of 0.15. With
/// [`TERABYTE`] blocks per plane it has 134 million pages of 8 KiB.
fn device(blocks_per_plane: u32) -> Result<DriveSpec, DriveSpecError> {
    let mut device = mqsim_like(blocks_per_plane, Bytes(1 << 30))?;
    let usable = device.page_config().usable_units(&device.geometry());
    device.drive.capacity = Bytes((usable as f64 / 1.15) as u64 * device.ftl.mapping_unit.0);
    device.check()?;
    Ok(device)
}

/// Prepares what `task` starts from; the returned function does the task, and the caller times it.
///
/// # Errors
/// [`DriveSpecError`] only if the preset on which the drive is based is broken.
pub fn prepare(
    task: Task,
    blocks_per_plane: u32,
    seed: u64,
) -> Result<Box<dyn FnOnce() -> PreparedDrive>, DriveSpecError> {
    let device = device(blocks_per_plane)?;
    let state = match task {
        Task::Ready => InitialState::Empty,
        Task::Fill => InitialState::Filled,
        Task::Steady => InitialState::Steady,
        Task::Precondition => InitialState::Settled,
        Task::Overwrite => return Ok(Box::new(overwrite(&device, seed)?)),
    };
    let pages = u64::from(device.geometry().units());
    Ok(Box::new(move || {
        let drive = prepared(device, state, seed);
        PreparedDrive {
            pages,
            write_amplification: None,
            _memory: DriveMemory::Drive(Box::new(drive)),
        }
    }))
}

/// Units overwritten in one call.
const BATCH: u64 = 4096;

fn overwrite(
    device: &DriveSpec,
    seed: u64,
) -> Result<impl FnOnce() -> PreparedDrive + use<>, DriveSpecError> {
    let geometry = device.geometry();
    let (pages, logical) = (u64::from(geometry.units()), u64::from(device.logical_units()));
    let nand = Nand::new(geometry.clone());
    let mut flash = Untimed::new(nand, Ftl::new(geometry, device.ftl_config(), seed)?);
    for start in (0..logical).step_by(BATCH as usize) {
        let batch: Vec<_> = (start as u32..logical.min(start + BATCH) as u32).collect();
        flash.write_all(&batch);
    }
    Ok(move || {
        let mut rng = Rng::stream(seed, "preparing.address");
        let mut batch = Vec::new();
        let batches = (logical / 4).div_ceil(BATCH);
        let mut write_amplification = 0.0;
        for _ in 0..2 {
            let before = flash.counts().units.total();
            for _ in 0..batches {
                batch.clear();
                batch.extend((0..BATCH).map(|_| rng.below(logical) as u32));
                flash.write_all(&batch);
            }
            let programmed = flash.counts().units.total() - before;
            write_amplification = programmed as f64 / (batches * BATCH) as f64;
        }
        PreparedDrive {
            pages,
            write_amplification: Some(write_amplification),
            _memory: DriveMemory::Untimed(Box::new(flash)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_drive_of_overwrites_ends_in_steady_state() {
        let ready = prepare(Task::Overwrite, 128, 1).unwrap()();
        let theory = crate::theory::greedy(0.15, 512);
        let off = ready.write_amplification.unwrap() / theory - 1.0;
        assert!(off.abs() < 0.05, "{ready:?} against {theory}");
        for task in [Task::Ready, Task::Fill, Task::Steady, Task::Precondition] {
            assert_eq!(prepare(task, 16, 1).unwrap()().pages, 64 * 2 * 16 * 256);
        }
    }
}
