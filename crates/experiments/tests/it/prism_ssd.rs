//! Why the drive copies below the cache of Prism-SSD. What the paper reports is compared in the
//! tests of the crate `present`.

use prism_cache::cache::Eviction;
use prism_experiments::Scale;
use prism_experiments::prism_ssd::{Design, Engine, Part, SIXTH, Setup};

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
