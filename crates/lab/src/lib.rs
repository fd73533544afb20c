//! Experiments with real applications on real file systems, and the requests that reach the
//! device.
//!
//! Each combination gets a sparse file behind a loop device, a fresh file system and a memory
//! cgroup. A child process runs the application, and the requests to the device are captured with
//! the phases of the experiment. The work is a function of the size and the seed ([`amounts`],
//! [`keys`], [`mail`]), never of time. Devices, mounts, folders and cgroups are removed when they
//! are dropped or a signal arrives; the next run removes those of a killed run ([`leftovers`]).

pub mod amounts;
mod cgroup;
mod child;
mod disk;
mod error;
mod experiment;
mod ioctls;
pub mod keys;
mod kinds;
mod leftovers;
mod library;
mod lsm;
pub mod mail;
mod overwrite;
mod sqlite;
mod worker;

use std::thread;
use std::time::Duration;

pub use cgroup::MemoryCgroups;
pub use error::StackError;
pub use experiment::{
    Experiment, ExperimentSpec, PHASES, REMOVE_PHASE, Recorded, check, read_phase,
};
pub use kinds::{App, Combination, FileSystem, INSTANCES_MAX, Io, Pattern};
pub use leftovers::{Leftovers, remove_leftovers};
pub use worker::{Step, WorkerSpec, work};

/// Most attempts to release something that is in use.
const TRIES: u32 = 40;

/// Time between two attempts; all take two seconds.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `done` until it returns true, at most [`TRIES`] times. Returns the last result.
fn retry(mut done: impl FnMut() -> bool) -> bool {
    for _ in 1..TRIES {
        if done() {
            return true;
        }
        thread::sleep(PAUSE);
    }
    done()
}
