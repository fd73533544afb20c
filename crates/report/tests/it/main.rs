//! The integration tests of this crate as one program: a module for each subject.

mod accumulators;
mod browser;
mod render;
mod sample;
