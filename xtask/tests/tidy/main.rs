//! Checks the rules of the source tree: dependencies between crates, what pure crates must not use,
//! lengths of files, functions and lines, and refused words.
//!
//! A violation is reported with file and line. The rules and their reasons are in ARCHITECTURE.md
//! and CONTRIBUTING.md. Each check is a function of a file's name and text, so that a test next to
//! it can show that it detects violations.

mod arrows;
mod flash;
mod lengths;
mod purity;
mod runner;
mod source;
mod vocabulary;
