//! Limits the lengths of files, functions and lines, and checks that each file has a description
//! and no marks of unfinished work.

use regex::Regex;

use crate::source::{Source, fail, indent, rust_files};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;

/// The first line of a function, with any qualifiers before `fn`.
const FUNCTION: &str = r#"(?x)^\s*
    (pub(\([^)]*\))?\s+)? (default\s+)? (const\s+)? (async\s+)? (unsafe\s+)?
    (extern\s+("[^"]*"\s+)?)? fn\s"#;

/// Start line and length of each function that has a body of several lines, by the
/// indentation that rustfmt gives it.
fn functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let head = Regex::new(FUNCTION).expect("a pattern");
    let starts = lines.iter().enumerate().filter(|(_, line)| head.is_match(line));
    starts
        .filter_map(|(start, line)| {
            // The signature may take several lines; without a body it ends with a semicolon.
            let ends = |line: &&str| line.ends_with(['{', ';', '}']);
            let open = start + lines[start..].iter().position(ends)?;
            if !lines[open].ends_with('{') {
                return None;
            }
            let close = format!("{}}}", indent(line));
            let length = lines[start..].iter().position(|line| *line == close)? + 1;
            Some((start + 1, length))
        })
        .collect()
}

/// The violations of the limits in a file.
fn too_long(file: &Source) -> Vec<String> {
    let name = &file.name;
    let lines: Vec<&str> = file.text.lines().collect();
    let mut broken = Vec::new();
    if lines.len() > FILE_LINES_MAX {
        broken.push(format!("{name}: {} lines, at most {FILE_LINES_MAX}", lines.len()));
    }
    if !file.text.starts_with("//!") {
        broken.push(format!("{name}:1: has no description (//!)"));
    }
    for (i, line) in lines.iter().enumerate() {
        if line.chars().count() > LINE_COLUMNS_MAX {
            broken.push(format!("{name}:{}: longer than {LINE_COLUMNS_MAX} columns", i + 1));
        }
    }
    for (start, length) in functions(&lines) {
        if length > FUNCTION_LINES_MAX {
            let most = FUNCTION_LINES_MAX;
            broken.push(format!("{name}:{start}: a function of {length} lines, at most {most}"));
        }
    }
    broken
}

/// Marks of unfinished work.
const LATER: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), "todo!("];

/// The lines with marks of unfinished work.
fn left_for_later(file: &Source) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let marked = lines.filter(|(_, line)| LATER.iter().any(|mark| line.contains(mark)));
    marked.map(|(i, line)| format!("{}:{}: {line}", file.name, i + 1)).collect()
}

#[test]
fn files_functions_and_lines_stay_short() {
    fail(&rust_files().iter().flat_map(too_long).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_for_later() {
    let files = rust_files();
    let others = files.iter().filter(|file| file.name != "xtask/tests/tidy/lengths.rs");
    fail(&others.flat_map(left_for_later).collect::<Vec<_>>());
}

#[test]
fn functions_of_every_kind_are_measured() {
    let check = |head: &str, expected: &[(usize, usize)]| {
        let text = format!("{head}\n    x();\n}}\n");
        assert_eq!(functions(&text.lines().collect::<Vec<_>>()), expected, "{head}");
    };
    for head in [
        "fn f() {",
        "pub fn f() {",
        "pub(crate) fn f() {",
        "pub(super) fn f() {",
        "pub(in crate::a::b) fn f() {",
        "const fn f() {",
        "pub const fn f() {",
        "async fn f() {",
        "unsafe fn f() {",
        "pub const unsafe fn f() {",
        "extern fn f() {",
        "extern \"C\" fn f() {",
        "pub unsafe extern \"C-unwind\" fn f() {",
    ] {
        check(head, &[(1, 3)]);
    }
    check("fn f(\n    a: u8,\n) -> u8\nwhere\n    u8: Copy,\n{", &[(1, 8)]);
    check("fn f(\n    a: u8,\n);\nimpl A {", &[]);
    check("fn f() {}\nimpl A {", &[]);
    check("// fn f() {\nimpl A {", &[]);
}

#[test]
fn violations_are_found() {
    let check = |text: String, part: &str| {
        let file = Source { name: "f.rs".to_owned(), text };
        let found = too_long(&file);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(part), "{found:?}");
    };
    let body = |lines: usize| format!("//! A.\nfn f() {{\n{}}}\n", "    x();\n".repeat(lines));
    check(body(69), "f.rs:2: a function of 71 lines");
    let long = Source { name: "f.rs".to_owned(), text: body(68) };
    assert_eq!(too_long(&long), [""; 0]);
    check(format!("//! A.\n{}", "x\n".repeat(800)), "f.rs: 801 lines");
    check("x\n".to_owned(), "f.rs:1: has no description");
    check(format!("//! {}\n", "ä".repeat(97)), "f.rs:1: longer");
    let later = |text: &str| {
        left_for_later(&Source { name: "f.rs".to_owned(), text: text.to_owned() }).len()
    };
    assert_eq!(LATER.map(|mark| later(&format!("a\n// {mark} b\n"))), [1; 4]);
    assert_eq!(later("a\n"), 0);
}
