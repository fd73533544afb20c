//! The text form.

use prism_trace::FsLayout;
use prism_trace::fs_layout::{LayoutError, Region};

use super::Names;

const DOCUMENT: &str = include_str!("../../../../../docs/spec/fs-layout.md");

/// The documented example.
fn example() -> &'static str {
    let start = DOCUMENT.find("```toml\n").expect("an example") + "```toml\n".len();
    &DOCUMENT[start..start + DOCUMENT[start..].find("```").expect("its end")]
}

#[test]
fn the_documented_example_is_read() {
    let layout = FsLayout::from_toml(example()).unwrap();
    assert_eq!(layout.name, "logfs");
    assert_eq!(layout.label(0), Some("logfs head"));
    assert_eq!(layout.label((1 << 20) - 1), Some("logfs head"));
    assert_eq!(layout.label(1 << 20), None);
    assert_eq!(layout.label(2 << 20), Some("logfs index 0"));
    assert_eq!(layout.group(2 << 20), Some("logfs index"));
    assert_eq!(layout.group((1 << 30) - 1), Some("logfs data"));
    assert_eq!(layout.label(1 << 30), None);
}

#[test]
fn what_is_wrong_is_reported_with_its_line() {
    let check = |regions: &str, says: &str| {
        let text = format!("name = \"x\"\nsource = \"y\"\nregions = [\n{regions}\n]\n");
        let error = FsLayout::from_toml(&text).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    };
    let row =
        |start: &str, end: &str| format!("{{start=\"{start}\", end=\"{end}\", label=\"l\"}},");
    check(&row("0", "4KiB"), "line 4: start: \"0\" has no known unit");
    check(&row("0B", "4 blocks"), "line 4: end: \"4 blocks\" has no known unit");
    check(&row("4KiB", "4096B"), "line 4: region \"l\" ends at byte 4096, not behind");
    check(
        &[row("8KiB", "9KiB"), row("0B", "1KiB"), row("500B", "2KiB")].join("\n"),
        "line 6: region \"l\" starts at byte 500, inside of \"l\", which ends at 1024",
    );
    check("{start=\"0B\", end=\"1B\"}", "line 4: missing field `label`");
    check("{start=0, end=\"1B\", label=\"l\"}", "line 4: invalid type");
    check("{start=\"0B\", end=\"1B\", label=\"l\", colour=\"red\"}", "line 4: unknown field");
    check("", "the layout has no region");
    let error = FsLayout::from_toml("name = \"x\"").unwrap_err();
    assert!(matches!(error, LayoutError::Text { line: 1, .. }), "{error}");
}

#[test]
fn addresses_are_exact_in_the_largest_unit() {
    let region = |start: u64, end: u64| {
        let (label, group) = ("a \"b\"\n".to_owned(), "c".to_owned());
        Region { start, end, label, group }
    };
    let odd = (1 << 40) + 1;
    let regions = vec![region(0, 512), region(1024, 1 << 20), region(1 << 30, odd)];
    let layout = FsLayout::new("x", "y", regions).unwrap();
    let text = layout.to_toml();
    for part in ["\"0B\"", "\"512B\"", "\"1KiB\"", "\"1MiB\"", "\"1GiB\"", "\"1099511627777B\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(FsLayout::from_toml(&text), Ok(layout));
}
