//! Handles: how C code refers to objects.
//!
//! A handle looks like a pointer and is a number: the kind of object, an index into the table of
//! its kind, and a generation that counts the uses of that entry. It is looked up and never
//! dereferenced. So a closed handle, a handle of another kind and an invented number are all
//! rejected, and an object lives as long as a call uses it, even if another thread closes its
//! handle.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::status::{Failure, Status};

/// The kind of object of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory = 1,
    Device = 2,
    Share = 3,
    Raw = 4,
    RawQueue = 5,
    Function = 6,
    Policy = 7,
    Container = 8,
    Objects = 9,
    Kv = 10,
    FunctionQueue = 11,
    Buffer = 12,
    PolicyQueue = 13,
}

impl Kind {
    const ALL: [(Self, &'static str); 13] = [
        (Self::Memory, "prism_memory"),
        (Self::Device, "prism_device"),
        (Self::Share, "prism_share"),
        (Self::Raw, "prism_raw"),
        (Self::RawQueue, "prism_raw_queue"),
        (Self::Function, "prism_function"),
        (Self::Policy, "prism_policy"),
        (Self::Container, "prism_container"),
        (Self::Objects, "prism_objects"),
        (Self::Kv, "prism_kv"),
        (Self::FunctionQueue, "prism_function_queue"),
        (Self::Buffer, "prism_buffer"),
        (Self::PolicyQueue, "prism_policy_queue"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).expect("every kind is listed").1
    }
}

/// The lowest bit is set, which no address of an object in memory has.
const MARK: usize = 1;
const KIND_BITS: u32 = 4;
/// Handles that can be open at once: 16 million, or 4 thousand with 32-bit pointers.
const PLACE_BITS: u32 = if usize::BITS >= 64 { 24 } else { 12 };
const ENTRIES_MAX: usize = 1 << PLACE_BITS;
const USES: usize = 1 << (usize::BITS - PLACE_BITS - KIND_BITS - 1);

/// An object behind a handle of the C type `Handle`.
pub(crate) trait Held: Sized + Send + Sync + 'static {
    /// The C type of the handle.
    type Handle;
    const KIND: Kind;
    fn table() -> &'static Table<Self>;
}

#[derive(Debug)]
struct Entry<T> {
    uses: usize,
    object: Option<Arc<T>>,
}

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Table<T>(RwLock<Entries<T>>);

#[derive(Debug)]
struct Entries<T> {
    all: Vec<Entry<T>>,
    free: Vec<usize>,
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(Entries { all: Vec::new(), free: Vec::new() }))
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open handles of this kind.
    pub(crate) fn open(&self) -> usize {
        let places = self.read();
        places.all.len() - places.free.len()
    }
}

fn token(kind: Kind, place: usize, uses: usize) -> usize {
    ((uses << PLACE_BITS | place) << KIND_BITS | kind as usize) << 1 | MARK
}

/// The index and the generation of a token.
fn parts(kind: Kind, token: usize) -> Result<(usize, usize), Failure> {
    let wanted = kind.name();
    if token == 0 {
        return Err(Failure::argument(format!("the {wanted} is NULL")));
    }
    let named = (token >> 1) & ((1 << KIND_BITS) - 1);
    let found = Kind::ALL.iter().find(|(found, _)| *found as usize == named);
    match found {
        Some((found, _)) if token & MARK == MARK && *found == kind => {
            let rest = token >> (1 + KIND_BITS);
            Ok((rest % ENTRIES_MAX, rest >> PLACE_BITS))
        }
        Some((_, name)) if token & MARK == MARK => {
            let what = format!("a {wanted} is expected here, and this is a {name}");
            Err(Failure::new(Status::PRISM_EHANDLE, what))
        }
        _ => Err(Failure::new(Status::PRISM_EHANDLE, format!("this is no {wanted}"))),
    }
}

fn closed(kind: Kind) -> Failure {
    let what = format!("this {} is closed, or never was one", kind.name());
    Failure::new(Status::PRISM_EHANDLE, what)
}

