//! The integration tests of this crate as one program: a module for each subject.

mod requests_columns;
