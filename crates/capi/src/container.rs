//! Containers: named parts of a range, each for data of one lifetime.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use prism::FlashError;
use prism::policy::{Container, ContainerInfo};

use crate::convert::lifetime;
use crate::ffi_boundary::{
    Out, OutStruct, at_most, bytes, bytes_mut, call, done, number, put_text, slice_mut, text,
};
use crate::handle::{close, get, open};
use crate::policy::{PolicyObject, prism_policy};
use crate::status::Failure;
use crate::structs::prism_container_info;

/// A container: addresses from 0 on. Threads may use it at once.
pub struct prism_container;

pub(crate) struct ContainerObject {
    policy: Arc<PolicyObject>,
    info: ContainerInfo,
}

held!(ContainerObject, prism_container, Container);

impl ContainerObject {
    fn new(policy: &Arc<PolicyObject>, container: &Container<'_>) -> Self {
        Self { policy: Arc::clone(policy), info: container.info().clone() }
    }

    /// The container, unless it was deleted: one that was deleted and made again is another.
    fn with<T>(&self, run: impl FnOnce(Container<'_>) -> prism::Result<T>) -> Result<T, Failure> {
        let found = self.policy.policy.container(&self.info.name).ok();
        let same = found.filter(|container| *container.info() == self.info);
        Ok(run(same.ok_or(FlashError::Released)?)?)
    }

    fn check(&self, length: usize) -> Result<(), Failure> {
        at_most(length, self.info.end - self.info.begin, "the container")
    }
}

fn info_of(info: &ContainerInfo) -> prism_container_info {
    let lifetime = info.lifetime.handle().into();
    prism_container_info { size: 0, begin: info.begin, end: info.end, lifetime }
}

/// Makes a container of `length` bytes in the range that begins at `range`, for data of a
/// `prism_lifetime`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_container_create(
    policy: *mut prism_policy,
    range: u64,
    name: *const c_char,
    length: u64,
    life: u32,
    container: *mut *mut prism_container,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, name) = unsafe { (Out::handle(container)?, text(name, "the name")?) };
        let (policy, life) = (get::<PolicyObject>(policy)?, lifetime(life)?);
        let new = policy.policy.create_container(range, name, length, life)?;
        out.put(open(ContainerObject::new(&policy, &new))?);
        Ok(0)
    })
}

/// Opens the container of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_container_open(
    policy: *mut prism_policy,
    name: *const c_char,
    container: *mut *mut prism_container,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, name) = unsafe { (Out::handle(container)?, text(name, "the name")?) };
        let policy = get::<PolicyObject>(policy)?;
        out.put(open(ContainerObject::new(&policy, &policy.policy.container(name)?))?);
        Ok(0)
    })
}

/// Closes the handle; the container stays.
#[unsafe(no_mangle)]
pub extern "C" fn prism_container_close(container: *mut prism_container) -> c_int {
    call(|| close::<ContainerObject>(container).map(|_| 0))
}

/// Deletes the container of this name with its data, durably. Calls on its handles return
/// `PRISM_ERELEASED` from now on; the handles still have to be closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_container_delete(
    policy: *mut prism_policy,
    name: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: the contract in the header.
        let name = unsafe { text(name, "the name") }?;
        Ok(get::<PolicyObject>(policy)?.policy.delete_container(name)?)
    })
}

/// Returns the number of containers of all ranges.
#[unsafe(no_mangle)]
pub extern "C" fn prism_policy_containers(policy: *mut prism_policy) -> c_int {
    call(|| number(get::<PolicyObject>(policy)?.policy.containers().len()))
}

/// Describes container number `index`, by address. Writes its name to `name`, a buffer of
/// `capacity` bytes, truncated if necessary. Returns the length of the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_policy_container(
    policy: *mut prism_policy,
    index: usize,
    info: *mut prism_container_info,
    name: *mut c_char,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, room) =
            unsafe { (OutStruct::new(info)?, slice_mut(name.cast(), capacity, "the name")?) };
        let all = get::<PolicyObject>(policy)?.policy.containers();
        let (value, count) = (index as u64, all.len() as u64);
        let container = all.get(index);
        let container =
            container.ok_or(FlashError::OutOfRange { what: "container", value, count })?;
        out.put(info_of(container));
        put_text(&container.name, room)
    })
}

/// The addresses and the lifetime of the container.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_container_get_info(
    container: *mut prism_container,
    info: *mut prism_container_info,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { OutStruct::new(info) }?;
        let object = get::<ContainerObject>(container)?;
        object.with(|container| {
            out.put(info_of(container.info()));
            Ok(0)
        })
    })
}

/// Reads from `offset` on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_container_read(
    container: *mut prism_container,
    offset: u64,
    data: *mut c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<ContainerObject>(container)?;
        object.check(length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes_mut(data, length) }?;
        object.with(|container| container.read(offset, data))
    })
}

/// Writes from `offset` on, as data of the container's lifetime. The data is durable after the next
/// `prism_policy_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_container_write(
    container: *mut prism_container,
    offset: u64,
    data: *const c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<ContainerObject>(container)?;
        object.check(length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        object.with(|container| container.write(offset, data))
    })
}

/// Trims `length` bytes from `offset` on, which have to be whole units.
#[unsafe(no_mangle)]
pub extern "C" fn prism_container_trim(
    container: *mut prism_container,
    offset: u64,
    length: u64,
) -> c_int {
    done(|| {
        let object = get::<ContainerObject>(container)?;
        object.with(|container| container.trim(offset, length))
    })
}
