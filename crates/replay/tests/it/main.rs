//! The integration tests of this crate as one program: a module for each subject.

mod host_log;
mod host_log_faults;
mod replay;
