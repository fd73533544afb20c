//! The integration tests of this crate as one program: a module for each subject.

#[path = "../../../flash/tests/it/conformance/mod.rs"]
mod conformance;
mod damage;
mod full_disk;
mod headers;
mod journal;
mod levels;
mod media;
mod model;
mod older;
mod power;
mod queued_syncs;
mod runs;
mod threads;
mod wear;
