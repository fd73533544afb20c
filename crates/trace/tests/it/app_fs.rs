//! Real traces of applications on file systems give exactly the figures that were counted
//! when they were captured.

use crate::common::{data, figures, options, read, read_pieces};
use prism_trace::Format;

/// Figures as `common::figures` prints them, counted at the issue events between the
/// markers `app` and `sync`.
const FIGURES: [(&str, &str); 3] = [
    ("ext4-sqlite-rb", "6 / 0 / 4 | 8362 / 83 / 4 | 43.8 | 5251 | 1299 | 63 | 5"),
    ("f2fs-leveldb", "1 / 0 / 4 | 1340 / 344 / 200 | 1.5 | 251 | 0 | 175 | 8"),
    ("f2fs-rocksdb", "1 / 0 / 4 | 183 / 47 / 44 | 0.3 | 29 | 0 | 47 | 16"),
];

#[test]
fn figures_of_the_app_phase() {
    for (name, expected) in FIGURES {
        let whole = read(options(Format::Ftrace), &data(&format!("{name}.ftrace.zst")))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(figures(&whole, "app"), expected, "{name}");
        assert_eq!(whole.outcome.skips.rows(), [], "{name}");
        assert_eq!(whole.outcome.unpaired, 0, "{name}");
        let can = whole.outcome.capabilities;
        assert!(can.queue && can.completion && can.process && can.write_zeroes, "{name}");
        assert_eq!(can.clock_ns, 1000, "{name}");
        let phases: Vec<&str> = whole.outcome.phases.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(phases, ["mkfs", "mount", "app", "sync", "fstrim", "umount", "end"], "{name}");
    }
}

/// Nothing is issued by a worker of the block layer: each request has its process.
#[test]
fn every_request_has_the_process_that_asked_for_it() {
    for (name, _) in FIGURES {
        let whole = read(options(Format::Ftrace), &data(&format!("{name}.ftrace.zst")))
            .expect("the sample is whole");
        for record in &whole.records {
            let comm = whole.symbols.name(record.comm);
            assert!(
                record.queue.get().is_some_and(|ns| ns <= record.issue_ns),
                "{name} {record:?}"
            );
            assert!(!comm.is_empty() && record.pid > 0, "{name} {record:?}");
            assert!(!(comm.starts_with("kworker") && comm.ends_with('H')), "{name} {comm}");
        }
    }
}

#[test]
fn pieces_do_not_matter() {
    let text = data("f2fs-rocksdb.ftrace.zst");
    let whole = read(options(Format::Ftrace), &text).expect("the sample is whole");
    for piece in [1, 7, 100, 4096, text.len()] {
        let pieces = read_pieces(options(Format::Ftrace), &[&text], piece).expect("as above");
        assert_eq!(pieces.records, whole.records, "pieces of {piece} bytes");
        assert_eq!(pieces.outcome.phases, whole.outcome.phases);
    }
}
