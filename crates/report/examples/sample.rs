//! Writes a sample report to standard output: `sample [html|text|ascii|json]`.

#[path = "../tests/it/sample/mod.rs"]
mod sample;

use prism_report::{Style, html, json, terminal};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let document = sample::document();
    let text = match std::env::args().nth(1).as_deref() {
        Some("text") => terminal::render(&document, 100, Style::RICH),
        Some("ascii") => terminal::render(&document, 80, Style::PLAIN),
        Some("json") => format!("{:#}\n", json::document(&document)),
        None | Some("html") => html::render(&document),
        Some(_) => {
            return Err(std::io::Error::other("usage: sample [html|text|ascii|json]"));
        }
    };
    std::io::stdout().write_all(text.as_bytes())
}
