//! The results of `prism reproduce sfs`, as a document and as JSON.

use prism_experiments::Scale;
use prism_experiments::comparison::Comparison;
use prism_experiments::sfs::{
    FULL, FileRow, KernelRow, Map, Relation, Results, SEGMENT_GROUP, SIZE_GROUP, SPREAD,
    SegmentRow, SizeRow, Ssd, compare, compare_files, compare_kernel, kernel_relations, relations,
};
use prism_report::json::table;
use prism_report::{
    Axis, Block, Chart, Column, Curve, CurveShape, Curves, Document, Section, Table, Unit,
};
use serde_json::{Value as Json, json};

use super::{comparison_tables, scale_name};

/// The results.
pub struct Sfs {
    /// Seed of everything random.
    pub seed: u64,
    /// How much was simulated.
    pub scale: Scale,
    /// What was measured.
    pub found: Results,
    /// The paper's numbers on drives compared with ours.
    pub compared: Vec<Comparison>,
    /// Those on the file system.
    pub files: Vec<Comparison>,
    /// The paper's relations between file systems.
    pub relations: Vec<Relation>,
    /// Those on ext4 and Btrfs.
    pub kernel: Vec<Comparison>,
    /// The paper's relations between SFS and these.
    pub kernel_relations: Vec<Relation>,
    /// What is left out of them.
    pub left_out: Option<String>,
}

impl Sfs {
    /// The results, compared with the paper.
    #[must_use]
    pub fn new(seed: u64, scale: Scale, found: Results, left_out: Option<String>) -> Self {
        Self {
            seed,
            scale,
            compared: compare(&found),
            files: compare_files(&found),
            relations: relations(&found),
            kernel: compare_kernel(&found),
            kernel_relations: kernel_relations(&found),
            found,
            left_out,
        }
    }
}

/// The results as JSON.
#[must_use]
pub fn json(result: &Sfs) -> Json {
    json!({
        "id": "sfs",
        "seed": result.seed,
        "scale": scale_name(result.scale),
        "compared": comparison_tables::json(&result.compared),
        "sizes": table(&sizes(&result.found.sizes)),
        "segments": table(&segments(&result.found.segments)),
        "compared_files": comparison_tables::json(&result.files),
        "relations": table(&related(&result.relations)),
        "files": table(&file_rows(&result.found.files)),
        "figure_10": table(&spread(&result.found.files)),
        "figures_13_and_14": table(&below(&result.found.files)),
        "compared_kernel": comparison_tables::json(&result.kernel),
        "kernel_relations": table(&related(&result.kernel_relations)),
        "kernel": table(&kernel_rows(&result.found.kernel)),
        "left_out": result.left_out,
    })
}

/// The results as a document.
#[must_use]
pub fn document(result: &Sfs) -> Document {
    let subtitle = format!(
        "Min, Kim, Cho, Lee, Eom, FAST 2012: its drives and its file system, scale {}, seed {}",
        scale_name(result.scale),
        result.seed
    );
    let title = "Random write considered harmful in solid state drives";
    let lead = "The numbers of the paper and its slides on drives, compared with simulated ones.";
    let mut document = Document::new(title, subtitle);
    document.sections = vec![
        comparison_tables::section("Compared", lead, &result.compared),
        by_size(&result.found),
        of_segments(&result.found),
        comparison_tables::section(
            "File system: compared",
            "x is what cleaning rewrites for each other block of a file.",
            &result.files,
        ),
        Section::new("File system: relations", "").with(related(&result.relations)),
        Section::new(
            "File system: write cost and throughput",
            "Live blocks of files over all blocks. Write cost as in Figures 5, 7 and 8; MB/s of \
             callers by arithmetic with the rates of the paper's drives, as in Figures 9 and 11.",
        )
        .with(file_rows(&result.found.files)),
        Section::new(
            "File system: utilization of segments",
            format!("Figure 10: the share of segments at {SPREAD} %, without those never updated."),
        )
        .with(spread(&result.found.files)),
        Section::new(
            "File system: below it",
            format!("Figures 13 and 14, at {FULL} %. Erases for each 1000 blocks of callers."),
        )
        .with(below(&result.found.files)),
        kernel(result),
        comparison_tables::section(
            "File system: ext4 and Btrfs compared",
            "Over SFS: over our own file system with the literal settings of SFS.",
            &result.kernel,
        ),
        Section::new("File system: relations to ext4 and Btrfs", "")
            .with(related(&result.kernel_relations)),
        limits(result.scale),
    ];
    document
}

fn by_size(found: &Results) -> Section {
    let lead = format!(
        "Random writes of each size, aligned to their size, four in flight, compared with \
         sequential writes of one block each. An erase block spans all dies. N/K: {} logical \
         blocks, {} log blocks.",
        SIZE_GROUP.0, SIZE_GROUP.1
    );
    let mut section = Section::new("Random writes by size", lead);
    section.push(sizes(&found.sizes));
    for ssd in Ssd::ALL {
        let curve = |map: Map| {
            let points: Vec<_> =
                found.sizes_of(ssd, map).map(|row| (row.size.0 as f64, row.share())).collect();
            (!points.is_empty()).then(|| Curve::new(map.name(), CurveShape::Line, points))
        };
        section.push(Chart::Curves(Curves {
            title: format!("Random over sequential writes, {}", ssd.name()),
            caption: "By size of the random writes.".into(),
            x: Axis::log("size", Unit::Bytes),
            y: Axis::linear("of sequential", Unit::Percent),
            series: [Map::Page, Map::Groups, Map::Fast, Map::Bast]
                .into_iter()
                .filter_map(curve)
                .collect(),
            marks: Vec::new(),
        }));
    }
    section
}

