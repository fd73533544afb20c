//! Reads lines that blkparse printed with a `-f` string.
//!
//! The letters are those of blkparse's manual: `a` action, `c` CPU, `C` command, `d`
//! operation letters, `D` major,minor, `e` error, `g` cgroup, `m` minor, `M` major, `n`
//! sectors, `N` bytes, `p` process, `P` payload, `s` sequence, `S` sector, `t` nanoseconds, `T`
//! seconds, `u` elapsed, `U` payload as a number; each may be preceded by `-` and a width.
//! Spaces around a field are padding.

use crate::error::TraceError;
use crate::event::SECTOR;
use crate::scan::{Scan, nanoseconds};

/// The most items of a string: more than a line has fields.
const ITEMS_MAX: usize = 64;

/// The fields of a line that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields<'a> {
    pub device: Option<(u32, u32)>,
    pub time_ns: i64,
    pub step_ns: u64,
    pub pid: i32,
    pub comm: &'a [u8],
    pub action: &'a [u8],
    pub rwbs: &'a [u8],
    pub sector: u64,
    pub sectors: u64,
    /// Start of the second part of a split.
    pub second: Option<u64>,
    /// Where a remapped bio was before.
    pub from: Option<((u32, u32), u64)>,
}

/// A parsed `-f` string.
#[derive(Debug)]
pub(crate) struct FormatString {
    items: Vec<Item>,
    has_nanoseconds: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Item {
    Text(Vec<u8>),
    Field {
        letter: u8,
        /// Its length in bytes if the next field follows without text between.
        width: Option<usize>,
        /// The character that ends it; `None` at the end of the line.
        until: Option<u8>,
    },
}

impl FormatString {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut items = items(text)?;
        if items.len() > ITEMS_MAX {
            return Err(wrong(format!("more than {ITEMS_MAX} parts")));
        }
        for place in 0..items.len() {
            let next = match items.get(place + 1) {
                Some(Item::Text(text)) => Some(text[0]),
                _ => None,
            };
            let before_field = matches!(items.get(place + 1), Some(Item::Field { .. }));
            if let Item::Field { letter, width, until } = &mut items[place] {
                *until = next;
                if !before_field {
                    *width = None;
                } else if width.is_none() {
                    let letter = char::from(*letter);
                    return Err(wrong(format!("%{letter} needs a width or some text behind it")));
                }
            }
        }
        let has = |wanted: u8| {
            items.iter().any(|i| matches!(i, Item::Field { letter, .. } if *letter == wanted))
        };
        for (letters, what) in [
            ("T", "seconds"),
            ("a", "the action"),
            ("d", "the operation letters"),
            ("S", "the sector"),
            ("nN", "the number of sectors (or %N, bytes)"),
        ] {
            if !letters.bytes().any(has) {
                return Err(wrong(format!("it needs %{}, {what}", &letters[..1])));
            }
        }
        let has_nanoseconds = has(b't');
        Ok(Self { items, has_nanoseconds })
    }

    /// Whether the string prints `letter`.
    pub fn prints(&self, wanted: u8) -> bool {
        self.items.iter().any(|i| matches!(i, Item::Field { letter, .. } if *letter == wanted))
    }

    /// The fields of a line; `None` if it is not in this form.
    pub fn fields<'a>(&self, line: &'a [u8]) -> Option<Fields<'a>> {
        let mut scan = Scan::new(line);
        let mut fields = Fields {
            pid: -1,
            step_ns: if self.has_nanoseconds { 1 } else { 1_000_000_000 },
            ..Fields::default()
        };
        let (mut seconds, mut part_ns) = (0, 0);
        for item in &self.items {
            match item {
                Item::Text(text) => literal(&mut scan, text)?,
                Item::Field { letter: b'T', width, .. } => seconds = number(&mut scan, *width)?,
                Item::Field { letter: b't', width, .. } => part_ns = number(&mut scan, *width)?,
                Item::Field { letter, width, until } => {
                    field(&mut scan, *letter, *width, *until, &mut fields)?;
                }
            }
        }
        scan.spaces();
        fields.time_ns = nanoseconds(seconds, part_ns)?;
        scan.rest.is_empty().then_some(fields)
    }
}

fn wrong(what: String) -> TraceError {
    TraceError::FormatString { what }
}

fn items(format: &str) -> Result<Vec<Item>, TraceError> {
    let mut items = Vec::new();
    let mut text = Vec::new();
    let mut bytes = format.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(b'n') | Some(b'r') => {}
                Some(b't') => text.push(b' '),
                Some(other) => text.push(other),
                None => return Err(wrong("it ends with a backslash".to_owned())),
            },
            b'\n' | b'\r' => {}
            b'\t' => text.push(b' '),
            b'%' if bytes.peek() == Some(&b'%') => {
                bytes.next();
                text.push(b'%');
            }
            b'%' => {
                bytes.next_if_eq(&b'-');
                let mut width = None;
                while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
                    let value = width.unwrap_or(0) * 10 + usize::from(digit - b'0');
                    width = Some(value.min(1000));
                }
                let letter = bytes.next().unwrap_or(b' ');
                if !b"acCdDegmMnNpPsStTuU".contains(&letter) {
                    let letter = char::from(letter);
                    return Err(wrong(format!("%{letter} is no field of blkparse")));
                }
                if !text.is_empty() {
                    items.push(Item::Text(std::mem::take(&mut text)));
                }
                items.push(Item::Field { letter, width, until: None });
            }
            other => text.push(other),
        }
    }
    if !text.trim_ascii().is_empty() {
        items.push(Item::Text(text));
    }
    Ok(items)
}

