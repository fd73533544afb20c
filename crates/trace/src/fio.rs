//! fio's iolog, versions 2 and 3 (what `write_iolog` writes and `read_iolog` replays).
//!
//! The first line names the version. Then version 3 has `time name action offset length` with
//! the time in microseconds since the start of the job; version 2 has no time but
//! `name wait microseconds 0` lines, each relative to the one before, so they add up.
//! `name add`, `name open` and `name close` (after a time in version 3) list the files and are
//! not requests.
//!
//! Every file is a separate device: offsets count from the start of each file, so two files at
//! the same offset do not overlap. A name that is not below `/dev/` is also the file name. A
//! `sync` of a file is a flush of its device.
//!
//! Source: fio HOWTO, "Trace file format". fio's own replay of `wait` in version 2 has
//! differed between releases; this follows the HOWTO.

use crate::capabilities::Capabilities;
use crate::error::TraceError;
use crate::fields::{
    MICROSECOND, OUT_OF_RANGE, UNKNOWN_OP, WRONG_FIELDS, in_time_range, later, request, text, time,
    whole,
};
use crate::record::{Op, Record};
use crate::sink::{LineParser, Sink};
use crate::skips::SkipReason;
use crate::symbols::Symbol;

/// What the format contains.
pub const CAPABILITIES: Capabilities = Capabilities {
    discard: true,
    flush: true,
    file: true,
    clock_ns: MICROSECOND,
    ..Capabilities::READS_AND_WRITES
};

/// A `wait` in version 3, where each line has a time; fio ignores it too.
pub const WAIT_IN_V3: SkipReason = SkipReason("wait in an iolog of version 3");
/// `sync_file_range` starts write-back of a range but promises nothing and flushes nothing.
pub const RANGE_SYNC: SkipReason = SkipReason("sync_file_range, which flushes nothing");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// Reads an iolog from its first line on.
#[derive(Debug, Default)]
pub struct FioParser {
    version: Option<Version>,
    /// Sum of the waits so far (version 2).
    now_ns: i64,
}

impl FioParser {
    /// A parser at the start of a trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn request(
        &mut self,
        version: Version,
        line: &[u8],
        sink: &mut Sink,
    ) -> Result<Option<Record>, SkipReason> {
        let (stamp, rest) = match version {
            Version::Two => (self.now_ns, line),
            Version::Three => {
                let (stamp, rest) = first_word(line).ok_or(WRONG_FIELDS)?;
                (time(stamp, MICROSECOND)?, rest)
            }
        };
        let (rest, last) = last_word(rest).ok_or(WRONG_FIELDS)?;
        if matches!(last, b"add" | b"open" | b"close") {
            return Ok(None);
        }
        let (rest, middle) = last_word(rest).ok_or(WRONG_FIELDS)?;
        let (name, action) = last_word(rest).ok_or(WRONG_FIELDS)?;
        let (offset, len) = (whole(middle)?, whole(last)?);
        let mut record = match action {
            b"read" => request(Op::Read, stamp, offset, len)?,
            b"write" => request(Op::Write, stamp, offset, len)?,
            b"trim" => request(Op::Discard, stamp, offset, len)?,
            b"sync" | b"datasync" | b"syncfs" => {
                Record::new(Op::Flush, in_time_range(stamp)?, 0, 0)
            }
            b"wait" if version == Version::Three => return Err(WAIT_IN_V3),
            b"wait" => {
                let ns = i64::try_from(offset).ok().and_then(|us| us.checked_mul(1_000));
                self.now_ns = later(self.now_ns, ns.ok_or(OUT_OF_RANGE)?)?;
                return Ok(None);
            }
            b"sync_file_range" => return Err(RANGE_SYNC),
            _ => return Err(UNKNOWN_OP),
        };
        let name = text(name)?;
        record.device = sink.symbols.intern(name);
        let on_device = name.starts_with("/dev/");
        record.file = if on_device { Symbol::NONE } else { record.device };
        Ok(Some(record))
    }
}

