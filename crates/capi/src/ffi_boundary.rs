//! The FFI boundary, which every call crosses: catches panics, converts pointers to references, and
//! converts structures of other versions to those of this one.
//!
//! Each unsafe block relies on the contract stated in the header: a pointer is null or points to an
//! object of the type and length that the call describes, and no other thread writes to it during
//! the call.

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::status::{Failure, Status, note};

/// Runs a call; returns its result, or the status of its failure, whose message is stored.
pub(crate) fn call(work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    run(work).unwrap_or_else(|status| status as c_int)
}

/// Runs a call that returns 0, or the status of its failure.
pub(crate) fn done(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    call(|| work().map(|()| 0))
}

/// As [`done`], and writes the result to `to`.
///
/// # Safety
/// As [`Out::new`].
pub(crate) unsafe fn put<T>(
    to: *mut T,
    what: &str,
    work: impl FnOnce() -> Result<T, Failure>,
) -> c_int {
    // SAFETY: this function has the same contract.
    done(|| unsafe { Out::new(to, what) }.and_then(|out| work().map(|value| out.put(value))))
}

/// As [`put`], for a structure.
///
/// # Safety
/// As [`OutStruct::new`].
pub(crate) unsafe fn put_struct<T: Versioned>(
    to: *mut T,
    work: impl FnOnce() -> Result<T, Failure>,
) -> c_int {
    // SAFETY: this function has the same contract.
    done(|| unsafe { OutStruct::new(to) }.and_then(|out| work().map(|value| out.put(value))))
}

/// Runs a call that returns a pointer: NULL if it fails.
pub(crate) fn call_for_pointer<T>(work: impl FnOnce() -> Result<*mut T, Failure>) -> *mut T {
    run(work).unwrap_or(std::ptr::null_mut())
}

fn run<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Status> {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(Status::PRISM_EPANIC, said(&*panic)),
    };
    note(&failure.message);
    Err(failure.status)
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a bug of the library: {}", text.unwrap_or("it panicked"))
}

/// Converts a count to the result of a call.
pub(crate) fn number(count: impl TryInto<c_int>) -> Result<c_int, Failure> {
    let what = "the result is larger than an int";
    count.try_into().map_err(|_| Failure::new(Status::PRISM_EOTHER, what))
}

/// Locks a mutex, even if another call has panicked: its content is never left inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    if !pointer.is_aligned() {
        let what = format!("{what} is not aligned: it has to be a multiple of its type's size");
        return Err(Failure::argument(what));
    }
    Ok(())
}

/// An output parameter.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// `to` is null or points to memory for a `T` until this is dropped.
    pub(crate) unsafe fn new(to: *mut T, what: &str) -> Result<Self, Failure> {
        check(to, what)?;
        Ok(Self(to))
    }

    /// As [`Out::new`]; `None` for NULL, with which the caller says that it does not want the
    /// value.
    ///
    /// # Safety
    /// As [`Out::new`].
    pub(crate) unsafe fn if_any(to: *mut T, what: &str) -> Result<Option<Self>, Failure> {
        // SAFETY: this function has the same contract.
        if to.is_null() { Ok(None) } else { unsafe { Self::new(to, what) }.map(Some) }
    }

    pub(crate) fn put(&self, value: T) {
        // SAFETY: `new` requires valid memory, and the pointer is aligned.
        unsafe { self.0.write(value) }
    }
}

impl<H> Out<*mut H> {
    /// An output parameter for a handle, which is NULL until there is one.
    ///
    /// # Safety
    /// As [`Out::new`].
    pub(crate) unsafe fn handle(to: *mut *mut H) -> Result<Self, Failure> {
        // SAFETY: this function has the same contract.
        let out = unsafe { Self::new(to, "the pointer to the handle") }?;
        out.put(std::ptr::null_mut());
        Ok(out)
    }
}

fn check_slice<T>(pointer: *const T, count: usize, what: &str) -> Result<(), Failure> {
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("{what}: no memory has room for {count}")));
    }
    if count > 0 { check(pointer, what) } else { Ok(()) }
}

/// `count` values of the caller; may be NULL if there are none.
///
/// # Safety
/// `from` is null or points to `count` values for as long as `'a`.
pub(crate) unsafe fn slice<'a, T>(
    from: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    check_slice(from, count, what)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: it is not null, misaligned or too long, and the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

/// A buffer of the caller for `count` values; may be NULL if there are none.
///
/// # Safety
/// As [`slice`], and no other reference to the buffer exists.
pub(crate) unsafe fn slice_mut<'a, T>(
    to: *mut T,
    count: usize,
    what: &str,
) -> Result<&'a mut [T], Failure> {
    check_slice(to, count, what)?;
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: it is not null, misaligned or too long, and the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(to, count) })
}

