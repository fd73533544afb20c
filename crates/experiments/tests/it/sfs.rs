//! At a quarter of the scale the results have the shape that SFS describes.

use prism_experiments::sfs::{
    FULL, Map, Part, Results, SegmentRow, Settings, SizeRow, Ssd, Stream, Workload,
};
use prism_experiments::{Scale, theory};

fn found(parts: &[Part]) -> Results {
    Results::of(parts.iter().map(|part| part.run(Scale::Quarter, 1)).collect())
}

fn sizes(ssd: Ssd, map: Map) -> Vec<SizeRow> {
    found(&[Part::Sizes(ssd, map)]).sizes
}

#[test]
fn random_writes_of_an_erase_block_are_as_fast_as_sequential_ones() {
    for (ssd, map) in [(Ssd::H, Map::Fast), (Ssd::L, Map::Bast)] {
        let rows = sizes(ssd, map);
        let shares: Vec<f64> = rows.iter().map(SizeRow::share).collect();
        for row in &rows {
            let share = row.share();
            if row.size >= row.erase_block {
                assert!((0.97..1.03).contains(&share), "{row:?}");
                assert!(row.write_amplification < 1.01, "{row:?}");
            } else {
                assert!(share < 0.6 && row.write_amplification > 1.5, "{row:?}");
            }
        }
        let below = rows.iter().filter(|row| row.size <= row.erase_block).count();
        assert!(shares[..below].is_sorted(), "{shares:?}");
        assert!(shares[0] < 0.02, "{shares:?}");
    }
}

#[test]
fn page_level_mapping_is_faster_with_small_writes() {
    let (page, fast) = (sizes(Ssd::M, Map::Page), sizes(Ssd::M, Map::Fast));
    assert!(page[0].rate > 3.0 * fast[0].rate, "{:?} {:?}", page[0], fast[0]);
    assert!((page[0].sequential / fast[0].sequential - 1.0).abs() < 0.1);
}

#[test]
fn aligned_segments_cost_no_copies() {
    let found = found(&Map::SEGMENTS.map(Part::Segments));
    let row = |map, stream| {
        let same = |row: &&SegmentRow| (row.map, row.stream) == (map, stream);
        *found.segments.iter().find(same).expect("every stream on every mapping")
    };
    for map in Map::SEGMENTS {
        let aligned = row(map, Stream::Aligned);
        assert!((aligned.write_amplification - 1.0).abs() < 1e-3, "{aligned:?}");
        assert!((aligned.erases - 7.8125).abs() < 0.02, "{aligned:?}");
    }
    // The blocks at both ends of a segment of 64 blocks are copied in part.
    let shifted = row(Map::Fast, Stream::Misaligned);
    assert!((1.01..1.02).contains(&shifted.write_amplification), "{shifted:?}");
    // FAST has one log block for runs; the log of a group has several blocks.
    assert!(row(Map::Fast, Stream::Interleaved).write_amplification > 2.0);
    assert!(row(Map::Groups, Stream::Interleaved).write_amplification < 1.01);
    // There are 512 blocks of data and 51 log blocks, of which one is for runs.
    let random = row(Map::Fast, Stream::Pages).write_amplification;
    let expected = theory::fast(128, 512, 50);
    assert!((random / expected - 1.0).abs() < 0.05, "{random} for {expected}");
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let run = || Part::Segments(Map::Fast).run(Scale::Quarter, 7);
    let first = run();
    assert_eq!((first.segments.len(), &first), (4, &run()));
}

/// Groups separate what changes often, so that cleaning rewrites less with four of them than with
/// one; below both, whole segments die and cost next to nothing.
#[test]
fn the_file_system_rewrites_less_with_groups() {
    let rows = [Settings::SFS, Settings::Sfs(1)]
        .map(|settings| found(&[Part::Files(Workload::TpcC, settings, FULL)]).files[0].clone());
    let [four, one] = &rows;
    assert!(four.x() < one.x(), "{} {}", four.x(), one.x());
    for row in &rows {
        let files = row.data + row.cleaned;
        assert!(row.data <= row.called && files <= row.total, "{row:?}");
        assert!((row.spread.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
        for (amplification, erases) in row.below.expect("at this utilization") {
            assert!((1.0..1.15).contains(&amplification), "{row:?}");
            // Blocks of four pages.
            let programmed = row.total as f64 * amplification;
            let expected = 1000.0 * programmed / 4.0 / row.called as f64;
            assert!((erases / expected - 1.0).abs() < 0.1, "{row:?}: {expected}");
        }
        let rates = [Ssd::H, Ssd::M, Ssd::L].map(|ssd| row.throughput(ssd));
        assert!(rates.is_sorted_by(|a, b| a > b), "{rates:?}");
    }
}