impl LineParser for FioParser {
    fn line(&mut self, line: &[u8], number: u64, sink: &mut Sink) -> Result<(), TraceError> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let Some(version) = self.version else {
            self.version = Some(version_of(line, number)?);
            return Ok(());
        };
        match self.request(version, line, sink) {
            Ok(Some(record)) => sink.record(record, number),
            Ok(None) => Ok(()),
            Err(reason) => {
                sink.skip(reason, number);
                Ok(())
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }
}

fn version_of(line: &[u8], number: u64) -> Result<Version, TraceError> {
    let what = match line {
        b"fio version 2 iolog" => return Ok(Version::Two),
        b"fio version 3 iolog" => return Ok(Version::Three),
        _ if line.starts_with(b"fio version ") => {
            "this version of fio's iolog is not known; versions 2 and 3 are read"
        }
        _ => {
            "the first line is not \"fio version 2 iolog\" or \"fio version 3 iolog\"; an iolog \
             of version 1 (\"rw, offset, length\") has no times and no header: replay it with \
             fio and write_iolog=FILE to get a newer one, or describe it with --map FILE.toml"
        }
    };
    Err(TraceError::Bad { line: number, what: what.to_owned() })
}

fn first_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    Some((&line[..end], line[end..].trim_ascii_start()))
}

/// The text before the last word, and the last word. Splitting from the end keeps file names
/// with blanks whole.
fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = line.iter().rposition(u8::is_ascii_whitespace)? + 1;
    let (before, word) = (line[..start].trim_ascii_end(), &line[start..]);
    (!before.is_empty() && !word.is_empty()).then_some((before, word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{NOT_A_NUMBER, ZERO_LENGTH};
    use crate::testing;

    fn check(text: &str, lines: &[&str], skips: &[(&'static str, u64, u64)]) {
        let parsed = testing::parse(&mut FioParser::new(), text);
        assert_eq!(parsed.lines(), lines, "{text}");
        assert_eq!(parsed.skips, skips, "{text}");
    }

    #[test]
    fn a_log_written_by_fio_is_read_whole() {
        let text = include_str!("../../../samples/formats/fio-v3.iolog");
        let parsed = testing::parse(&mut FioParser::new(), text);
        let lines = parsed.lines();
        assert_eq!(parsed.skips, []);
        let count = |op| parsed.records.iter().filter(|record| record.op == op).count();
        assert_eq!([count(Op::Read), count(Op::Write), count(Op::Flush)], [19, 21, 4]);
        assert_eq!(lines[0], "0 ? read 1011712 4096 f f");
        assert_eq!(lines[1], "105000 ? read 12419072 4096 f f");
        assert_eq!(lines[17], "5348000 ? write 13496320 4096 f f");
        assert_eq!(lines[18], "5353000 ? flush 0 0 f f");
    }

    #[test]
    fn waits_of_version_2_add_up() {
        check(
            "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda wait 100 0\n\
             /dev/sda write 4096 512\n/dev/sda wait 250 0\n/dev/sda read 0 4096\n\
             /dev/sda wait 5 0\n/dev/sda trim 8192 4096\n/dev/sda datasync 0 0\n\
             /dev/sda close\n",
            &[
                "0 ? write 4096 512 /dev/sda",
                "250000 ? read 0 4096 /dev/sda",
                "255000 ? discard 8192 4096 /dev/sda",
                "255000 ? flush 0 0 /dev/sda",
            ],
            &[],
        );
    }

    #[test]
    fn each_file_is_a_device() {
        check(
            "fio version 3 iolog\n1 a b.dat add\n2 a b.dat write 0 512\n3 c write 0 512\n",
            &["0 ? write 0 512 a b.dat a b.dat", "1000 ? write 0 512 c c"],
            &[],
        );
    }

    #[test]
    fn every_kind_of_damage_has_its_reason() {
        let one = |line: &str, reason: SkipReason| {
            check(&format!("fio version 3 iolog\n{line}\n"), &[], &[(reason.0, 1, 2)]);
        };
        one("1 f read 0", WRONG_FIELDS);
        one("1", WRONG_FIELDS);
        one("1 read 0 512", WRONG_FIELDS);
        one("x f read 0 512", NOT_A_NUMBER);
        one("1 f read 0 0", ZERO_LENGTH);
        one("1 f unlink 0 0", UNKNOWN_OP);
        one("1 f read 9223372036854775807 1", OUT_OF_RANGE);
        one("99999999999999999 f sync 0 0", OUT_OF_RANGE);
        one("1 f wait 5 0", WAIT_IN_V3);
        one("1 f sync_file_range 0 4096", RANGE_SYNC);
    }

    #[test]
    fn versions_that_are_not_read_say_what_to_do() {
        let message = |text: &str| {
            let mut sink = Sink::new(0);
            FioParser::new().line(text.as_bytes(), 1, &mut sink).unwrap_err().to_string()
        };
        assert!(message("0, 4096, 512").contains("write_iolog=FILE"));
        assert!(message("fio version 4 iolog").contains("versions 2 and 3"));
    }
}
