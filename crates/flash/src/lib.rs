//! Flash at every level of abstraction: a device shared by applications, each of which
//! chooses how tightly it binds to the flash.

pub mod journal;
