//! Sets the soname of the shared library, by which the dynamic linker finds it.

#![allow(clippy::print_stdout, reason = "cargo reads directives from stdout")]

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libprism.so.{major}");
}