/// Consumes text; a space in it matches any number of spaces.
fn literal(scan: &mut Scan<'_>, text: &[u8]) -> Option<()> {
    for &byte in text {
        if byte == b' ' {
            scan.spaces();
        } else {
            // The padding of a left-aligned field precedes the text.
            scan.spaces();
            scan.eat(byte)?;
        }
    }
    Some(())
}

fn number(scan: &mut Scan<'_>, width: Option<usize>) -> Option<u64> {
    scan.spaces();
    let Some(width) = width else { return scan.number() };
    let (mut own, rest) = split(scan.rest, width);
    let value = own.spaced_number()?;
    scan.rest = rest;
    Some(value)
}

fn split(bytes: &[u8], width: usize) -> (Scan<'_>, &[u8]) {
    let (own, rest) = bytes.split_at(width.min(bytes.len()));
    (Scan::new(own), rest)
}

fn field<'a>(
    scan: &mut Scan<'a>,
    letter: u8,
    width: Option<usize>,
    until: Option<u8>,
    fields: &mut Fields<'a>,
) -> Option<()> {
    match letter {
        b'S' => fields.sector = number(scan, width)?,
        b'n' => fields.sectors = number(scan, width)?,
        b'N' => fields.sectors = number(scan, width)? / SECTOR,
        b'p' => fields.pid = i32::try_from(number(scan, width)?).ok()?,
        b'D' => fields.device = Some(scan.device()?),
        b'M' => fields.device = Some((small(scan, width)?, fields.device.map_or(0, |d| d.1))),
        b'm' => fields.device = Some((fields.device.map_or(0, |d| d.0), small(scan, width)?)),
        b'a' => fields.action = text(scan, width, until),
        b'd' => fields.rwbs = text(scan, width, until),
        b'C' => fields.comm = text(scan, width, until),
        _ => {
            text(scan, width, until);
        }
    }
    Some(())
}

fn small(scan: &mut Scan<'_>, width: Option<usize>) -> Option<u32> {
    u32::try_from(number(scan, width)?).ok()
}

fn text<'a>(scan: &mut Scan<'a>, width: Option<usize>, until: Option<u8>) -> &'a [u8] {
    let own = match (width, until) {
        (Some(width), _) => scan.rest.len().min(width),
        (None, Some(end)) => {
            scan.spaces();
            let end = scan.rest.iter().position(|&byte| byte == end);
            end.unwrap_or(scan.rest.len())
        }
        (None, None) => scan.rest.len(),
    };
    let (own, rest) = scan.rest.split_at(own);
    scan.rest = rest;
    own.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, line: &str, expected: &str) {
        let found = match FormatString::parse(format) {
            Err(error) => error.to_string(),
            Ok(format) => match format.fields(line.as_bytes()) {
                None => "no event".to_owned(),
                Some(f) => format!(
                    "{} {} {} {} {} {}+{} {:?}",
                    f.time_ns,
                    f.pid,
                    String::from_utf8_lossy(f.comm),
                    String::from_utf8_lossy(f.action),
                    String::from_utf8_lossy(f.rwbs),
                    f.sector,
                    f.sectors,
                    f.device,
                ),
            },
        };
        assert_eq!(found, expected, "{format} on {line}");
    }

    #[test]
    fn format_strings() {
        let usual = r"%5T.%9t,%p,%C,%a,%d,%S,%n,%N\n";
        let line = "    0.000000000,167,dd,Q,RM,69896,8,4096";
        check(usual, line, "0 167 dd Q RM 69896+8 None");
        check(usual, "12.000000007,1,my cmd,C,W,8,0,0", "12000000007 1 my cmd C W 8+0 None");
        check(usual, "CPU0 (8,0):", "no event");
        let default = "%D %2c %8s %5T.%9t %5p %2a %3d %S + %n [%C]";
        let line = "259,0    1        9     0.073520160   167  Q RAM 4104 + 8 [dd]";
        check(default, line, "73520160 167 dd Q RAM 4104+8 Some((259, 0))");
        check("%T,%D,%a,%d,%S,%N", "3,8,16,D,WS,64,4096", "3000000000 -1  D WS 64+8 Some((8, 16))");
        check(
            "%M:%m %T %2a%3d %-8S|%n",
            "8:1 3  D WS 64      |8",
            "3000000000 -1  D WS 64+8 Some((8, 1))",
        );
        let prefix = "the blkparse format string: ";
        check("%T %d", "", &format!("{prefix}it needs %a, the action"));
        check("%T%a", "", &format!("{prefix}%T needs a width or some text behind it"));
        check("%q", "", &format!("{prefix}%q is no field of blkparse"));
    }
}
