//! Devices, which are divided into shares.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use prism::{
    Access, Allocation, Bytes, Cache, Device, DeviceGeometry, EngineChoice, FlashFile,
    MemoryDevice, Options, REAL, Settings, Share,
};
use prism_ssd::DriveSpec;
use pyo3::prelude::*;

use super::{Once, closed, failed, file_failed, opened_by};
use crate::arguments::{Arguments, chosen, parsed};
use crate::device::device_text;
use crate::error::Failure;

/// The geometry of a device, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Geometry {
    channels: u32,
    luns_per_channel: u32,
    blocks_per_lun: u32,
    pages_per_block: u32,
    page_size: u32,
    oob_size: u32,
    max_open_blocks: Option<u32>,
}

impl From<Geometry> for DeviceGeometry {
    fn from(given: Geometry) -> Self {
        Self {
            channels: given.channels,
            luns_per_channel: given.luns_per_channel,
            blocks_per_lun: given.blocks_per_lun,
            pages_per_block: given.pages_per_block,
            page_size: given.page_size,
            oob_size: given.oob_size,
            max_open_blocks: given.max_open_blocks,
        }
    }
}

/// How a device is opened, as a dictionary of Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SessionOptions {
    /// The drive whose times operations take: a preset or a file, or the text of one.
    timing: Option<(String, Option<String>)>,
    real_time: bool,
    engine: String,
    depth: u32,
    preallocate: bool,
    read_only: bool,
}

const ENGINES: [(&str, EngineChoice); 3] = [
    ("best", EngineChoice::Best),
    ("uring", EngineChoice::Uring),
    ("portable", EngineChoice::Portable),
];

impl SessionOptions {
    fn options(&self) -> Result<Options, Failure> {
        let timing = self.timing.as_ref().map(|(name, text)| {
            let text = device_text(name, text.clone())?;
            let drive = DriveSpec::from_toml(&text);
            let drive = drive.map_err(|error| Failure::argument("timing", error))?;
            Ok::<_, Failure>(drive.engine_config().timing)
        });
        Ok(Options { timing: timing.transpose()?, ..Options::default() })
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let engine = chosen("engine", &self.engine, &ENGINES)?;
        let access = if self.read_only { Access::Read } else { Access::Write };
        Ok(Settings { engine, depth: self.depth, access, preallocate: self.preallocate })
    }

    fn begin(&self, device: Device) -> PyResult<FlashDevice> {
        let device = match self.real_time {
            true => device.in_real_time(&REAL).map_err(failed)?,
            false => device,
        };
        Ok(FlashDevice::new(device))
    }
}

/// The fields of a geometry, in the order of its constructor.
type GeometryFields = (u32, u32, u32, u32, u32, u32, Option<u32>);

/// A flash device in memory or in a file.
#[pyclass(module = "prism._prism", frozen)]
pub struct FlashDevice(Mutex<Option<Device>>, u32);

impl FlashDevice {
    fn new(device: Device) -> Self {
        Self(Mutex::new(Some(device)), std::process::id())
    }

    /// The device, unless it was closed.
    fn get(&self) -> PyResult<Device> {
        opened_by(self.1)?;
        let device = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        device.clone().ok_or_else(closed)
    }
}

#[pymethods]
impl FlashDevice {
    /// An empty device in memory.
    #[staticmethod]
    fn memory(
        py: Python<'_>,
        geometry: Arguments<Geometry>,
        session: Arguments<SessionOptions>,
    ) -> PyResult<Self> {
        let (geometry, session) = (geometry.0, session.0);
        py.detach(|| {
            let memory = MemoryDevice::new(geometry.into(), Cache::None);
            let memory = memory.map_err(|error| Failure::argument("geometry", error))?;
            session.begin(Device::format(memory, session.options()?).map_err(failed)?)
        })
    }

