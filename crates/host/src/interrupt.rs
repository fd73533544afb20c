//! Ctrl-C: unfinished outputs are removed, what was done to the system is undone, and the
//! process ends with the code that a shell gives to an interrupted command.
//!
//! A thread waits for the signal and ends the process itself. Nothing else has to poll
//! a flag, so a read that blocks on an idle pipe, or an hour of simulation, stops at
//! once. Unfinished outputs are known here by name, and what is to be undone by an action;
//! the locks on both lists are held while the process ends, so nothing new can appear after
//! they are removed.
//!
//! Work that has a good end at any time (a capture) asks for the first signal itself:
//! then a flag is raised instead, and the next signal ends the process.

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

/// What is to be undone, with its number, the newest last.
static UNDO: Mutex<Vec<(u64, Action)>> = Mutex::new(Vec::new());

/// The number of the next one.
static NEXT: AtomicU64 = AtomicU64::new(0);

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
            // The newest stands on what was there before it.
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

/// While this is there, the first signal raises a flag and ends nothing; the one after it ends
/// the process as always.
#[derive(Debug)]
#[must_use = "signals end the process as soon as it is dropped"]
pub struct SoftStop(Arc<AtomicBool>);

impl SoftStop {
    /// From now on.
    pub fn begin() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        *soft() = Some(Arc::clone(&flag));
        Self(flag)
    }

    /// Whether a signal came.
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

/// Runs `end`, which finishes or removes the file at `path`, and forgets the file.
pub(crate) fn finish_noted<T>(path: &Path, end: impl FnOnce() -> T) -> T {
    let mut unfinished = list();
    let result = end();
    unfinished.retain(|other| other != path);
    result
}

/// Something that was done to the system and must not outlive the process: a mount, a device, a
/// child. It is undone when this is dropped, or when a signal ends the process.
#[derive(Debug)]
#[must_use = "it is undone at once"]
pub struct Undo(u64);

impl Undo {
    /// Does something by `make`, which returns how it is undone. A signal comes either before or
    /// after it.
    ///
    /// # Errors
    /// That of `make`; then there is nothing to undo.
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

/// A file that serves this process alone: it is removed when this is dropped, or when a signal
/// ends the process. It need not be there.
#[derive(Debug)]
#[must_use = "the file is removed at once"]
pub struct Scratch(#[allow(dead_code, reason = "it removes the file when it goes")] Undo);

impl Scratch {
    /// The file at `path`, made by whoever writes to it.
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
