//! The tree keeps its own rules: which crate may know which, what is banned below
//! `host`, and how long files, functions and lines may be.
//!
//! A rule that is broken is named with file and line. The rules and their reasons are in
//! ARCHITECTURE.md and CONTRIBUTING.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What each crate may depend on inside the workspace, not counting tests. An arrow that
/// is not here points the wrong way, or has not been thought about.
const ARROWS: [(&str, &[&str]); 20] = [
    // What tests share; a dependency of tests only, so no other row has it.
    ("testkit", &[]),
    ("base", &[]),
    ("nand", &["base"]),
    ("report", &["base"]),
    ("trace", &["base"]),
    ("ftl", &["base", "nand"]),
    ("engine", &["base", "nand", "ftl"]),
    ("ssd", &["base", "nand", "ftl", "engine"]),
    // The point of the library is to have no drive: it never sees `ssd`.
    ("flash", &["base", "nand", "ftl", "engine"]),
    // The library's device in a file. Apart from `host`, so that a program which embeds the
    // library does not get captures, Parquet and terminals with it.
    ("flashfile", &["base", "flash"]),
    // The library and its manual under one name. Nobody depends on it.
    ("prism", &["base", "nand", "engine", "ftl", "flash", "flashfile"]),
    // The library as C sees it, which adds nothing. Nobody depends on it.
    ("capi", &["prism"]),
    ("workload", &["base", "engine", "ssd"]),
    ("replay", &["base", "nand", "engine", "trace", "ssd", "workload"]),
    ("contract", &["base", "nand", "ftl", "trace", "ssd", "workload", "replay"]),
    (
        "experiments",
        &[
            "base", "nand", "ftl", "engine", "flash", "trace", "ssd", "workload", "replay",
            "contract",
        ],
    ),
    ("host", &["base", "trace", "workload"]),
    // Real applications: they are started, watched and cleaned up after.
    ("lab", &["base", "host"]),
    // Results as documents and JSON, for the command line and for Python.
    (
        "present",
        &[
            "base",
            "nand",
            "trace",
            "ssd",
            "workload",
            "replay",
            "contract",
            "report",
            "experiments",
        ],
    ),
    (
        "cli",
        &[
            "base",
            "trace",
            "ssd",
            "workload",
            "replay",
            "contract",
            "report",
            "host",
            "lab",
            "experiments",
            "present",
            "flash",
            "flashfile",
        ],
    ),
];

/// Crates that may touch the world; all others compute.
const IMPURE: [&str; 5] = ["host", "lab", "cli", "flashfile", "testkit"];

/// What a pure crate must not name outside tests, examples and benches.
const BANNED: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::time",
    "std::thread",
    "std::env::",
    "std::process",
    "println!",
    "std::io::std",
];

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace").into()
}

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            out.push(path);
        }
    }
}

fn all_rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    rust_files(&root().join("xtask"), &mut files);
    files.sort();
    assert!(files.len() > 50, "the walk lost its way: {} files", files.len());
    files
}

/// The lines of a source file before its unit tests.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
    text[..end].lines().enumerate().map(|(i, line)| (i + 1, line))
}

fn fail(broken: &[String]) {
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn arrows_point_down() {
    let allowed: BTreeMap<_, _> = ARROWS.into_iter().collect();
    let mut broken = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(arrows) = allowed.get(name.as_str()) else {
            broken.push(format!("crate {name} has no row in ARROWS"));
            continue;
        };
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        let start = manifest.find("[dependencies]").unwrap_or(manifest.len());
        let section = &manifest[start..];
        let end = section[1..].find("\n[").map_or(section.len(), |at| at + 1);
        for line in section[..end].lines() {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or("");
            let other = match dependency.strip_prefix("prism-") {
                Some(other) => other,
                None if dependency == "prism" => dependency,
                None => continue,
            };
            if !arrows.contains(&other) {
                broken.push(format!("{name} must not depend on {other}"));
            }
        }
    }
    fail(&broken);
}

/// What each module of the flash library may use of the others, from the bottom up. The levels
/// beside each other know nothing of each other: an application takes one of them, and what a
/// higher one needs of flash it gets from the monitor.
const FLASH_MODULES: [(&str, &[&str]); 10] = [
    ("medium", &[]),
    ("error", &["medium"]),
    ("memory", &["medium"]),
    ("journal", &["medium"]),
    ("monitor", &["error", "medium", "journal"]),
    ("raw", &["error", "medium", "monitor"]),
    // Addresses and completions are those of the raw level.
    ("function", &["error", "medium", "monitor", "raw"]),
    ("policy", &["error", "medium", "journal", "monitor"]),
    // Objects lie in one range of the policy level.
    ("object", &["error", "medium", "journal", "monitor", "policy"]),
    ("kv", &["error", "medium", "monitor", "raw"]),
];

/// The modules of its crate that a line of code names.
fn modules_named(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or("");
    let end = |c: char| !c.is_alphanumeric() && c != '_';
    code.split("crate::").skip(1).map(move |rest| rest.split(end).next().unwrap_or(""))
}

