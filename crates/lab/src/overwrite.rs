//! Overwrites of blocks of a file next to one that is never updated, as the paper SFS compares file
//! systems.
//!
//! The page cache is written back after a fixed number of blocks, so that what reaches the device
//! depends on the time as little as possible.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use prism_base::distribution::Scatter;
use prism_base::rng::Rng;
use prism_workload::overwrites::{AGEING, BlockSequence, CAPACITY, UTILIZATION, Workload};

use crate::amounts::Work;
use crate::error::StackError;
use crate::worker::{Step, WorkerSpec, is_over};

/// Bytes of a block.
pub(super) const BLOCK: u64 = 4096;

/// The device over what is written to the page cache before it is written back. The paper's machine
/// had 4 GB of memory, from 10 % of which on Linux writes back, and a device of 30 GB.
const DEVICE_OVER_WRITEBACK: u64 = 75;

/// The file that is overwritten. It is written first in random order: Btrfs frees an extent only
/// when all of it is overwritten, so after long ones the device would be full.
const SET: &str = "files";

/// The file that is never updated, which is written in order.
const DUMMY: &str = "dummy";

/// The blocks of both files on a device of `device` blocks.
pub(super) fn file_blocks(workload: Workload, device: u64) -> [u64; 2] {
    let set = workload.set_blocks(device).max(1);
    [set, (device * UTILIZATION / 100).saturating_sub(set)]
}

/// Runs a step: [`Step::Load`] writes both files and ages them, [`Step::App`] overwrites blocks.
pub(super) fn run(spec: &WorkerSpec, workload: Workload, work: Work) -> Result<(), StackError> {
    let device = spec.size.0 / BLOCK / u64::from(spec.instances);
    let interval = (device / DEVICE_OVER_WRITEBACK).max(1);
    let ageing = device * AGEING / CAPACITY;
    let path = spec.folder.join(SET);
    match spec.step {
        Step::Load => {
            let [_, dummy] = file_blocks(workload, device);
            let dummy_path = spec.folder.join(DUMMY);
            let mut written = Written::new(&dummy_path, interval)?;
            (0..dummy).try_for_each(|block| written.write(block))?;
            written.sync()?;
            let mut sequence = BlockSequence::new(workload, work.records, spec.seed);
            let mut written = Written::new(&path, interval)?;
            let order = Scatter::new(work.records, &mut Rng::stream(spec.seed, "stack fill"));
            (0..work.records).try_for_each(|block| written.write(order.place(block)))?;
            (0..ageing).try_for_each(|_| written.write(sequence.next_block()))?;
            written.sync()
        }
        Step::App => {
            let mut sequence = BlockSequence::new(workload, work.records, spec.seed);
            for _ in 0..ageing {
                sequence.next_block();
            }
            let (deadline, mut written) = (spec.deadline(), Written::new(&path, interval)?);
            for _ in 0..work.operations {
                if is_over(deadline) {
                    break;
                }
                written.write(sequence.next_block())?;
            }
            written.sync()
        }
        Step::ReadSeq => read(&path, 0..work.read_in_order()),
        Step::ReadRand => {
            let mut rng = Rng::stream(spec.seed, "stack cold reads");
            let reads = Work::read_at_random(spec.size, spec.instances);
            read(&path, (0..reads).map(|_| rng.below(work.records)))
        }
    }
}

fn read(path: &Path, blocks: impl Iterator<Item = u64>) -> Result<(), StackError> {
    let file = File::open(path).map_err(StackError::at(path, "open the file"))?;
    let mut buffer = [0; BLOCK as usize];
    for block in blocks {
        let read = file.read_exact_at(&mut buffer, block * BLOCK);
        read.map_err(StackError::at(path, "read a block"))?;
    }
    Ok(())
}

/// A file that is written, and the blocks since its file system was synced.
struct Written<'a> {
    path: &'a Path,
    file: File,
    interval: u64,
    dirty: u64,
}

impl<'a> Written<'a> {
    fn new(path: &'a Path, interval: u64) -> Result<Self, StackError> {
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(StackError::at(path, "open the file"))?;
        Ok(Self { path, file, interval, dirty: 0 })
    }

    fn write(&mut self, block: u64) -> Result<(), StackError> {
        let written = self.file.write_all_at(&[7; BLOCK as usize], block * BLOCK);
        written.map_err(StackError::at(self.path, "write a block"))?;
        self.dirty += 1;
        if self.dirty == self.interval { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), StackError> {
        self.dirty = 0;
        let synced = rustix::fs::syncfs(&self.file).map_err(Into::into);
        synced.map_err(StackError::at(self.path, "sync the file system"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::tests::spec;

    #[test]
    fn files_fill_the_share_of_the_device() {
        // 930 MiB: 27 % and what remains of 85 %.
        assert_eq!(file_blocks(Workload::Uniform, 238_080), [64_281, 138_087]);
        let [set, dummy] = file_blocks(Workload::Res, 238_080);
        assert!((36_900..37_100).contains(&set), "{set}");
        assert_eq!(set + dummy, 238_080 * 85 / 100);
    }

    /// Both files have their sizes after the load; a file that was not loaded is an error of reads.
    #[test]
    fn a_worker_loads_overwrites_and_reads() {
        // The worker syncs the whole file system of the folder 150 times; in memory that is free.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory } else { &std::env::temp_dir() };
        let folder = tempfile::tempdir_in(folder).unwrap();
        let spec = |step| WorkerSpec {
            pattern: crate::Pattern::Rand,
            written: prism_base::Bytes(1 << 18),
            ..spec(crate::App::OverwriteRes, step, folder.path())
        };
        crate::work(&spec(Step::ReadSeq)).unwrap_err();
        let [set, dummy] = file_blocks(Workload::Res, 256);
        for step in [Step::Load, Step::App, Step::ReadSeq, Step::ReadRand] {
            crate::work(&spec(step)).unwrap();
            for (name, blocks) in [(SET, set), (DUMMY, dummy)] {
                let bytes = std::fs::metadata(folder.path().join(name)).unwrap().len();
                assert_eq!(bytes, blocks * BLOCK, "{name}");
            }
        }
    }
}
