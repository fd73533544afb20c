//! Comparison with the paper's numbers. The rules were fixed before the first run
//! (`docs/prism-ssd.md`).

use super::{Change, Engine, Personality, Results, Variant, graphs};
use crate::comparison::{Basis, Comparison, Quantity, Why};

/// Hit ratios and throughputs agree within this share.
const CLOSE: f64 = 0.05;
/// Erases.
const ERASES: f64 = 0.1;
/// Copies.
pub(super) const COPIES: f64 = 0.25;

const FIGURE_4: &str = "Figure 4";
const FIGURE_5: &str = "Figure 5";
const FIGURE_6: &str = "Figure 6";
const TABLE_1: &str = "Table I";
const FIGURE_8: &str = "Figure 8";
const TABLE_2: &str = "Table II";

/// A relation between the caches that the paper reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The part of the paper.
    pub place: &'static str,
    /// The relation.
    pub what: &'static str,
    /// Whether it holds here; `None` if a run is missing.
    pub holds: Option<bool>,
}

/// Every comparison that counts.
#[must_use]
pub fn compare(found: &Results) -> Vec<Comparison> {
    let mut all = figure_4(found);
    all.extend(figure_5(found));
    all.extend(figure_6(found));
    all.extend(table_1(found));
    all.extend(file_systems(found));
    all.extend(graphs::published::compare(found));
    all
}

/// The hit ratio of Original at 6 % is fitted and not compared.
fn figure_4(found: &Results) -> Vec<Comparison> {
    let published = [(Engine::Original, 12, 87.3), (Engine::Raw, 6, 76.5), (Engine::Raw, 12, 94.8)];
    let why =
        Why::NotGiven("the paper gives neither the popularity of keys nor how its cache evicts");
    let compared = published.into_iter().map(|(engine, percent, published)| {
        let ours = found.hit(engine, percent).map_or(f64::NAN, |row| row.hit_ratio * 100.0);
        let what = format!("{}: hit ratio at {percent} % of the data", engine.name());
        Comparison::new(FIGURE_4, what, Quantity::Percent, [published, ours], CLOSE, why)
    });
    compared.collect()
}

/// Raw over Original is fitted and not compared. At a quarter of the scale there is no run.
fn figure_5(found: &Results) -> Vec<Comparison> {
    if found.backend.is_empty() {
        return Vec::new();
    }
    let rate = |engine| found.backend(engine).map_or(f64::NAN, |row| row.served.throughput());
    let why =
        Why::NotGiven("the paper gives neither the number of clients nor the time of the backend");
    let compared =
        [(Engine::Function, 1.004), (Engine::Policy, 1.088)].map(|(other, published)| {
            let what = format!("throughput of Raw over {}, with a backend", other.name());
            let both = [published, rate(Engine::Raw) / rate(other)];
            Comparison::new(FIGURE_5, what, Quantity::Ratio, both, CLOSE, why)
        });
    compared.into()
}

/// Policy over Original and the latencies of Figure 7 follow from these, and are not compared.
fn figure_6(found: &Results) -> Vec<Comparison> {
    let rate =
        |engine| found.server(engine, 0, false).map_or(f64::NAN, |row| row.served.throughput());
    let why = Why::Unexplained("the paper's server, its clients and its CPU time are not modelled");
    let published = [(Engine::Original, 1.276), (Engine::Function, 1.052), (Engine::Policy, 1.155)];
    let compared = published.map(|(other, published)| {
        let what = format!("throughput of Raw over {}, sets only", other.name());
        let both = [published, rate(Engine::Raw) / rate(other)];
        Comparison::new(FIGURE_6, what, Quantity::Ratio, both, CLOSE, why)
    });
    compared.into()
}

/// Published: gigabytes of items and of pages copied, and erases; `None` where the paper has "N/A".
const PUBLISHED: [(Engine, f64, Option<f64>, f64); 5] = [
    (Engine::Original, 13.27, Some(7.15), 8540.0),
    (Engine::Policy, 13.27, Some(0.0), 7620.0),
    (Engine::Function, 3.63, Some(0.0), 6017.0),
    (Engine::Raw, 3.49, None, 5994.0),
    (Engine::Ideal, 3.45, None, 5985.0),
];

