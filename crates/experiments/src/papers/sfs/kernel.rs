//! File systems of the kernel under the same writes: what they write, from recorded traces, and
//! what that costs below them. `docs/design/sfs.md` has the set-up.

use prism_base::Bytes;
use prism_trace::{Op, Record, Source, SourceError, Symbols, each_record};
use prism_workload::overwrites::{AGEING, CAPACITY, MEASURED, UTILIZATION, Workload};

use super::files::{SEGMENTS, blocks_per_segment};
use super::recorder::{self, SEGMENT_BLOCKS};
use crate::scale::Scale;

named_enum! {
    /// A file system of the kernel, by the name that `prism capture stack` gives it.
    pub enum KernelFs {
        /// ext4.
        Ext4 = "ext4",
        /// Btrfs.
        Btrfs = "btrfs",
        /// Btrfs without copy-on-write.
        Nodatacow = "btrfs-nodatacow",
    }
}

impl KernelFs {
    /// The name of the trace of its run.
    #[must_use]
    pub fn trace(self, writes: Workload) -> String {
        let writes = match writes {
            Workload::Zipf => "zipf",
            Workload::Uniform => "uniform",
            Workload::TpcC => "tpcc",
            Workload::Res => "res",
        };
        format!("{}-overwrite-{writes}-rand.parquet", self.name())
    }
}

/// The phase of the traces that is measured. Requests before it are the warm-up, later ones are
/// left out.
pub const PHASE: &str = "app";
/// Bytes of a page.
const PAGE: u64 = 4096;

/// A run of a file system of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRow {
    /// The workload.
    pub writes: Workload,
    /// The file system.
    pub fs: KernelFs,
    /// Pages that callers wrote.
    pub called: u64,
    /// Pages that the file system wrote.
    pub written: u64,
    /// Pages that it read.
    pub read: u64,
    /// Write amplification of the drive, and erases for each 1000 pages that callers wrote, over
    /// FAST and over page-level mapping. An erase counts as if blocks were those under our own file
    /// system.
    pub below: [(f64, f64); 2],
}

impl KernelRow {
    /// Pages that the file system wrote for each that callers wrote.
    #[must_use]
    pub fn volume(&self) -> f64 {
        self.written as f64 / self.called as f64
    }

    /// Megabytes a second of callers on the paper's SSD-M with page-level mapping: every page that
    /// is programmed at the sequential rate, reads at the random rate.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        let [_, (amplification, _)] = self.below;
        let programmed = self.written as f64 * amplification;
        self.called as f64 / (programmed / 87.0 + self.read as f64 / 10.6)
    }
}

/// Why a trace is not one of overwrites.
#[derive(Debug, thiserror::Error)]
pub enum KernelTraceError {
    /// It cannot be read again.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Nothing is written in [`PHASE`].
    #[error("nothing is written in phase {PHASE}")]
    Empty,
    /// Our own file system's blocks do not divide the device.
    #[error("the device has {0}, which is not a multiple of {SEGMENTS} segments of 32 KiB")]
    Size(Bytes),
    /// Another number of blocks than the paper's share was overwritten in [`PHASE`].
    #[error(
        "phase {PHASE} writes {measured} and the warm-up {warm_up}, which does not fit {MEASURED} \
         and {AGEING} of {CAPACITY} parts of the device: --size or --write was another one"
    )]
    Length {
        /// Bytes that were written in [`PHASE`].
        measured: Bytes,
        /// Bytes that were written by the overwrites before it.
        warm_up: Bytes,
    },
}

/// The pages that a request touches.
fn pages(record: &Record) -> std::ops::Range<u64> {
    record.offset / PAGE..(record.offset + record.len).div_ceil(PAGE)
}

/// The requests of a trace before and in [`PHASE`], as pages.
#[derive(Default)]
struct Requests {
    before: Vec<u32>,
    measured: Vec<u32>,
    read: u64,
    /// Pages of the device: discards of the whole device reach its end.
    device: u64,
}

impl Requests {
    fn of(source: &mut dyn Source, symbols: &Symbols) -> Result<Self, SourceError> {
        let (mut found, mut is_over) = (Self::default(), false);
        let phase = symbols.get(PHASE);
        each_record(source, |record| {
            let is_measured = Some(record.phase) == phase;
            is_over |= !is_measured && !found.measured.is_empty();
            found.add(record, is_measured, is_over);
        })?;
        Ok(found)
    }

    fn add(&mut self, record: &Record, is_measured: bool, is_over: bool) {
        let pages = pages(record);
        self.device = self.device.max(pages.end);
        match record.op {
            Op::Write if is_measured => self.measured.extend(pages.map(|page| page as u32)),
            Op::Write if !is_over => self.before.extend(pages.map(|page| page as u32)),
            Op::Read if is_measured => self.read += pages.end - pages.start,
            _ => {}
        }
    }
}

/// Volume of the measured overwrites over that of the warm-up, at least and at most. File systems
/// that allocate the set in the warm-up write there up to twice as much for each block; without
/// `--write` there are almost four times as many.
const VOLUMES: (f64, f64) = (0.35, 1.5);

