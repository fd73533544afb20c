//! Graphs on devices in memory, against published results, naive computations and another library.

#[path = "../../examples/reach.rs"]
mod reach;

mod common;
mod formats;
mod hostile;
mod memory;
mod models;
mod on_flash;
mod plain;
mod power;
mod published;
