//! The README shows the real output of the command, and the presets page names every preset.

use std::path::Path;

use crate::common::{FIRST, whole_report};
use prism_ssd::DriveSpec;

/// A line in the README in place of lines that are left out.
const CUT: &str = "[...]";

/// The first place at or after `from` where `piece` occurs in `printed` as it is.
fn find(printed: &[&str], piece: &[&str], from: usize) -> Option<usize> {
    let rest = &printed[from..];
    rest.windows(piece.len()).position(|lines| lines == piece).map(|at| from + at)
}

#[test]
fn the_readme_shows_the_beginning_of_the_real_report() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(
        readme.contains(&format!("cargo run --release --no-default-features -- report {FIRST}"))
    );
    let block = readme.split("```text\n").nth(1).expect("a block of output");
    let shown: Vec<_> = block.split("```").next().unwrap().lines().collect();
    assert!(shown.len() >= 20 && shown[0] != CUT, "too little of the output: {shown:#?}");

    let (output, _) = whole_report();
    let printed: Vec<_> = output.lines().collect();

    // The first piece is the beginning; each later one follows where the README cuts lines out.
    let mut after = 0;
    for (number, piece) in shown.split(|&line| line == CUT).enumerate() {
        if piece.is_empty() {
            continue; // the output continues after the last piece
        }
        let at = find(&printed, piece, after);
        let at = at.unwrap_or_else(|| panic!("README.md is out of date: {piece:#?}\n{output}"));
        assert!(number > 0 || at == 0, "README.md does not show the beginning: {piece:#?}");
        after = at + piece.len();
    }
}

#[test]
fn the_presets_page_names_every_preset() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/presets.md");
    let text = std::fs::read_to_string(page).unwrap();
    for name in DriveSpec::preset_names().chain(DriveSpec::zoned_preset_names()) {
        assert!(text.contains(&format!("| `{name}` |")), "docs/presets.md lacks {name}");
    }
}
