//! The integration tests of this crate as one program: a module for each subject.

mod parquet_compression;
mod requests_columns;
