//! The events of Prism's own BPF programs: their layout is that of `struct event` and
//! `struct name` in `crates/host/bpf/capture.bpf.c`, in the byte order of this machine.

use super::file_names::{FileKey, FileNames, METADATA};
use crate::error::TraceError;
use crate::event::{BAD_EVENT, Event, EventKind, SECTOR, Target};
use crate::intake::Intake;
use crate::names::{DataTags, Origin};
use crate::record::{Flags, Op};
use crate::rwbs::{Kind, Rwbs};

/// Bytes of `struct event`.
pub(super) const EVENT_BYTES: usize = 80;

/// Bytes of a part of a path in `struct name`, its end included.
const PART_BYTES: usize = 64;

/// Bytes of `struct name` before the parts.
const NAME_HEAD: usize = 24;

/// The most parts of a path.
const PARTS: usize = 8;

/// Operations of the block layer, the low 8 bits of `cmd_flags` (`enum req_op`).
const WRITE: u8 = 1;
const FLUSH: u8 = 2;
const DISCARD: u8 = 3;
const SECURE_ERASE: u8 = 5;
const ZONE_APPEND: u8 = 7;
const WRITE_ZEROES: u8 = 9;

/// Flags of the block layer (`enum req_flag_bits`), the same since Linux 4.10.
const FLAGS: [(u32, Flags); 5] = [
    (1 << 11, Flags::SYNC),
    (1 << 12, Flags::META),
    (1 << 17, Flags::FUA),
    (1 << 18, Flags::PREFLUSH),
    (1 << 19, Flags::READAHEAD),
];

/// Reads events, and remembers the names of files.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    files: FileNames,
}

impl Decoder {
    /// Takes event `number`.
    pub fn event(
        &mut self,
        bytes: &[u8],
        number: u64,
        intake: &mut Intake,
    ) -> Result<(), TraceError> {
        if bytes.len() == EVENT_BYTES {
            if let Some(event) = self.block_event(&Fields(bytes), number, intake) {
                return intake.event(event, 1);
            }
        } else if bytes.len() == NAME_HEAD + PARTS * PART_BYTES {
            self.name(&Fields(bytes), intake);
            return Ok(());
        }
        intake.skip(BAD_EVENT, number);
        Ok(())
    }

    fn block_event(&self, fields: &Fields<'_>, number: u64, intake: &mut Intake) -> Option<Event> {
        let device = device(fields.u32(36), intake);
        let target = Target::new(
            device,
            rwbs(fields.u32(44)),
            fields.u64(8),
            u64::from(fields.u32(40)) / SECTOR,
        )?;
        let other = fields.u64(24);
        let what = match fields.u8(56) {
            1 => EventKind::Queue(target, self.origin(fields, &target, false, intake)),
            2 => EventKind::Issue(target, self.origin(fields, &target, true, intake)),
            3 => EventKind::Complete(target),
            4 => EventKind::Requeue(target),
            5 => EventKind::Remap(target, self::device(fields.u32(32), intake), other),
            6 => EventKind::Split(target, other),
            7 => EventKind::BioComplete(target),
            _ => return None,
        };
        Some(Event { time_ns: fields.u64(0) as i64, line: number, kind: what })
    }

    fn origin(
        &self,
        fields: &Fields<'_>,
        target: &Target,
        issues: bool,
        intake: &mut Intake,
    ) -> Origin {
        let (pid, comm) = (fields.u32(48) as i32, fields.text(64, 16));
        let origin =
            if issues { intake.names.issuer(pid, comm) } else { intake.names.process(pid, comm) };
        let key = FileKey { file_system: fields.u32(52), inode: fields.u64(16) };
        let has_data = matches!(target.op, Some(Op::Read | Op::Write));
        let file = if key.inode == 0 && has_data && target.flags.has(Flags::META) {
            // Logs and structures that a file system keeps in its own memory.
            intake.names.symbols.intern(METADATA)
        } else {
            self.files.name(key)
        };
        let tags = DataTags {
            inode: key.inode,
            file,
            stream: u16::from(fields.u8(58)),
            hint: fields.u8(57),
        };
        Origin { tags, ..origin }
    }

    fn name(&mut self, fields: &Fields<'_>, intake: &mut Intake) {
        let key = FileKey { file_system: fields.u32(16), inode: fields.u64(0) };
        let parts = usize::from(fields.u8(21)).min(PARTS);
        let part = |index| fields.text(NAME_HEAD + index * PART_BYTES, PART_BYTES);
        let more = fields.u8(22) != 0;
        let symbols = &mut intake.names.symbols;
        self.files.set(key, fields.u64(8), (0..parts).map(part), more, symbols);
    }
}

/// The device of the kernel's internal number: 12 bits of major above 20 bits of minor.
fn device(number: u32, intake: &mut Intake) -> crate::symbols::Symbol {
    intake.names.device((number >> 20, number & 0xf_ffff))
}

/// The operation and its flags.
fn rwbs(opf: u32) -> Rwbs {
    let kind = match opf as u8 {
        0 => Kind::Data(Op::Read),
        WRITE | ZONE_APPEND => Kind::Data(Op::Write),
        FLUSH => Kind::Data(Op::Flush),
        DISCARD | SECURE_ERASE => Kind::Data(Op::Discard),
        WRITE_ZEROES => Kind::Data(Op::WriteZeroes),
        // Zone management and passthrough commands.
        _ => Kind::Zone,
    };
    let set = FLAGS.iter().filter(|(bit, _)| opf & bit != 0);
    Rwbs { kind, flags: set.fold(Flags::NONE, |flags, &(_, flag)| flags.with(flag)) }
}

/// The bytes of a structure, whose length was checked.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// A text that ends with a zero byte or with its field.
    fn text(&self, at: usize, length: usize) -> &'a [u8] {
        let field = &self.0[at..at + length];
        field.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}