    /// An empty device in a new file.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        geometry: Arguments<Geometry>,
        session: Arguments<SessionOptions>,
    ) -> PyResult<Self> {
        let (geometry, session) = (geometry.0, session.0);
        py.detach(|| {
            let (options, settings) = (session.options()?, session.settings()?);
            let device = FlashFile::format_with(&path, geometry.into(), &[], options, settings);
            session.begin(device.map_err(file_failed)?)
        })
    }

    /// The device of a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, session: Arguments<SessionOptions>) -> PyResult<Self> {
        let session = session.0;
        py.detach(|| {
            let file = FlashFile::open_with(&path, session.settings()?).map_err(file_failed)?;
            session.begin(Device::open(file, session.options()?).map_err(failed)?)
        })
    }

    /// Closes it; calls on its levels fail from now on.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let device = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(device) = device else { return Ok(()) };
        py.detach(|| {
            let medium = device.into_medium().map_err(failed)?;
            if let Ok(file) = medium.into_any().downcast::<FlashFile>() {
                file.close().map_err(|error| failed(error.into()))?;
            }
            Ok(())
        })
    }

    /// Allocates a share and attaches to it.
    fn allocate(
        &self,
        py: Python<'_>,
        name: &str,
        capacity: &str,
        over_provisioning: u32,
    ) -> PyResult<FlashShare> {
        let capacity = parsed("capacity", capacity, Bytes::parse)?;
        let device = self.get()?;
        let wanted = Allocation::new(capacity, over_provisioning);
        let share = py.detach(|| device.allocate(name, wanted)).map_err(failed)?;
        Ok(FlashShare(Once::new(share)))
    }

    /// Attaches to a share that was allocated before.
    fn attach(&self, py: Python<'_>, name: &str) -> PyResult<FlashShare> {
        let device = self.get()?;
        let share = py.detach(|| device.attach(name)).map_err(failed)?;
        Ok(FlashShare(Once::new(share)))
    }

    /// Releases a share: its data is lost.
    fn release(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let device = self.get()?;
        py.detach(|| device.release(name)).map_err(failed)
    }

    /// The name, the LUNs, those of over-provisioning, and whether it is attached, of each share.
    fn shares(&self) -> PyResult<Vec<(String, usize, u32, bool)>> {
        let shares = self.get()?.shares().into_iter();
        Ok(shares
            .map(|share| (share.name, share.luns.len(), share.ops_luns, share.attached))
            .collect())
    }

    /// The geometry, in the order of its constructor.
    fn geometry(&self) -> PyResult<GeometryFields> {
        let g = self.get()?.geometry();
        let open = g.max_open_blocks;
        Ok((
            g.channels,
            g.luns_per_channel,
            g.blocks_per_lun,
            g.pages_per_block,
            g.page_size,
            g.oob_size,
            open,
        ))
    }

    /// Bytes of a LUN that a share can use, and the number of LUNs that belong to none.
    fn free(&self) -> PyResult<(u64, u32)> {
        let device = self.get()?;
        Ok((device.lun_capacity().0, device.free_luns()))
    }

    /// The highest, mean and lowest mean erase count of a LUN, and the pairs of LUNs exchanged.
    fn wear(&self) -> PyResult<(f64, f64, f64, u64)> {
        let wear = self.get()?.wear();
        Ok((wear.max, wear.mean, wear.min, wear.exchanges))
    }
}

/// A share of a device, which one level takes.
#[pyclass(module = "prism._prism", frozen)]
pub struct FlashShare(Once<Share>);

#[pymethods]
impl FlashShare {
    /// Gives the share up, if no level was opened in it.
    fn close(&self) {
        drop(self.0.take());
    }
}

impl FlashShare {
    /// The share for a level.
    ///
    /// # Errors
    /// If a level has it already.
    pub fn take(&self) -> PyResult<Share> {
        let what = "a level was opened in this share already; attach to it again after closing it";
        self.0.take().ok_or_else(|| super::FlashError::new_err(what))
    }
}
