//! The status codes of calls, and the message of the last failure.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::ErrorKind;

use prism::{FlashError, FlashFileError, MediumError};

/// The result of a call that failed. Calls that succeeded return 0, or a positive number that their
/// comment describes. A call that was refused has changed nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum prism_status {
    /// Success.
    PRISM_OK = 0,
    /// An argument is invalid in any state: a null pointer, a structure without its size, a number
    /// that is no value of its type.
    PRISM_EARGUMENT = -1,
    /// The handle is closed already, is one of another kind, or never was one.
    PRISM_EHANDLE = -2,
    /// The buffer is too small for the data.
    PRISM_ETOOSMALL = -3,
    /// The queue is full: take a completion first.
    PRISM_EFULL = -4,
    /// A bug of the library: close the handle; the message locates the bug.
    PRISM_EPANIC = -5,
    /// A failure without a status of its own; the message describes it.
    PRISM_EOTHER = -6,
    /// A field of a geometry is out of range.
    PRISM_EGEOMETRY = -10,
    /// The device failed.
    PRISM_EMEDIUM = -11,
    /// The device has lost power: open it again.
    PRISM_EPOWER = -12,
    /// A mapping does not fit the flash that it was given.
    PRISM_EMAPPING = -13,
    /// An address is outside of what the caller owns, or an access has more bytes than there are
    /// from its address on, or more out-of-band bytes than a page.
    PRISM_ERANGE = -14,
    /// A length or an address is not a multiple of the unit it has to be aligned to.
    PRISM_EALIGN = -15,
    /// The page was not written since the last erase.
    PRISM_EUNWRITTEN = -16,
    /// A power failure interrupted the program or erase of the page.
    PRISM_ETORN = -17,
    /// Another page of the block is next.
    PRISM_EORDER = -18,
    /// The block is full or closed: erase it first.
    PRISM_ENOTERASED = -19,
    /// Too many blocks are partly written.
    PRISM_EOPEN = -20,
    /// A LUN has no spare block left for one that failed.
    PRISM_EWORNOUT = -21,
    /// The device has fewer free LUNs than requested.
    PRISM_ENOLUNS = -22,
    /// A share or a file of that name exists.
    PRISM_EEXISTS = -23,
    /// No share has that name.
    PRISM_ENOSHARE = -24,
    /// The share, the level or the file is in use already.
    PRISM_EINUSE = -25,
    /// The share was released or its device closed.
    PRISM_ERELEASED = -26,
    /// LUNs that hold data cannot be given back.
    PRISM_ESHRINK = -27,
    /// The share holds data of another level.
    PRISM_ELEVEL = -28,
    /// There is no space left, in the share or on the disk of the file. The message says which.
    PRISM_ENOSPACE = -29,
    /// The block or page was trimmed before, or never allocated.
    PRISM_ENOTALLOCATED = -30,
    /// Blocks requested as over-provisioning are in use.
    PRISM_EOPS = -31,
    /// A range holds data or overlaps another, or a higher level is still open.
    PRISM_EBUSY = -32,
    /// The request is not possible in the present state; the message says why.
    PRISM_EINVALID = -33,
    /// The device has no timing.
    PRISM_ENOCLOCK = -34,
    /// This is no formatted device.
    PRISM_ENOTFORMATTED = -35,
    /// The tables of the device could not be written.
    PRISM_ETABLES = -36,
    /// Reading or writing a file failed.
    PRISM_EIO = -37,
    /// The device is read-only.
    PRISM_EREADONLY = -38,
    /// Written data is damaged.
    PRISM_EDAMAGED = -39,
    /// A file cannot be opened, or has another format or version; the message says why.
    PRISM_EFILE = -40,
}

pub use prism_status as Status;
use prism_status::*;

