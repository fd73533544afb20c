//! Finds the files of one trace: blktrace writes one file per CPU. The name of any of them, or
//! their common prefix, means all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The possible endings of the file of one CPU, in order of preference if the same file exists
/// compressed and uncompressed.
const ENDINGS: [&str; 3] = ["", ".zst", ".gz"];

/// The text between the name of a blktrace recording and the number of the CPU.
const INFIX: &str = ".blktrace.";

/// Every file of the trace that `path` names, ordered by CPU; `path` itself if it is not part
/// of a blktrace recording.
#[must_use]
pub fn expand(path: &Path) -> Vec<PathBuf> {
    let whole = || vec![path.to_path_buf()];
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return whole() };
    let stem = match split(name) {
        Some((stem, _, _)) => stem,
        // A prefix such as `nv` means `nv.blktrace.*`, unless it is a file itself.
        None if path.exists() => return whole(),
        None => name,
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(entries) = std::fs::read_dir(folder) else { return whole() };
    let mut found: BTreeMap<(u32, usize), PathBuf> = BTreeMap::new();
    for entry in entries.flatten() {
        let file = entry.file_name();
        let parts = file.to_str().and_then(split);
        if let Some((_, cpu, ending)) = parts.filter(|&(other, _, _)| other == stem) {
            found.insert((cpu, ending), path.with_file_name(&file));
        }
    }
    let mut last = None;
    found.retain(|&(cpu, _), _| last.replace(cpu) != Some(cpu));
    if found.is_empty() { whole() } else { found.into_values().collect() }
}

/// Splits `x.blktrace.3.zst` into `x`, 3, and the place of `.zst` in [`ENDINGS`].
fn split(name: &str) -> Option<(&str, u32, usize)> {
    let (stem, rest) = name.rsplit_once(INFIX)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let cpu = rest[..digits].parse().ok()?;
    let ending = ENDINGS.iter().position(|&ending| ending == &rest[digits..])?;
    Some((stem, cpu, ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_of_a_recording_stands_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let there = ["nv.blktrace.0.zst", "nv.blktrace.10", "nv.blktrace.2", "nv.blktrace.2.gz"];
        for name in there.iter().chain(&["other.blktrace.0", "nv.blktrace.x", "trace.txt"]) {
            std::fs::write(path(name), "").unwrap();
        }
        let check = |asked: &str, wanted: &[&str]| {
            let wanted: Vec<PathBuf> = wanted.iter().map(|name| path(name)).collect();
            assert_eq!(expand(&path(asked)), wanted, "{asked}");
        };
        let all = ["nv.blktrace.0.zst", "nv.blktrace.2", "nv.blktrace.10"];
        check("nv.blktrace.0.zst", &all);
        check("nv.blktrace.10", &all);
        check("nv", &all);
        check("trace.txt", &["trace.txt"]);
        check("missing", &["missing"]);
        check("nv.blktrace.x", &["nv.blktrace.x"]);
    }
}
