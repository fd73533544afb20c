//! The integration tests of this crate as one program: a module for each subject.

mod app_fs;
mod blk_tracer;
mod blktrace;
mod common;
mod data_sets;
mod data_sets_fuzz;
mod event_formats;
mod fs_layout;
mod fuzz;
mod line_formats_fuzz;
mod live;
mod nvme;
mod pitfalls;
mod ring;
mod text;
mod tools;
