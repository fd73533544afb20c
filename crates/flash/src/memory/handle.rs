//! A memory device that tests can still reach while a monitor uses it.

use std::ops::Deref;
use std::sync::Arc;

use crate::medium::Medium;
use crate::memory::MemoryDevice;

/// A memory device shared by a monitor and a test that cuts its power, wears out its blocks, or
/// restarts it. Clones are the same device.
#[derive(Clone, Debug)]
pub struct SharedMemory(Arc<MemoryDevice>);

impl From<MemoryDevice> for SharedMemory {
    fn from(device: MemoryDevice) -> Self {
        Self(Arc::new(device))
    }
}

impl Deref for SharedMemory {
    type Target = MemoryDevice;

    fn deref(&self) -> &MemoryDevice {
        &self.0
    }
}

impl From<SharedMemory> for Arc<dyn Medium> {
    fn from(device: SharedMemory) -> Self {
        device.0
    }
}

impl From<MemoryDevice> for Arc<dyn Medium> {
    fn from(device: MemoryDevice) -> Self {
        Arc::new(device)
    }
}
