//! Devices, which the monitor divides into shares.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use prism::{Access, Device, FlashError, FlashFile, Options, REAL, Settings, SharedMemory};

use crate::ffi_boundary::{
    Out, OutStruct, call, done, number, put, put_struct, put_text, read, read_if_any, slice_mut,
    text,
};
use crate::handle::{close, get, open};
use crate::memory::{Memory, prism_memory};
use crate::share::prism_share;
use crate::status::Failure;
use crate::structs::{
    prism_allocation, prism_counts, prism_file_settings, prism_geometry, prism_options,
    prism_share_info, prism_wear_policy, prism_wear_report,
};

/// A flash device that applications share. Threads may use it at once.
pub struct prism_device;

pub(crate) struct DeviceObject {
    pub(crate) device: Device,
    /// The memory below it, which outlives the device; `None` for a file.
    memory: Option<Arc<Memory>>,
}

held!(DeviceObject, prism_device, Device);

/// # Safety
/// `options` is null or valid.
unsafe fn options_of(options: *const prism_options) -> Result<Options, Failure> {
    // SAFETY: guaranteed by the caller.
    match unsafe { read_if_any(options) }? {
        // SAFETY: the contract includes the pointers of the structure.
        Some(options) => unsafe { options.value() },
        None => Ok(Options::default()),
    }
}

/// # Safety
/// `settings` is null or valid.
unsafe fn settings_of(settings: *const prism_file_settings) -> Result<Settings, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe { read_if_any(settings) }?.map_or(Ok(Settings::USUAL), |settings| settings.value())
}

fn on_memory(
    memory: *mut prism_memory,
    options: Options,
    make: impl FnOnce(SharedMemory, Options) -> prism::Result<Device>,
) -> Result<*mut prism_device, Failure> {
    let memory = get::<Memory>(memory)?;
    memory.claim()?;
    match make(memory.flash.clone(), options) {
        Ok(device) => open(DeviceObject { device, memory: Some(memory) }),
        Err(error) => {
            memory.give_back();
            Err(error.into())
        }
    }
}

/// Formats flash in memory as an empty device: all of its data is lost. `options` may be NULL: no
/// virtual time, no automatic wear levelling.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_format_memory(
    memory: *mut prism_memory,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        out.put(on_memory(memory, options, Device::format)?);
        Ok(0)
    })
}

/// Opens a device that was formatted on flash in memory, and recovers from a power failure.
/// `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_open_memory(
    memory: *mut prism_memory,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        out.put(on_memory(memory, options, Device::open)?);
        Ok(0)
    })
}

/// Makes a file with an empty device in it; the file must not exist. It is sparse: it grows on disk
/// as pages are programmed. Only one process at a time can have it open. `options` may be NULL. If
/// it fails, no file is left: `PRISM_ENOSPACE` if the disk is full, `PRISM_EWORNOUT` if there are
/// too few blocks for the device's own tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_create(
    path: *const c_char,
    geometry: *const prism_geometry,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    // SAFETY: the contract in the header, and no settings.
    unsafe { prism_device_create_with(path, geometry, std::ptr::null(), options, device) }
}

/// As `prism_device_create`, with settings for the file, which may be NULL for the defaults.
/// `PRISM_EARGUMENT` if they are for reading only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_create_with(
    path: *const c_char,
    geometry: *const prism_geometry,
    settings: *const prism_file_settings,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        // SAFETY: the contract in the header.
        let (path, settings) = unsafe { (text(path, "the path")?, settings_of(settings)?) };
        // SAFETY: the contract in the header.
        let geometry = unsafe { read(geometry) }?.value()?;
        if settings.access == Access::Read {
            return Err(Failure::argument("read_only is 1, and the file is yet to be made"));
        }
        let device = FlashFile::format_with(Path::new(path), geometry, &[], options, settings)?;
        out.put(open(DeviceObject { device, memory: None })?);
        Ok(0)
    })
}

/// Opens a device in a file, and recovers from a power failure. Without permission to write the
/// file, the device is read-only. `PRISM_EINUSE` if it is open already. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_open(
    path: *const c_char,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    // SAFETY: the contract in the header, and no settings.
    unsafe { prism_device_open_with(path, std::ptr::null(), options, device) }
}

/// As `prism_device_open`, with settings for the file, which may be NULL for the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_open_with(
    path: *const c_char,
    settings: *const prism_file_settings,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        // SAFETY: the contract in the header.
        let (path, settings) = unsafe { (text(path, "the path")?, settings_of(settings)?) };
        let device = Device::open(FlashFile::open_with(Path::new(path), settings)?, options)?;
        out.put(open(DeviceObject { device, memory: None })?);
        Ok(0)
    })
}

/// From now on operations also take real time: a call on a share that is attached later returns
/// when the device would have completed it. `PRISM_ENOCLOCK` on a device without timing.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_in_real_time(device: *mut prism_device) -> c_int {
    done(|| Ok(get::<DeviceObject>(device)?.device.clone().in_real_time(&REAL).map(drop)?))
}

