//! Only impure crates may use files, networks, clocks, threads, processes, the environment and
//! printing; all others compute.

use regex::Regex;

use crate::source::{Source, code_lines, fail, rust_files, test_modules};

/// The impure crates.
const IMPURE: [&str; 9] = [
    "host",
    "lab",
    "cli",
    "python",
    "flashfile",
    "cacheserver",
    "graphstore",
    "fsmount",
    "testkit",
];

/// Names that a pure crate must not use outside tests, examples and benches.
const BANNED: &str = r"(?x)
    \bstd::(fs|net|time|thread|env|process)\b
  | \bstd::io::std\w+
  | \b(print|println|eprint|eprintln|dbg)!
  # Groups would hide the names above.
  | \bstd::\{";

/// The forbidden names in a file of a pure crate.
fn banned(file: &Source, pattern: &Regex) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in code_lines(&file.text) {
        let code = line.split("//").next().unwrap_or("");
        for found in pattern.find_iter(code) {
            broken.push(format!("{}:{number}: {}", file.name, found.as_str()));
        }
    }
    broken
}

/// Whether a file is code, not tests, of a pure crate.
fn is_pure_code(file: &Source, tests: &[String]) -> bool {
    let parts: Vec<&str> = file.name.split('/').collect();
    let is_test = |module: &String| {
        let rest = file.name.strip_prefix(module.as_str());
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    parts[0] == "crates"
        && !IMPURE.contains(&parts[1])
        && parts[2] == "src"
        && !tests.iter().any(is_test)
}

#[test]
fn pure_crates_do_not_use_files_clocks_or_threads() {
    let files = rust_files();
    let tests: Vec<String> = files.iter().flat_map(test_modules).collect();
    let pattern = Regex::new(BANNED).expect("a pattern");
    let pure: Vec<_> = files.iter().filter(|file| is_pure_code(file, &tests)).collect();
    assert!(pure.len() > 50, "the search found too little: {} files", pure.len());
    fail(&pure.iter().flat_map(|file| banned(file, &pattern)).collect::<Vec<_>>());
}

#[test]
fn forbidden_names_are_found() {
    let pattern = Regex::new(BANNED).expect("a pattern");
    let check = |text: &str, expected: &[&str]| {
        let file = Source { name: "f".to_owned(), text: text.to_owned() };
        assert_eq!(banned(&file, &pattern), expected, "{text}");
    };
    check("use std::fs;", &["f:1: std::fs"]);
    check("let t = std::time::Instant::now();", &["f:1: std::time"]);
    check("use std::{fs, mem};", &["f:1: std::{"]);
    check("std::io::stdout().lock();", &["f:1: std::io::stdout"]);
    check("eprintln!(\"x\");", &["f:1: eprintln!"]);
    check("fn f() -> std::io::Result<()> { x } // std::fs", &[]);
    check("#[cfg(test)]\nmod tests;\n\nuse std::env;", &["f:4: std::env"]);
    check("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]);
    let file = |name: &str| Source { name: name.to_owned(), text: String::new() };
    let tests = ["crates/trace/src/testing".to_owned()];
    for (name, expected) in [
        ("crates/trace/src/ring.rs", true),
        ("crates/trace/src/testing.rs", false),
        ("crates/trace/src/testing/more.rs", false),
        ("crates/trace/src/testing_not.rs", true),
        ("crates/trace/tests/it/main.rs", false),
        ("crates/host/src/lib.rs", false),
    ] {
        assert_eq!(is_pure_code(&file(name), &tests), expected, "{name}");
    }
}
