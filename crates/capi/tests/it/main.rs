//! The integration tests of this crate as one program: a module for each subject.

mod c;
mod ffi_boundary;
mod header;
mod install;
mod manual;
mod programs;
mod queues;
mod twin;
