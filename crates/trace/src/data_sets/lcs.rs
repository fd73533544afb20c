//! The three kinds of headers of libCacheSim's `lcs` files.
//!
//! All begin and end with the same magic number. The oldest (1024 bytes) contains a format
//! string of Python's `struct` and the numbers, from 1, of the fields for the object, its size,
//! the time, the operation and the tenant. The next (1024 bytes) contains instead a version,
//! which determines the layout of records, and the unit of time. The newest has the same in
//! 8192 bytes with more versions, and its time is in seconds.

use super::cache_request::{CacheRequest, ORACLE_LEN, oracle_record};
use super::records::Fields;
use crate::fields::{MICROSECOND, MILLISECOND, SECOND};

/// The magic number at the start and the end of a header.
const MARK: u64 = 0x1234_5678_9abc_def0;

/// Bytes of the headers.
const SMALL: usize = 1024;
const LARGE: usize = 8192;

/// Bytes of a record by version, from 1. From version 3 on a size has 64 bits; later versions
/// only add features, which are not used.
const RECORD_LENS: [usize; 8] = [ORACLE_LEN, 28, 36, 40, 44, 52, 68, 100];

/// The newest version of records with a small header.
const SMALL_VERSIONS: usize = 2;

/// Offsets in the oldest header: the format string, and the numbers of the fields.
const FORMAT: std::ops::Range<usize> = 8..248;
const OBJECT_FIELD: usize = 248;
const SIZE_FIELD: usize = 249;
const TIME_FIELD: usize = 250;
const OPERATION_FIELD: usize = 253;
const TENANT_FIELD: usize = 255;

/// The offset of the unit of time in the second header.
const TIME_UNIT: usize = 124;

/// A header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Its bytes.
    pub len: usize,
    /// Bytes of each record.
    pub record_len: usize,
    /// The unit of times (ns).
    pub unit_ns: u64,
    layout: RecordLayout,
}

#[derive(Clone, Debug)]
enum RecordLayout {
    Version(usize),
    /// The positions of the used fields.
    Fields(Fielded),
}

/// A field of a record: its offset and length.
#[derive(Clone, Copy, Debug)]
struct FieldSpan {
    at: usize,
    len: usize,
    signed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Fielded {
    time: FieldSpan,
    object: FieldSpan,
    size: FieldSpan,
    operation: Option<FieldSpan>,
    tenant: Option<FieldSpan>,
}

/// Whether `head` starts with the magic number of these files.
pub(crate) fn is_head(head: &[u8]) -> bool {
    head.starts_with(&MARK.to_le_bytes())
}

impl Header {
    /// The header at the start of `bytes`; `None` if it is not complete yet.
    ///
    /// # Errors
    /// What is wrong with the header.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let mark = MARK.to_le_bytes();
        let start = &bytes[..bytes.len().min(mark.len())];
        if !mark.starts_with(start) {
            return Err("the file does not begin with the mark of lcs; check --format".into());
        }
        let Some(small) = bytes.get(..SMALL) else { return Ok(None) };
        let version = Fields(&small[8..]).u64();
        if small.ends_with(&mark) {
            if small[FORMAT.start].is_ascii_graphic() {
                return Self::of_format(small).map(Some);
            }
            let unit_ns = match Fields(&small[TIME_UNIT..]).u32() {
                0 | 1 => SECOND,
                2 => MILLISECOND,
                3 => MICROSECOND,
                4 => 1,
                unit => return Err(format!("the header has the unknown unit of time {unit}")),
            };
            return Self::of_version(version, SMALL_VERSIONS, SMALL, unit_ns).map(Some);
        }
        let Some(large) = bytes.get(..LARGE) else { return Ok(None) };
        if !large.ends_with(&mark) {
            return Err("the header of the lcs file does not end with its mark; the file is \
                        damaged, or of a newer form"
                .into());
        }
        Self::of_version(version, RECORD_LENS.len(), LARGE, SECOND).map(Some)
    }