impl prism_status {
    /// Every status, for `prism_strerror`.
    const ALL: [(Self, &'static CStr); 38] = [
        (PRISM_OK, c"done"),
        (PRISM_EARGUMENT, c"an argument is invalid"),
        (PRISM_EHANDLE, c"the handle is closed, or one of another kind"),
        (PRISM_ETOOSMALL, c"the buffer is too small"),
        (PRISM_EFULL, c"the queue is full"),
        (PRISM_EPANIC, c"a bug of the library"),
        (PRISM_EOTHER, c"a failure without a status of its own"),
        (PRISM_EGEOMETRY, c"the geometry is out of range"),
        (PRISM_EMEDIUM, c"the device failed"),
        (PRISM_EPOWER, c"the device has lost power"),
        (PRISM_EMAPPING, c"the mapping does not fit the flash"),
        (PRISM_ERANGE, c"the address or the length is out of range"),
        (PRISM_EALIGN, c"an address or a length is not aligned"),
        (PRISM_EUNWRITTEN, c"nothing was written there"),
        (PRISM_ETORN, c"a power failure interrupted the write or erase"),
        (PRISM_EORDER, c"another page of the block is next"),
        (PRISM_ENOTERASED, c"the block is not erased"),
        (PRISM_EOPEN, c"too many blocks are partly written"),
        (PRISM_EWORNOUT, c"no spare block is left"),
        (PRISM_ENOLUNS, c"not enough LUNs are free"),
        (PRISM_EEXISTS, c"a share or a file of that name exists"),
        (PRISM_ENOSHARE, c"there is no share of this name"),
        (PRISM_EINUSE, c"it is in use already"),
        (PRISM_ERELEASED, c"the share was released or its device closed"),
        (PRISM_ESHRINK, c"the LUNs hold data"),
        (PRISM_ELEVEL, c"the share holds data of another level"),
        (PRISM_ENOSPACE, c"there is no space left"),
        (PRISM_ENOTALLOCATED, c"it is not allocated"),
        (PRISM_EOPS, c"the over-provisioning is in use"),
        (PRISM_EBUSY, c"it is busy"),
        (PRISM_EINVALID, c"the request is not possible in this state"),
        (PRISM_ENOCLOCK, c"the device has no timing"),
        (PRISM_ENOTFORMATTED, c"this is no formatted device"),
        (PRISM_ETABLES, c"the tables of the device cannot be kept"),
        (PRISM_EIO, c"reading or writing a file failed"),
        (PRISM_EREADONLY, c"the device is read-only"),
        (PRISM_EDAMAGED, c"written data is damaged"),
        (PRISM_EFILE, c"the file cannot be opened as a device"),
    ];
}

/// The failure of a call: its status, and a sentence with the details.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(PRISM_EARGUMENT, message)
    }
}

impl From<FlashError> for Failure {
    fn from(error: FlashError) -> Self {
        Self::new(status_of(&error), error.to_string())
    }
}

impl From<FlashFileError> for Failure {
    fn from(error: FlashFileError) -> Self {
        let full = |source: &std::io::Error| {
            matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        };
        let status = match &error {
            FlashFileError::Exists { .. } => PRISM_EEXISTS,
            FlashFileError::InUse { .. } => PRISM_EINUSE,
            FlashFileError::NotAFlashFile { .. } => PRISM_ENOTFORMATTED,
            FlashFileError::Damaged { .. } | FlashFileError::Truncated { .. } => PRISM_EDAMAGED,
            FlashFileError::Geometry { .. } => PRISM_EGEOMETRY,
            FlashFileError::Format { error, .. } => status_of(error),
            FlashFileError::Make { source, .. } | FlashFileError::Io { source, .. }
                if full(source) =>
            {
                PRISM_ENOSPACE
            }
            FlashFileError::Make { .. } | FlashFileError::Io { .. } => PRISM_EIO,
            _ => PRISM_EFILE,
        };
        Self::new(status, error.to_string())
    }
}

