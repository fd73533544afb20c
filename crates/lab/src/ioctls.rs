//! System calls without a safe wrapper in a library: those of loop devices, and FITRIM.
#![allow(unsafe_code, reason = "an ioctl is as safe as the structure that it is given")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::ioctl::{self, Ioctl, IoctlOutput, NoArg, Opcode, Setter, Updater, opcode};

/// Source of these numbers and of the structures: Linux, include/uapi/linux/loop.h.
const LOOP_CLR_FD: Opcode = 0x4c01;
const LOOP_CONFIGURE: Opcode = 0x4c0a;
const LOOP_CTL_GET_FREE: Opcode = 0x4c82;

/// The kernel detaches the file at the last close of the device.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// The device accesses its file with direct I/O, so that data is not cached twice.
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Source: Linux, include/uapi/linux/fs.h.
const FITRIM: Opcode = opcode::read_write::<TrimRange>(b'X', 121);

#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

#[repr(C)]
struct TrimRange {
    start: u64,
    len: u64,
    len_min: u64,
}

/// Returns the number of a free device; the library has no pattern for a returned number.
struct GetFree;

// SAFETY: the call takes no argument and returns a number or an error.
unsafe impl Ioctl for GetFree {
    type Output = u32;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        LOOP_CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
        Ok(out as u32)
    }
}

/// The number of a loop device that is free at this moment; `control` is `/dev/loop-control`.
pub(super) fn free_loop(control: &File) -> io::Result<u32> {
    // SAFETY: see its implementation.
    Ok(unsafe { ioctl::ioctl(control.as_fd(), GetFree) }?)
}

/// Attaches `file` to the loop device `device`.
pub(super) fn attach(device: &File, file: &File) -> io::Result<()> {
    let info = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let fd = file.as_raw_fd() as u32;
    let config = LoopConfig { fd, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: the structure is the kernel's; the file stays open during the call.
    Ok(unsafe { ioctl::ioctl(device, Setter::<LOOP_CONFIGURE, LoopConfig>::new(config)) }?)
}

/// Detaches the file from the loop device, at once or at the last close.
pub(super) fn detach(device: &File) -> io::Result<()> {
    // SAFETY: the call takes no argument.
    Ok(unsafe { ioctl::ioctl(device, NoArg::<LOOP_CLR_FD>::new()) }?)
}

/// Discards the free space of the file system of `folder` on its device.
pub(super) fn trim(folder: &File) -> io::Result<()> {
    let mut range = TrimRange { start: 0, len: u64::MAX, len_min: 0 };
    // SAFETY: the structure is the kernel's, which changes the length only.
    Ok(unsafe { ioctl::ioctl(folder, Updater::<FITRIM, TrimRange>::new(&mut range)) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of loop_info64, loop_config and fstrim_range in C.
    #[test]
    fn structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
        assert_eq!(size_of::<TrimRange>(), 24);
        assert_eq!(FITRIM, 0xc018_5879);
    }
}
