//! The integration tests of this crate as one program: a module for each subject.

mod host_ftl;
mod host_ftl_faults;
mod replay;