/// Closes the device as the end of the process would, so flush the levels before: data that they
/// have in memory is not written. A file is synced; if that fails, the device is closed
/// nevertheless. Calls on remaining handles of shares and levels return `PRISM_ERELEASED` from now
/// on; the handles still have to be closed.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_close(device: *mut prism_device) -> c_int {
    call(|| {
        let object = close::<DeviceObject>(device)?;
        let medium = object.device.clone().into_medium()?;
        if let Some(memory) = &object.memory {
            drop(medium);
            memory.give_back();
        } else if let Ok(file) = medium.into_any().downcast::<FlashFile>() {
            file.close().map_err(FlashError::from)?;
        }
        Ok(0)
    })
}

/// The geometry of the device, including spare blocks and tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_geometry(
    device: *mut prism_device,
    geometry: *mut prism_geometry,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put_struct(geometry, || Ok(get::<DeviceObject>(device)?.device.geometry().into())) }
}

/// Writes the bytes of a LUN that a share can use to `bytes`: those of its blocks without spare
/// ones and tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_lun_capacity(
    device: *mut prism_device,
    bytes: *mut u64,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put(bytes, "bytes", || Ok(get::<DeviceObject>(device)?.device.lun_capacity().0)) }
}

/// Returns the number of usable LUNs that belong to no share.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_free_luns(device: *mut prism_device) -> c_int {
    call(|| number(get::<DeviceObject>(device)?.device.free_luns()))
}

/// Operations for the tables, for failed blocks and for levelling since the device was opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_counts(
    device: *mut prism_device,
    counts: *mut prism_counts,
) -> c_int {
    // SAFETY: the contract in the header.
    unsafe { put_struct(counts, || Ok(get::<DeviceObject>(device)?.device.own_counts().into())) }
}

/// How evenly the device is worn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_wear(
    device: *mut prism_device,
    report: *mut prism_wear_report,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { OutStruct::new(report) }?;
        let wear = get::<DeviceObject>(device)?.device.wear();
        let (max, mean, min) = (wear.max, wear.mean, wear.min);
        let (exchanges, erases) = (wear.exchanges, wear.erases);
        out.put(prism_wear_report { size: 0, max, mean, min, exchanges, erases });
        Ok(0)
    })
}

/// Levels wear now, moving about `blocks` blocks regardless of the budget of the options. Returns 1
/// if more blocks should move, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_level_wear(
    device: *mut prism_device,
    policy: *const prism_wear_policy,
    blocks: u32,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let policy = unsafe { read(policy) }?.value()?;
        Ok(get::<DeviceObject>(device)?.device.level_wear(policy, blocks)?.into())
    })
}

/// Returns the number of shares.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_shares(device: *mut prism_device) -> c_int {
    call(|| number(get::<DeviceObject>(device)?.device.shares().len()))
}

/// Describes share number `index`, in the order of their allocation. Writes its name to `name`, a
/// buffer of `capacity` bytes, truncated if necessary. Returns the length of the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_share(
    device: *mut prism_device,
    index: usize,
    info: *mut prism_share_info,
    name: *mut c_char,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) =
            unsafe { (OutStruct::new(info)?, slice_mut(name.cast(), capacity, "the name")?) };
        let shares = get::<DeviceObject>(device)?.device.shares();
        let count = shares.len() as u64;
        let share = shares.get(index).ok_or(FlashError::OutOfRange {
            what: "share",
            value: index as u64,
            count,
        })?;
        out.put(prism_share_info {
            size: 0,
            luns: share.luns.len() as u32,
            ops_luns: share.ops_luns,
            attached: share.attached.into(),
            reserved: 0,
        });
        put_text(&share.name, room)
    })
}

/// Allocates a share, whose name has 1 to 255 bytes and no control characters, and attaches to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_allocate(
    device: *mut prism_device,
    name: *const c_char,
    wanted: *const prism_allocation,
    share: *mut *mut prism_share,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(share) }?;
        // SAFETY: the contract in the header.
        let (name, wanted) = unsafe { (text(name, "the name")?, read(wanted)?) };
        let device = get::<DeviceObject>(device)?;
        out.put(open(device.device.allocate(name, wanted.value())?)?);
        Ok(0)
    })
}

/// Attaches to a share that was allocated before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_attach(
    device: *mut prism_device,
    name: *const c_char,
    share: *mut *mut prism_share,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, name) = unsafe { (Out::handle(share)?, text(name, "the name")?) };
        out.put(open(get::<DeviceObject>(device)?.device.attach(name)?)?);
        Ok(0)
    })
}

/// Releases a share that is not attached: its data is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_release(
    device: *mut prism_device,
    name: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: the contract in the header.
        let name = unsafe { text(name, "the name") }?;
        Ok(get::<DeviceObject>(device)?.device.release(name)?)
    })
}