/// The status of an error of the library.
pub(crate) fn status_of(error: &FlashError) -> Status {
    match error {
        FlashError::Geometry(_) => PRISM_EGEOMETRY,
        FlashError::Medium(MediumError::PowerLost) => PRISM_EPOWER,
        FlashError::Medium(MediumError::Io { .. }) => PRISM_EIO,
        FlashError::Medium(MediumError::DiskFull { .. }) => PRISM_ENOSPACE,
        FlashError::Medium(MediumError::ReadOnly { .. }) => PRISM_EREADONLY,
        FlashError::Damaged { .. }
        | FlashError::TablesDamaged { .. }
        | FlashError::Medium(MediumError::Damaged { .. }) => PRISM_EDAMAGED,
        FlashError::Medium(_) => PRISM_EMEDIUM,
        FlashError::Mapping(_) => PRISM_EMAPPING,
        FlashError::OutOfRange { .. }
        | FlashError::PastEnd { .. }
        | FlashError::NoRange { .. }
        | FlashError::TooLong { .. } => PRISM_ERANGE,
        FlashError::Unaligned { .. } => PRISM_EALIGN,
        FlashError::Unwritten { .. } => PRISM_EUNWRITTEN,
        FlashError::Torn { .. } => PRISM_ETORN,
        FlashError::OutOfOrder { .. } => PRISM_EORDER,
        FlashError::NotErased { .. } => PRISM_ENOTERASED,
        FlashError::TooManyOpen { .. } => PRISM_EOPEN,
        FlashError::WornOut { .. } => PRISM_EWORNOUT,
        FlashError::NoLuns { .. } => PRISM_ENOLUNS,
        FlashError::ShareExists { .. } => PRISM_EEXISTS,
        FlashError::NoShare { .. } => PRISM_ENOSHARE,
        FlashError::InUse { .. } => PRISM_EINUSE,
        FlashError::Released => PRISM_ERELEASED,
        FlashError::ShrinkBelowUse { .. } => PRISM_ESHRINK,
        FlashError::WrongLevel { .. } => PRISM_ELEVEL,
        FlashError::NoSpace { .. }
        | FlashError::ChannelFull { .. }
        | FlashError::OnlyReserve { .. } => PRISM_ENOSPACE,
        FlashError::NotAllocated { .. } => PRISM_ENOTALLOCATED,
        FlashError::OverProvisioning { .. } => PRISM_EOPS,
        FlashError::Busy { .. } => PRISM_EBUSY,
        FlashError::Invalid { .. } => PRISM_EINVALID,
        FlashError::NoClock => PRISM_ENOCLOCK,
        FlashError::NotFormatted { .. } => PRISM_ENOTFORMATTED,
        FlashError::Tables { .. } => PRISM_ETABLES,
        // A variant added later; its message describes it.
        _ => PRISM_EOTHER,
    }
}

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Stores the message of a failed call of this thread.
pub(crate) fn note(message: &str) {
    let text: Vec<u8> = message.bytes().filter(|&byte| byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // A thread that ends cannot ask for the message any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(text));
}

/// Returns a short text for a status. It is static and never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn prism_strerror(status: c_int) -> *const c_char {
    let known = Status::ALL.iter().find(|(known, _)| *known as c_int == status);
    known.map_or(c"unknown status", |(_, text)| text).as_ptr()
}

/// Returns the message of the last failed call of this thread: a sentence with the details and the
/// remedy. It is empty before the first failure, stays when later calls succeed, and is valid until
/// the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn prism_last_message() -> *const c_char {
    let noted = |last: &RefCell<Option<CString>>| last.borrow().as_ref().map(|text| text.as_ptr());
    LAST.try_with(noted).ok().flatten().unwrap_or(c"".as_ptr())
}

/// Returns the version of the library, such as "0.1.0", as a static string.
#[unsafe(no_mangle)]
pub extern "C" fn prism_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(from: *const c_char) -> &'static str {
        // SAFETY: the calls above return zero-terminated strings.
        unsafe { CStr::from_ptr(from) }.to_str().expect("texts are UTF-8")
    }

    #[test]
    fn every_status_has_a_text_of_its_own() {
        let mut texts: Vec<_> =
            Status::ALL.iter().map(|&(status, _)| text(prism_strerror(status as c_int))).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Status::ALL.len());
        assert_eq!(text(prism_strerror(-9)), "unknown status");
        assert_eq!(text(prism_version()), env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn every_thread_has_its_own_message() {
        note("one\0two");
        assert_eq!(text(prism_last_message()), "onetwo");
        let other = std::thread::spawn(|| text(prism_last_message()).to_owned());
        assert_eq!(other.join().expect("no panic"), "");
    }
}
