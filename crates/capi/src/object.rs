//! The object level: byte arrays with attributes.

use std::ffi::{c_int, c_void};

use prism::Share;
use prism::object::{ObjectId, ObjectStore};

use crate::ffi_boundary::{
    Out, OutStruct, bytes, bytes_mut, call, done, number, read_if_any, slice_mut,
};
use crate::handle::{close, get, open};
use crate::share::prism_share;
use crate::status::{Failure, Status};
use crate::structs::prism_attributes;

/// A store of objects. Threads may use it at once.
pub struct prism_objects;

pub(crate) struct StoreObject {
    store: ObjectStore,
    /// Bytes for all objects together, the limit of the length of a request.
    capacity: u64,
}

held!(StoreObject, prism_objects, Objects);

impl StoreObject {
    fn check(&self, length: usize) -> Result<(), Failure> {
        if length as u64 > self.capacity {
            let what =
                format!("{length} bytes are more than the store has: {} in all", self.capacity);
            return Err(Failure::new(Status::PRISM_ENOSPACE, what));
        }
        Ok(())
    }
}

/// Opens the store in a share, with its objects, if any. The share stays attached until the store
/// is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_open(
    share: *mut prism_share,
    objects: *mut *mut prism_objects,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::handle(objects) }?;
        let store = ObjectStore::open(Share::clone(&*get::<Share>(share)?))?;
        let (capacity, _) = store.capacity();
        out.put(open(StoreObject { store, capacity })?);
        Ok(0)
    })
}

/// Closes the store. Writes that were not flushed are lost.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_close(objects: *mut prism_objects) -> c_int {
    call(|| close::<StoreObject>(objects).map(|_| 0))
}

/// Writes the bytes for all objects together to `size`, and those that are free to `free_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_capacity(
    objects: *mut prism_objects,
    size: *mut u64,
    free_bytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, free) = unsafe { (Out::new(size, "size")?, Out::new(free_bytes, "free_bytes")?) };
        let (all, left) = get::<StoreObject>(objects)?.store.capacity();
        out.put(all);
        free.put(left);
        Ok(0)
    })
}

/// Makes an empty object and writes its id to `id`. `attributes` may be NULL for the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_create(
    objects: *mut prism_objects,
    attributes: *const prism_attributes,
    id: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let (out, attributes) = unsafe { (Out::new(id, "id")?, read_if_any(attributes)?) };
        let attributes = attributes.map(|given| given.value()).transpose()?.unwrap_or_default();
        out.put(get::<StoreObject>(objects)?.store.create(attributes)?.0);
        Ok(0)
    })
}

/// Writes the size of an object to `size` and its attributes to `attributes`. Either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_info(
    objects: *mut prism_objects,
    id: u64,
    size: *mut u64,
    attributes: *mut prism_attributes,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let size_out = unsafe { Out::if_any(size, "size") }?;
        let attributes_out = if attributes.is_null() {
            None
        } else {
            // SAFETY: the contract in the header.
            Some(unsafe { OutStruct::new(attributes) }?)
        };
        let info = get::<StoreObject>(objects)?.store.info(ObjectId(id))?;
        size_out.iter().for_each(|out| out.put(info.size));
        attributes_out.iter().for_each(|out| out.put(info.attributes.into()));
        Ok(0)
    })
}

/// Returns the number of objects. Writes their ids to `ids`, the lowest first, at most `capacity`
/// of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_list(
    objects: *mut prism_objects,
    ids: *mut u64,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let room = unsafe { slice_mut(ids, capacity, "the room for names") }?;
        let all = get::<StoreObject>(objects)?.store.list();
        room.iter_mut().zip(&all).for_each(|(to, info)| *to = info.id.0);
        number(all.len())
    })
}

/// Changes the attributes of an object; later writes are placed accordingly.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_set_attributes(
    objects: *mut prism_objects,
    id: u64,
    attributes: *const prism_attributes,
) -> c_int {
    done(|| {
        // SAFETY: the contract in the header.
        let attributes = unsafe { crate::ffi_boundary::read(attributes) }?.value()?;
        Ok(get::<StoreObject>(objects)?.store.set_attributes(ObjectId(id), attributes)?)
    })
}

/// Reads from `offset` on, up to the end of the object. Writes the number of bytes read to `read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_read(
    objects: *mut prism_objects,
    id: u64,
    offset: u64,
    data: *mut c_void,
    length: usize,
    read: *mut usize,
) -> c_int {
    call(|| {
        let object = get::<StoreObject>(objects)?;
        // No object is longer.
        let most = usize::try_from(object.capacity).unwrap_or(usize::MAX);
        // SAFETY: the contract in the header.
        let (out, data) = unsafe { (Out::new(read, "read")?, bytes_mut(data, length.min(most))?) };
        out.put(object.store.read(ObjectId(id), offset, data)?);
        Ok(0)
    })
}

/// Writes at `offset`; the object grows as far as needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_write(
    objects: *mut prism_objects,
    id: u64,
    offset: u64,
    data: *const c_void,
    length: usize,
) -> c_int {
    done(|| {
        let object = get::<StoreObject>(objects)?;
        object.check(length)?;
        // SAFETY: the contract in the header.
        let data = unsafe { bytes(data, length) }?;
        Ok(object.store.write(ObjectId(id), offset, data)?)
    })
}

/// Writes at the end. `offset`, which may be NULL, is set to the offset of the data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_append(
    objects: *mut prism_objects,
    id: u64,
    data: *const c_void,
    length: usize,
    offset: *mut u64,
) -> c_int {
    call(|| {
        let object = get::<StoreObject>(objects)?;
        object.check(length)?;
        // SAFETY: the contract in the header.
        let (out, data) = unsafe { (Out::if_any(offset, "offset")?, bytes(data, length)?) };
        let at = object.store.append(ObjectId(id), data)?;
        out.iter().for_each(|out| out.put(at));
        Ok(0)
    })
}

/// Sets the size of an object: truncates it, or extends it with zeros.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_truncate(objects: *mut prism_objects, id: u64, size: u64) -> c_int {
    done(|| Ok(get::<StoreObject>(objects)?.store.truncate(ObjectId(id), size)?))
}

/// Deletes an object. Its data is never copied again from the next flush on.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_delete(objects: *mut prism_objects, id: u64) -> c_int {
    done(|| Ok(get::<StoreObject>(objects)?.store.delete(ObjectId(id))?))
}

/// Makes everything done so far durable.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_flush(objects: *mut prism_objects) -> c_int {
    done(|| Ok(get::<StoreObject>(objects)?.store.flush()?))
}

/// Cleans in idle time, up to `program_units` program units of copies. Returns 1 if there was
/// anything to do, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_idle(objects: *mut prism_objects, program_units: u32) -> c_int {
    call(|| Ok(get::<StoreObject>(objects)?.store.idle(program_units)?.into()))
}
