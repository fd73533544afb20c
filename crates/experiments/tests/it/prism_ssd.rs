//! At a quarter of the scale the caches of Prism-SSD differ in the order that the paper reports.

use prism_cache::cache::Eviction;
use prism_experiments::Scale;
use prism_experiments::comparison::Verdict;
use prism_experiments::prism_ssd::{
    Change, Design, Engine, Part, Personality, Results, SIXTH, Setup, Variant, compare, shapes,
};

#[test]
fn table_1_has_its_shape() {
    let setup = Setup::new(Scale::Quarter, 1);
    let parts: Vec<Part> =
        Engine::ALL.into_iter().map(|engine| Part::Gc(engine.into(), "", SIXTH, setup)).collect();
    let found = Results::of(parts.into_iter().map(|part| part.run(Scale::Quarter, 1)).collect());
    for shape in shapes(&found).iter().filter(|shape| shape.place == "Table I") {
        assert_eq!(shape.holds, Some(true), "{shape:?}");
    }
    let erases = compare(&found).into_iter().filter(|one| one.what.contains("erases over"));
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

/// The drive copies because the cache frees slabs in another order than it fills them: without that
/// there are no copies.
#[test]
fn slabs_freed_in_their_order_cause_no_copies() {
    let setup = Setup::new(Scale::Quarter, 1);
    let copies = |eviction| {
        let design = Design { eviction, ..Engine::Original.into() };
        Part::Gc(design, "", SIXTH, setup).run(Scale::Quarter, 1).gc[0].served.flash.copies
    };
    assert_eq!(copies(Eviction::Reinsert { most: 20 }), 0);
    assert!(copies(Eviction::Greedy { most: 20 }) > 1000);
}

/// File copies are equal, since both run the same code on as many segments, and erases follow from
/// what was programmed.
#[test]
fn file_systems_copy_alike_and_the_drive_copies_below_one_of_them() {
    let part = |variant, workload| Part::Files(variant, workload, Change::None);
    let all = Variant::ALL.into_iter();
    let parts = all.flat_map(|variant| Personality::ALL.map(|workload| part(variant, workload)));
    let found = Results::of(parts.map(|part| part.run(Scale::Quarter, 1)).collect());
    for shape in shapes(&found).iter().filter(|shape| shape.place == "Table II") {
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
