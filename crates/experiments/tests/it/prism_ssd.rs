//! At a quarter of the scale the caches of Prism-SSD differ in the order that the paper reports.

use prism_cache::cache::Eviction;
use prism_experiments::Scale;
use prism_experiments::comparison::Verdict;
use prism_experiments::prism_ssd::{Design, Engine, Part, Results, SIXTH, Setup, compare, shapes};

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

#[test]
fn scratch_ulfs() {
    use prism_experiments::prism_ssd::{Change, Personality, Variant};
    let change = Change::ALL[std::env::var("CH").map_or(0, |c| c.parse().unwrap())];
    for workload in Personality::ALL {
        for variant in Variant::ALL {
            let t = std::time::Instant::now();
            let row = &Part::Files(variant, workload, change).run(Scale::Quarter, 1).files[0];
            let writ = row.blocks - row.copied;
            println!("{:?} {:?} rate {:.0} fsync {:?} copied/written {:.3} devcopies/filecopies {:.3} {row:?} {:?}", variant, workload, row.rate(), row.fsync_latency().map(|l| l / 1e6), row.copied as f64 / writ as f64, row.flash.copies as f64 * 4.0 / row.copied as f64, t.elapsed());
        }
    }
}
