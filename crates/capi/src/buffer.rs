//! Memory of the library, which queued commands use without a copy.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use prism::Buffer;

use crate::device::{DeviceObject, prism_device};
use crate::ffi_boundary::{Out, at_most, call, call_for_pointer, lock};
use crate::handle::{close, get, open};
use crate::status::{Failure, Status};

/// Memory of the library that a device reads into and programs from without a copy. From the
/// submission of a command with the buffer until its completion was taken, the library owns the
/// bytes: the program neither reads nor writes them, and every call on the buffer returns
/// `PRISM_EBUSY`.
pub struct prism_buffer;

/// Limit of a buffer's length, far above that of any command.
const BYTES_MAX: u64 = 1 << 30;

enum Slot {
    Idle(Buffer),
    InFlight,
    Freed,
}

pub(crate) struct BufferObject {
    slot: Mutex<Slot>,
    length: usize,
}

held!(BufferObject, prism_buffer, Buffer);

fn busy() -> Failure {
    let what = "a command in flight has the buffer: take its completion first";
    Failure::new(Status::PRISM_EBUSY, what)
}

fn freed() -> Failure {
    Failure::new(Status::PRISM_EHANDLE, "this prism_buffer is closed, or never was one")
}

/// A buffer that a command in flight has.
pub(crate) struct Lent {
    object: Arc<BufferObject>,
    handle: usize,
}

impl Lent {
    /// Takes the first `length` bytes of a buffer for a command.
    pub(crate) fn take(
        handle: *mut prism_buffer,
        length: usize,
    ) -> Result<(Self, Buffer), Failure> {
        let object = get::<BufferObject>(handle)?;
        at_most(length, object.length as u64, "the buffer")?;
        let mut slot = lock(&object.slot);
        let mut data = match std::mem::replace(&mut *slot, Slot::InFlight) {
            Slot::Idle(data) => data,
            Slot::InFlight => return Err(busy()),
            Slot::Freed => {
                *slot = Slot::Freed;
                return Err(freed());
            }
        };
        drop(slot);
        data.set_len(length);
        Ok((Self { object, handle: handle.addr() }, data))
    }

    /// The command is complete: the program may use the buffer again.
    pub(crate) fn give_back(self, data: Buffer) {
        *lock(&self.object.slot) = Slot::Idle(data);
    }

    pub(crate) fn handle(&self) -> *mut prism_buffer {
        std::ptr::without_provenance_mut(self.handle)
    }
}

/// Makes a buffer of `length` bytes, which are zero: at most a block of the device, and at most a
/// GiB. A command uses all of it or its first bytes. It may be used with other devices too, and
/// after the device is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_buffer_alloc(
    device: *mut prism_device,
    length: usize,
    buffer: *mut *mut prism_buffer,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(buffer) }?;
        let object = get::<DeviceObject>(device)?;
        at_most(length, object.device.geometry().block_bytes().min(BYTES_MAX), "a buffer")?;
        if length == 0 {
            return Err(Failure::argument("the length of the buffer is 0"));
        }
        let slot = Mutex::new(Slot::Idle(object.device.buffer(length)));
        out.put(open(BufferObject { slot, length })?);
        Ok(0)
    })
}

/// Returns the bytes of a buffer, the same address as long as the buffer lives. NULL if it fails,
/// with the reason in `prism_last_message`: the handle is invalid, or a command in flight has the
/// buffer.
#[unsafe(no_mangle)]
pub extern "C" fn prism_buffer_data(buffer: *mut prism_buffer) -> *mut c_void {
    call_for_pointer(|| {
        let object = get::<BufferObject>(buffer)?;
        let mut slot = lock(&object.slot);
        match &mut *slot {
            Slot::Idle(data) => Ok(data.as_mut_ptr().cast()),
            Slot::InFlight => Err(busy()),
            Slot::Freed => Err(freed()),
        }
    })
}

/// Frees a buffer and its bytes. `PRISM_EBUSY` while a command in flight has it.
#[unsafe(no_mangle)]
pub extern "C" fn prism_buffer_free(buffer: *mut prism_buffer) -> c_int {
    call(|| {
        let object = get::<BufferObject>(buffer)?;
        // Under the lock, so that no submission takes the buffer meanwhile.
        let mut slot = lock(&object.slot);
        if matches!(*slot, Slot::InFlight) {
            return Err(busy());
        }
        close::<BufferObject>(buffer)?;
        *slot = Slot::Freed;
        Ok(0)
    })
}
