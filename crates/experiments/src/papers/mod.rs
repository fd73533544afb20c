//! Published experiments, repeated on simulated drives and compared with the published numbers.

pub mod atc09;
pub mod contract_micro;
pub mod linkedin;
pub mod prism_ssd;
pub mod sfs;
pub mod unwritten;
