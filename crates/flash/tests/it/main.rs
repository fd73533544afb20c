//! The integration tests of this crate as one program: a module for each subject.

mod address;
mod conformance;
mod function;
mod function_oob;
mod function_queue;
mod function_wear;
mod journal;
mod kv;
mod media;
mod monitor;
mod object;
mod policy;
mod policy_block;
mod policy_queue;
mod raw;
mod raw_queue;
mod raw_timed;
mod real_time;
mod tables_damage;
mod threads;
mod vectored;
mod wrapped;
