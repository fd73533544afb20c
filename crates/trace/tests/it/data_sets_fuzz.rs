//! Feeds the readers of published data sets with noise and with damaged samples: they
//! never panic, how the bytes are cut does not matter, and whatever comes out is a request
//! that every other part can work with.

use crate::common::{damage, damaged, data, observable, options, read_pieces};
use prism_testkit::cases;
use prism_trace::{Format, Op, detect};
use proptest::prelude::*;

/// A sample of each layout.
const SAMPLES: [(&str, Format); 17] = [
    ("systor17-vdi.csv", Format::Systor17),
    ("k5cloud.csv", Format::K5cloud),
    ("spc.csv", Format::Spc),
    ("disksim.txt", Format::Disksim),
    ("ssdsim.txt", Format::Ssdsim),
    ("fiu.txt", Format::Fiu),
    ("midas.txt", Format::Midas),
    ("baleen.txt", Format::Baleen),
    ("thesios.csv", Format::Thesios),
    ("io-tracer.csv", Format::IoTracer),
    ("io-tracer-old.csv", Format::IoTracer),
    ("vscsi-v1.bin", Format::Vscsi),
    ("vscsi-v2.bin", Format::Vscsi),
    ("oracle-general.bin", Format::OracleGeneral),
    ("lcs-large.bin.zst", Format::Lcs),
    ("lcs-small.bin", Format::Lcs),
    ("lcs-format.bin", Format::Lcs),
];

/// Everything observable of a reading, after checking each record.
fn outcome(format: Format, bytes: &[u8], piece: usize) -> String {
    let outcome = read_pieces(options(format), &[bytes], piece);
    let mut before_ns = 0;
    for record in outcome.iter().flat_map(|whole| &whole.records) {
        assert!(record.issue_ns >= before_ns, "{format:?}: out of order");
        before_ns = record.issue_ns;
        assert!(record.len > 0 || record.op == Op::Flush, "{format:?}: {record:?}");
        assert!(record.end() <= i64::MAX as u64, "{format:?}: {record:?}");
        if let Some(ns) = record.complete.get() {
            assert!(ns >= record.issue_ns, "{format:?}: {record:?}");
        }
    }
    observable(outcome)
}

fn pieces_agree(format: Format, bytes: &[u8], piece: usize) {
    let whole = outcome(format, bytes, bytes.len().max(1));
    assert_eq!(outcome(format, bytes, piece), whole, "{format:?} in pieces of {piece}");
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn random_noise_does_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        text in "[-0-9.,eE| \t\nRWDwritefuda/x:]{0,200}",
        piece in 1_usize..60,
    ) {
        for (_, format) in SAMPLES {
            pieces_agree(format, &bytes, piece);
            pieces_agree(format, text.as_bytes(), piece);
        }
        let _ = detect(&bytes);
    }

    #[test]
    fn random_damage_to_samples_does_no_harm(
        sample in prop::sample::select(SAMPLES.to_vec()),
        damage in damage(),
        piece in 1_usize..500,
    ) {
        let bytes = damaged(&data(sample.0), damage);
        pieces_agree(sample.1, &bytes, piece);
        let _ = detect(&bytes);
    }

    /// A damaged sample read as another format.
    #[test]
    fn random_wrong_formats_do_no_harm(
        sample in prop::sample::select(SAMPLES.to_vec()),
        format in prop::sample::select(Format::ALL.to_vec()),
        piece in 1_usize..500,
    ) {
        if format != Format::Map {
            let _ = read_pieces(options(format), &[&data(sample.0)], piece);
        }
    }
}
