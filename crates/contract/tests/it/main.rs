//! The integration tests of this crate as one program, with a module for each subject.

mod what_if;
mod what_if_plan;
