//! Tests of the cache on devices in memory.

mod basic;
mod commands;
mod common;
mod disk;
mod late;
mod model;
mod power;
mod protocol;
mod space;
mod stats;
mod strict;
