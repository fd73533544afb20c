//! A memory device that tests can still reach while a monitor uses it.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::medium::{DeviceGeometry, Medium, MediumError, PageState};
use crate::memory::MemoryDevice;

/// A memory device shared by a monitor and a test that cuts its power, wears out its blocks, or
/// restarts it. Clones are the same device.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    geometry: DeviceGeometry,
    device: Arc<Mutex<MemoryDevice>>,
}

impl From<MemoryDevice> for SharedMemory {
    fn from(device: MemoryDevice) -> Self {
        Self { geometry: *device.geometry(), device: Arc::new(Mutex::new(device)) }
    }
}

impl SharedMemory {
    /// Locks the device; other users wait.
    ///
    /// # Panics
    /// If a thread has panicked while it held the lock.
    pub fn lock(&self) -> MutexGuard<'_, MemoryDevice> {
        self.device.lock().expect("no thread panics while it holds the device")
    }
}

impl Medium for SharedMemory {
    fn geometry(&self) -> &DeviceGeometry {
        &self.geometry
    }

    fn write_pointer(&self, block: u32) -> u32 {
        self.lock().write_pointer(block)
    }

    fn is_open(&self, block: u32) -> bool {
        self.lock().is_open(block)
    }

    fn is_factory_bad(&self, block: u32) -> bool {
        self.lock().is_factory_bad(block)
    }

    fn has_volatile_cache(&self) -> bool {
        self.lock().has_volatile_cache()
    }

    fn read(
        &mut self,
        block: u32,
        page: u32,
        offset: u32,
        data: &mut [u8],
        oob: &mut [u8],
    ) -> Result<PageState, MediumError> {
        self.lock().read(block, page, offset, data, oob)
    }

    fn program(
        &mut self,
        block: u32,
        page: u32,
        data: &[u8],
        oob: &[u8],
    ) -> Result<(), MediumError> {
        self.lock().program(block, page, data, oob)
    }

    fn erase(&mut self, block: u32) -> Result<(), MediumError> {
        self.lock().erase(block)
    }

    fn finish(&mut self, block: u32) -> Result<(), MediumError> {
        self.lock().finish(block)
    }

    fn sync(&mut self) -> Result<(), MediumError> {
        self.lock().sync()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