#[test]
fn levels_of_flash_use_only_what_is_below() {
    let allowed: BTreeMap<_, _> = FLASH_MODULES.into_iter().collect();
    let source = root().join("crates/flash/src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut broken = Vec::new();
    let mut used = 0;
    for path in files {
        let relative = path.strip_prefix(&source).expect("under the source").to_path_buf();
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        let module = parts[0].trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some(below) = allowed.get(module) else {
            broken.push(format!("{}: {module} has no row", relative.display()));
            continue;
        };
        // In the first file of a module `super` is the crate, and hides what is used.
        let is_first = parts.len() == 1 || parts[1] == "mod.rs";
        let text = fs::read_to_string(&path).expect("a source file");
        for (number, line) in code_lines(&text) {
            for other in modules_named(line) {
                used += 1;
                if other != module && !below.contains(&other) {
                    let place = format!("{}:{number}", relative.display());
                    broken.push(format!("{place}: {module} must not use crate::{other}"));
                }
            }
            if line.contains(if is_first { "super::" } else { "super::super" }) {
                broken.push(format!("{}:{number}: say crate::", relative.display()));
            }
        }
    }
    assert!(used > 50, "the search lost its way: {used} uses");
    fail(&broken);
}

/// The library is measured against the simulated drive, so nothing of the drive may be in it:
/// not even a test may lean on it.
#[test]
fn the_flash_library_has_no_drive_in_it() {
    let folder = root().join("crates/flash");
    let mut files = vec![folder.join("Cargo.toml")];
    rust_files(&folder, &mut files);
    let names_drive = |text: &str| text.contains("prism_ssd") || text.contains("prism-ssd");
    let mut broken = Vec::new();
    for path in files {
        if names_drive(&fs::read_to_string(&path).expect("a source file")) {
            broken.push(format!("{} names the simulated drive", path.display()));
        }
    }
    fail(&broken);
}

#[test]
fn pure_crates_do_not_touch_the_world() {
    let mut broken = Vec::new();
    for path in all_rust_files() {
        let relative = path.strip_prefix(root()).expect("under the root").to_path_buf();
        let parts: Vec<_> = relative.iter().map(|p| p.to_string_lossy()).collect();
        if parts[0] != "crates" || IMPURE.contains(&&*parts[1]) || parts[2] != "src" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        for (number, line) in code_lines(&text) {
            let code = line.split("//").next().unwrap_or("");
            for banned in BANNED {
                if code.contains(banned) {
                    broken.push(format!("{}:{number}: {banned}", relative.display()));
                }
            }
        }
    }
    fail(&broken);
}

#[test]
fn files_functions_and_lines_stay_short() {
    let mut broken = Vec::new();
    for path in all_rust_files() {
        let name = path.strip_prefix(root()).expect("under the root").display().to_string();
        let text = fs::read_to_string(&path).expect("a source file");
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            broken.push(format!("{name}: {} lines, at most {FILE_LINES_MAX}", lines.len()));
        }
        if !text.starts_with("//!") {
            broken.push(format!("{name}:1: does not say why it exists (//!)"));
        }
        for (i, line) in lines.iter().enumerate() {
            if line.chars().count() > LINE_COLUMNS_MAX {
                broken.push(format!("{name}:{}: longer than {LINE_COLUMNS_MAX} columns", i + 1));
            }
        }
        for (start, length) in functions(&lines) {
            if length > FUNCTION_LINES_MAX {
                let most = FUNCTION_LINES_MAX;
                broken
                    .push(format!("{name}:{start}: a function of {length} lines, at most {most}"));
            }
        }
    }
    fail(&broken);
}

/// Start line and length of each function, by the indentation that rustfmt gives it.
fn functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let head = line.trim_start();
        let is_function = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "const fn "]
            .iter()
            .any(|start| head.starts_with(start));
        if !is_function || head.ends_with('}') || head.ends_with(';') {
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[i..].iter().position(|l| *l == close) {
            found.push((i + 1, length + 1));
        }
    }
    found
}

#[test]
fn nothing_is_left_for_later() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:"), "todo!("];
    let mut broken = Vec::new();
    for path in all_rust_files() {
        let text = fs::read_to_string(&path).expect("a source file");
        for (number, line) in text.lines().enumerate() {
            let in_tidy = path.ends_with("tidy.rs");
            if !in_tidy && words.iter().any(|word| line.contains(word)) {
                broken.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    fail(&broken);
}

#[test]
fn the_checks_can_fail() {
    let long = format!("fn f() {{\n{}}}", "    x();\n".repeat(80));
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(functions(&lines), [(1, 82)]);
    assert_eq!(code_lines("a\n#[cfg(test)]\nmod tests {\n std::fs\n}").count(), 1);
    let named = modules_named("pub(crate) use crate::raw::{Raw, crate::policy}; // crate::kv");
    assert_eq!(named.collect::<Vec<_>>(), ["raw", "policy"]);
    assert_eq!(modules_named("use crate::{raw, policy};").collect::<Vec<_>>(), [""]);
}
