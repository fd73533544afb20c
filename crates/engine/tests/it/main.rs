//! The integration tests of this crate as one program: a module for each subject.

mod bytes;
mod common;
mod faults;
mod faults_log_blocks;
mod hybrid;
mod life_in_a_cache;
mod life_of_a_write;
mod log_blocks;
mod power;
mod timeline;
