//! Tests of the cache on devices in memory.

mod basic;
mod commands;
mod common;
mod disk;
#[path = "../../examples/embedded.rs"]
mod embedded;
mod faults;
mod handles;
mod late;
mod model;
mod opening;
mod power;
mod protocol;
mod space;
mod stats;
mod strict;

#[test]
fn the_example_of_embedding_passes_its_own_checks() -> Result<(), Box<dyn std::error::Error>> {
    embedded::main()
}
