//! Turns two kinds of panics into errors, about which the panic hook prints nothing.
//!
//! The Parquet library checks most of its input and asserts the rest; an assertion is not a
//! helpful message for the owner of a damaged file. And where memory is not enough for the columns
//! of a drive, the user has to ask for a smaller drive, for which a stack trace is no help.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;

use prism_base::OutOfMemory;

use crate::error::HostError;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `run`, or `None` if it panicked. The caller must then discard everything that
/// `run` changed.
#[cfg(any(test, feature = "parquet"))]
pub(crate) fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    set_quiet_hook();
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    result.ok()
}

/// The result of `run`. Every other panic than that of too little memory goes on.
///
/// # Errors
/// [`HostError::Memory`] if memory was not enough for a column. The caller must then discard
/// everything that `run` changed.
pub fn within_memory<T>(run: impl FnOnce() -> T) -> Result<T, HostError> {
    set_quiet_hook();
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<OutOfMemory>() {
        Ok(error) => HostError::Memory { size: error.size },
        Err(other) => resume_unwind(other),
    })
}

/// From now on the panic hook prints nothing about panics that become errors.
fn set_quiet_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() && !info.payload().is::<OutOfMemory>() {
                usual(info);
            }
        }));
    });
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

    #[test]
    fn too_little_memory_becomes_an_error_also_on_another_thread() {
        let size = prism_base::Bytes(5 << 30);
        let job = || -> u8 { std::panic::panic_any(OutOfMemory { size }) };
        let result = within_memory(|| crate::jobs::run_on(2, vec![job; 3], |_| {}));
        let message = result.expect_err("the jobs need memory").to_string();
        assert!(message.starts_with("not enough memory: 5 GiB"), "{message}");
        let other = catch_unwind(|| within_memory(|| -> u8 { resume_unwind(Box::new(7)) }));
        assert_eq!(other.expect_err("it goes on").downcast_ref(), Some(&7));
    }
}