/// Gigabytes that the paper's clients wrote.
const WRITTEN: f64 = 50.0;

fn table_1(found: &Results) -> Vec<Comparison> {
    let mut all = Vec::new();
    let original = found.table(Engine::Original);
    let erases = original.map_or(f64::NAN, |row| row.served.flash.erases as f64);
    let why =
        Why::NotGiven("the paper gives neither the deviation of its keys nor how its cache evicts");
    for (engine, items, pages, published) in PUBLISHED {
        let name = engine.name();
        let ours = found.table(engine);
        // How much of a slab Original and Policy copy is fitted to their copies.
        if !matches!(engine, Engine::Original | Engine::Policy) {
            let copied = ours.map_or(f64::NAN, |row| row.item_copies());
            let what = format!("{name}: items copied over items written");
            let both = [items / WRITTEN, copied];
            all.push(Comparison::new(TABLE_1, what, Quantity::Ratio, both, COPIES, why));
        }
        if let Some(pages) = pages {
            let copied = ours.map_or(f64::NAN, |row| row.page_copies());
            let what = format!("{name}: pages copied by the drive over items written");
            all.push(Comparison::new(
                TABLE_1,
                what,
                Quantity::Ratio,
                [pages / WRITTEN, copied],
                COPIES,
                why,
            ));
        }
        if engine != Engine::Original {
            let ours = ours.map_or(f64::NAN, |row| row.served.flash.erases as f64);
            let what = format!("{name}: erases over those of Original");
            let both = [published / PUBLISHED[0].3, ours / erases];
            all.push(Comparison::new(TABLE_1, what, Quantity::Ratio, both, ERASES, why));
        }
    }
    all
}

/// Gigabytes of Table II: what the file systems wrote by arithmetic, their copies, and copies by
/// the drive of ULFS-SSD.
const FILE_SYSTEM: [f64; 3] = [19.3, 9.82, 7.24];
/// Erases of ULFS-SSD and ULFS-Prism.
const FILE_ERASES: [f64; 2] = [6594.0, 5280.0];

/// Why copies by the drive may differ, and what follows from them.
const SEGMENT: Why = Why::NotGiven(
    "the paper gives neither the size of a segment nor the spare flash of its drive: with segments \
     over all channels the drive copies next to nothing",
);
const FSYNC: Why = Why::Unexplained(
    "an fsync waits for programs on one channel here, while the drive has saved what is in its \
     buffer; the paper does not say what its fsync waits for",
);

/// Figure 8 and Table II. How full the file systems are is fitted to their copies.
fn file_systems(found: &Results) -> Vec<Comparison> {
    let [Some(drive), Some(function)] =
        Variant::ALL.map(|variant| found.table_2(variant, Change::None))
    else {
        return Vec::new();
    };
    let ratio = |place, what: &str, both, tolerance, why| {
        Comparison::new(place, what, Quantity::Ratio, both, tolerance, why)
    };
    let table = |what, both, why| ratio(TABLE_2, what, both, COPIES, why);
    let varmail = |variant| {
        let row = found.file_system(variant, Personality::VarMail, Change::None);
        row.map_or(f64::NAN, super::FsRow::rate)
    };
    let [written, copied, by_drive] = FILE_SYSTEM;
    let fitted = [copied / written, drive.copied_of_written()];
    let alike = [1.0, function.copied_of_written() / drive.copied_of_written()];
    let erases = [FILE_ERASES[1] / FILE_ERASES[0], function.erases as f64 / drive.erases as f64];
    let rates = [1.215, varmail(Variant::Function) / varmail(Variant::Drive)];
    vec![
        table("ULFS-SSD: file copies over other writes", fitted, SEGMENT).on(Basis::Fitted),
        table("file copies of ULFS-Prism over ULFS-SSD", alike, Why::Same),
        table(
            "ULFS-SSD: copies by the drive over file copies",
            [by_drive / copied, drive.device_of_copied()],
            SEGMENT,
        ),
        table(
            "ULFS-Prism: copies by the device over file copies",
            [0.0, function.device_of_copied()],
            Why::Same,
        ),
        ratio(TABLE_2, "erases of ULFS-Prism over ULFS-SSD", erases, ERASES, SEGMENT),
        ratio(FIGURE_8, "varmail: ULFS-Prism over ULFS-SSD", rates, CLOSE, FSYNC),
    ]
}

