//! Comparison with what the paper states about ext4 and btrfs: Figures 12 to 14.

use prism_workload::overwrites::Workload;

use super::Results;
use super::files::{FULL, FileRow, Settings};
use super::kernel::{KernelFs, KernelRow};
use super::published::{REWRITTEN, Relation, SFS_AMPLIFICATION, published_erases};
use super::sizes::Ssd;
use crate::comparison::{Basis, Comparison, Quantity, Why};

/// What the paper gives for a file system under a workload.
struct Published {
    /// Megabytes a second on SSD-M.
    rate: f64,
    /// Write amplification over FAST and over page-level mapping.
    amplification: [f64; 2],
    /// Thousands of erases over both.
    erases: [f64; 2],
}

/// Figures 12 to 14 for the kernel's file systems.
fn published(fs: KernelFs, writes: Workload) -> Published {
    let column = writes as usize;
    // By file system: rates, amplification over FAST and page-level mapping, erases over both; by
    // Zipf, uniform, TPC-C and RES.
    let rows: [[f64; 4]; 5] = match fs {
        KernelFs::Ext4 => [
            [34.0, 31.0, 91.3, 160.7],
            [5.91, 5.96, 4.09, 5.11],
            [3.23, 2.73, 2.18, 2.94],
            [80.5, 93.5, 42.7, 29.1],
            [43.8, 42.8, 22.8, 16.7],
        ],
        KernelFs::Btrfs => [
            [1.6, 3.8, 9.8, 50.1],
            [1.52, 2.75, 3.02, 2.25],
            [1.53, 1.05, 1.36, 1.01],
            [126.0, 242.0, 81.7, 30.0],
            [125.8, 92.6, 36.7, 13.9],
        ],
        KernelFs::Nodatacow => [
            [37.7, 34.5, 78.9, 159.2],
            [6.01, 5.97, 4.20, 4.88],
            [3.32, 2.73, 2.31, 2.86],
            [86.8, 97.5, 56.2, 25.7],
            [47.9, 44.6, 30.7, 14.9],
        ],
    };
    let [rate, fast, page, fast_erases, page_erases] = rows.map(|row| row[column]);
    Published { rate, amplification: [fast, page], erases: [fast_erases, page_erases] }
}

/// Figures 12 to 14 for SFS.
fn sfs(writes: Workload) -> Published {
    let rate = match writes {
        Workload::Zipf => 80.5,
        Workload::Uniform => 41.1,
        Workload::TpcC => 142.8,
        Workload::Res => 212.9,
    };
    let erases = published_erases(writes).map(|[sfs, _]| sfs);
    Published { rate, amplification: SFS_AMPLIFICATION, erases }
}

/// Why results over FAST and over page-level mapping may differ.
const WHY: [Why; 2] = [
    Why::NotGiven(
        "the paper gives neither sets and traces, nor when the kernel wrote back, nor the number \
         of FAST's log blocks; here the kernel holds back more writes than SFS does, in the paper \
         one kernel ran both",
    ),
    Why::NotGiven(
        "the paper gives neither sets and traces, nor when the kernel wrote back, nor how the \
         page-level mapping cleans; here the kernel holds back more writes than SFS does, in the \
         paper one kernel ran both",
    ),
];

/// SFS with its literal settings under the same writes.
fn own(found: &Results, writes: Workload) -> Option<(&FileRow, [(f64, f64); 2])> {
    let row = found.file(writes, Settings::SFS, FULL)?;
    Some((row, row.below?))
}

/// Every comparison of ext4 and btrfs.
#[must_use]
pub fn compare_kernel(found: &Results) -> Vec<Comparison> {
    found.kernel.iter().flat_map(|row| of_row(found, row)).collect()
}

fn of_row(found: &Results, row: &KernelRow) -> Vec<Comparison> {
    let (name, fs) = (row.writes.name(), row.fs.name());
    let (theirs, theirs_sfs) = (published(row.fs, row.writes), sfs(row.writes));
    let one = |place, what: String, both, tolerance, why| {
        let what = format!("{name}, {fs}{what}");
        Comparison::new(place, what, Quantity::Ratio, both, tolerance, why)
    };
    let mut all = Vec::new();
    for (at, (map, why)) in ["FAST", "page"].into_iter().zip(WHY).enumerate() {
        let what = format!(" over {map}: write amplification");
        let both = [theirs.amplification[at], row.below[at].0];
        all.push(one("Figure 13", what, both, 0.1, why));
        let Some((_, sfs)) = own(found, row.writes) else { continue };
        let both = [theirs.erases[at] / theirs_sfs.erases[at], row.below[at].1 / sfs[at].1];
        let what = format!(" over {map}: erases over SFS");
        let erases = one("Figure 14", what, both, REWRITTEN, why);
        // Erases are the volume times write amplification, so that one mapping follows from the
        // other.
        all.push(if at == 0 { erases } else { erases.on(Basis::Derived) });
    }
    if let Some((sfs, _)) = own(found, row.writes) {
        let both = [theirs.rate / theirs_sfs.rate, row.throughput() / sfs.throughput(Ssd::M)];
        let rate = one("Figure 12", ": throughput over SFS".into(), both, REWRITTEN, WHY[1]);
        all.push(rate.on(Basis::Derived));
    }
    all
}

/// The relations of the paper between SFS, ext4 and btrfs.
#[must_use]
pub fn kernel_relations(found: &Results) -> Vec<Relation> {
    let mut all = Vec::new();
    for row in &found.kernel {
        let Some((sfs, below)) = own(found, row.writes) else { continue };
        let (name, fs) = (row.writes.name(), row.fs.name());
        let mut one = |place, what: &str, holds| {
            let what = format!("{name}: {fs} {what}");
            all.push(Relation { place, what, holds });
        };
        let more = row.below.iter().zip(below).all(|(theirs, ours)| theirs.1 > ours.1);
        one("Figure 14", "erases more than SFS on both mappings", more);
        one("Figure 12", "is slower than SFS", row.throughput() < sfs.throughput(Ssd::M));
    }
    all
}
