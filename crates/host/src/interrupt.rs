//! Ctrl-C: unfinished outputs are removed, and the process ends with the code that a
//! shell gives to an interrupted command.
//!
//! A thread waits for the signal and ends the process itself. Nothing else has to poll
//! a flag, so a read that blocks on an idle pipe, or an hour of simulation, stops at
//! once. Unfinished outputs are known here by name; the lock on the list is held while
//! the process ends, so no new one can appear after they are removed.
//!
//! Work that has a good end at any time (a capture) asks for the first signal itself:
//! then a flag is raised instead, and the next signal ends the process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Shells report a command ended by signal `n` as 128 + `n`: 130 for Ctrl-C.
const SIGNAL_BASE: i32 = 128;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

static SOFT: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// From now on Ctrl-C and a polite kill remove unfinished outputs and end the process
/// with code 130 (143 for the latter).
///
/// # Errors
/// If the system refuses to watch signals.
pub fn install() -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("interrupt".into()).spawn(move || {
        for signal in signals.forever() {
            if let Some(flag) = soft().take() {
                flag.store(true, Ordering::Release);
                continue;
            }
            let unfinished = list();
            for path in unfinished.iter() {
                // It may be gone already; the process ends either way.
                let _ = std::fs::remove_file(path);
            }
            std::process::exit(SIGNAL_BASE + signal);
        }
    })?;
    Ok(())
}

/// The next signal raises the flag that this gives, and ends nothing; the one after it ends
/// the process as always.
#[must_use]
pub fn stop_softly() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    *soft() = Some(Arc::clone(&flag));
    flag
}

fn soft() -> MutexGuard<'static, Option<Arc<AtomicBool>>> {
    SOFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the file that `create` makes as unfinished, so that an interrupt removes it.
/// The list is locked while it is made: an interrupt comes either before or after.
pub(crate) fn create_noted<T>(
    create: impl FnOnce() -> std::io::Result<T>,
    path: impl FnOnce(&T) -> PathBuf,
) -> std::io::Result<T> {
    let mut unfinished = list();
    let made = create()?;
    unfinished.push(path(&made));
    Ok(made)
}

/// Runs `end`, which finishes or removes the file at `path`, and forgets the file.
pub(crate) fn finish_noted<T>(path: &Path, end: impl FnOnce() -> T) -> T {
    let mut unfinished = list();
    let result = end();
    unfinished.retain(|other| other != path);
    result
}

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of names stays meaningful when a thread panics between two changes.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
