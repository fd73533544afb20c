//! The integration tests of this crate as one program: a module for each subject.

mod ages;
mod ages_tiers;
mod ages_zones;
mod channels;
mod closed_forms;
mod common;
mod defects;
mod device_file;
mod faults;
mod faults_and_power;
mod faults_tiers;
mod faults_zones;
mod life_of_a_write;
mod link;
mod model;
mod placement;
mod policies;
mod power_loss;
mod presets;
mod saved_states;
mod tiers;
mod timing;
mod wordlines;
mod zones;
mod zones_power;
