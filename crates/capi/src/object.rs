//! The object level: byte arrays with attributes.

use std::ffi::{c_int, c_void};

use prism::Share;
use prism::object::{ObjectId, ObjectStore};

use crate::ffi_boundary::{Out, OutStruct, bytes, bytes_mut, call, number, read_if_any, slice_mut};
use crate::handle::{close, get, open};
use crate::share::prism_share;
use crate::status::{Failure, Status};
use crate::structs::prism_attributes;

/// A store of objects. Threads may use it at once.
pub struct prism_objects;

pub(crate) struct StoreObject {
    store: ObjectStore,
    /// Bytes that objects can have together: no request moves more.
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

/// Opens the store in a share: with the objects it has, or empty. The share stays attached until
/// this is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_open(
    share: *mut prism_share,
    objects: *mut *mut prism_objects,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::handle(objects) }?;
        let store = ObjectStore::open(Share::clone(&*get::<Share>(share)?))?;
        let (capacity, _) = store.capacity();
        out.put(open(StoreObject { store, capacity })?);
        Ok(0)
    })
}

/// Closes the store. What was not flushed is lost.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_close(objects: *mut prism_objects) -> c_int {
    call(|| close::<StoreObject>(objects).map(|_| 0))
}

/// Puts the bytes that objects can have together into `size`, and those that are free into
/// `free_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_capacity(
    objects: *mut prism_objects,
    size: *mut u64,
    free_bytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, free) = unsafe { (Out::new(size, "size")?, Out::new(free_bytes, "free_bytes")?) };
        let (all, left) = get::<StoreObject>(objects)?.store.capacity();
        out.put(all);
        free.put(left);
        Ok(0)
    })
}

/// Makes an empty object and puts its name into `id`. `attributes` may be NULL: nothing is known
/// of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_create(
    objects: *mut prism_objects,
    attributes: *const prism_attributes,
    id: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let (out, attributes) = unsafe { (Out::new(id, "id")?, read_if_any(attributes)?) };
        let attributes = attributes.map(|given| given.value()).transpose()?.unwrap_or_default();
        out.put(get::<StoreObject>(objects)?.store.create(attributes)?.0);
        Ok(0)
    })
}

/// Puts the size of an object into `size` and what is said of it into `attributes`. Either may
/// be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_info(
    objects: *mut prism_objects,
    id: u64,
    size: *mut u64,
    attributes: *mut prism_attributes,
) -> c_int {
    call(|| {
        let size_out = if size.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(unsafe { Out::new(size, "size") }?)
        };
        let attributes_out = if attributes.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(unsafe { OutStruct::new(attributes) }?)
        };
        let info = get::<StoreObject>(objects)?.store.info(ObjectId(id))?;
        size_out.iter().for_each(|out| out.put(info.size));
        attributes_out.iter().for_each(|out| out.put(info.attributes.into()));
        Ok(0)
    })
}

/// Returns how many objects there are. Their names go to `ids`, the lowest first, as many as
/// `capacity` has room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_list(
    objects: *mut prism_objects,
    ids: *mut u64,
    capacity: usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let room = unsafe { slice_mut(ids, capacity, "the room for names") }?;
        let all = get::<StoreObject>(objects)?.store.list();
        room.iter_mut().zip(&all).for_each(|(to, info)| *to = info.id.0);
        number(all.len())
    })
}

/// Changes what is said of an object; what is written from now on is placed accordingly.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_objects_set_attributes(
    objects: *mut prism_objects,
    id: u64,
    attributes: *const prism_attributes,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let attributes = unsafe { crate::ffi_boundary::read(attributes) }?.value()?;
        get::<StoreObject>(objects)?.store.set_attributes(ObjectId(id), attributes)?;
        Ok(0)
    })
}

/// Reads from `offset` on. How many bytes there were goes to `read`; beyond the end of the
/// object there are none.
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
        // No object has more.
        let most = usize::try_from(object.capacity).unwrap_or(usize::MAX);
        // SAFETY: the caller's promise.
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
    call(|| {
        let object = get::<StoreObject>(objects)?;
        object.check(length)?;
        // SAFETY: the caller's promise.
        let data = unsafe { bytes(data, length) }?;
        object.store.write(ObjectId(id), offset, data)?;
        Ok(0)
    })
}

/// Writes at the end. Where that was goes to `offset`, which may be NULL.
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
        let out = if offset.is_null() {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(unsafe { Out::new(offset, "offset") }?)
        };
        // SAFETY: the caller's promise.
        let data = unsafe { bytes(data, length) }?;
        let at = object.store.append(ObjectId(id), data)?;
        out.iter().for_each(|out| out.put(at));
        Ok(0)
    })
}

/// Makes an object `size` bytes long: cut off, or with zeros at the end.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_truncate(objects: *mut prism_objects, id: u64, size: u64) -> c_int {
    call(|| {
        get::<StoreObject>(objects)?.store.truncate(ObjectId(id), size)?;
        Ok(0)
    })
}

/// Deletes an object. What it held is never copied again from the next flush on.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_delete(objects: *mut prism_objects, id: u64) -> c_int {
    call(|| {
        get::<StoreObject>(objects)?.store.delete(ObjectId(id))?;
        Ok(0)
    })
}

/// Everything done so far is durable when this returns.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_flush(objects: *mut prism_objects) -> c_int {
    call(|| {
        get::<StoreObject>(objects)?.store.flush()?;
        Ok(0)
    })
}

/// Cleans in time to spare, up to `rows` rows of copies. Returns 1 if there was anything to do,
/// else 0.
#[unsafe(no_mangle)]
pub extern "C" fn prism_objects_idle(objects: *mut prism_objects, rows: u32) -> c_int {
    call(|| Ok(get::<StoreObject>(objects)?.store.idle(rows)?.into()))
}
