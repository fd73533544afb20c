//! The flash library for programs in C, and for whatever can call C.
//!
//! What a program sees is `include/prism.h`, which is made of this source; the manual is
//! docs/c-api.md. No panic crosses the FFI boundary, handles are numbers that are looked up, and
//! structures say how large they are, so that they can grow. The crate adds no behaviour: each
//! call is one of the crate `prism`.

#![allow(unsafe_code, reason = "pointers of C are followed, and names are exported")]
#![allow(non_camel_case_types, reason = "types have the names that they have in C")]
#![allow(
    clippy::missing_safety_doc,
    reason = "one promise holds for all calls: it stands at the head of the header"
)]
#![warn(clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod ffi_boundary;
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

pub use container::*;
pub use device::*;
pub use function::*;
pub use kv::*;
pub use memory::*;
pub use object::*;
pub use policy::*;
pub use raw::*;
pub use share::*;
pub use status::*;
pub use structs::*;

use ffi_boundary::call;
use handle::Held;

/// Returns how many handles of all kinds are open: a test that closed all of its own finds 0.
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
            policy::PolicyObject::table().open(),
            container::ContainerObject::table().open(),
            object::StoreObject::table().open(),
            prism::kv::KvStore::table().open(),
        ];
        ffi_boundary::number(open.into_iter().sum::<usize>())
    })
}