/// The relations of the two file systems.
fn shapes_of_file_systems(found: &Results) -> Vec<Shape> {
    let sum = |variant| found.table_2(variant, Change::None);
    let both = || Some([sum(Variant::Drive)?, sum(Variant::Function)?]);
    let rate = |variant, workload| Some(found.file_system(variant, workload, Change::None)?.rate());
    let faster =
        |workload| Some(rate(Variant::Function, workload)? > rate(Variant::Drive, workload)?);
    let shape = |place, what, holds| Shape { place, what, holds };
    vec![
        shape(TABLE_2, "erases: ULFS-SSD > ULFS-Prism", both().map(|[a, b]| a.erases > b.erases)),
        shape(
            TABLE_2,
            "the device copies at ULFS-SSD alone",
            both().map(|[a, b]| a.device_copies > 0 && b.device_copies == 0),
        ),
        shape(FIGURE_8, "fileserver: ULFS-Prism is faster", faster(Personality::FileServer)),
        shape(FIGURE_8, "webserver: ULFS-Prism is faster", faster(Personality::WebServer)),
        shape(FIGURE_8, "varmail: ULFS-Prism is faster", faster(Personality::VarMail)),
    ]
}

/// Whether each relation of the paper holds.
#[must_use]
pub fn shapes(found: &Results) -> Vec<Shape> {
    let erases = |engine| found.table(engine).map(|row| row.served.flash.erases as f64);
    let copies = |engine| found.table(engine).map(|row| row.served.flash.copies);
    let more = |a, b| Some(erases(a)? > erases(b)?);
    let hits = |percent| {
        let of = |engine| found.hit(engine, percent).map(|row| row.hit_ratio);
        Some(of(Engine::Raw)? > of(Engine::Original)?)
    };
    // A quarter of the scale has the smallest and the largest size alone.
    let sizes: Vec<u32> = super::PERCENTS.into_iter().filter(|&p| hits(p).is_some()).collect();
    let rate = |engine| found.server(engine, 0, false).map(|row| row.served.throughput());
    // Within 1 %: the difference of the paper is 0.15 % to 0.4 %.
    let near = |a: Option<f64>, b: Option<f64>| Some((a? / b? - 1.0).abs() < 0.01);
    let shape = |place, what, holds| Shape { place, what, holds };
    let mut all = vec![
        shape(TABLE_1, "erases: Original > Policy", more(Engine::Original, Engine::Policy)),
        shape(TABLE_1, "erases: Policy > Function", more(Engine::Policy, Engine::Function)),
        shape(
            TABLE_1,
            "erases: Function as Raw, within 1 %",
            near(erases(Engine::Function), erases(Engine::Raw)),
        ),
        shape(
            TABLE_1,
            "erases: Raw as DIDACache, within 1 %",
            near(erases(Engine::Raw), erases(Engine::Ideal)),
        ),
        shape(
            TABLE_1,
            "the drive copies pages at Original alone",
            (|| {
                let others = Engine::ALL.into_iter().skip(1).map(copies);
                Some(copies(Engine::Original)? > 0 && others.sum::<Option<u64>>()? == 0)
            })(),
        ),
        shape(
            FIGURE_4,
            "hit ratio: Raw above Original at every size",
            sizes.into_iter().map(hits).try_fold(true, |all, one| Some(all && one?)),
        ),
        shape(
            FIGURE_6,
            "throughput of sets: Raw >= Function > Policy > Original",
            (|| {
                let [raw, function, policy, original] =
                    [Engine::Raw, Engine::Function, Engine::Policy, Engine::Original].map(rate);
                Some(raw? >= function? * 0.99 && function? > policy? && policy? > original?)
            })(),
        ),
    ];
    all.extend(shapes_of_file_systems(found));
    all.extend(graphs::published::shapes(found));
    all
}
