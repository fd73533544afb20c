//! The integration tests of this crate as one program: a module for each subject.

mod common;
mod fio;
mod fio_any_jobs;
mod fio_bad_input;
mod fio_options;
mod fio_placement;
mod fio_zbd;
mod power_cut;
