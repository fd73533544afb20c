//! The header of a blktrace record.
//!
//! ```text
//!          0     4         8        16      24     28      32      36      40   44     46
//! v7 (48)  mark  sequence  time_ns  sector  bytes  action  pid     device  cpu  error  payload
//!          0     4         8        16      24     28      32      40      44   48     50
//! v8 (64)  mark  sequence  time_ns  sector  bytes  pid     action  device  cpu  error  payload
//! ```
//! `payload` is the length of what follows the header. The magic number is `0x656174` with the
//! version in the last byte; it shows the byte order. The low 16 bits of the action are the
//! event, the rest its category. Source: the kernel's `include/uapi/linux/blktrace_api.h`.

use crate::event::SECTOR;
use crate::record::{Flags, Op};
use crate::rwbs::{Kind, Rwbs};

/// Version and byte order of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    big_endian: bool,
    version: u8,
}

/// The fields that are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// Bytes of the header itself.
    pub len: usize,
    pub payload_len: usize,
    pub time_ns: u64,
    pub sector: u64,
    pub pid: u32,
    bytes: u32,
    action: u64,
    device: u32,
}

/// Categories, from bit 16 of the action.
mod category {
    pub const WRITE: u64 = 1 << 1;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const PASSED_THROUGH: u64 = 1 << 9;
    pub const NOTIFY: u64 = 1 << 10;
    pub const AHEAD: u64 = 1 << 11;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const FUA: u64 = 1 << 15;
    /// Version 8: reset, reset all, finish, open, close.
    pub const ZONE: u64 = 0b1_1111 << 17;
    pub const WRITE_ZEROES: u64 = 1 << 22;
}

/// The payload begins with a cgroup number of eight bytes.
const CGROUP: u16 = 1 << 8;

impl Order {
    /// From the first four bytes of a record.
    pub fn of_mark(mark: [u8; 4]) -> Option<Self> {
        match mark {
            [version @ (7 | 8), b't', b'a', b'e'] => Some(Self { big_endian: false, version }),
            [b'e', b'a', b't', version @ (7 | 8)] => Some(Self { big_endian: true, version }),
            _ => None,
        }
    }

    /// Whether this is version 8.
    pub fn is_new(self) -> bool {
        self.version == 8
    }

    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }
}

impl Header {
    /// Reads a header; `None` if `bytes` are too few.
    pub fn read(bytes: &[u8], order: Order) -> Option<Self> {
        let is_new = order.is_new();
        let len = if is_new { 64 } else { 48 };
        let bytes = bytes.get(..len)?;
        let (pid, device, payload) = if is_new { (28, 40, 50) } else { (32, 36, 46) };
        Some(Self {
            len,
            payload_len: usize::from(order.u16(bytes, payload)?),
            time_ns: order.u64(bytes, 8)?,
            sector: order.u64(bytes, 16)?,
            pid: order.u32(bytes, pid)?,
            bytes: order.u32(bytes, 24)?,
            action: if is_new { order.u64(bytes, 32)? } else { order.u32(bytes, 28)?.into() },
            device: order.u32(bytes, device)?,
        })
    }

    /// What happened.
    pub fn action(&self) -> u16 {
        self.action as u16 & !CGROUP
    }

    /// Bytes of the cgroup number at the start of the payload.
    pub fn cgroup_len(&self) -> usize {
        if self.action as u16 & CGROUP == 0 { 0 } else { 8 }
    }

    /// A record of the tracer itself.
    pub fn is_notice(&self) -> bool {
        self.has(category::NOTIFY)
    }

    /// A notice whose payload is the command of the process.
    pub fn names_process(&self) -> bool {
        self.is_notice() && self.action() == 0
    }

    /// Major and minor number.
    pub fn device(&self) -> (u32, u32) {
        device(self.device)
    }

    /// Operation, flags and sectors.
    pub fn rwbs(&self) -> (Rwbs, u64) {
        let mut flags = Flags::NONE;
        for (bit, flag) in [
            (category::FLUSH, Flags::PREFLUSH),
            (category::FUA, Flags::FUA),
            (category::AHEAD, Flags::READAHEAD),
            (category::SYNC, Flags::SYNC),
            (category::META, Flags::META),
        ] {
            if self.has(bit) {
                flags = flags.with(flag);
            }
        }
        let kind = if self.has(category::PASSED_THROUGH) {
            // Its sector and bytes are not a range of the device.
            return (Rwbs { kind: Kind::Nameless, flags: Flags::NONE }, 0);
        } else if self.has(category::ZONE) {
            Kind::Zone
        } else if self.has(category::WRITE_ZEROES) {
            Kind::Data(Op::WriteZeroes)
        } else if self.has(category::DISCARD) {
            Kind::Data(Op::Discard)
        } else if self.has(category::WRITE) {
            Kind::Data(Op::Write)
        } else {
            Kind::Data(Op::Read)
        };
        (Rwbs { kind, flags }, u64::from(self.bytes) / SECTOR)
    }

    fn has(&self, category: u64) -> bool {
        self.action >> 16 & category != 0
    }
}

/// Major and minor number of the kernel's internal form.
pub(crate) fn device(number: u32) -> (u32, u32) {
    (number >> 20, number & 0xf_ffff)
}
