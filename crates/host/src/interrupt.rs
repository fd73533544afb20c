//! Ctrl-C: unfinished outputs are removed, changes to the system (mounts, devices) are undone,
//! and the process ends with the exit code of an interrupted command.
//!
//! A thread waits for the signal and ends the process itself. No other code has to poll a flag,
//! so a read that blocks on an idle pipe, or an hour of simulation, stops at once. Two lists
//! hold the names of unfinished outputs and the actions that undo changes. The locks on both
//! lists are held while the process ends, so nothing new can be added after that.
//!
//! Work that can end cleanly at any time (a capture) handles the first signal itself: the
//! signal then only sets a flag, and the next one ends the process.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Shells report a command ended by signal `n` as 128 + `n`: 130 for Ctrl-C.
const SIGNAL_BASE: i32 = 128;

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

static SOFT: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

type Action = Box<dyn FnOnce() + Send>;

/// The actions that undo changes, each with its number, the newest last.
static UNDO: Mutex<Vec<(u64, Action)>> = Mutex::new(Vec::new());

/// The number of the next action.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// From now on SIGINT (Ctrl-C) and SIGTERM remove unfinished outputs and end the process with
/// code 130 and 143.
///
/// # Errors
/// If the signal handlers cannot be installed.
pub fn install() -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("interrupt".into()).spawn(move || {
        for signal in signals.forever() {
            if let Some(flag) = soft().take() {
                flag.store(true, Ordering::Release);
                continue;
            }
            // A change may depend on earlier ones, so the newest is undone first.
            let mut undo = actions();
            for (_, action) in undo.drain(..).rev() {
                action();
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

/// While this value exists, the first signal only sets a flag; the second one ends the process
/// as usual.
#[derive(Debug)]
#[must_use = "signals end the process as soon as it is dropped"]
pub struct SoftStop(Arc<AtomicBool>);

impl SoftStop {
    /// Starts to handle the first signal.
    pub fn begin() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        *soft() = Some(Arc::clone(&flag));
        Self(flag)
    }

    /// Whether a signal has arrived.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for SoftStop {
    fn drop(&mut self) {
        *soft() = None;
    }
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

/// Runs `end`, which finishes or removes the file at `path`, and removes the file from the
/// list.
pub(crate) fn finish_noted<T>(path: &Path, end: impl FnOnce() -> T) -> T {
    let mut unfinished = list();
    let result = end();
    unfinished.retain(|other| other != path);
    result
}

/// A change to the system that must not outlive the process: a mount, a device, a child
/// process. It is undone when this is dropped, or when a signal ends the process.
#[derive(Debug)]
#[must_use = "it is undone at once"]
pub struct Undo(u64);

impl Undo {
    /// Makes a change with `make`, which returns the action that undoes it. A signal is handled
    /// either before or after both.
    ///
    /// # Errors
    /// The error of `make`; then there is nothing to undo.
    pub fn of<A, E>(make: impl FnOnce() -> Result<A, E>) -> Result<Self, E>
    where
        A: FnOnce() + Send + 'static,
    {
        let mut undo = actions();
        let action = make()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        undo.push((number, Box::new(action)));
        Ok(Self(number))
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let mut undo = actions();
        if let Some(place) = undo.iter().position(|(number, _)| *number == self.0) {
            let (_, action) = undo.remove(place);
            action();
        }
    }
}

/// A temporary file of this process: it is removed when this is dropped, or when a signal ends
/// the process. It need not exist yet.
#[derive(Debug)]
#[must_use = "the file is removed at once"]
pub struct Scratch(#[allow(dead_code, reason = "it removes the file when it goes")] Undo);

impl Scratch {
    /// The file at `path`, which the caller creates.
    pub fn at(path: &Path) -> Self {
        let path = path.to_owned();
        let remove = move || {
            // It may never have been made.
            let _ = std::fs::remove_file(&path);
        };
        let Ok(undo) = Undo::of(|| Ok::<_, Infallible>(remove));
        Self(undo)
    }
}

fn actions() -> MutexGuard<'static, Vec<(u64, Action)>> {
    UNDO.lock().unwrap_or_else(PoisonError::into_inner)
}

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    // A list of names stays meaningful when a thread panics between two changes.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_done_is_undone_once_and_what_failed_is_not() {
        let count = Arc::new(AtomicU64::new(0));
        let counted = |by: u64| {
            let count = count.clone();
            Undo::of(move || {
                Ok::<_, ()>(move || {
                    count.fetch_add(by, Ordering::Relaxed);
                })
            })
        };
        let (one, ten) = (counted(1).unwrap(), counted(10).unwrap());
        drop(one);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(ten);
        assert_eq!(count.load(Ordering::Relaxed), 11);
        let failed =
            Undo::of(|| if count.load(Ordering::Relaxed) == 0 { Ok(|| ()) } else { Err(5) });
        assert_eq!(failed.unwrap_err(), 5);
    }
}
