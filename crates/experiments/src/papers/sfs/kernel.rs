//! File systems of the kernel under the same writes: what they write, from recorded traces, and
//! what that costs below them. `docs/design/sfs.md` has the set-up.

use prism_trace::{Op, Record, Source, SourceError, Symbols};
use prism_workload::overwrites::{CAPACITY, MEASURED, Workload};

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
    /// Pages of the device as far as it is known: some request reaches its end, or nearly.
    device: u64,
}

impl Requests {
    fn of(source: &mut dyn Source, symbols: &Symbols) -> Result<Self, SourceError> {
        let (mut found, mut batch, mut is_over) = (Self::default(), Vec::new(), false);
        let phase = symbols.get(PHASE);
        source.rewind()?;
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok(found);
            }
            for record in &batch {
                let is_measured = Some(record.phase) == phase;
                is_over |= !is_measured && !found.measured.is_empty();
                found.add(record, is_measured, is_over);
            }
        }
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

/// The run of a trace; `None` if nothing was written in [`PHASE`].
///
/// # Errors
/// [`SourceError`] if the trace cannot be read again.
pub fn kernel_row(
    scale: Scale,
    writes: Workload,
    fs: KernelFs,
    source: &mut dyn Source,
    symbols: &Symbols,
) -> Result<Option<KernelRow>, SourceError> {
    let found = Requests::of(source, symbols)?;
    if found.measured.is_empty() {
        return Ok(None);
    }
    // As many blocks as under our own file system; a device has a multiple of them.
    let blocks = u64::from(SEGMENTS * SEGMENT_BLOCKS);
    let block_pages = found.device.div_ceil(blocks);
    let called = blocks * block_pages * MEASURED / CAPACITY;
    let per_segment = block_pages as u32 * SEGMENT_BLOCKS;
    let measured = &found.measured;
    let below = recorder::over_ftls(&found.before, measured, SEGMENTS, per_segment, called);
    let own_block_pages = blocks_per_segment(scale) / SEGMENT_BLOCKS;
    let of_own = block_pages as f64 / f64::from(own_block_pages);
    Ok(Some(KernelRow {
        writes,
        fs,
        called,
        written: measured.len() as u64,
        read: found.read,
        below: below.map(|(amplification, erases)| (amplification, erases * of_own)),
    }))
}

#[cfg(test)]
mod tests {
    use prism_trace::VecSource;

    use super::*;

    /// Only requests of the phase are counted, and those after it are left out.
    #[test]
    fn a_trace_by_hand() {
        let mut symbols = Symbols::default();
        let phases = ["load", PHASE, "trim"].map(|name| symbols.intern(name));
        let device = u64::from(SEGMENTS * SEGMENT_BLOCKS * 2);
        let record = |op, page: u64, count: u64, phase: usize| Record {
            phase: phases[phase],
            ..Record::new(op, 0, page * PAGE, count * PAGE)
        };
        let mut records = vec![record(Op::Discard, 0, device, 0), record(Op::Write, 5, 3, 0)];
        // A whole segment of 16 pages, twice.
        records.extend([record(Op::Write, 160, 16, 1), record(Op::Write, 160, 16, 1)]);
        records.extend([record(Op::Read, 7, 2, 1), record(Op::Write, 0, device, 2)]);
        let mut source = VecSource::new(records);
        let mut run = |scale| {
            let found = kernel_row(scale, Workload::Zipf, KernelFs::Ext4, &mut source, &symbols);
            found.unwrap().unwrap()
        };
        let (row, quarter) = (run(Scale::Full), run(Scale::Quarter));
        // Blocks of eight and of four pages; here the device has blocks of two.
        assert_eq!(row.below.map(|below| 2.0 * below.1), quarter.below.map(|below| below.1));
        assert_eq!((row.called, row.written, row.read), (device * 8 / 30, 32, 2));
        assert!((row.volume() - 32.0 / row.called as f64).abs() < 1e-12);
        for (amplification, _) in row.below {
            assert!((1.0..1.3).contains(&amplification), "{row:?}");
        }
        let [_, (amplification, _)] = row.below;
        let time = 32.0 * amplification / 87.0 + 2.0 / 10.6;
        assert!((row.throughput() - row.called as f64 / time).abs() < 1e-9);
    }

    #[test]
    fn names_are_those_of_the_recorder() {
        let name = KernelFs::Nodatacow.trace(Workload::TpcC);
        assert_eq!(name, "btrfs-nodatacow-overwrite-tpcc-rand.parquet");
    }
}
