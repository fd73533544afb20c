//! Graphs on devices in memory, against published results, naive computations and another library.

mod common;
mod models;
mod published;