/// Bytes that a call reads.
///
/// # Safety
/// As [`slice`].
pub(crate) unsafe fn bytes<'a>(from: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: this function has the same contract.
    unsafe { slice(from.cast(), len, "the data") }
}

/// Bytes that a call writes.
///
/// # Safety
/// As [`slice_mut`].
pub(crate) unsafe fn bytes_mut<'a>(to: *mut c_void, len: usize) -> Result<&'a mut [u8], Failure> {
    // SAFETY: this function has the same contract.
    unsafe { slice_mut(to.cast(), len, "the room for data") }
}

/// Checks a length before any access or allocation.
pub(crate) fn at_most(len: usize, most: u64, what: &str) -> Result<(), Failure> {
    if len as u64 <= most {
        return Ok(());
    }
    let what = format!("{what} has {most} bytes at most, not {len}");
    Err(Failure::new(Status::PRISM_ERANGE, what))
}

/// A C string.
///
/// # Safety
/// `from` is null or points to a zero-terminated string, for as long as `'a`.
pub(crate) unsafe fn text<'a>(from: *const c_char, what: &str) -> Result<&'a str, Failure> {
    check(from, what)?;
    // SAFETY: it is not null, and the caller guarantees the terminating zero.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// Copies a text and a terminating zero into a buffer of the caller, truncated if necessary.
/// Returns the length of the text.
pub(crate) fn put_text(text: &str, room: &mut [u8]) -> Result<c_int, Failure> {
    if let Some(most) = room.len().checked_sub(1) {
        let len = text.len().min(most);
        room[..len].copy_from_slice(&text.as_bytes()[..len]);
        room[len] = 0;
    }
    number(text.len())
}

/// A structure that begins with its size, so that it can grow at its end: a program built with an
/// older header passes a shorter one, whose missing fields are zero, and zero means the behaviour
/// before the field was added.
///
/// # Safety
/// The type is `repr(C)`, begins with `size: usize`, has no padding, and every bit pattern is
/// valid.
pub(crate) unsafe trait Versioned: Copy {
    /// Bytes of the first version.
    const FIRST: usize;
    const NAME: &'static str;
}

/// A size above this was not initialised.
const SIZE_MAX: usize = 4096;

fn check_size<T: Versioned>(size: usize) -> Result<(), Failure> {
    if (T::FIRST..=SIZE_MAX).contains(&size) {
        return Ok(());
    }
    let (name, first) = (T::NAME, T::FIRST);
    Err(Failure::argument(format!(
        "the size of a {name} is {size}, and at least {first}: set it to sizeof({name})"
    )))
}

/// Reads a structure of any version.
///
/// # Safety
/// `from` is null or points to a structure of the size in its first field.
pub(crate) unsafe fn read<T: Versioned>(from: *const T) -> Result<T, Failure> {
    check(from, T::NAME)?;
    // SAFETY: the structure begins with its size, and the caller guarantees the pointer.
    let size = unsafe { from.cast::<usize>().read() };
    check_size::<T>(size)?;
    // SAFETY: the caller guarantees this size.
    let given = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
    let known = size.min(size_of::<T>());
    if given[known..].iter().any(|&byte| byte != 0) {
        let name = T::NAME;
        return Err(Failure::argument(format!(
            "the {name} uses fields that this version of the library does not know: \
             install a newer one"
        )));
    }
    // SAFETY: all zeros is a valid value of every such type.
    let mut value: T = unsafe { std::mem::zeroed() };
    // SAFETY: `known` bytes are within both, and every bit pattern is valid.
    unsafe {
        std::ptr::copy_nonoverlapping(given.as_ptr(), (&raw mut value).cast(), known);
    }
    Ok(value)
}

/// As [`read`]; NULL is no structure.
///
/// # Safety
/// As [`read`].
pub(crate) unsafe fn read_if_any<T: Versioned>(from: *const T) -> Result<Option<T>, Failure> {
    // SAFETY: this function has the same contract.
    if from.is_null() { Ok(None) } else { unsafe { read(from) }.map(Some) }
}

/// An output structure of any version.
pub(crate) struct OutStruct<T> {
    to: *mut T,
    size: usize,
}

impl<T: Versioned> OutStruct<T> {
    /// # Safety
    /// `to` is null or points to a structure of the size in its first field, until this is dropped.
    pub(crate) unsafe fn new(to: *mut T) -> Result<Self, Failure> {
        check(to, T::NAME)?;
        // SAFETY: the structure begins with its size, and the caller guarantees the pointer.
        let size = unsafe { to.cast::<usize>().read() };
        check_size::<T>(size)?;
        Ok(Self { to, size })
    }

    /// Fills in the fields that the caller's version has; fields that only that version has become
    /// zero.
    pub(crate) fn put(&self, value: T) {
        let known = self.size.min(size_of::<T>());
        let head = size_of::<usize>();
        let to = self.to.cast::<u8>();
        // SAFETY: the destination has `size` bytes, the value at least `known`, and they do not
        // overlap. The size field is not overwritten.
        unsafe {
            let from = (&raw const value).cast::<u8>();
            std::ptr::copy_nonoverlapping(from.add(head), to.add(head), known - head);
            to.add(known).write_bytes(0, self.size - known);
        }
    }
}

/// Implements [`Versioned`] for structures in their first version, or for one that has grown, with
/// the bytes of its first version.
macro_rules! sized {
    ($($name:ident),* $(,)?) => {$(sized!($name from size_of::<$name>());)*};
    ($name:ident from $first:expr) => {
        // SAFETY: the structures of this crate consist of numbers, and a test checks that they have
        // no padding.
        unsafe impl $crate::ffi_boundary::Versioned for $name {
            const FIRST: usize = $first;
            const NAME: &'static str = stringify!($name);
        }
    };
}

/// Implements [`Held`](crate::handle::Held) for a type, with a table for its handles.
macro_rules! held {
    ($object:ty, $handle:ty, $kind:ident) => {
        impl $crate::handle::Held for $object {
            type Handle = $handle;
            const KIND: $crate::handle::Kind = $crate::handle::Kind::$kind;

            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$object> = $crate::handle::Table::new();
                &TABLE
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure whose first version had only the first two fields.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        size: usize,
        old: u64,
        new: u64,
    }

    // SAFETY: numbers without padding.
    unsafe impl Versioned for Grown {
        const FIRST: usize = 16;
        const NAME: &'static str = "grown";
    }

    fn read_of(words: &[usize]) -> Result<Grown, Status> {
        // SAFETY: every case has the number of words of its size field, or an invalid size.
        unsafe { read(words.as_ptr().cast::<Grown>()) }.map_err(|failure| failure.status)
    }

    #[test]
    fn structures_of_all_versions_are_read() {
        let refused = Err(Status::PRISM_EARGUMENT);
        assert_eq!(read_of(&[24, 7, 8]), Ok(Grown { size: 24, old: 7, new: 8 }));
        assert_eq!(read_of(&[16, 7, 8]), Ok(Grown { size: 16, old: 7, new: 0 }));
        assert_eq!(read_of(&[32, 7, 8, 0]), Ok(Grown { size: 32, old: 7, new: 8 }));
        assert_eq!(read_of(&[32, 7, 8, 1]), refused);
        for size in [0, 8, 15, SIZE_MAX + 1, usize::MAX] {
            assert_eq!(read_of(&[size, 7, 8]), refused, "{size}");
        }
    }

    #[test]
    fn structures_of_all_versions_are_filled() {
        for (size, expected) in [(16, [16, 1, 9, 9]), (24, [24, 1, 2, 9]), (32, [32, 1, 2, 0])] {
            let mut words: [usize; 4] = [size, 9, 9, 9];
            // SAFETY: there are four words, and the size is at most that.
            let out = unsafe { OutStruct::new(words.as_mut_ptr().cast::<Grown>()) };
            out.expect("a valid size").put(Grown { size: 0, old: 1, new: 2 });
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn no_panic_crosses_the_boundary() {
        assert_eq!(call(|| Ok(7)), 7);
        assert_eq!(call(|| Err(Failure::argument("no"))), Status::PRISM_EARGUMENT as c_int);
        assert_eq!(call(|| panic!("planted {}", 1)), Status::PRISM_EPANIC as c_int);
        // SAFETY: messages are zero-terminated.
        let message = unsafe { CStr::from_ptr(crate::status::prism_last_message()) };
        assert_eq!(message.to_str(), Ok("a bug of the library: planted 1"));
    }

    #[test]
    fn lengths_and_pointers_are_checked() {
        let byte = 7u8;
        let refused = |result: Result<&[u8], Failure>| result.is_err();
        // SAFETY: nothing is read where the pointer is null or the length too large.
        unsafe {
            assert!(refused(bytes(std::ptr::null(), 1)));
            assert!(refused(bytes((&raw const byte).cast(), usize::MAX)));
            assert_eq!(bytes(std::ptr::null(), 0).ok(), Some(&[][..]));
            assert!(Out::new(std::ptr::without_provenance_mut::<u64>(12), "x").is_err());
        }
        let mut room = [9; 4];
        assert_eq!((put_text("abcdef", &mut room).ok(), room), (Some(6), *b"abc\0"));
    }
}
