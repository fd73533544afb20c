//! Gives the shared library its soname, by which programs find it when they start.

#![allow(clippy::print_stdout, reason = "it is how cargo is told")]

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libprism.so.{major}");
}
