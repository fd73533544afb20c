//! The allocator of the command: where memory is not enough, one line says so and the exit code is
//! 2, as for other limits that the user can change.
//!
//! Rust's own answer is to abort, with a message that names no remedy. The large columns of a drive
//! are allocated elsewhere, and report their size ([`prism_base::OutOfMemory`]).

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The system's allocator, which ends the process where that has no memory left.
#[derive(Clone, Copy, Debug)]
pub struct OrExit;

// SAFETY: every call goes to the system's allocator with the arguments of the caller, and its
// results are returned unless they are null; then the process ends.
#[allow(unsafe_code, reason = "an allocator cannot be declared without it")]
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        checked(unsafe { System.realloc(at, layout, size) }, size)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

/// `at`, unless it is null.
#[inline]
fn checked(at: *mut u8, size: usize) -> *mut u8 {
    if at.is_null() {
        give_up(size);
    }
    at
}

/// Whether a thread has reported that memory is not enough.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Ends the process without allocating.
#[cold]
fn give_up(size: usize) -> ! {
    if REPORTED.swap(true, Ordering::Relaxed) {
        // Another thread has reported it and ends the process.
        std::thread::sleep(Duration::from_secs(1));
        std::process::exit(2)
    }
    let mut line = [0; 160];
    let mut rest = &mut line[..];
    // The text is shorter than the buffer, and there is no other place to report a failure.
    let _ = writeln!(
        rest,
        "prism: not enough memory for {size} bytes; raise the limit of memory (ulimit -v), or \
         choose a smaller drive (--capacity)"
    );
    let left = rest.len();
    let _ = std::io::stderr().write_all(&line[..line.len() - left]);
    std::process::exit(2)
}
