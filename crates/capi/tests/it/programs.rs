//! The programs in C: they compile without warnings, pass their own checks, print what the programs
//! in Rust print, and no tool finds a memory error in them.

use prism_testkit::{all_seeds, skipped};
use std::process::Command;

use crate::c::{self, NAMES, Setting, succeed};

/// The output of the program in Rust, including that of the test harness.
fn output_of_twin(name: &str) -> String {
    let mut this = Command::new(std::env::current_exe().expect("this test"));
    this.args(["--exact", &format!("twin::{name}"), "--nocapture", "--test-threads=1"]);
    succeed(&mut this)
}

#[test]
fn every_program_prints_what_its_rust_version_prints() {
    let setting = Setting::new("shared");
    for name in NAMES {
        let program = setting.compile(name, &[]);
        let said = succeed(&mut Command::new(program));
        let line = said.trim_end();
        assert!(!line.is_empty() && !line.contains('\n'), "{name} says {said:?}");
        // These have no counterpart in Rust.
        let alone = match name {
            "file" => Some("3 pages after three visits, 4 after four"),
            "event_loop" => {
                Some("500 requests were answered by one thread that waits only in epoll")
            }
            "recover" => Some("5 slabs were found after SIGKILL, none older than was reported"),
            "threads" => Some("4 threads with a queue each wrote and read 256 pages"),
            "real_time" => Some(
                "a page was written, read and erased, and 8 were read in a queue, none too early",
            ),
            _ => None,
        };
        if let Some(expected) = alone {
            assert_eq!(line, expected);
            continue;
        }
        let twin = output_of_twin(name);
        assert!(twin.contains(line), "{name} says {line:?}, and in Rust {twin:?}");
    }
}

#[test]
fn no_program_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let entries = std::fs::read_dir(folder).expect("the folder of examples");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    let mut found: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    found.sort();
    let mut expected: Vec<_> = NAMES.iter().map(|name| format!("{name}.c")).collect();
    expected.push("example.h".to_owned());
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn programs_are_linked_with_the_static_library() {
    let setting = Setting::new("static");
    let program = setting.compile_static("kv");
    assert!(succeed(&mut Command::new(program)).contains("sessions"));
}

#[test]
fn programs_run_under_the_address_sanitizer() {
    let setting = Setting::new("asan");
    for name in NAMES {
        let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"];
        succeed(&mut Command::new(setting.compile(name, &flags)));
    }
}

#[test]
fn programs_run_under_valgrind() {
    if !c::has("valgrind") {
        skipped("the C programs under valgrind", "valgrind");
        return;
    }
    let setting = Setting::new("valgrind");
    let check = |name: &str| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
        valgrind.args(["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]);
        succeed(valgrind.arg(setting.compile(name, &["-g"])));
    };
    // Each takes seconds: half of them run on each of two cores, and only two in `make test-fast`.
    let names = if all_seeds() { &NAMES[..] } else { &NAMES[..2] };
    std::thread::scope(|scope| {
        for half in names.chunks(names.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(|name| check(name)));
        }
    });
}

#[test]
fn the_header_compiles_as_cpp() {
    let setting = Setting::new("cpp");
    let program = setting.compile_cpp("kv");
    assert!(succeed(&mut Command::new(program)).contains("sessions"));
}
