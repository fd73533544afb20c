//! The vertical experiment: real applications on real file systems, and what reaches the
//! device.
//!
//! Each combination gets a sparse file behind a loop device, a fresh file system and a memory
//! cgroup; a child process is the application; the requests of the device are captured with
//! the phases of the experiment. How much is done is a function of the size and the seed
//! ([`amounts`], [`keys`], [`mail`]), never of time. Whatever happens, nothing stays behind:
//! what is made is undone when it is dropped or a signal comes, and what a killed run leaves
//! is removed by the next one ([`leftovers`]).

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
mod sqlite;
mod worker;

use std::thread;
use std::time::Duration;

pub use cgroup::MemoryCgroups;
pub use error::StackError;
pub use experiment::{Experiment, ExperimentSpec, PHASES, Recorded, check};
pub use kinds::{App, Combination, FileSystem, Io, Named, Pattern};
pub use leftovers::{Leftovers, remove_leftovers};
pub use worker::{Step, WorkerSpec, work};

/// What is still in use is asked for so often...
const TRIES: u32 = 40;

/// ... with so long in between: two seconds in all, after which it will not come free soon.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `done` until it is true, but not for long; the last answer.
fn again(mut done: impl FnMut() -> bool) -> bool {
    for _ in 1..TRIES {
        if done() {
            return true;
        }
        thread::sleep(PAUSE);
    }
    done()
}
