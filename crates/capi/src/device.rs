//! Devices, which the monitor divides into shares.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use prism::{Device, FlashError, FlashFile, Medium, Options, REAL};

use crate::ffi_boundary::{
    Out, OutStruct, call, number, put_text, read, read_if_any, slice_mut, text,
};
use crate::handle::{close, get, open};
use crate::memory::{Memory, prism_memory};
use crate::share::prism_share;
use crate::status::Failure;
use crate::structs::{
    prism_allocation, prism_counts, prism_geometry, prism_options, prism_share_info,
    prism_wear_policy, prism_wear_report,
};

/// A flash device that applications share. Threads may use it at once.
pub struct prism_device;

pub(crate) struct DeviceObject {
    device: Device,
    /// What it stands on, if that stays when the device is closed.
    memory: Option<Arc<Memory>>,
}

held!(DeviceObject, prism_device, Device);

/// # Safety
/// `options` is null or good.
unsafe fn options_of(options: *const prism_options) -> Result<Options, Failure> {
    // SAFETY: as the caller promises.
    match unsafe { read_if_any(options) }? {
        // SAFETY: the pointers of the structure are part of the promise.
        Some(options) => unsafe { options.value() },
        None => Ok(Options::default()),
    }
}

fn on_memory(
    memory: *mut prism_memory,
    options: Options,
    make: impl FnOnce(Box<dyn Medium>, Options) -> prism::Result<Device>,
) -> Result<*mut prism_device, Failure> {
    let memory = get::<Memory>(memory)?;
    memory.claim()?;
    match make(Box::new(memory.flash.clone()), options) {
        Ok(device) => open(DeviceObject { device, memory: Some(memory) }),
        Err(error) => {
            memory.give_back();
            Err(error.into())
        }
    }
}

/// Makes an empty device of flash in memory: everything on it is lost. `options` may be NULL:
/// no virtual time, no levelling by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_format_memory(
    memory: *mut prism_memory,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        out.put(on_memory(memory, options, Device::format)?);
        Ok(0)
    })
}

/// Opens a device that was formatted on flash in memory; what a loss of power interrupted is
/// put right. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_open_memory(
    memory: *mut prism_memory,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        out.put(on_memory(memory, options, Device::open)?);
        Ok(0)
    })
}

/// Makes a file with an empty device in it; the file must not exist. It is sparse: it takes room
/// as pages are programmed. One process at a time has it open. `options` may be NULL. If it fails,
/// no file is left: `PRISM_ENOSPACE` if the disk is full, `PRISM_EWORNOUT` if there are too few
/// blocks for the device's own tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_create(
    path: *const c_char,
    geometry: *const prism_geometry,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        // SAFETY: the caller's promise.
        let (path, geometry) = unsafe { (text(path, "the path")?, read(geometry)?) };
        let device = FlashFile::format(Path::new(path), geometry.value()?, &[], options)?;
        out.put(open(DeviceObject { device, memory: None })?);
        Ok(0)
    })
}

/// Opens a device in a file; what a loss of power interrupted is put right. A file that may not
/// be written can be read. `PRISM_EINUSE` if it is open already. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_open(
    path: *const c_char,
    options: *const prism_options,
    device: *mut *mut prism_device,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, options) = unsafe { (Out::handle(device)?, options_of(options)?) };
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, "the path") }?;
        let device = Device::open(Box::new(FlashFile::open(Path::new(path))?), options)?;
        out.put(open(DeviceObject { device, memory: None })?);
        Ok(0)
    })
}

/// From now on operations take their time in the world too: a call of a share that is attached
/// later returns when the device would be done. `PRISM_ENOCLOCK` on a device without timing.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_in_real_time(device: *mut prism_device) -> c_int {
    call(|| {
        get::<DeviceObject>(device)?.device.clone().in_real_time(&REAL)?;
        Ok(0)
    })
}

/// Closes the device, as the end of the process does, so flush the levels before: what they have
/// in memory is not written. A file is synced; if that fails, the device is closed all the same.
/// Handles of shares and levels that are left answer `PRISM_ERELEASED` from now on, and still
/// have to be closed.
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

/// The shape of the device as it is, spare blocks and tables included.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_geometry(
    device: *mut prism_device,
    geometry: *mut prism_geometry,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { OutStruct::new(geometry) }?;
        out.put(get::<DeviceObject>(device)?.device.geometry().into());
        Ok(0)
    })
}

/// Puts the bytes that a LUN gives to a share into `bytes`: its blocks without spare ones and
/// tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_lun_capacity(
    device: *mut prism_device,
    bytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::new(bytes, "bytes") }?;
        out.put(get::<DeviceObject>(device)?.device.lun_capacity().0);
        Ok(0)
    })
}

/// Returns how many LUNs belong to no share and can be used.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_free_luns(device: *mut prism_device) -> c_int {
    call(|| number(get::<DeviceObject>(device)?.device.free_luns()))
}

/// What was done for the tables, for failed blocks and for levelling since the device was
/// opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_counts(
    device: *mut prism_device,
    counts: *mut prism_counts,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { OutStruct::new(counts) }?;
        out.put(get::<DeviceObject>(device)?.device.own_counts().into());
        Ok(0)
    })
}

/// How evenly the device is worn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_wear(
    device: *mut prism_device,
    report: *mut prism_wear_report,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { OutStruct::new(report) }?;
        let wear = get::<DeviceObject>(device)?.device.wear();
        let (max, mean, min) = (wear.max, wear.mean, wear.min);
        let (exchanges, erases) = (wear.exchanges, wear.erases);
        out.put(prism_wear_report { size: 0, max, mean, min, exchanges, erases });
        Ok(0)
    })
}

/// Levels wear now, moving about `blocks` blocks, whatever the budget of the options. Returns 1
/// if more would have to move, else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_level_wear(
    device: *mut prism_device,
    policy: *const prism_wear_policy,
    blocks: u32,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let policy = unsafe { read(policy) }?.value()?;
        Ok(get::<DeviceObject>(device)?.device.level_wear(policy, blocks)?.into())
    })
}

/// Returns how many shares there are.
#[unsafe(no_mangle)]
pub extern "C" fn prism_device_shares(device: *mut prism_device) -> c_int {
    call(|| number(get::<DeviceObject>(device)?.device.shares().len()))
}

/// Tells of share number `index`, in the order in which they were allocated. Its name goes to
/// `name`, which has room for `capacity` bytes; a name that is longer is cut off. Returns the
/// length of the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_share(
    device: *mut prism_device,
    index: usize,
    info: *mut prism_share_info,
    name: *mut c_char,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
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

/// Allocates a share and attaches to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_allocate(
    device: *mut prism_device,
    name: *const c_char,
    wanted: *const prism_allocation,
    share: *mut *mut prism_share,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::handle(share) }?;
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        let (out, name) = unsafe { (Out::handle(share)?, text(name, "the name")?) };
        out.put(open(get::<DeviceObject>(device)?.device.attach(name)?)?);
        Ok(0)
    })
}

/// Gives up a share to which nobody is attached: what it holds is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_device_release(
    device: *mut prism_device,
    name: *const c_char,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the name") }?;
        get::<DeviceObject>(device)?.device.release(name)?;
        Ok(0)
    })
}
