//! Turns a panic inside a library that was given damaged bytes into an error.
//!
//! The Parquet library checks most of its input and asserts the rest. An assertion is not a
//! helpful message for the owner of a damaged file, so the panic is caught here, and the panic
//! hook prints nothing about it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `run`, or `None` if it panicked. The caller must then discard everything that
/// `run` changed.
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                usual(info);
            }
        }));
    });
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_nothing() {
        assert_eq!(guarded(|| 5), Some(5));
        assert_eq!(guarded(|| -> u8 { panic!("kept back") }), None);
        assert!(!GUARDED.get());
    }
}
