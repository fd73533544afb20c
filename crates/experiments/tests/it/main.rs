//! The integration tests of this crate as one program: a module for each subject.

mod atc09;
mod contract_micro;
mod defects;
mod jobs_on_devices;
mod levels;
mod life_of_a_write;
mod linkedin;
mod oracles;
mod prism_ssd;
mod sfs;
mod theory;
mod unwritten;
