//! The integration tests of this crate as one program: a module for each subject.

mod border;
mod c;
mod header;
mod install;
mod manual;
mod programs;
mod twin;
