//! The experiments of ATC'09 have the shape that the paper found, on small drives.

use prism_experiments::Scale;
use prism_experiments::atc09::{Bandwidths, Drive, Results, STRIPE, gain, pending};
use prism_experiments::beside::Verdict;

fn results() -> Results {
    Results::of(pending(Scale::Quarter, 1).into_iter().map(|part| part.run()).collect())
}

fn ratio([sequential, random]: [f64; 2]) -> f64 {
    sequential / random
}

/// Order, and order of magnitude, of the ratios of sequential to random bandwidth.
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
    assert!(ratios.is_sorted(), "mapped by the page, by 16, by 256 and by 1024 KiB: {ratios:?}");
    // Whatever the depth, a write of 4 KiB costs S2 and S3 the whole of a unit.
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

    // SWTF gains with load, and never loses.
    let gains: Vec<f64> = results.scheduling.curves.iter().map(gain).collect();
    assert!(gains.iter().all(|&gain| gain > -1.0), "{gains:?}");
    assert!(gains.is_sorted() && gains[gains.len() - 1] > 5.0, "{gains:?}");

    // The saw-tooth: best for whole stripes, half or less a sector behind the first.
    let stripes = &results.stripes;
    assert_eq!(stripes.best(), Some(STRIPE));
    let at = |size| stripes.at(size).expect("it was measured");
    for n in 1..4 {
        assert!(at(n * STRIPE + 512) < at(n * STRIPE) * n as f64 / (n + 1) as f64, "{stripes:?}");
        assert!(at(n * STRIPE) > 0.97 * at(STRIPE), "{stripes:?}");
    }
    for point in &stripes.points {
        // The closed form leaves the reads out, which takes at most as long as the writes.
        let share = point.ours / point.closed_form;
        assert!((0.5..1.01).contains(&share), "{point:?}");
    }

    let lines = results.lines();
    let unexplained = lines.iter().filter(|line| line.verdict() == Verdict::Unexplained).count();
    let agree = lines.iter().filter(|line| line.verdict() == Verdict::Agrees).count();
    assert!(unexplained == 0 && agree * 2 > lines.len(), "{lines:#?}");
}
