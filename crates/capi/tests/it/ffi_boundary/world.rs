//! Handles of all kinds, valid and invalid, and the model of which are valid.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

use prism_capi::*;

/// A call to be made; the meaning of its numbers depends on the call.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub call: u8,
    pub who: u8,
    pub odd: u8,
    pub a: u64,
    pub b: u64,
    pub c: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Memory,
    Device,
    Share,
    Raw,
    Queue,
    Function,
    FunctionQueue,
    Buffer,
    Policy,
    PolicyQueue,
    Container,
    Objects,
    Kv,
}

struct Entry {
    kind: Kind,
    token: usize,
    open: bool,
}

/// More than the size of any structure.
const STRUCT_ROOM: usize = 8192;
/// More than the data of any call of these tests.
pub const ROOM: usize = 1 << 20;

pub struct World {
    handles: Vec<Entry>,
    structure: Vec<u64>,
    pub room: Vec<u64>,
}

/// Zeros, a valid value of every structure of the library.
pub fn zeroed<T: Copy>() -> T {
    // SAFETY: the structures consist of numbers.
    unsafe { std::mem::zeroed() }
}

pub fn message() -> String {
    // SAFETY: messages are zero-terminated.
    unsafe { CStr::from_ptr(prism_last_message()) }.to_string_lossy().into_owned()
}

pub fn geometry() -> prism_geometry {
    prism_geometry {
        size: size_of::<prism_geometry>(),
        channels: 2,
        luns_per_channel: 3,
        blocks_per_lun: 40,
        pages_per_block: 8,
        page_size: 4096,
        oob_size: 64,
        ..zeroed()
    }
}

pub fn allocation(capacity: u64, over_provisioning: u32) -> prism_allocation {
    let size = size_of::<prism_allocation>();
    prism_allocation { size, capacity, over_provisioning, ..zeroed() }
}

pub fn range_config() -> prism_range_config {
    let size = size_of::<prism_range_config>();
    prism_range_config { size, over_provisioning: 25, ..zeroed() }
}

pub fn lun_bytes(device: *mut prism_device) -> u64 {
    let mut bytes = 0;
    // SAFETY: the pointer is valid.
    unsafe { prism_device_lun_capacity(device, &mut bytes) };
    bytes
}

impl World {
    pub fn new() -> Self {
        let (structure, room) = (vec![0; STRUCT_ROOM / 8], vec![0; ROOM / 8]);
        Self { handles: Vec::new(), structure, room }
    }

    /// A device with a share of three LUNs and one of over-provisioning.
    pub fn with_share() -> (Self, *mut prism_share) {
        let mut world = Self::new();
        let (mut memory, mut device, mut share) = (null_mut(), null_mut(), null_mut());
        // SAFETY: every pointer is valid.
        unsafe {
            assert_eq!(prism_memory_create(&geometry(), 0, &mut memory), 0);
            assert_eq!(prism_device_format_memory(memory, null(), &mut device), 0);
            world.opened(Kind::Memory, memory);
            world.opened(Kind::Device, device);
            let wanted = allocation(3 * lun_bytes(device), 25);
            assert_eq!(prism_device_allocate(device, c"it".as_ptr(), &wanted, &mut share), 0);
        }
        world.opened(Kind::Share, share);
        (world, share)
    }

    pub fn opened<T>(&mut self, kind: Kind, handle: *mut T) {
        assert!(!handle.is_null());
        let token = handle.addr();
        let again = self.handles.iter().any(|entry| entry.token == token);
        assert!(!again, "a handle came twice");
        self.handles.push(Entry { kind, token, open: true });
    }

    pub fn is_open(&self, kind: Kind, token: usize) -> bool {
        let same = |entry: &Entry| entry.kind == kind && entry.token == token && entry.open;
        self.handles.iter().any(same)
    }

    /// A handle for a call, mostly a valid one, and whether it is.
    pub fn pick<T>(&self, kind: Kind, op: &Op) -> (*mut T, bool) {
        let of_kind: Vec<_> =
            self.handles.iter().filter(|entry| entry.kind == kind && entry.open).collect();
        let any = self.handles.get(usize::from(op.who) % self.handles.len().max(1));
        let token = match op.odd % 16 {
            0 => 0,
            1 => op.a as usize,
            2 | 3 => any.map_or(2, |entry| entry.token),
            4 => any.map_or(3, |entry| entry.token ^ (1 << (op.a % 64))),
            _ if of_kind.is_empty() => 0,
            _ => of_kind[usize::from(op.who) % of_kind.len()].token,
        };
        (without_provenance_mut(token), self.is_open(kind, token))
    }