    fn of_version(version: u64, newest: usize, len: usize, unit_ns: u64) -> Result<Self, String> {
        let known = usize::try_from(version).ok().filter(|known| (1..=newest).contains(known));
        let version = known.ok_or_else(|| {
            format!("the header has version {version}; versions 1 to {newest} are known")
        })?;
        let record_len = RECORD_LENS[version - 1];
        Ok(Self { len, record_len, unit_ns, layout: RecordLayout::Version(version) })
    }

    fn of_format(header: &[u8]) -> Result<Self, String> {
        let format = &header[FORMAT];
        let end = format.iter().position(|&byte| byte == 0).unwrap_or(format.len());
        let (places, record_len) = places(&format[..end])?;
        let optional = |at: usize| match usize::from(header[at]) {
            0 => Ok(None),
            number => places.get(number - 1).copied().map(Some).ok_or_else(|| {
                format!("the header names field {number}, but its format has {}", places.len())
            }),
        };
        let needed = |at, name| {
            optional(at)?.ok_or_else(|| format!("the header does not say which field is {name}"))
        };
        let fields = Fielded {
            time: needed(TIME_FIELD, "the time")?,
            object: needed(OBJECT_FIELD, "the object")?,
            size: needed(SIZE_FIELD, "the size")?,
            operation: optional(OPERATION_FIELD)?,
            tenant: optional(TENANT_FIELD)?,
        };
        let used = [Some(fields.time), Some(fields.object), Some(fields.size), fields.operation];
        if used.into_iter().chain([fields.tenant]).flatten().any(|place| place.len == 0) {
            return Err("a field that is used is a floating-point number".into());
        }
        let layout = RecordLayout::Fields(fields);
        Ok(Self { len: SMALL, record_len, unit_ns: SECOND, layout })
    }

    /// The request in `record`, which is complete.
    pub fn record(&self, record: &[u8]) -> CacheRequest {
        let version = match &self.layout {
            RecordLayout::Fields(fields) => return fields.record(record),
            RecordLayout::Version(version) => *version,
        };
        if version == 1 {
            return oracle_record(record);
        }
        let mut fields = Fields(record);
        let (time, object) = (fields.u32().into(), fields.u64());
        let size = if version == 2 { fields.u32().into() } else { fields.u64() };
        let word = fields.u32();
        let (operation, tenant) = (u64::from(word & 0xff), Some(u64::from(word >> 8)));
        CacheRequest { time, object, size, operation, tenant }
    }
}

impl Fielded {
    fn record(&self, record: &[u8]) -> CacheRequest {
        CacheRequest {
            time: self.time.read(record),
            object: self.object.read(record),
            size: self.size.read(record),
            operation: self.operation.map_or(0, |place| place.read(record)),
            tenant: self.tenant.map(|place| place.read(record)),
        }
    }
}

impl FieldSpan {
    /// The number in this field. A negative number becomes a huge one, which no request can
    /// have.
    fn read(self, record: &[u8]) -> u64 {
        let bytes = &record[self.at..self.at + self.len];
        let fill = if self.signed && bytes[self.len - 1] >= 0x80 { 0xff } else { 0 };
        let mut wide = [fill; 8];
        wide[..self.len].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    }
}

/// The position of each field of a packed little-endian `struct` format, and the total length.
/// Floating-point fields have a length of 0, because they are never read.
fn places(format: &[u8]) -> Result<(Vec<FieldSpan>, usize), String> {
    let shown = String::from_utf8_lossy(format);
    let Some(codes) = format.strip_prefix(b"<") else {
        return Err(format!("the format {shown:?} does not begin with < (little-endian)"));
    };
    let (mut places, mut at) = (Vec::new(), 0);
    for code in codes {
        let len = match code.to_ascii_lowercase() {
            b'b' | b'c' => 1,
            b'h' => 2,
            b'i' | b'l' | b'f' => 4,
            b'q' | b'd' => 8,
            _ => {
                let code = char::from(*code);
                return Err(format!("the format {shown:?} has the unknown code {code:?}"));
            }
        };
        let is_float = matches!(code, b'f' | b'd');
        let signed = code.is_ascii_lowercase();
        places.push(FieldSpan { at, len: if is_float { 0 } else { len }, signed });
        at += len;
    }
    if at == 0 { Err("the format string has no fields".into()) } else { Ok((places, at)) }
}
