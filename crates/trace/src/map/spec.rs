//! Reads and checks the TOML text of a map before any trace is read. An error names the line of
//! the map and the field, and says what is allowed there.

use std::collections::BTreeMap;

use prism_base::{Bytes, Nanos};
use regex::bytes::RegexBuilder;
use serde::Deserialize;
use toml::Spanned;

use super::checked::{
    At, Count, FieldRef, Flag, Map, Operation, Splitter, Stamp, Text, Unit, Words,
};
use crate::error::TraceError;
use crate::record::Op;

/// Every column that a map can have.
const COLUMNS: [&str; 17] = [
    "issue",
    "queue",
    "complete",
    "latency",
    "operation",
    "rwbs",
    "offset",
    "length",
    "device",
    "comm",
    "file",
    "pid",
    "inode",
    "stream",
    "sync",
    "meta",
    "fua",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MapToml {
    delimiter: Option<Spanned<String>>,
    regex: Option<Spanned<String>>,
    fields: Option<Spanned<usize>>,
    header_lines: Option<u64>,
    optional_header: Option<Spanned<bool>>,
    comment: Option<Spanned<String>>,
    disorder: Option<Spanned<String>>,
    columns: BTreeMap<String, Spanned<ColumnToml>>,
    operations: Option<Spanned<OperationsToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnToml {
    column: toml::Value,
    through: Option<toml::Value>,
    unit: Option<String>,
    base: Option<String>,
    words: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationsToml {
    #[serde(default)]
    read: Vec<String>,
    #[serde(default)]
    write: Vec<String>,
    #[serde(default)]
    discard: Vec<String>,
    #[serde(default)]
    write_zeroes: Vec<String>,
    #[serde(default)]
    flush: Vec<String>,
    #[serde(default)]
    ignore_case: bool,
}

/// Reads the text of a map.
pub(super) fn read(text: &str) -> Result<Map, TraceError> {
    let toml: MapToml = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        wrong(text, start, error.message().to_owned())
    })?;
    let splitter = splitter(text, &toml)?;
    let (fields, optional_header) = (fields(text, &toml)?, optional_header(text, &toml)?);
    let mut checker = Checker {
        text,
        named: splitter.groups(),
        header_lines: toml.header_lines.unwrap_or(0),
        columns: toml.columns,
        found: Vec::new(),
    };
    checker.known_columns_only()?;
    let [issue, queue, complete] = ["issue", "queue", "complete"].map(|name| checker.stamp(name));
    let (issue, queue, complete) = (issue?, queue?, complete?);
    let latency = checker.span("latency")?;
    if issue.is_none() && (complete.is_none() || latency.is_none()) {
        let what = "there is no time: give columns.issue, or columns.complete and \
                    columns.latency";
        return Err(wrong(text, 0, what.to_owned()));
    }
    let operation = checker.operation(toml.operations)?;
    Ok(Map {
        fields,
        header_lines: checker.header_lines,
        optional_header,
        comment: comment(text, toml.comment)?,
        disorder: disorder(text, toml.disorder)?,
        issue,
        queue,
        complete,
        latency,
        operation,
        offset: checker.required_bytes("offset")?,
        length: checker.required_bytes("length")?,
        device: checker.text("device")?,
        comm: checker.text("comm")?,
        file: checker.text("file")?,
        pid: checker.plain("pid")?,
        inode: checker.count("inode")?,
        stream: checker.count("stream")?,
        sync: checker.flag("sync")?,
        meta: checker.flag("meta")?,
        fua: checker.flag("fua")?,
        columns: checker.found,
        splitter,
    })
}

/// An error of the map at the byte `start` of its text.
fn wrong(text: &str, start: usize, what: String) -> TraceError {
    let before = &text.as_bytes()[..start.min(text.len())];
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
    TraceError::Bad { line, what: format!("(of the map) {what}") }
}

fn splitter(text: &str, toml: &MapToml) -> Result<Splitter, TraceError> {
    match (&toml.delimiter, &toml.regex) {
        (Some(delimiter), None) => match delimiter.get_ref().as_bytes() {
            b"whitespace" => Ok(Splitter::White),
            &[byte] if byte.is_ascii() => Ok(Splitter::Delimiter(byte)),
            _ => {
                let what = "delimiter must be one ASCII character or \"whitespace\"";
                Err(wrong(text, delimiter.span().start, what.to_owned()))
            }
        },
        // Logs are bytes: `.` is any of them but a line feed, and `\d`, `\w` and `\s` are ASCII.
        (None, Some(regex)) => match RegexBuilder::new(regex.get_ref()).unicode(false).build() {
            Ok(compiled) => Ok(Splitter::Regex(compiled)),
            Err(error) => {
                let what = format!("regex does not compile: {error}");
                Err(wrong(text, regex.span().start, what))
            }
        },
        _ => Err(wrong(text, 0, "give either delimiter or regex".to_owned())),
    }
}

/// How many fields each line has.
fn fields(text: &str, toml: &MapToml) -> Result<Option<usize>, TraceError> {
    match &toml.fields {
        Some(count) if toml.regex.is_some() => {
            let what = "fields has no meaning with regex";
            Err(wrong(text, count.span().start, what.to_owned()))
        }
        count => Ok(count.as_ref().map(|count| *count.get_ref())),
    }
}

fn optional_header(text: &str, toml: &MapToml) -> Result<bool, TraceError> {
    match &toml.optional_header {
        Some(given) if *given.get_ref() && toml.header_lines.is_some() => {
            let what = "give either header_lines or optional_header";
            Err(wrong(text, given.span().start, what.to_owned()))
        }
        given => Ok(given.as_ref().is_some_and(|given| *given.get_ref())),
    }
}

fn comment(text: &str, given: Option<Spanned<String>>) -> Result<Option<Vec<u8>>, TraceError> {
    match given {
        Some(prefix) if prefix.get_ref().trim().is_empty() => {
            let what = "comment must be the text that comment lines begin with, such as \"#\"";
            Err(wrong(text, prefix.span().start, what.to_owned()))
        }
        other => Ok(other.map(|prefix| prefix.into_inner().trim().as_bytes().to_vec())),
    }
}

fn disorder(text: &str, given: Option<Spanned<String>>) -> Result<Option<Nanos>, TraceError> {
    let Some(span) = given else { return Ok(None) };
    Nanos::parse(span.get_ref())
        .map(Some)
        .map_err(|error| wrong(text, span.span().start, format!("disorder: {error}")))
}

/// Removes the columns one by one from the table.
struct Checker<'a> {
    text: &'a str,
    /// Names of the groups if the line is cut by a regular expression.
    named: Option<Vec<Option<String>>>,
    header_lines: u64,
    columns: BTreeMap<String, Spanned<ColumnToml>>,
    found: Vec<FieldRef>,
}

