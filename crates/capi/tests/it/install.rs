//! `make install` installs all that a program needs to compile and run.

use prism_testkit::skipped;
use std::fs;
use std::process::Command;

use crate::c::{self, built, source, succeed};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn a_program_is_built_with_the_installed_library() {
    if !c::has("make") {
        skipped("the installation of the C library", "make");
        return;
    }
    let folder = tempfile::tempdir().expect("room for an installation");
    let root = folder.path().join("stage");
    let mut make = Command::new("make");
    // The libraries of this test, so that none is built.
    make.arg("-C").arg(source().join("../..")).arg("install").arg("PREFIX=/opt/prism");
    make.arg(format!("DESTDIR={}", root.display()));
    make.arg(format!("CAPI_BUILT={}", built().display()));
    // The environment of a make that runs this test must not affect this make.
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        make.env_remove(name);
    }
    succeed(&mut make);

    let prefix = root.join("opt/prism");
    let expected = [
        "include/prism.h",
        "lib/libprism.a",
        "lib/pkgconfig/prism.pc",
        "share/man/man3/prism.3",
        "share/doc/prism/c-api.md",
        &format!("lib/libprism.so.{VERSION}"),
    ];
    for file in expected {
        let length = fs::metadata(prefix.join(file)).map(|found| found.len()).ok();
        assert!(length.is_some_and(|length| length > 0), "{file}: {length:?}");
    }
    let page = fs::read_to_string(prefix.join("share/man/man3/prism.3")).expect("the page");
    assert!(page.starts_with(&format!(".TH PRISM 3 \"\" \"Prism {VERSION}\"")), "{page}");
    let link = |name: &str| fs::read_link(prefix.join("lib").join(name)).expect("a link");
    let soname = format!("libprism.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    assert_eq!(link("libprism.so").to_str(), Some(&*soname));
    assert_eq!(link(&soname).to_str(), Some(&*format!("libprism.so.{VERSION}")));

    if !c::has("pkg-config") {
        skipped("a C program built through pkg-config", "pkg-config");
        return;
    }
    let mut config = Command::new("pkg-config");
    config.args(["--cflags", "--libs", "prism"]).env("PKG_CONFIG_SYSROOT_DIR", &root);
    config.env("PKG_CONFIG_LIBDIR", prefix.join("lib/pkgconfig"));
    let flags = succeed(&mut config);
    let program = folder.path().join("kv");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-o"]).arg(&program).arg(source().join("examples/kv.c"));
    succeed(compiler.args(flags.split_whitespace()));
    let said = succeed(Command::new(program).env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert!(said.contains("sessions"), "{said}");
}
