//! The kernel's descriptions of its pages and events.
//!
//! ```text
//! name: block_rq_issue
//! ID: 2104
//! format:
//!         field:char rwbs[10];    offset:34;      size:10;        signed:0;
//!         field:__data_loc char[] cmd;    offset:60;      size:4; signed:0;
//! ```

use crate::error::TraceError;

/// Records are smaller than this, whatever a text says: the kernel's own limit is a page,
/// and pages are at most 64 KiB times a small power of two.
const RECORD_MAX: usize = 1 << 20;

/// The position and type of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub offset: usize,
    pub size: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    /// Bytes, up to the first that is zero; up to the end of the record if the size is 0,
    /// as `char buf[]` is, which old kernels print as `char buf`.
    Text,
    /// A number whose low half is the offset of the bytes in the record, and whose high half is
    /// their number.
    Located,
    /// The same, with an offset from the end of the number.
    LocatedBehind,
}

impl Field {
    /// The same field at another offset.
    pub fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    /// The number in the field, as unsigned; `None` if the record is too short.
    #[inline]
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset + self.size)?;
        Some(match *bytes {
            [byte] => byte.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            _ => u64::from_le_bytes(*bytes.first_chunk()?),
        })
    }

    /// The text in the field.
    #[inline]
    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        let behind = self.offset + self.size;
        let range = match self.kind {
            Kind::Number => return None,
            Kind::Text if self.size == 0 => self.offset..record.len(),
            Kind::Text => self.offset..behind,
            Kind::Located | Kind::LocatedBehind => {
                let place = self.number(record)?;
                let (at, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
                let at = if self.kind == Kind::Located { at } else { behind + at };
                at..at + len
            }
        };
        let bytes = record.get(range)?;
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

/// The description of one event.
#[derive(Debug)]
pub(crate) struct EventFormat {
    /// The name of the description in messages.
    file: String,
    /// The name of the event.
    pub event: String,
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl EventFormat {
    /// Reads the text of a `format` file, called `file` in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, TraceError> {
        let mut format = Self {
            file: file.to_owned(),
            event: String::new(),
            id: 0,
            fields: fields(file, text)?,
        };
        let value = |key: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(key));
            found.map(str::trim).ok_or_else(|| format.bad(format!("there is no line `{key} ...`")))
        };
        let (event, id) = (value("name:")?, value("ID:")?);
        let id = id.parse().map_err(|_| format.bad(format!("the ID {id} is no number of 16 bits")));
        (format.event, format.id) = (event.to_owned(), id?);
        Ok(format)
    }

    /// The field `name`, which has to be a number.
    pub fn number(&self, name: &str) -> Result<Field, TraceError> {
        number(&self.file, &self.fields, name)
    }

    /// The field `name`, which has to be a text.
    pub fn text(&self, name: &str) -> Result<Field, TraceError> {
        let field = find(&self.file, &self.fields, name)?;
        match field.kind {
            Kind::Number => Err(self.bad(format!("the field {name} is no text"))),
            _ => Ok(field),
        }
    }

    pub fn bad(&self, what: String) -> TraceError {
        TraceError::EventFormat { name: self.file.clone(), what }
    }
}

/// The field `name` of a description, which has to be a number.
pub(crate) fn number(
    file: &str,
    fields: &[(String, Field)],
    name: &str,
) -> Result<Field, TraceError> {
    let field = find(file, fields, name)?;
    if field.kind == Kind::Number && matches!(field.size, 1 | 2 | 4 | 8) {
        return Ok(field);
    }
    let what = format!("the field {name} is no number of 1, 2, 4 or 8 bytes");
    Err(TraceError::EventFormat { name: file.to_owned(), what })
}

/// The field `name` of a description.
pub(crate) fn find(
    file: &str,
    fields: &[(String, Field)],
    name: &str,
) -> Result<Field, TraceError> {
    let found = fields.iter().find(|(of, _)| of == name);
    found.map(|(_, field)| *field).ok_or_else(|| TraceError::EventFormat {
        name: file.to_owned(),
        what: format!("there is no field {name}"),
    })
}

/// The fields that `text`, called `file` in messages, describes.
pub(crate) fn fields(file: &str, text: &str) -> Result<Vec<(String, Field)>, TraceError> {
    let lines = text.lines().enumerate();
    let described = lines.filter_map(|(at, line)| Some((at, line.trim().strip_prefix("field:")?)));
    described
        .map(|(at, line)| {
            field(line).ok_or_else(|| TraceError::EventFormat {
                name: file.to_owned(),
                what: format!(
                    "line {} is not in the form `field:TYPE NAME; offset:N; size:N;`",
                    at + 1
                ),
            })
        })
        .collect()
}

fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    if offset > RECORD_MAX || size > RECORD_MAX {
        return None;
    }
    let (kind, name) = declared.rsplit_once(' ')?;
    let (name, is_array) = match name.split_once('[') {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let is_located = |word| kind.starts_with(word) && size == 4;
    let kind = if is_located("__data_loc ") {
        Kind::Located
    } else if is_located("__rel_data_loc ") {
        Kind::LocatedBehind
    } else if is_array || size == 0 {
        Kind::Text
    } else {
        Kind::Number
    };
    Some((name.to_owned(), Field { offset, size, kind }))
}
