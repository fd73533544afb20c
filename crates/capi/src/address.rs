//! Addresses as words.

use std::ffi::c_int;

use prism::raw::Address;

use crate::ffi_boundary::{Out, call};
use crate::status::{Failure, Status};
use crate::structs::prism_address;

/// Writes an address as one word, for maps of an application, to `bits`: the page in bits 0 to 15,
/// the block in 16 to 35, the LUN in 36 to 45, the channel in 46 to 55, and zeros, which the
/// application may use, in 56 to 63. Words are ordered as addresses are. `PRISM_ERANGE` if a number
/// is larger than on any device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_address_to_bits(at: prism_address, bits: *mut u64) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::new(bits, "bits") }?;
        let word = Address::from(at).checked_bits();
        out.put(word.ok_or_else(|| {
            let what = format!("{} is larger than on any device", Address::from(at));
            Failure::new(Status::PRISM_ERANGE, what)
        })?);
        Ok(0)
    })
}

/// Writes the address of a word to `at`. `PRISM_ERANGE` if one of the highest 8 bits is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prism_address_from_bits(bits: u64, at: *mut prism_address) -> c_int {
    call(|| {
        // SAFETY: the contract in the header.
        let out = unsafe { Out::new(at, "at") }?;
        let address = Address::from_bits(bits).ok_or_else(|| {
            let what = format!("{bits:#x} is no address: one of the highest 8 bits is set");
            Failure::new(Status::PRISM_ERANGE, what)
        })?;
        out.put(address.into());
        Ok(0)
    })
}
