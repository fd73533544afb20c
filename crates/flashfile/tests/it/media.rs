//! A device in a file keeps the promises of every medium, with each engine.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use prism_flash::{DeviceGeometry, Medium};
use prism_flashfile::{EngineChoice, FlashFile, Settings, SimulatedFile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::conformance::{Candidate, check};

/// Whether the descriptor of a queue becomes readable within so many milliseconds.
pub(crate) fn readable(event: BorrowedFd<'_>, milliseconds: u32) -> bool {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    let timeout = Timespec { tv_sec: seconds.into(), tv_nsec: i64::from(rest) * 1_000_000 };
    loop {
        match poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&timeout)) {
            // A completion of io_uring may interrupt the wait, as a signal does.
            Err(Errno::INTR) => {}
            ready => break ready.expect("a descriptor that is open") > 0,
        }
    }
}

fn check_file(engine: EngineChoice) {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Cell::new(0);
    let make = |geometry: DeviceGeometry| -> Arc<dyn Medium> {
        made.set(made.get() + 1);
        let path = folder.path().join(format!("flash{}", made.get()));
        let settings = Settings { engine, ..Settings::USUAL };
        Arc::new(FlashFile::create_with(&path, geometry, settings).expect("a new file"))
    };
    let name = &format!("a file, {engine:?}");
    check(&Candidate { name, make: &make, readable: &readable, wear_out: None });
}

#[test]
fn a_file_with_the_best_engine_conforms() {
    check_file(EngineChoice::Best);
}

#[test]
fn a_file_with_threads_conforms() {
    check_file(EngineChoice::Portable);
}

#[test]
fn a_simulated_file_conforms() {
    let make = |geometry: DeviceGeometry| -> Arc<dyn Medium> {
        let file = SimulatedFile::new();
        Arc::new(FlashFile::create_simulated(&file, geometry).expect("a new file"))
    };
    let name = "a simulated file";
    check(&Candidate { name, make: &make, readable: &readable, wear_out: None });
}