/// Adds an object to its table.
pub(crate) fn open<T: Held>(object: T) -> Result<*mut T::Handle, Failure> {
    let mut places = T::table().write();
    let place = match places.free.pop() {
        Some(place) => place,
        None if places.all.len() == ENTRIES_MAX => {
            let what = format!("{ENTRIES_MAX} handles of this kind are open: close some first");
            return Err(Failure::new(Status::PRISM_EBUSY, what));
        }
        None => {
            places.all.push(Entry { uses: 0, object: None });
            places.all.len() - 1
        }
    };
    let entry = &mut places.all[place];
    entry.object = Some(Arc::new(object));
    Ok(std::ptr::without_provenance_mut(token(T::KIND, place, entry.uses)))
}

/// The object of a handle.
pub(crate) fn get<T: Held>(handle: *const T::Handle) -> Result<Arc<T>, Failure> {
    let (place, uses) = parts(T::KIND, handle.addr())?;
    let places = T::table().read();
    let entry = places.all.get(place).filter(|entry| entry.uses == uses);
    entry.and_then(|entry| entry.object.clone()).ok_or_else(|| closed(T::KIND))
}

/// Removes the object of a handle from its table. It is dropped when the last call that uses it
/// returns.
pub(crate) fn close<T: Held>(handle: *mut T::Handle) -> Result<Arc<T>, Failure> {
    let (place, uses) = parts(T::KIND, handle.addr())?;
    let mut places = T::table().write();
    let entry = places.all.get_mut(place).filter(|entry| entry.uses == uses);
    let entry = entry.ok_or_else(|| closed(T::KIND))?;
    let object = entry.object.take().ok_or_else(|| closed(T::KIND))?;
    // A generation is reused only after all others of its entry.
    entry.uses = (entry.uses + 1) % USES;
    places.free.push(place);
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(u32);
    struct Other;

    macro_rules! held {
        ($object:ty, $kind:expr) => {
            impl Held for $object {
                type Handle = u8;
                const KIND: Kind = $kind;
                fn table() -> &'static Table<Self> {
                    static TABLE: Table<$object> = Table::new();
                    &TABLE
                }
            }
        };
    }

    held!(Thing, Kind::Raw);
    held!(Other, Kind::Kv);

    fn status<T>(result: Result<T, Failure>) -> Option<Status> {
        result.err().map(|failure| failure.status)
    }

    #[test]
    fn handles_are_distinguished() {
        let (one, two) = (open(Thing(1)).expect("room"), open(Thing(2)).expect("room"));
        assert_eq!((get::<Thing>(one).map(|t| t.0).ok(), one.addr() % 2), (Some(1), 1));
        assert_eq!(status(get::<Other>(one)), Some(Status::PRISM_EHANDLE));
        assert_eq!(status(get::<Thing>(std::ptr::null())), Some(Status::PRISM_EARGUMENT));
        for wrong in [2, 3, 16, usize::MAX, one.addr() + (1 << 40), one.addr() ^ MARK] {
            let wrong = std::ptr::without_provenance(wrong);
            assert_eq!(status(get::<Thing>(wrong)), Some(Status::PRISM_EHANDLE));
        }
        assert_eq!(close::<Thing>(one).map(|thing| thing.0).ok(), Some(1));
        assert_eq!(status(close::<Thing>(one)), Some(Status::PRISM_EHANDLE));
        // The entry is reused, and the old handle stays invalid.
        let three = open(Thing(3)).expect("room");
        assert_eq!(status(get::<Thing>(one)), Some(Status::PRISM_EHANDLE));
        assert_eq!(get::<Thing>(three).map(|t| t.0).ok(), Some(3));
        assert_eq!((Thing::table().open(), get::<Thing>(two).map(|t| t.0).ok()), (2, Some(2)));
    }

    #[test]
    fn an_object_in_use_outlives_its_handle() {
        let handle = open(Other).expect("room");
        let busy = get::<Other>(handle).expect("it is open");
        drop(close::<Other>(handle));
        assert_eq!(Arc::strong_count(&busy), 1);
    }
}