/// An entry of `[columns]` whose column is known.
struct Column {
    name: &'static str,
    start: usize,
    at: At,
    through: Option<At>,
    unit: Option<String>,
    base: Option<String>,
    words: Option<Vec<String>>,
}

impl Checker<'_> {
    fn known_columns_only(&self) -> Result<(), TraceError> {
        match self.columns.iter().find(|(name, _)| !COLUMNS.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, column)) => {
                let known = COLUMNS.join(", ");
                let what = format!("columns.{name} is not known; known are {known}");
                Err(wrong(self.text, column.span().start, what))
            }
        }
    }

    fn take(&mut self, name: &'static str) -> Result<Option<Column>, TraceError> {
        let Some(spanned) = self.columns.remove(name) else { return Ok(None) };
        let start = spanned.span().start;
        let ColumnToml { column, through, unit, base, words } = spanned.into_inner();
        let at = self.find(name, "column", start, &column)?;
        let through = match &through {
            Some(column) => Some(self.find(name, "through", start, column)?),
            None => None,
        };
        Ok(Some(Column { name, start, at, through, unit, base, words }))
    }

    /// Resolves the column that `key` of the entry `name` names.
    fn find(
        &mut self,
        name: &str,
        key: &str,
        start: usize,
        column: &toml::Value,
    ) -> Result<At, TraceError> {
        let field = self
            .field(column)
            .map_err(|what| wrong(self.text, start, format!("columns.{name}.{key}: {what}")))?;
        self.found.push(field);
        Ok(At(self.found.len() - 1))
    }

    fn field(&self, value: &toml::Value) -> Result<FieldRef, String> {
        match (value, &self.named) {
            (toml::Value::Integer(index), groups) if *index >= 1 => {
                let index = *index as usize;
                let Some(groups) = groups else { return Ok(FieldRef::Index(index - 1)) };
                if index < groups.len() {
                    Ok(FieldRef::Index(index))
                } else {
                    Err(format!("the regular expression has no group {index}"))
                }
            }
            (toml::Value::String(name), Some(groups)) => groups
                .iter()
                .position(|group| group.as_deref() == Some(name))
                .map(FieldRef::Index)
                .ok_or_else(|| format!("the regular expression has no group {name:?}")),
            (toml::Value::String(_), None) if self.header_lines == 0 => {
                Err("a name needs header_lines of at least 1, the last of which holds the \
                     names; else give the number of the column, from 1"
                    .to_owned())
            }
            (toml::Value::String(name), None) => Ok(FieldRef::Name(name.clone())),
            _ => Err("give a name, or a number from 1".to_owned()),
        }
    }

    /// Fails for settings that have no meaning in this column.
    fn only(&self, column: &Column, allowed: &[&str]) -> Result<(), TraceError> {
        let given = [
            ("unit", column.unit.is_some()),
            ("base", column.base.is_some()),
            ("through", column.through.is_some()),
            ("words", column.words.is_some()),
        ];
        match given.iter().find(|(key, given)| *given && !allowed.contains(key)) {
            None => Ok(()),
            Some((key, _)) => {
                let what = format!("columns.{}.{key} has no meaning there", column.name);
                Err(wrong(self.text, column.start, what))
            }
        }
    }

    fn bad_unit(&self, column: &Column, allowed: &str) -> TraceError {
        let what = match &column.unit {
            Some(unit) => {
                format!("columns.{}.unit is {unit:?}; allowed is {allowed}", column.name)
            }
            None => format!("columns.{}.unit is missing; allowed is {allowed}", column.name),
        };
        wrong(self.text, column.start, what)
    }

    fn stamp(&mut self, name: &'static str) -> Result<Option<Stamp>, TraceError> {
        self.time(name, ("filetime", Unit::Filetime))
    }

    fn span(&mut self, name: &'static str) -> Result<Option<Stamp>, TraceError> {
        self.time(name, ("100ns", Unit::Ns(100)))
    }

    fn time(
        &mut self,
        name: &'static str,
        special: (&str, Unit),
    ) -> Result<Option<Stamp>, TraceError> {
        let Some(column) = self.take(name)? else { return Ok(None) };
        self.only(&column, &["unit"])?;
        let unit = match column.unit.as_deref() {
            Some("ps") => Unit::Ps,
            Some("ns") => Unit::Ns(1),
            Some("us") => Unit::Ns(1_000),
            Some("ms") => Unit::Ns(1_000_000),
            Some("s") => Unit::Ns(1_000_000_000),
            Some(unit) if unit == special.0 => special.1,
            _ => {
                let allowed = format!("\"ps\", \"ns\", \"us\", \"ms\", \"s\" or {:?}", special.0);
                return Err(self.bad_unit(&column, &allowed));
            }
        };
        Ok(Some(Stamp { at: column.at, unit }))
    }

    fn required_bytes(&mut self, name: &'static str) -> Result<Count, TraceError> {
        let Some(column) = self.take(name)? else {
            return Err(wrong(self.text, 0, format!("columns.{name} is missing")));
        };
        self.only(&column, &["unit", "base"])?;
        let unit = match column.unit.as_deref() {
            Some("bytes") => Some(1),
            Some("KiB") => Some(1024),
            Some(size) => Bytes::parse(size).ok().map(|bytes| bytes.0).filter(|&unit| unit > 0),
            None => None,
        };
        let allowed = "\"bytes\", \"KiB\", or the size of a sector or page such as \"512B\" or \
                       \"4KiB\"";
        let unit = unit.ok_or_else(|| self.bad_unit(&column, allowed))?;
        Ok(Count { at: column.at, unit, hex: self.base(&column)? })
    }

    fn count(&mut self, name: &'static str) -> Result<Option<Count>, TraceError> {
        let Some(column) = self.take(name)? else { return Ok(None) };
        self.only(&column, &["base"])?;
        Ok(Some(Count { at: column.at, unit: 1, hex: self.base(&column)? }))
    }

    fn base(&self, column: &Column) -> Result<bool, TraceError> {
        match column.base.as_deref() {
            None | Some("decimal") => Ok(false),
            Some("hex") => Ok(true),
            Some(other) => {
                let name = column.name;
                let what =
                    format!("columns.{name}.base is {other:?}; allowed is \"decimal\" or \"hex\"");
                Err(wrong(self.text, column.start, what))
            }
        }
    }

    fn plain(&mut self, name: &'static str) -> Result<Option<At>, TraceError> {
        let Some(column) = self.take(name)? else { return Ok(None) };
        self.only(&column, &[])?;
        Ok(Some(column.at))
    }

    fn text(&mut self, name: &'static str) -> Result<Option<Text>, TraceError> {
        let Some(column) = self.take(name)? else { return Ok(None) };
        self.only(&column, &["through"])?;
        Ok(Some(Text { first: column.at, last: column.through.unwrap_or(column.at) }))
    }

    fn flag(&mut self, name: &'static str) -> Result<Option<Flag>, TraceError> {
        let Some(mut column) = self.take(name)? else { return Ok(None) };
        self.only(&column, &["words"])?;
        let words = column.words.take().unwrap_or_default();
        if words.is_empty() {
            let what = format!("columns.{name}.words must list the words that mean yes");
            return Err(wrong(self.text, column.start, what));
        }
        let words = words.into_iter().map(String::into_bytes).collect();
        Ok(Some(Flag { at: column.at, words }))
    }

    fn operation(
        &mut self,
        table: Option<Spanned<OperationsToml>>,
    ) -> Result<Operation, TraceError> {
        let rwbs = self.plain("rwbs")?;
        let words = self.plain("operation")?;
        match (words, rwbs, table) {
            (None, Some(at), None) => Ok(Operation::Rwbs(at)),
            (Some(at), None, Some(table)) => self.words(at, &table),
            (Some(_), None, None) => {
                let what = "columns.operation needs the table [operations], which lists the \
                            words for read, write, discard, write_zeroes and flush";
                Err(wrong(self.text, 0, what.to_owned()))
            }
            (None, Some(_), Some(table)) => {
                let what = "[operations] has no meaning with columns.rwbs";
                Err(wrong(self.text, table.span().start, what.to_owned()))
            }
            _ => {
                let what = "give either columns.operation, for words of its own, or \
                            columns.rwbs, for letters as blkparse prints them";
                Err(wrong(self.text, 0, what.to_owned()))
            }
        }
    }

    fn words(&self, at: At, table: &Spanned<OperationsToml>) -> Result<Operation, TraceError> {
        let lists = table.get_ref();
        let mut words = Words::new(lists.ignore_case);
        for (list, op) in [
            (&lists.read, Op::Read),
            (&lists.write, Op::Write),
            (&lists.discard, Op::Discard),
            (&lists.write_zeroes, Op::WriteZeroes),
            (&lists.flush, Op::Flush),
        ] {
            for word in list {
                let bytes = word.trim().as_bytes();
                let what = if bytes.is_empty() {
                    "an operation needs a word that is not blank".to_owned()
                } else if words.get(bytes).is_some() {
                    format!("the word {word:?} means two operations")
                } else {
                    words.add(bytes, op);
                    continue;
                };
                return Err(wrong(self.text, table.span().start, what));
            }
        }
        if words.is_empty() {
            let what = "[operations] lists no word at all";
            return Err(wrong(self.text, table.span().start, what.to_owned()));
        }
        Ok(Operation::Words(at, words))
    }
}
