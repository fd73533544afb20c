//! Writes a sample report to standard output: `sample [html|text|ascii]`.

#[path = "../tests/it/sample/mod.rs"]
mod sample;

use prism_report::{Style, html, terminal};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let document = sample::document();
    let text = match std::env::args().nth(1).as_deref() {
        Some("text") => terminal::render(&document, 100, Style::RICH),
        Some("ascii") => terminal::render(&document, 80, Style::PLAIN),
        None | Some("html") => html::render(&document),
        Some(_) => {
            return Err(std::io::Error::other("usage: sample [html|text|ascii]"));
        }
    };
    std::io::stdout().write_all(text.as_bytes())
}
