//! The flash library for programs in C and other languages that can call C.
//!
//! The interface is `include/prism.h`, which is generated from this source; the manual is
//! docs/c-api.md. No panic crosses the FFI boundary, handles are numbers that are looked up, and
//! structures begin with their size, so that they can grow. The crate adds no behaviour: each call
//! corresponds to one of the crate `prism`.

#![allow(unsafe_code, reason = "C pointers are dereferenced, and names are exported")]
#![allow(non_camel_case_types, reason = "types have their C names")]
#![allow(
    clippy::missing_safety_doc,
    reason = "one contract holds for all calls: it is at the top of the header"
)]
#![warn(clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod ffi_boundary;
mod address;
mod buffer;
mod container;
mod convert;
mod device;
mod function;
#[deny(unsafe_code)]
mod handle;
mod kv;
mod memory;
mod object;
mod policy;
mod queue;
mod raw;
mod share;
mod status;
mod structs;

pub use address::*;
pub use buffer::*;
pub use container::*;
pub use device::*;
pub use function::*;
pub use kv::*;
pub use memory::*;
pub use object::*;
pub use policy::*;
pub use queue::PRISM_FOREVER;
pub use raw::*;
pub use share::*;
pub use status::*;
pub use structs::*;

use ffi_boundary::call;
use handle::Held;

/// Returns the number of open handles of all kinds, for tests of handle leaks.
#[unsafe(no_mangle)]
pub extern "C" fn prism_open_handles() -> std::ffi::c_int {
    call(|| {
        let open = [
            memory::Memory::table().open(),
            device::DeviceObject::table().open(),
            prism::Share::table().open(),
            raw::RawObject::table().open(),
            raw::QueueObject::table().open(),
            function::FunctionObject::table().open(),
            function::FunctionQueueObject::table().open(),
            buffer::BufferObject::table().open(),
            policy::PolicyObject::table().open(),
            policy::PolicyQueueObject::table().open(),
            container::ContainerObject::table().open(),
            object::StoreObject::table().open(),
            prism::kv::KvStore::table().open(),
        ];
        ffi_boundary::number(open.into_iter().sum::<usize>())
    })
}
