//! What the operator reads on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// With `-v`: errors.
pub const ERRORS: u32 = 1;
/// With `-vv`: the coming and going of clients too.
pub const CLIENTS: u32 = 2;

/// Writes a line.
pub fn line(text: Arguments<'_>) {
    // One write, so that lines of several processes do not mix. A failure is no reason not to
    // serve.
    let _ = std::io::stderr().write_all(format!("prism: {text}\n").as_bytes());
}
