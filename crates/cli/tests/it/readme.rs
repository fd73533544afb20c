//! What the README shows is what the command prints.

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_the_beginning_of_the_real_report() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let start = readme.find("```text\n").expect("a block of output") + "```text\n".len();
    let end = start + readme[start..].find("[...]").expect("the block is cut");
    let shown = &readme[start..end];
    assert!(
        shown.lines().count() > 20 && readme.contains("cargo run --release -- report samples/")
    );
    let output = Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["report", "samples/ext4-sqlite-wal.ftrace.zst"])
        .current_dir(root)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: String =
        printed.lines().take(shown.lines().count()).flat_map(|l| [l, "\n"]).collect();
    assert_eq!(printed, shown, "README.md is out of date");
}

#[test]
fn readme_and_presets_page_name_every_preset() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["README.md", "docs/presets.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for name in prism_ssd::Device::preset_names() {
            assert!(text.contains(&format!("`{name}`")), "{page} lacks {name}");
        }
    }
}
