//! The tree keeps its own rules: which crate may depend on which, what pure crates must not
//! use, how long files, functions and lines may be, and which words are not written.
//!
//! A broken rule is named with file and line. The rules and their reasons are in
//! ARCHITECTURE.md and CONTRIBUTING.md. Each check is a function of a file's name and text,
//! so that a test beside it can show that it fails where it has to.

mod arrows;
mod flash;
mod lengths;
mod purity;
mod source;
mod vocabulary;
