//! Reports of what was not tested.

use std::fs::File;
use std::io::Write;

/// Reports that `what` is not tested on this machine, and which Debian package is missing; the
/// package is empty if none would help. The line goes to standard error past the test runner,
/// which keeps what a passing test prints, and `make test` repeats it at the end.
///
/// # Panics
/// If the line cannot be written.
pub fn skipped(what: &str, package: &str) {
    let line = line(what, package);
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    if let Some(list) = std::env::var_os("PRISM_SKIPPED") {
        let file = File::options().create(true).append(true).open(list);
        // One write, so that lines of several tests do not mix.
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("PRISM_SKIPPED is a file");
    }
}

fn line(what: &str, package: &str) -> String {
    // Messages of other programs may have several lines.
    let what = what.trim().replace('\n', " ");
    match package {
        "" => format!("SKIPPED: {what}\n"),
        package => format!("SKIPPED: {what}; install the Debian package {package}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_line() {
        assert_eq!(line("a\nb\n", ""), "SKIPPED: a b\n");
        assert_eq!(line("x", "fio"), "SKIPPED: x; install the Debian package fio\n");
    }
}
