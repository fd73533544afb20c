//! The modules of the flash library: each uses only those below it, and none uses the simulated
//! drive.

use std::collections::BTreeMap;

use crate::source::{Source, code_lines, fail, files};

/// The modules that each module of the flash library may use, from the bottom up. The raw,
/// function, policy and key-value levels are independent: an application uses one of them, and
/// each accesses flash through the monitor.
const MODULES: [(&str, &[&str]); 12] = [
    ("address", &[]),
    ("buffer", &[]),
    ("medium", &["buffer"]),
    ("error", &["address", "medium"]),
    ("memory", &["medium"]),
    ("journal", &["medium"]),
    ("monitor", &["address", "buffer", "error", "medium", "journal"]),
    ("raw", &["address", "buffer", "error", "medium", "monitor"]),
    // Uses addresses and completions of the raw level.
    ("function", &["address", "buffer", "error", "medium", "monitor", "raw"]),
    ("policy", &["address", "buffer", "error", "medium", "journal", "monitor"]),
    // Objects are stored in one range of the policy level.
    ("object", &["error", "medium", "journal", "monitor", "policy"]),
    ("kv", &["error", "medium", "monitor", "raw"]),
];

const SOURCE: &str = "crates/flash/src/";

/// The modules of its crate that a line of code names.
fn modules_named(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or("");
    let end = |c: char| !c.is_alphanumeric() && c != '_';
    code.split("crate::").skip(1).map(move |rest| rest.split(end).next().unwrap_or(""))
}

/// The forbidden uses of other modules in a file, and the number of all uses.
fn uses(file: &Source) -> (Vec<String>, usize) {
    let parts: Vec<&str> = file.name[SOURCE.len()..].split('/').collect();
    let module = parts[0].trim_end_matches(".rs");
    if module == "lib" {
        return (Vec::new(), 0);
    }
    let allowed: BTreeMap<_, _> = MODULES.into_iter().collect();
    let Some(below) = allowed.get(module) else {
        return (vec![format!("{}: {module} has no row in MODULES", file.name)], 0);
    };
    // In the first file of a module `super` is the crate, which hides the used module.
    let is_first = parts.len() == 1 || parts[1] == "mod.rs";
    let (mut broken, mut used) = (Vec::new(), 0);
    for (number, line) in code_lines(&file.text) {
        for other in modules_named(line) {
            used += 1;
            if other != module && !below.contains(&other) {
                broken
                    .push(format!("{}:{number}: {module} must not use crate::{other}", file.name));
            }
        }
        if line.contains(if is_first { "super::" } else { "super::super" }) {
            broken.push(format!("{}:{number}: write crate::, not super::", file.name));
        }
    }
    (broken, used)
}

#[test]
fn levels_of_flash_use_only_what_is_below() {
    let (mut broken, mut used) = (Vec::new(), 0);
    for file in files(SOURCE.trim_end_matches('/'), |name| name.ends_with(".rs")) {
        let (of_file, count) = uses(&file);
        broken.extend(of_file);
        used += count;
    }
    assert!(used > 50, "the search found too little: {used} uses");
    fail(&broken);
}

/// The library is compared with the simulated drive, so it must not use it, not even in tests.
#[test]
fn the_flash_library_has_no_drive_in_it() {
    let wanted = |name: &str| name.ends_with(".rs") || name.ends_with("Cargo.toml");
    let files = files("crates/flash", wanted).into_iter();
    let broken: Vec<String> = files.filter(names_drive).map(|file| file.name).collect();
    fail(&broken);
}

fn names_drive(file: &Source) -> bool {
    file.text.contains("prism_ssd") || file.text.contains("prism-ssd")
}

#[test]
fn an_upward_use_is_found() {
    let named = modules_named("pub(crate) use crate::raw::{Raw, crate::policy}; // crate::kv");
    assert_eq!(named.collect::<Vec<_>>(), ["raw", "policy"]);
    assert_eq!(modules_named("use crate::{raw, policy};").collect::<Vec<_>>(), [""]);
    let check = |name: &str, text: &str, expected: usize| {
        let file = Source { name: format!("{SOURCE}{name}"), text: text.to_owned() };
        assert_eq!(uses(&file).0.len(), expected, "{name}: {text}");
    };
    check("raw.rs", "use crate::monitor::Monitor;\n", 0);
    check("raw.rs", "use crate::kv::Kv;\n", 1);
    check("raw.rs", "#[cfg(test)]\nmod tests;\nuse crate::kv::Kv;\n", 1);
    check("raw.rs", "use crate::{kv, raw};\n", 1);
    check("raw/queue.rs", "use super::Raw;\n", 0);
    check("raw/queue.rs", "use super::super::kv;\n", 1);
    check("other.rs", "", 1);
    let drive = Source { name: String::new(), text: "use prism_ssd::Drive;".to_owned() };
    assert!(names_drive(&drive));
}
