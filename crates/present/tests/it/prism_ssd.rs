//! At a quarter of the scale the caches and file systems of Prism-SSD differ in the order that the
//! paper reports, graph engines compute the same, and `docs/prism-ssd.md` has the tables of the
//! program.

use std::sync::OnceLock;
use std::thread;

use prism_experiments::Scale;
use prism_experiments::comparison::Verdict;
use prism_experiments::prism_ssd::{
    Below, Change, GraphChange, Part, Results, Setup, System, Variant, compare, shapes,
};
use prism_present::reproduction::prism_ssd::{PrismSsd, document};
use prism_report::markdown;
use prism_testkit::assert_page;

/// Table I, Figure 8, Table II and Figure 9. Hits and throughput of the cache are left out, which
/// take three times as long.
fn found() -> &'static Results {
    static FOUND: OnceLock<Results> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut parts = Part::all(Scale::Quarter, 1);
        parts.retain(|part| matches!(part, Part::Gc(..) | Part::Files(..) | Part::Graphs(..)));
        let run = |part: Part| move || part.run(Scale::Quarter, 1);
        thread::scope(|scope| {
            let runs: Vec<_> = parts.into_iter().map(|part| scope.spawn(run(part))).collect();
            Results::of(runs.into_iter().map(|run| run.join().expect("no panic")).collect())
        })
    })
}

#[test]
fn the_page_has_the_tables_of_the_program() {
    let page = include_str!("../../../../docs/prism-ssd.md");
    let result = PrismSsd::new(1, Scale::Quarter, found().clone());
    let renewed = markdown::renewed(page, &document(&result)).expect("its tables");
    let is_whole =
        |name: &str| ["Relations", "Table IV", "Table III"].iter().any(|one| name.starts_with(one));
    assert_page(page, &renewed, |name| !is_whole(name));
}

#[test]
fn table_1_has_its_shape() {
    let (setup, found) = (Setup::new(Scale::Quarter, 1), found());
    for shape in shapes(found).iter().filter(|shape| shape.place == "Table I") {
        assert_eq!(shape.holds, Some(true), "{shape:?}");
    }
    let erases = compare(found).into_iter().filter(|one| one.what.contains("erases over"));
    let agrees = erases.filter(|one| one.verdict() == Verdict::Agrees).count();
    assert_eq!(agrees, 4, "of four");
    for row in &found.gc {
        assert!(row.served.requests == 140_000_000 / setup.divisor, "{row:?}");
        // What was set is on flash, with 16 bytes of the slab's table for an item.
        let programmed = row.served.flash.programs * (16 << 10);
        let items = row.served.cache.insert_bytes + row.served.cache.copied_bytes;
        assert!((items..items * 27 / 25).contains(&programmed), "{row:?}");
    }
}

/// File copies are equal, since both run the same code on as many segments, and erases follow from
/// what was programmed.
#[test]
fn file_systems_copy_alike_and_the_drive_copies_below_one_of_them() {
    let found = found();
    for shape in shapes(found).iter().filter(|shape| shape.place == "Table II") {
        assert_eq!(shape.holds, Some(true), "{shape:?}");
    }
    let [drive, function] = Variant::ALL.map(|one| found.table_2(one, Change::None).unwrap());
    let copies = function.copied_of_written() / drive.copied_of_written();
    assert!((copies - 1.0).abs() < 0.05, "{copies}");
    for row in &found.files {
        // Pages of four blocks, each of which the device programs once; some are on their way when
        // the count begins.
        let pages = row.blocks / 4;
        assert!(pages.abs_diff(row.flash.programs) < 400, "{row:?}");
        let blocks = (row.flash.programs + row.flash.copies) / 16;
        assert!(row.flash.erases <= blocks + 60, "{row:?}");
        assert!(row.rate() > 500.0 && row.calls > 5_000, "{row:?}");
    }
    let fsyncs: u64 = found.files.iter().map(|row| row.fsyncs.0).sum();
    assert!(fsyncs > 2000, "{fsyncs}");
}

/// Both modes of GraphChi's design compute the same ranks on both devices, Prism's engine computes
/// them in another order, and only programs that rewrite edge values write more than a result.
#[test]
fn graph_engines_compute_alike_and_only_windows_write_edges() {
    let found = found();
    assert_eq!(found.graphs.len(), 5, "two modes on two devices, and Prism's engine");
    let ranks = found.graphs[0].ranks;
    let own = found.graph(System::Own, Below::Policy, GraphChange::None).expect("it was run");
    for row in &found.graphs {
        let near = if row.run.system == System::Own { 1e-2 } else { 1e-6 };
        assert!((row.ranks / ranks - 1.0).abs() < near, "{row:?}");
        assert_eq!(row.edges, own.edges);
        assert_eq!(row.flash.copies, 0, "{row:?}");
        let written: u64 = row.traffic.written.iter().sum();
        let of_edges = 4 * 4 * row.edges;
        assert_eq!(written > of_edges, row.run.system == System::Windows, "{row:?}");
        if row.run.system != System::Own {
            assert!(row.total() > own.total() && row.execution > own.execution, "{row:?}");
        }
    }
    let figure_9 = compare(found).into_iter().filter(|one| one.place == "Figure 9");
    assert_eq!(figure_9.filter(|one| one.counts()).count(), 3, "one mode counts");
}
