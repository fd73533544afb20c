//! `run-test.sh`, with which `make test` runs test programs.

use std::process::Command;

/// Runs `script` with a limit of one second.
fn run(script: &str) -> std::process::Output {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/run-test.sh"));
    command.args(["sh", "-c", script]).env("PRISM_TEST_LIMIT", "1");
    command.output().expect("a shell")
}

#[test]
fn a_program_ends_as_it_would_alone() {
    let output = run("echo out; exit 3");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"out\n"[..]));
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_program_that_hangs_is_described_and_ended_with_its_children() {
    let output = run("sleep 1234; true");
    assert_eq!(output.status.code(), None, "a signal ends it");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("ran for 1 seconds"), "{text}");
    assert!(text.contains("sleep 1234"), "{text}");
}