impl Requests {
    /// Checks that device and overwrites have the sizes that the comparison assumes: a trace does
    /// not contain what callers wrote.
    fn check(&self, blocks: u64) -> Result<(), KernelTraceError> {
        if self.measured.is_empty() {
            return Err(KernelTraceError::Empty);
        }
        if !self.device.is_multiple_of(blocks) {
            return Err(KernelTraceError::Size(Bytes(self.device * PAGE)));
        }
        let measured = self.measured.len() as u64;
        // Both files are written once before the overwrites.
        let filled = self.device * UTILIZATION / 100;
        let warm_up = (self.before.len() as u64).saturating_sub(filled);
        let volumes = (measured * AGEING) as f64 / (warm_up * MEASURED) as f64;
        if (VOLUMES.0..VOLUMES.1).contains(&volumes) {
            return Ok(());
        }
        let [measured, warm_up] = [measured, warm_up].map(|pages| Bytes(pages * PAGE));
        Err(KernelTraceError::Length { measured, warm_up })
    }
}

/// The run of a trace.
///
/// # Errors
/// [`KernelTraceError`] if the trace cannot be read again, or is not one of overwrites with the
/// lengths of the paper.
pub fn kernel_row(
    scale: Scale,
    writes: Workload,
    fs: KernelFs,
    source: &mut dyn Source,
    symbols: &Symbols,
) -> Result<KernelRow, KernelTraceError> {
    let found = Requests::of(source, symbols)?;
    // As many blocks as under our own file system; a device has a multiple of them.
    let blocks = u64::from(SEGMENTS * SEGMENT_BLOCKS);
    found.check(blocks)?;
    let block_pages = found.device / blocks;
    let called = blocks * block_pages * MEASURED / CAPACITY;
    let per_segment = block_pages as u32 * SEGMENT_BLOCKS;
    let measured = &found.measured;
    let below = recorder::over_ftls(&found.before, measured, SEGMENTS, per_segment, called);
    let own_block_pages = blocks_per_segment(scale) / SEGMENT_BLOCKS;
    let of_own = block_pages as f64 / f64::from(own_block_pages);
    Ok(KernelRow {
        writes,
        fs,
        called,
        written: measured.len() as u64,
        read: found.read,
        below: below.map(|(amplification, erases)| (amplification, erases * of_own)),
    })
}

#[cfg(test)]
mod tests {
    use prism_trace::VecSource;

    use super::*;

    /// Pages of a device with blocks of two pages; the paper's shares of it are whole.
    const DEVICE: u64 = (SEGMENTS * SEGMENT_BLOCKS * 2) as u64;
    const LENGTH: u64 = DEVICE * MEASURED / CAPACITY;

    /// The run of a trace of a device of `device` pages: both files are written, pages are
    /// overwritten as warm-up, `count` in the phase, and all after it.
    fn run(scale: Scale, device: u64, count: u64) -> Result<KernelRow, KernelTraceError> {
        let mut symbols = Symbols::default();
        let phases = ["load", PHASE, "trim"].map(|name| symbols.intern(name));
        let record = |op, page: u64, count: u64, phase: usize| Record {
            phase: phases[phase],
            ..Record::new(op, 0, page * PAGE, count * PAGE)
        };
        let filled = device * UTILIZATION / 100;
        let mut records = vec![record(Op::Discard, 0, device, 0), record(Op::Write, 0, filled, 0)];
        records.push(record(Op::Write, 0, device * AGEING / CAPACITY, 0));
        if count > 0 {
            records.extend([record(Op::Write, 0, count, 1), record(Op::Read, 7, 2, 1)]);
        }
        records.push(record(Op::Write, 0, device, 2));
        let mut source = VecSource::new(records);
        kernel_row(scale, Workload::Zipf, KernelFs::Ext4, &mut source, &symbols)
    }

    /// Only requests of the phase are counted, and those after it are left out. In order, pages are
    /// written without copies: a block of two pages is erased for each two.
    #[test]
    fn a_trace_by_hand() {
        let row = run(Scale::Full, DEVICE, LENGTH).unwrap();
        assert_eq!((row.called, row.written, row.read), (3968, 3968, 2));
        assert_eq!(row.volume(), 1.0);
        let quarter = run(Scale::Quarter, DEVICE, LENGTH).unwrap();
        for (row, pages) in [(row, 8.0), (quarter, 4.0)] {
            for (amplification, erases) in row.below {
                assert!((1.0..1.02).contains(&amplification), "{row:?}");
                assert!((erases * pages / 1000.0 - 1.0).abs() < 0.02, "{row:?}");
            }
        }
    }

    #[test]
    fn throughput_is_that_of_programs_and_reads() {
        let row = run(Scale::Full, DEVICE, LENGTH).unwrap();
        let row = KernelRow { called: 1000, written: 2000, read: 53, ..row };
        let row = KernelRow { below: [(9.0, 0.0), (1.5, 0.0)], ..row };
        // 3000 pages at 87 MB/s and 53 at 10.6 MB/s.
        assert!((row.throughput() - 25.328).abs() < 0.001, "{row:?}");
    }

    #[test]
    fn a_trace_of_other_sizes_is_refused() {
        let refused = |device, count| run(Scale::Full, device, count).unwrap_err().to_string();
        assert!(refused(DEVICE, 0).contains("nothing is written in phase app"));
        let size = refused(DEVICE + 1, LENGTH);
        assert!(size.contains("not a multiple of 930 segments"), "{size}");
        // As many as without `--write`, and a third.
        for count in [DEVICE, LENGTH / 3] {
            let length = refused(DEVICE, count);
            assert!(length.contains("--size or --write"), "{length}");
        }
        assert_eq!(run(Scale::Full, DEVICE, LENGTH / 2).unwrap().volume(), 0.5);
    }

    #[test]
    fn names_are_those_of_the_recorder() {
        let name = KernelFs::Nodatacow.trace(Workload::TpcC);
        assert_eq!(name, "btrfs-nodatacow-overwrite-tpcc-rand.parquet");
    }
}