    pub fn has(&self, kind: Kind) -> bool {
        self.handles.iter().any(|entry| entry.kind == kind && entry.open)
    }

    /// Closes a handle by a call, and notes that it was closed, if it was.
    pub fn close<T>(
        &mut self,
        kind: Kind,
        handle: *mut T,
        close: extern "C" fn(*mut T) -> c_int,
    ) -> c_int {
        let result = close(handle);
        self.closed(kind, handle, result);
        result
    }

    /// Notes that a handle was closed, if it was.
    pub fn closed<T>(&mut self, kind: Kind, handle: *mut T, result: c_int) {
        if result == 0 {
            let same = |entry: &&mut Entry| entry.kind == kind && entry.token == handle.addr();
            let entry = self.handles.iter_mut().find(same);
            entry.expect("only what was opened can be closed").open = false;
        }
    }

    /// A structure with a mostly valid size, in memory for the largest size.
    pub fn give<T: Copy>(&mut self, value: T, op: &Op) -> *mut T {
        self.structure.fill(if op.odd % 32 == 17 { op.c } else { 0 });
        let at = self.structure.as_mut_ptr().cast::<T>();
        // SAFETY: the memory is larger than any structure, and aligned.
        unsafe { at.write(value) };
        self.structure[0] = match op.odd % 32 {
            8 => op.b,
            17 | 18 => size_of::<T>() as u64 + 8 * (op.b % 9),
            19 => 4096,
            20 => return null_mut(),
            _ => size_of::<T>() as u64,
        };
        at
    }

    /// A buffer with a length that is mostly its own or less; a longer one is longer than any
    /// object can be.
    pub fn buffer(&mut self, op: &Op) -> (*mut c_void, usize) {
        let at = self.room.as_mut_ptr().cast();
        match op.odd % 64 {
            40 => (null_mut(), 0),
            41 => (null_mut(), op.c as usize),
            42 => (at, usize::MAX - (op.c % 9) as usize),
            43 => (at, ROOM),
            44..48 => (at, (op.c % ROOM as u64) as usize),
            _ => (at, 4096 * (op.c % 5) as usize),
        }
    }

    /// The expected result of the library.
    pub fn open_handles(&self) -> c_int {
        self.handles.iter().filter(|entry| entry.open).count() as c_int
    }

    /// Closes every open handle, the oldest first and buffers last, which commands may have.
    /// Returns the results of the calls that did not succeed: a device in a file is closed even if
    /// that file could not be synced.
    pub fn close_all(&mut self) -> Vec<c_int> {
        let mut failures = Vec::new();
        self.handles.sort_by_key(|entry| entry.kind == Kind::Buffer);
        for entry in self.handles.iter_mut().filter(|entry| entry.open) {
            let token = entry.token;
            let result = match entry.kind {
                Kind::Memory => prism_memory_close(without_provenance_mut(token)),
                Kind::Device => prism_device_close(without_provenance_mut(token)),
                Kind::Share => prism_share_close(without_provenance_mut(token)),
                Kind::Raw => prism_raw_close(without_provenance_mut(token)),
                Kind::Queue => prism_raw_queue_close(without_provenance_mut(token)),
                Kind::Function => prism_function_close(without_provenance_mut(token)),
                Kind::FunctionQueue => prism_function_queue_close(without_provenance_mut(token)),
                Kind::Buffer => prism_buffer_free(without_provenance_mut(token)),
                Kind::Policy => prism_policy_close(without_provenance_mut(token)),
                Kind::PolicyQueue => prism_policy_queue_close(without_provenance_mut(token)),
                Kind::Container => prism_container_close(without_provenance_mut(token)),
                Kind::Objects => prism_objects_close(without_provenance_mut(token)),
                Kind::Kv => prism_kv_close(without_provenance_mut(token)),
            };
            failures.extend((result != 0).then_some(result));
            entry.open = false;
        }
        failures
    }
}

impl Drop for World {
    /// A case that fails leaves nothing open for the next one, whose invented handles would
    /// otherwise be able to hit one of these.
    fn drop(&mut self) {
        self.close_all();
    }
}
