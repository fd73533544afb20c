//! The source files for the checks, and which of their lines are tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the tree: its path from the root, with `/` between folders, and its text.
pub struct Source {
    pub name: String,
    pub text: String,
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace").into()
}

/// The files below `folder` of the workspace whose name `wanted` accepts, in the order of
/// their names. Builds and Git's own files are left out.
pub fn files(folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<Source> {
    let mut paths = Vec::new();
    walk(&root().join(folder), &mut paths);
    paths.sort();
    let root = root();
    let named = paths.iter().map(|path| {
        let parts = path.strip_prefix(&root).expect("under the root").iter();
        (path, parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/"))
    });
    named
        .filter(|(_, name)| wanted(name))
        .map(|(path, name)| {
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
            Source { name, text }
        })
        .collect()
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a readable folder").path();
        if !path.is_dir() {
            out.push(path);
        } else if !matches!(
            path.file_name().and_then(|name| name.to_str()),
            Some("target" | ".git")
        ) {
            walk(&path, out);
        }
    }
}

/// Every Rust file of the workspace.
pub fn rust_files() -> Vec<Source> {
    let is_rust = |name: &str| name.ends_with(".rs");
    let mut files = files("crates", is_rust);
    files.extend(self::files("xtask", is_rust));
    assert!(files.len() > 50, "the walk found too little: {} files", files.len());
    files
}

/// The numbered lines of a source file without its inline modules of tests. The lines after
/// such a module, and those after `mod tests;`, are code.
pub fn code_lines(text: &str) -> Vec<(usize, &str)> {
    let mut code = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        code.push((index + 1, line));
        if line.trim() != "#[cfg(test)]" {
            continue;
        }
        // Other attributes may follow.
        while lines.peek().is_some_and(|(_, next)| next.trim_start().starts_with("#[")) {
            lines.next();
        }
        let Some(head) = lines.peek().map(|(_, line)| *line) else { break };
        if test_module(head).is_some_and(|(_, is_inline)| is_inline) {
            let close = format!("{}}}", indent(head));
            lines.by_ref().find(|(_, line)| *line == close);
        }
    }
    code
}

/// The name of the module that `line` begins or declares, and whether its text is inline.
fn test_module(line: &str) -> Option<(&str, bool)> {
    let (before, rest) = line.split_once("mod ")?;
    let is_item = before.trim().is_empty() || before.trim_start().starts_with("pub");
    let (name, end) = rest.split_at_checked(rest.find([' ', ';'])?)?;
    (is_item && matches!(end, " {" | ";")).then_some((name, end == " {"))
}

/// The indentation of a line.
pub fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The paths, without `.rs`, of the modules in separate files that `file` declares for tests only.
pub fn test_modules(file: &Source) -> Vec<String> {
    let stem = file.name.trim_end_matches(".rs");
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let folder = if matches!(name, "mod" | "lib" | "main") { folder } else { stem };
    let mut modules = Vec::new();
    let mut is_test = false;
    for line in file.text.lines() {
        if line.trim() == "#[cfg(test)]" {
            is_test = true;
        } else if !line.trim_start().starts_with("#[") {
            if let Some((name, false)) = test_module(line)
                && is_test
            {
                modules.push(format!("{folder}/{name}"));
            }
            is_test = false;
        }
    }
    modules
}

/// Fails with all `broken` rules, if there are any.
pub fn fail(broken: &[String]) {
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn only_inline_test_modules_are_left_out() {
    let text = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\n#[allow(x)]\npub(crate) mod t {\n    \
                std::fs\n    }\n}\nc\n";
    let code: Vec<&str> = code_lines(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(code, ["a", "#[cfg(test)]", "mod tests;", "b", "#[cfg(test)]", "c"]);
    let lines: Vec<usize> = code_lines(text).into_iter().map(|(number, _)| number).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 11]);
}

#[test]
fn test_modules_have_the_paths_of_rust() {
    let text = "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod inline {\n}\nmod b;\n";
    let modules = |name: &str| {
        test_modules(&Source { name: name.to_owned(), text: text.to_owned() }).join(" ")
    };
    assert_eq!(modules("crates/x/src/lib.rs"), "crates/x/src/tests");
    assert_eq!(modules("crates/x/src/y/mod.rs"), "crates/x/src/y/tests");
    assert_eq!(modules("crates/x/src/y.rs"), "crates/x/src/y/tests");
}
