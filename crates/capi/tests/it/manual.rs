//! The program in the manual compiles and runs.

use std::fs;
use std::process::Command;

use crate::c::{self, Setting, succeed};

#[test]
fn the_first_program_runs() {
    let manual = fs::read_to_string(c::source().join("../../docs/c-api.md")).expect("the manual");
    let program = manual.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let setting = Setting::new("manual");
    let program = setting.compile_text("first", program.expect("a program in C"));
    assert_eq!(succeed(&mut Command::new(program)), "");
}
