//! Parquet traces that another program wrote again, with a compression of its own.

use std::path::PathBuf;

use prism_host::{LoadSpec, Progress, load_trace};

/// The number of requests in a file of `tests/data`, or the message about it.
fn load(name: &str) -> Result<u64, String> {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let spec = LoadSpec { paths: vec![PathBuf::from(here).join(name)], ..LoadSpec::default() };
    let loaded = load_trace(&spec, &Progress::hidden());
    loaded.map(|trace| trace.info.summary.requests).map_err(|error| error.to_string())
}

#[test]
fn common_compressions_are_read_and_others_are_named() {
    for codec in ["snappy", "gzip"] {
        assert_eq!(load(&format!("pyarrow-{codec}.parquet")), Ok(40), "{codec}");
    }
    for codec in ["lz4", "brotli"] {
        let message = load(&format!("pyarrow-{codec}.parquet")).expect_err("it is not unpacked");
        let expected = format!("compressed with {codec}, which cannot be read; write it again");
        assert!(message.contains(&expected), "{message}");
    }
}
