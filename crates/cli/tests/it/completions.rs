//! `prism completions` and `prism man` know every command.

use std::path::Path;
use std::process::Command;

use crate::common::loop_disk::has_program;
use crate::common::{folder, names, quiet, refused};
use prism_testkit::skipped;

fn completions(shell: &str) -> String {
    quiet(&["completions", shell])
}

#[test]
fn completions_name_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let text = completions(shell);
        for word in ["report", "import", "fail-on", "save-state"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    refused(&["completions", "csh"], &["possible values: bash"]);
}

/// bash completes a command and a flag with them.
#[test]
fn bash_completes() {
    if !has_program("bash") {
        return skipped("completions in bash: no bash", "bash");
    }
    let folder = folder();
    let file = folder.path().join("prism");
    std::fs::write(&file, completions("bash")).unwrap();
    let check = |words: &str, expected: &str| {
        let count = words.split(' ').count() - 1;
        let script = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={count}; \
             _prism prism \"${{COMP_WORDS[$COMP_CWORD]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), expected, "{words}");
    };
    check("prism rep", "report reproduce");
    check("prism device im", "import");
    check("prism device import --sc", "--scenario");
}

#[test]
fn there_is_a_page_for_every_command() {
    let page = quiet(&["man"]);
    assert!(page.contains(".TH prism 1"), "{page}");
    let folder = folder();
    let out = folder.path().join("man1");
    assert_eq!(quiet(&["man", "--output", out.to_str().unwrap()]), "");
    let pages = names(&out);
    for name in ["prism", "prism-report", "prism-sim", "prism-device-import", "prism-trace-info"] {
        assert!(pages.contains(&format!("{name}.1")), "{name} is not in {pages:?}");
    }
    let page = std::fs::read_to_string(out.join("prism-device-import.1")).unwrap();
    assert!(page.contains("scenario") && page.contains("Examples"), "{page}");
    if !has_program("man") {
        return skipped("manual pages in man: no man", "man-db");
    }
    let shown = Command::new("man").arg("--warnings").arg(out.join("prism-report.1")).output();
    assert!(String::from_utf8_lossy(&shown.unwrap().stdout).contains("prism report"));
}

/// `make install-cli` puts all of them where shells and `man` look.
#[test]
fn make_installs_pages_and_completions() {
    if !has_program("make") {
        return skipped("the installation of the program", "make");
    }
    let folder = folder();
    let built = Path::new(env!("CARGO_BIN_EXE_prism")).parent().unwrap();
    let mut make = Command::new("make");
    make.arg("-C").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).arg("install-cli");
    make.arg(format!("DESTDIR={}", folder.path().display())).arg("PREFIX=/usr");
    make.arg(format!("CLI_BUILT={}", built.display()));
    // The environment of a make that runs this test must not affect this make.
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        make.env_remove(name);
    }
    let output = make.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in [
        "bin/prism",
        "share/man/man1/prism-report.1",
        "share/bash-completion/completions/prism",
        "share/zsh/site-functions/_prism",
        "share/fish/vendor_completions.d/prism.fish",
        "share/man/man1/prism-cache-serve.1",
        "share/man/man1/prism-cache-top.1",
        "lib/systemd/system/prism-cache.service",
    ] {
        let length = std::fs::metadata(folder.path().join("usr").join(file)).map(|file| file.len());
        assert!(length.is_ok_and(|length| length > 100), "{file}");
    }
    for helper in ["mount.prismfs", "umount.fuse.prismfs"] {
        assert!(folder.path().join("sbin").join(helper).is_file(), "{helper}");
    }
}