fn sizes(rows: &[SizeRow]) -> Table {
    Table::listing(rows)
        .text("drive", |row| row.ssd.name())
        .text("mapping", |row| row.map.name())
        .number("write", Unit::Bytes, |row| row.size)
        .number("of an erase block", Unit::Ratio, |row| {
            row.size.0 as f64 / row.erase_block.0 as f64
        })
        .number("MB/s", Unit::Ratio, |row| row.rate / 1e6)
        .number("sequential MB/s", Unit::Ratio, |row| row.sequential / 1e6)
        .column(Column::number("of sequential", Unit::Percent).key("of_it"), |row| row.share())
        .number("WA", Unit::Ratio, |row| row.write_amplification)
        .whole("")
}

fn of_segments(found: &Results) -> Section {
    let lead = format!(
        "Segments of 32 MiB at random addresses, as a log-structured file system writes them, on \
         pages of 4 KiB and blocks of 512 KiB; log blocks or spare flash are a tenth of the \
         data. In turn: four segments at once, 64 KiB of each. N/K: {} logical blocks, {} log \
         blocks.",
        SEGMENT_GROUP.0, SEGMENT_GROUP.1
    );
    Section::new("Segments", lead).with(segments(&found.segments))
}

fn segments(rows: &[SegmentRow]) -> Table {
    Table::listing(rows)
        .text("mapping", |row| row.map.name())
        .text("stream", |row| row.stream.name())
        .number("WA", Unit::Ratio, |row| row.write_amplification)
        .number("erases/1000 pages", Unit::Ratio, |row| row.erases)
        .whole("")
}

fn related(all: &[Relation]) -> Table {
    Table::listing(all)
        .text("relation", |one| one.what.clone())
        .text("place", |one| one.place)
        .text("holds", |one| if one.holds { "yes" } else { "no" })
        .whole("")
}

fn file_rows(rows: &[FileRow]) -> Table {
    Table::listing(rows)
        .text("writes", |row| row.writes.name())
        .text("settings", |row| row.settings.name())
        .number("utilization", Unit::Percent, |row| f64::from(row.utilization) / 100.0)
        .number("x", Unit::Ratio, FileRow::x)
        .number("write cost", Unit::Ratio, FileRow::write_cost)
        .number("SSD-H", Unit::Ratio, |row| row.throughput(Ssd::H))
        .number("SSD-M", Unit::Ratio, |row| row.throughput(Ssd::M))
        .number("SSD-L", Unit::Ratio, |row| row.throughput(Ssd::L))
        .whole("")
}

fn spread(rows: &[FileRow]) -> Table {
    let rows: Vec<&FileRow> = rows.iter().filter(|row| row.utilization == SPREAD).collect();
    let fifth = |row: &FileRow, at: usize| row.spread[2 * at] + row.spread[2 * at + 1];
    Table::listing(&rows)
        .text("writes", |row| row.writes.name())
        .text("settings", |row| row.settings.name())
        .number("to 0.2", Unit::Percent, |row| fifth(row, 0))
        .number("to 0.4", Unit::Percent, |row| fifth(row, 1))
        .number("to 0.6", Unit::Percent, |row| fifth(row, 2))
        .number("to 0.8", Unit::Percent, |row| fifth(row, 3))
        .number("to 1", Unit::Percent, |row| fifth(row, 4))
        .whole("")
}

fn below(rows: &[FileRow]) -> Table {
    let rows: Vec<(&FileRow, [(f64, f64); 2])> =
        rows.iter().filter_map(|row| Some((row, row.below?))).collect();
    Table::listing(&rows)
        .text("writes", |row| row.0.writes.name())
        .text("settings", |row| row.0.settings.name())
        .number("FAST: WA", Unit::Ratio, |row| row.1[0].0)
        .number("FAST: erases", Unit::Ratio, |row| row.1[0].1)
        .number("page: WA", Unit::Ratio, |row| row.1[1].0)
        .number("page: erases", Unit::Ratio, |row| row.1[1].1)
        .whole("")
}

fn kernel(result: &Sfs) -> Section {
    let lead = "Recorded in the kernel, replayed on the drives under our own file system. Volume: \
                pages written for each that callers wrote. Erases for each 1000 of those, as if \
                blocks were those under our own file system. MB/s of callers by arithmetic with \
                the rates of SSD-M.";
    let mut section = Section::new("File system: ext4 and Btrfs", lead);
    section.push(kernel_rows(&result.found.kernel));
    if let Some(left_out) = &result.left_out {
        section.push(Block::Notes(vec![left_out.clone()]));
    }
    section
}

fn kernel_rows(rows: &[KernelRow]) -> Table {
    Table::listing(rows)
        .text("writes", |row| row.writes.name())
        .text("file system", |row| row.fs.name())
        .number("volume", Unit::Ratio, KernelRow::volume)
        .number("FAST: WA", Unit::Ratio, |row| row.below[0].0)
        .number("FAST: erases", Unit::Ratio, |row| row.below[0].1)
        .number("page: WA", Unit::Ratio, |row| row.below[1].0)
        .number("page: erases", Unit::Ratio, |row| row.below[1].1)
        .number("MB/s", Unit::Ratio, KernelRow::throughput)
        .whole("")
}

fn limits(scale: Scale) -> Section {
    let mut notes = vec![
        "The mappings of the real drives are not known. The simulated drives have fewer blocks \
         with the same share of spare blocks."
            .into(),
    ];
    if scale == Scale::Quarter {
        notes.push("Even fewer blocks: the noise is larger.".into());
    }
    Section::new("Limits", "").with(Block::Notes(notes))
}
