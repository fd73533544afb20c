//! The fields of the NVMe driver's tracepoints, as ftrace prints them.
//!
//! ```text
//! nvme_setup_cmd:   nvme0: disk=nvme0n1, qid=1, cmdid=12, nsid=1, flags=0x0, meta=0x0,
//!                   cmd=(nvme_cmd_write slba=69944, len=1023, ctrl=0x0, dsmgmt=0, reftag=0)
//! nvme_complete_rq: nvme0: disk=nvme0n1, qid=1, cmdid=12, res=0x0, retries=0, flags=0x0, ...
//! ```
//! Addresses and lengths are in logical blocks, and the printed length is one less than the
//! number of blocks; no field contains the size of a block. A completion is matched by
//! controller, queue and number, not by address. The ranges of a discard are in memory that is
//! not printed. The driver no longer knows sync and metadata flags.
//!
//! Source: NVM Express NVM Command Set 1.0, read and write commands; Linux
//! `drivers/nvme/host/trace.[ch]`.

use crate::event::{CommandId, EventKind, Target};
use crate::names::{DataTags, Names, Origin};
use crate::record::{Flags, Op};
use crate::scan::whole;

/// Bits of `ctrl`, the upper half of the command's twelfth word.
const FUA: u64 = 1 << 14;
/// The directive type in `ctrl`: 1 is streams, 2 is data placement.
const DIRECTIVE_SHIFT: u32 = 4;
/// `dsmgmt`: access hints in the low bits, the directive's value in the upper half.
const ACCESS: u64 = 0xf;
/// The access hint by which Linux marks read-ahead.
const PREFETCH: u64 = 7;
/// The attribute of dataset management that makes it a discard.
const DEALLOCATE: u64 = 1 << 2;

/// The event of `nvme_setup_cmd` with the fields `body`, printed for `task`. Sectors of the
/// target are logical blocks; a discard has none.
pub(crate) fn command(pid: i32, task: &[u8], body: &[u8], names: &mut Names) -> Option<EventKind> {
    let (before, cmd) = body.split_at(memchr::memmem::find(body, b"cmd=(")?);
    let (controller, fields) = controller(before)?;
    let disk = field(fields, b"disk=").unwrap_or(controller);
    let cmd = cmd.strip_prefix(b"cmd=(")?;
    let end = cmd.iter().rposition(|&byte| byte == b')')?;
    let (name, arguments) = match cmd[..end].iter().position(|&byte| byte == b' ') {
        Some(space) => (&cmd[..space], &cmd[space + 1..end]),
        None => (&cmd[..end], &[][..]),
    };
    let number_of = |key| number(field(arguments, key)?);
    let mut tags = DataTags::NONE;
    let (op, sector, sectors, flags) = match name {
        b"nvme_cmd_read"
        | b"nvme_cmd_write"
        | b"nvme_cmd_write_zeroes"
        | b"nvme_cmd_zone_append" => {
            let op = match name {
                b"nvme_cmd_read" => Op::Read,
                b"nvme_cmd_write_zeroes" => Op::WriteZeroes,
                _ => Op::Write,
            };
            let (ctrl, dsmgmt) = (number_of(b"ctrl=")?, number_of(b"dsmgmt=")?);
            if matches!(ctrl >> DIRECTIVE_SHIFT & 0xf, 1 | 2) {
                tags.stream = (dsmgmt >> 16) as u16;
            }
            let fua = if ctrl & FUA != 0 { Flags::FUA } else { Flags::NONE };
            let ahead = op == Op::Read && dsmgmt & ACCESS == PREFETCH;
            let ahead = if ahead { Flags::READAHEAD } else { Flags::NONE };
            let blocks = number_of(b"len=")?.checked_add(1)?;
            (Some(op), number_of(b"slba=")?, blocks, fua.with(ahead))
        }
        b"nvme_cmd_flush" => (Some(Op::Flush), 0, 0, Flags::NONE),
        b"nvme_cmd_dsm" if number_of(b"attributes=")? & DEALLOCATE != 0 => {
            (Some(Op::Discard), 0, 0, Flags::NONE)
        }
        _ => (None, 0, 0, Flags::NONE),
    };
    let id = id(controller, fields, names)?;
    let device = names.symbols.intern(std::str::from_utf8(disk).ok()?);
    let target = Target { sector, sectors, device, flags, op };
    let task = task.trim_ascii();
    // The tracer no longer knew the name.
    let task = if task == b"<...>" { &[] } else { task };
    let origin = Origin { tags, ..names.issuer(pid, task) };
    Some(EventKind::Command(target, origin, id))
}

/// The event of `nvme_complete_rq` with the fields `body`.
pub(crate) fn completion(body: &[u8], names: &mut Names) -> Option<EventKind> {
    let (controller, fields) = controller(body)?;
    id(controller, fields, names).map(EventKind::CommandDone)
}

/// The controller's name, and the fields after it.
fn controller(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', body)?;
    let name = &body[..colon];
    let is_name = name.starts_with(b"nvme") && name.iter().all(u8::is_ascii_alphanumeric);
    is_name.then_some((name, &body[colon + 1..]))
}

fn id(controller: &[u8], fields: &[u8], names: &mut Names) -> Option<CommandId> {
    let number_of = |key| u16::try_from(number(field(fields, key)?)?).ok();
    let (queue, number) = (number_of(b"qid=")?, number_of(b"cmdid=")?);
    let controller = names.symbols.intern(std::str::from_utf8(controller).ok()?);
    Some(CommandId { controller, queue, number })
}

/// The value of `key` in `a=1, b=2`.
fn field<'a>(fields: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    fields.split(|&byte| byte == b',').find_map(|field| field.trim_ascii().strip_prefix(key))
}

/// A number, in decimal or after `0x` in hexadecimal digits.
fn number(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"0x") {
        Some(_) => crate::fields::hex(word).ok(),
        None => whole(word),
    }
}
