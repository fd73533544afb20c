//! `prism device info`, `check` and `wear`: the content, the integrity and the wear of a device.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use prism_flash::Medium;
use prism_flashfile::FlashFile;
use prism_host::{HostError, Progress};
use prism_report::{Block, Document, Figure, Section, Table, Unit};
use serde::Serialize;

use super::device::{self, GeometryObject, Tables};
use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism device info`, `check` and `wear`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Info {
    file: String,
    identity: String,
    /// The version of the file format.
    version: u32,
    file_bytes: u64,
    /// The disk space that the file occupies.
    disk_bytes: u64,
    programmed_pages: u64,
    geometry: GeometryObject,
    /// Blocks that are bad from the factory.
    factory_bad_blocks: Vec<u32>,
    /// Null if the device was never formatted.
    monitor: Option<Tables>,
}

/// Prints the geometry and the shares of a device.
///
/// # Errors
/// [`Failure`] if the file cannot be used.
pub fn info(args: &Args) -> Result<(), Failure> {
    let file = device::open(&args.file)?;
    let name = args.file.display().to_string();
    let failed = |source| HostError::Open { file: name.clone(), source };
    let meta = std::fs::metadata(&args.file).map_err(failed)?;
    let geometry = *file.geometry();
    let programmed = (0..geometry.blocks()).map(|block| u64::from(file.write_pointer(block)));
    let programmed_pages = programmed.sum();
    let identity = format!("{:016x}", file.identity());
    let version = file.version();
    let factory_bad_blocks = marked(&file);
    let monitor = device::tables(&args.file, &file)?;
    let info = Info {
        factory_bad_blocks,
        identity,
        version,
        file_bytes: meta.len(),
        // `stat` counts blocks of 512 bytes on every file system.
        disk_bytes: meta.blocks() * 512,
        programmed_pages,
        geometry: geometry.into(),
        monitor,
        file: name,
    };
    args.json.show(&info, &info_document(&info, &geometry))
}

fn info_document(info: &Info, geometry: &prism_flash::DeviceGeometry) -> Document {
    let mut section = Section::new("Device", "");
    section.push(vec![
        Figure::new("Flash", Unit::Bytes, geometry.raw().0),
        Figure::new("Channels", Unit::Count, geometry.channels),
        Figure::new("LUNs", Unit::Count, geometry.luns()),
        Figure::new("Blocks per LUN", Unit::Count, geometry.blocks_per_lun),
        Figure::new("Block", Unit::Bytes, geometry.block_bytes()),
        Figure::new("Page", Unit::Bytes, geometry.page_size),
        Figure::new("Out-of-band bytes per page", Unit::Bytes, geometry.oob_size),
        Figure::new("Most open blocks", Unit::Count, geometry.max_open_blocks),
        Figure::new("Bad from the factory", Unit::Count, info.factory_bad_blocks.len())
            .note("blocks"),
        Figure::new("Pages programmed", Unit::Count, info.programmed_pages),
        Figure::new("Disk space", Unit::Bytes, info.disk_bytes)
            .note(format!("of a file of {} bytes", info.file_bytes)),
    ]);
    let document = Document::new(
        info.file.clone(),
        format!("flash file {}, version {}", info.identity, info.version),
    );
    let mut shares = Section::new("Shares", "");
    let Some(tables) = &info.monitor else {
        let note = "The device is not formatted: it has no shares.";
        shares.push(Block::Notes(vec![note.into()]));
        return document.with(section).with(shares);
    };
    shares.push(vec![
        Figure::new("Free LUNs", Unit::Count, tables.free_luns),
        Figure::new("Usable bytes per LUN", Unit::Bytes, tables.lun_bytes),
        Figure::new("Bad blocks", Unit::Count, tables.bad_blocks.len()),
    ]);
    let table = Table::listing(&tables.shares)
        .text("share", |share| share.name.as_str())
        .number("LUNs", Unit::Count, |share| share.luns.len())
        .number("over-provisioning", Unit::Count, |share| share.over_provisioning_luns)
        .number("size", Unit::Bytes, |share| share.bytes)
        .whole("In the order of allocation");
    if !table.rows.is_empty() {
        shares.push(table);
    }
    document.with(section).with(shares)
}

#[derive(Serialize)]
struct DamagedPage {
    block: u32,
    page: u32,
}

#[derive(Serialize)]
struct Checked {
    file: String,
    pages_read: u64,
    damaged_pages: u64,
    /// The first 1000.
    damaged: Vec<DamagedPage>,
    other: Vec<String>,
    /// Not damage: they hold no data.
    factory_bad_blocks: Vec<u32>,
    /// The factory bad blocks, and blocks that failed since.
    bad_blocks: Vec<u32>,
    formatted: bool,
}

/// Most pages named in the text; the JSON has more.
const NAMED: usize = 10;

/// Reads everything.
///
/// # Errors
/// [`Failure::Finding`] if something is damaged, and [`Failure`] if the file cannot be used.
pub fn check(args: &Args) -> Result<(), Failure> {
    let file = device::open(&args.file)?;
    let progress = Progress::on_stderr();
    let mut begun = false;
    let report = file.check(&mut |done, total| {
        if !std::mem::replace(&mut begun, true) {
            progress.start_count("checking:", "pages", Some(total));
        }
        progress.reached(done);
    });
    progress.clear();
    let report = report?;
    let factory_bad_blocks = marked(&file);
    let copies = file.damage().len();
    // Unreadable tables are one of the findings.
    let (tables, mut other) = match device::tables(&args.file, &file) {
        Ok(tables) => (tables, report.other),
        Err(error) => (None, [report.other, vec![error.to_string()]].concat()),
    };
    other.truncate(1000);
    let page = |&(block, page): &(u32, u32)| DamagedPage { block, page };
    let checked = Checked {
        file: args.file.display().to_string(),
        pages_read: report.pages,
        damaged_pages: report.damaged_pages,
        damaged: report.damaged.iter().map(page).collect(),
        other,
        formatted: tables.is_some(),
        bad_blocks: tables.map_or_else(|| factory_bad_blocks.clone(), |tables| tables.bad_blocks),
        factory_bad_blocks,
    };
    args.json.write(&checked, &check_text(&checked))?;
    if checked.damaged_pages == 0 && checked.other.is_empty() {
        return Ok(());
    }
    let what = if checked.damaged_pages == 0 && checked.other.len() == copies {
        "as said above, the file is damaged in one copy of what it has twice; nothing is lost, and \
         the next opening for writing repairs it"
    } else {
        "the file is damaged as said above; restore it from a copy (of a file system, prism fsck \
         says what is lost)"
    };
    Err(Failure::Finding(format!("{}: {what}", checked.file)))
}

fn check_text(checked: &Checked) -> String {
    let Checked { file, pages_read, damaged_pages, .. } = checked;
    let mut text = format!("{file}: {pages_read} pages read, {damaged_pages} damaged\n");
    for DamagedPage { block, page } in checked.damaged.iter().take(NAMED) {
        text.push_str(&format!(
            "  block {block}, page {page} does not match its checksum, or cannot be read\n"
        ));
    }
    if checked.damaged.len() > NAMED {
        text.push_str("  more are in the JSON (--json)\n");
    }
    for what in checked.other.iter().take(NAMED) {
        text.push_str(&format!("  {what}\n"));
    }
    if checked.other.len() > NAMED {
        text.push_str(&format!("  and {} more in the JSON\n", checked.other.len() - NAMED));
    }
    if !checked.bad_blocks.is_empty() {
        let (all, first) = (checked.bad_blocks.len(), checked.factory_bad_blocks.len());
        text.push_str(&format!("  bad blocks: {all}, {first} of them from the factory\n"));
    }
    if !checked.formatted && checked.other.is_empty() {
        text.push_str("  the device is not formatted\n");
    }
    text
}

#[derive(Serialize)]
struct Bucket {
    from: u32,
    /// Included.
    to: u32,
    blocks: u64,
}

#[derive(Serialize)]
struct Wear {
    file: String,
    blocks: u64,
    erases: u64,
    min: u32,
    mean: f64,
    max: u32,
    histogram: Vec<Bucket>,
    bad_blocks: Vec<u32>,
}

/// Prints how worn the blocks are.
///
/// # Errors
/// [`Failure`] if the file cannot be used.
pub fn wear(args: &Args) -> Result<(), Failure> {
    let file = device::open(&args.file)?;
    let counts = erase_counts(&file);
    let tables = device::tables(&args.file, &file)?;
    let bad_blocks = tables.map_or_else(|| marked(&file), |tables| tables.bad_blocks);
    let wear = summary(&args.file, &counts, bad_blocks);
    args.json.show(&wear, &wear_document(&wear))
}

/// The erase count of each block.
pub fn erase_counts(file: &FlashFile) -> Vec<u32> {
    let blocks = 0..file.geometry().blocks();
    blocks.map(|block| file.erase_count(block).expect("a flash file counts erases")).collect()
}

fn marked(file: &FlashFile) -> Vec<u32> {
    (0..file.geometry().blocks()).filter(|&block| file.is_factory_bad(block)).collect()
}

fn summary(file: &Path, counts: &[u32], bad_blocks: Vec<u32>) -> Wear {
    /// Rows of the histogram.
    const BUCKETS: u32 = 10;
    let min = counts.iter().copied().min().unwrap_or(0);
    let max = counts.iter().copied().max().unwrap_or(0);
    let width = ((max - min) / BUCKETS + 1).max(1);
    let mut blocks = vec![0; ((max - min) / width + 1) as usize];
    for &count in counts {
        blocks[((count - min) / width) as usize] += 1;
    }
    let histogram = (0u32..).zip(blocks).map(|(place, blocks)| {
        let from = min + place * width;
        Bucket { from, to: from.saturating_add(width - 1).min(max), blocks }
    });
    let erases: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    Wear {
        file: file.display().to_string(),
        blocks: counts.len() as u64,
        erases,
        min,
        mean: erases as f64 / counts.len() as f64,
        max,
        histogram: histogram.collect(),
        bad_blocks,
    }
}

fn wear_document(wear: &Wear) -> Document {
    let mut section = Section::new("Erases of a block", "");
    section.push(vec![
        Figure::new("Fewest", Unit::Count, wear.min),
        Figure::new("Mean", Unit::Ratio, wear.mean),
        Figure::new("Most", Unit::Count, wear.max),
        Figure::new("Total", Unit::Count, wear.erases),
        Figure::new("Bad blocks", Unit::Count, wear.bad_blocks.len()),
    ]);
    let table = Table::listing(&wear.histogram)
        .text("erases", |&Bucket { from, to, .. }| match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        })
        .number("blocks", Unit::Count, |bucket| bucket.blocks)
        .whole("Blocks by erases");
    section.push(table);
    if !wear.bad_blocks.is_empty() {
        let shown: Vec<_> = wear.bad_blocks.iter().take(NAMED).map(u32::to_string).collect();
        let more = if wear.bad_blocks.len() > NAMED { " and more" } else { "" };
        let note = format!("Bad blocks: {}{more}.", shown.join(", "));
        section.push(Block::Notes(vec![note]));
    }
    Document::new(wear.file.clone(), format!("{} blocks", wear.blocks)).with(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_count_every_block_once() {
        let buckets = |counts: &[u32]| -> Vec<(u32, u32, u64)> {
            let wear = summary(Path::new("f"), counts, Vec::new());
            wear.histogram.iter().map(|b| (b.from, b.to, b.blocks)).collect()
        };
        assert_eq!(buckets(&[0, 0, 0]), [(0, 0, 3)]);
        assert_eq!(buckets(&[3, 5, 5]), [(3, 3, 1), (4, 4, 0), (5, 5, 2)]);
        let wide: Vec<u32> = (0..=100).collect();
        let wide = buckets(&wide);
        assert_eq!((wide[0], *wide.last().unwrap()), ((0, 10, 11), (99, 100, 2)));
        assert_eq!(wide.iter().map(|b| b.2).sum::<u64>(), 101);
    }
}
