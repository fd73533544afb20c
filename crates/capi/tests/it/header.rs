//! The header is generated from the source, and docs/c-api.md has every call.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn checked_in() -> String {
    fs::read_to_string(folder().join("include/prism.h")).unwrap_or_default()
}

#[test]
fn the_header_is_generated_from_the_source() {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).expect("its settings");
    let bindings = cbindgen::Builder::new().with_crate(folder()).with_config(config).generate();
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prism.h");
    bindings.expect("a source that can be read").write_to_file(&made);
    let text = fs::read_to_string(&made).expect("just written");
    let to = folder().join("include/prism.h");
    assert!(
        text == checked_in(),
        "the header differs from the source: cp {} {}",
        made.display(),
        to.display()
    );
}

/// The names of the functions in a text, as `prism_device_open(`.
fn functions(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.match_indices("prism_").map(|(at, _)| at);
    let whole = starts.filter(|&at| !text[..at].ends_with(is_name));
    let names = whole.map(|at| text[at..].split(|c| !is_name(c)).next().unwrap_or_default());
    let called = names.filter(|name| text.contains(&format!("{name}(")));
    called.map(str::to_owned).collect()
}

#[test]
fn every_call_is_in_the_manual() {
    let manual = fs::read_to_string(folder().join("../../docs/c-api.md")).expect("the manual");
    let (of_header, of_manual) = (functions(&checked_in()), functions(&manual));
    assert!(of_header.len() > 100, "the search lost its way: {of_header:?}");
    let missing: Vec<_> = of_header.difference(&of_manual).collect();
    assert!(missing.is_empty(), "not in docs/c-api.md: {missing:?}");
    let unknown: Vec<_> = of_manual.difference(&of_header).collect();
    assert!(unknown.is_empty(), "docs/c-api.md has calls that do not exist: {unknown:?}");
}
