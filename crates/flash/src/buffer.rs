//! Memory for the data of operations.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Memory that a device gives for its own operations: aligned for direct I/O, in huge pages.
///
/// # Safety
/// Both calls return the same bytes each time, which neither move nor are freed as long as the
/// value lives: a kernel may read and write them meanwhile.
#[allow(unsafe_code, reason = "a promise on which unsafe code of devices relies")]
pub unsafe trait BufferMemory: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, to be changed.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// The memory of a queued operation, which the completion returns. Its bytes do not move as long as
/// it lives.
///
/// [`Device::buffer`](crate::Device::buffer) makes one that the device reads into and programs from
/// without a copy; one made of a vector may be copied.
pub struct Buffer {
    memory: Memory,
    len: usize,
}

enum Memory {
    Vector(Vec<u8>),
    OfDevice(Box<dyn BufferMemory>),
}

impl Buffer {
    /// All of `memory`.
    #[must_use]
    pub fn new(memory: Box<dyn BufferMemory>) -> Self {
        let len = memory.bytes().len();
        Self { memory: Memory::OfDevice(memory), len }
    }

    fn whole(&self) -> &[u8] {
        match &self.memory {
            Memory::Vector(bytes) => bytes,
            Memory::OfDevice(memory) => memory.bytes(),
        }
    }

    /// The length up to which [`Buffer::set_len`] can make it longer.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.whole().len()
    }

    /// Makes it shorter, or longer again: an operation is on the first `len` bytes.
    ///
    /// # Panics
    /// If `len` is more than [`Buffer::capacity`].
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "{len} bytes of a buffer of {}", self.capacity());
        self.len = len;
    }

    /// The bytes as a vector; copied if the memory is that of a device.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self.memory {
            Memory::Vector(mut bytes) => {
                bytes.truncate(self.len);
                bytes
            }
            Memory::OfDevice(memory) => memory.bytes()[..self.len].to_vec(),
        }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self { memory: Memory::Vector(bytes), len }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.whole()[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes = match &mut self.memory {
            Memory::Vector(bytes) => bytes,
            Memory::OfDevice(memory) => memory.bytes_mut(),
        };
        &mut bytes[..self.len]
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Buffer {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from {:?}", self.len, &self[..self.len.min(4)])
    }
}
