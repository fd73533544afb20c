//! On small drives the experiments of ATC'09 have results of the same shape as in the paper.

use prism_experiments::Scale;
use prism_experiments::atc09::{
    Bandwidths, Drive, Ends, MacroResult, Results, STRIPE, closest_depth, gain, jobs,
};
use prism_experiments::comparison::{Comparison, Verdict};

fn results() -> Results {
    Results::of(jobs(Scale::Quarter, 1).into_iter().map(|part| part.run()).collect())
}

fn ratio([sequential, random]: [f64; 2]) -> f64 {
    sequential / random
}

/// The ratios of sequential to random bandwidth have the published order and magnitude.
fn bandwidths(all: &[Bandwidths]) {
    let of = |drive: Drive| all.iter().find(|one| one.drive == drive).expect("every drive");
    for one in all {
        let (ours, published) = (one.ours(), one.drive.published());
        for (ours, published) in [(ours.read, published.read), (ours.write, published.write)] {
            let off = ratio(ours) / ratio(published);
            assert!((0.5..2.0).contains(&off), "{:?}: {ours:?} for {published:?}", one.drive);
        }
    }
    let writes = [Drive::S4, Drive::S5, Drive::S1, Drive::S3, Drive::S2];
    let ratios = writes.map(|drive| ratio(of(drive).ours().write));
    assert!(ratios.is_sorted(), "mapping units of a page, 16, 256 and 1024 KiB: {ratios:?}");
    // At any depth a write of 4 KiB costs S2 and S3 a whole mapping unit.
    for (drive, least) in [(Drive::S2, 200.0), (Drive::S3, 50.0)] {
        let one = of(drive);
        let fastest = one.sequential.iter().map(|s| s.write).fold(0.0, f64::max);
        assert!(one.random.iter().all(|r| fastest / r.write > least), "{one:?}");
    }
}

#[test]
fn every_experiment_has_the_shape_of_the_paper() {
    let results = results();
    bandwidths(&results.bandwidths);

    // The gain of SWTF rises with load and is never a loss.
    let gains: Vec<f64> = results.scheduling.curves.iter().map(gain).collect();
    assert!(gains.iter().all(|&gain| gain > -1.0), "{gains:?}");
    assert!(gains.is_sorted() && gains[gains.len() - 1] > 5.0, "{gains:?}");

    // The saw-tooth: whole stripes are best, and a sector more costs a whole stripe more.
    let stripes = &results.stripes;
    assert_eq!(stripes.best(), Some(STRIPE));
    let at = |size| stripes.at(size).expect("it was measured");
    for n in 1..4 {
        assert!(at(n * STRIPE + 512) < at(n * STRIPE) * n as f64 / (n + 1) as f64, "{stripes:?}");
        assert!(at(n * STRIPE) > 0.97 * at(STRIPE), "{stripes:?}");
    }
    for point in &stripes.points {
        // The closed form leaves out the reads, which take at most as long as the writes.
        let share = point.ours / point.closed_form;
        assert!((0.5..1.01).contains(&share), "{point:?}");
    }

    terms_hold_where_the_paper_says(&results);
    alignment(&results);
    informed_cleaning(&results);
    priorities(&results);

    // Of the numbers that were not fitted or derived, both agree; of the others most do.
    let (counted, others): (Vec<_>, Vec<_>) =
        results.lines().into_iter().partition(Comparison::counts);
    let count = |lines: &[Comparison], verdict| {
        lines.iter().filter(|line| line.verdict() == verdict).count()
    };
    assert_eq!([counted.len(), count(&counted, Verdict::Agrees)], [2, 2], "{counted:#?}");
    let agree = count(&others, Verdict::Agrees);
    assert!(agree * 2 > others.len(), "{agree} of {others:#?}");
    assert!(count(&others, Verdict::Unexplained) <= 7, "{others:#?}");
}

/// Table 1: no term holds for SSDs, except the one on random writes for drives with large mapping
/// units (3.1) and the one on addresses if all flash is of one type (3.3).
fn terms_hold_where_the_paper_says(results: &Results) {
    for drive in &results.terms {
        let holds: Vec<_> = drive.terms.iter().map(|term| term.holds).collect();
        let large = ["atc09-s2", "atc09-s3"].contains(&drive.preset);
        let alike = drive.preset != "slc-mlc";
        let expected = [large, false, alike, false, false, false].map(Some);
        assert_eq!(holds, expected, "{drive:#?}");
    }
    let differ = |ends: &&Ends| ends.ratio() >= 1.25;
    let differ: Vec<_> = results.ends.iter().filter(differ).map(|ends| ends.preset).collect();
    assert_eq!(differ, ["slc-mlc"], "{:?}", results.ends);
    let reads = results.idle_reads;
    assert!(reads.after.mean > 1.2 * reads.before.mean, "{reads:?}");
    assert!(reads.after.longest > 3.0 * reads.before.longest, "{reads:?}");
}

/// Table 3: random writes gain nothing by alignment, and writes of which 80 % are sequential about
/// half. Table 4: large sequential writes gain by far the most.
fn alignment(results: &Results) {
    let closest = results.alignment.closest().expect("settings were tried");
    let gains = closest.gains();
    assert!(gains.is_sorted() && gains[0].abs() < 1.0 && gains[4] > 35.0, "{gains:?}");
    let most = closest.unaligned.iter().fold(0.0, |most: f64, &one| most.max(one));
    assert!(closest.unaligned.iter().all(|one| one / most > 0.95), "{closest:?}");
    let depth = closest_depth(&results.macros).expect("depths were tried");
    let gains: Vec<f64> =
        results.macros.iter().filter(|one| one.depth == depth).map(MacroResult::gain).collect();
    assert!(gains.is_sorted() && gains[3] > 4.0 * gains[2], "in the paper's order: {gains:?}");
}

/// Table 5: the informed drive moves about half of the pages or fewer and spends a third less time
/// on cleaning; the default drive moves more pages the more was written.
fn informed_cleaning(results: &Results) {
    let run = results.cleaning.closest().expect("pools were tried");
    assert!(run.pages().iter().all(|&share| share < 0.65), "{run:?}");
    assert!(run.times().iter().all(|&share| (0.4..0.9).contains(&share)), "{run:?}");
    for run in &results.cleaning.runs {
        assert!(run.default.is_sorted_by_key(|moved| moved.pages), "{run:?}");
        for (default, informed) in run.pairs() {
            assert_eq!(default.written, informed.written, "the same writes");
            assert!(informed.pages < default.pages, "{run:?}");
        }
    }
}

/// Table 6: with 20 % writes there is no cleaning and no gain; with more writes there is a gain.
fn priorities(results: &Results) {
    let places = results.priority.closest().expect("the drive keeps up somewhere");
    let runs: Vec<_> = results.priority.of(places).collect();
    for run in runs {
        let (agnostic, aware) = (run.agnostic.unwrap(), run.aware.unwrap());
        let gain = run.improvement().unwrap();
        if run.writes == 20 {
            assert_eq!((gain, agnostic.erases), (0.0, 0), "{run:?}");
        } else {
            assert!((2.0..30.0).contains(&gain) && aware.erases > 0, "{run:?}");
        }
    }
}
